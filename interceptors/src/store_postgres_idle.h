#ifndef STORE_POSTGRES_IDLE_H
#define STORE_POSTGRES_IDLE_H

#include "store_postgres.h"

/* Sessions of a role that share what waits for it: whom to wake, how much one
 * takes, and how it sleeps. All under the store's lock. */

/* One that may serve; else, when none is up, one that refuses. NULL: all are
 * at work. */
struct pg_session *pg_idle_find(struct pg_store *postgres, enum pg_role role);

/* Tickets that one takes of those that wait, so that none takes all of them
 * while the others idle: who asks counts as free. */
unsigned pg_idle_share(const struct pg_store *postgres, enum pg_role role,
                       unsigned waiting);

/* May it take what it can serve, or refuse what nobody can? */
bool pg_idle_may_pick(const struct pg_session *session);

/* One that was found. */
void pg_idle_wake(struct pg_session *session);

/* Until somebody wakes it or it is time to connect. True: it was woken. One
 * that has served a single call, while no other of its role is at work, first
 * looks a while for the next one, without the lock (decision 63). */
bool pg_idle_sleep(struct pg_session *session);

#endif
