#ifndef STORE_POSTGRES_GROUP_H
#define STORE_POSTGRES_GROUP_H

#include "store_postgres.h"

/* The sessions that serve LEASED work: whatever waits when one is free travels
 * in one transaction. No timer: a batch is as large as what came meanwhile. */

/* False: out of memory. */
bool pg_group_init(struct pg_session *session) IDEM_MUST_CHECK;
void pg_group_fini(struct pg_session *session);

/* A ticket for the group: queued, or refused when it is a claim and too many
 * wait. Under the store's lock. */
void pg_group_post(struct pg_store *postgres, struct idem_ticket *ticket);

/* The thread of a session. */
void *pg_group_run(void *session);

#endif
