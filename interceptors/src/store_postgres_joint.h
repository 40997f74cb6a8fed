#ifndef STORE_POSTGRES_JOINT_H
#define STORE_POSTGRES_JOINT_H

#include "store_postgres.h"

/* Interactive calls of methods with a group, several in one transaction:
 *
 *   BEGIN; try the locks of their keys; look at their keys
 *   SAVEPOINT; what the first handler runs
 *   SAVEPOINT (or ROLLBACK TO that one); what the next one runs …
 *   insert all records; COMMIT
 *
 * Handlers run one after another on the session's thread. One that fails, or
 * says "no", is undone to its savepoint, and its neighbours stay. Who has a
 * record, or whose key is somebody's, leaves and goes alone. Does the commit of
 * all fail, or is the connection lost before, each is told CONFLICT, and comes
 * again alone, because repeats do not join. Decision 24.
 *
 * A session of PG_LONG takes what waits, at most so much as the methods allow;
 * a few do so at a time (pg_joining.most), so that there is something to share.
 */

/* Under the store's lock: a claim that may join waits for its group. */
void pg_joint_post(struct pg_store *postgres, struct idem_ticket *ticket);

/* Under the store's lock: somebody else is to take of those that wait. */
void pg_joint_wake(struct pg_store *postgres);

/* Under the store's lock: take a group of those that wait. False: none. */
bool pg_joint_pick(struct pg_session *session);
bool pg_joint_is_picked(const struct pg_session *session);

/* Serve what was picked; all are told, or posted to go alone. */
void pg_joint_serve(struct pg_session *session);

#endif
