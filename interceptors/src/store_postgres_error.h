#ifndef STORE_POSTGRES_ERROR_H
#define STORE_POSTGRES_ERROR_H

#include <idem/status.h>

struct pg_result;

/* What an SQLSTATE is to a handler, as <idem/tx.h> promises it; "" is a lost
 * connection. */
enum idem_status pg_sqlstate_status(const char *sqlstate);

/* No partition takes the key; not one of our checks. */
bool pg_result_is_unrouted(const struct pg_result *result);

/* A prepared statement whose table was changed so that its rows are others. */
bool pg_result_is_outgrown(const struct pg_result *result);

/* A statement that was given up after its time. */
bool pg_result_is_timeout(const struct pg_result *result);

/* Fill an error from a failed result: status, PostgreSQL's words, and the
 * constraint's name as the reason. NULL result: the connection is lost. */
enum idem_status pg_fail_result(struct idem_error *err,
                                const struct pg_result *result);

#endif
