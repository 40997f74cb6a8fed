#ifndef STORE_POSTGRES_KEEPER_H
#define STORE_POSTGRES_KEEPER_H

#include "store_postgres.h"

/* Two threads beside the sessions: the keeper ends tickets that wait beyond
 * their deadline and those that are refused, the janitor maintains every so
 * often. INTERNAL: no thread. */
enum idem_status pg_keeper_start(struct pg_store *postgres,
                                 struct idem_error *err) IDEM_MUST_CHECK;

/* After postgres->stopping is set and both were woken. */
void pg_keeper_join(struct pg_store *postgres);

/* Tell the operator. */
void pg_keeper_alarm(struct pg_store *postgres, const char *what);

/* A ticket came into the queue. Under the store's lock. */
void pg_keeper_note(struct pg_store *postgres,
                    const struct idem_ticket *ticket);

#endif
