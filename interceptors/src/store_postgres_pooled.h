#ifndef STORE_POSTGRES_POOLED_H
#define STORE_POSTGRES_POOLED_H

#include "store_postgres.h"

/* A session behind a pooler that gives each transaction any of its connections
 * (PgBouncer, pool_mode = transaction). Nothing may outlast a transaction
 * there: what other sessions set once goes in front of each, statements are
 * sent as they are and never prepared under a name, locks are the
 * transaction's.
 *
 * A pooled connection outlives the server behind it, so it says nothing of
 * which server that is: the epoch is told by the direct ones. */

/* As pg_link_run of the session's link: outside a transaction its limits are
 * set in front, behind a BEGIN if there is one. At most PG_POOLED_MAX. */
enum pg_end pg_pooled_run(struct pg_session *session, struct pg_query *queries,
                          unsigned n) IDEM_MUST_CHECK;

#define PG_POOLED_MAX 12

/* May such a session work there? What a transaction begins with cannot be set
 * for each, and so must be the pooler's own. FAILED_PRECONDITION: it is not. */
enum idem_status pg_pooled_check(struct pg_session *session,
                                 struct idem_error *err) IDEM_MUST_CHECK;

#endif
