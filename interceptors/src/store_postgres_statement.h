#ifndef STORE_POSTGRES_STATEMENT_H
#define STORE_POSTGRES_STATEMENT_H

#include "store_postgres.h"

/* The sessions that serve transaction STATEMENT: whatever waits when one is
 * free shares a database transaction (store_postgres_share.h). No timer: a
 * share is as large as what came meanwhile. Calls that left it are posted to
 * the other sessions, each in a transaction of its own. */

void pg_sharing_init(struct pg_sharing *sharing);
void pg_sharing_fini(struct pg_sharing *sharing);

/* False: out of memory. */
bool pg_statement_init(struct pg_session *session) IDEM_MUST_CHECK;
void pg_statement_fini(struct pg_session *session);

/* A ticket to be run. Any thread. */
void pg_statement_post(struct pg_store *postgres, struct idem_ticket *ticket);

/* Shares have met each other's locks: for a while they go one at a time, and
 * this session's, which is at work, begins when it is its turn. */
void pg_statement_narrow(struct pg_session *session);

/* The thread of a session. */
void *pg_statement_serve(void *session);

#endif
