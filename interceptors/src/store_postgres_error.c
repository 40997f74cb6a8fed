#include "store_postgres_error.h"

#include <libpq-fe.h>
#include <string.h>

/* The first that begins like it wins. */
static const struct {
    const char *prefix;
    enum idem_status status;
} meanings[] = {
    {"23505", IDEM_ALREADY_EXISTS},
    {"23P01", IDEM_ALREADY_EXISTS},
    {"23", IDEM_FAILED_PRECONDITION},
    {"40001", IDEM_ABORTED},
    {"40P01", IDEM_ABORTED},
    {"55P03", IDEM_ABORTED},           /* NOWAIT; lock_timeout */
    {"57014", IDEM_DEADLINE_EXCEEDED}, /* statement_timeout */
    {"25P03", IDEM_DEADLINE_EXCEEDED}, /* idle in the transaction */
    {"08", IDEM_UNAVAILABLE},
    {"53", IDEM_UNAVAILABLE},
    {"57", IDEM_UNAVAILABLE},
    {"22", IDEM_INVALID_ARGUMENT},
    {"P0001", IDEM_FAILED_PRECONDITION}, /* RAISE EXCEPTION */
};

enum idem_status
pg_sqlstate_status(const char *sqlstate)
{
    if (!sqlstate || sqlstate[0] == '\0')
        return IDEM_UNAVAILABLE;
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (strncmp(sqlstate, meanings[i].prefix, strlen(meanings[i].prefix)) ==
            0)
            return meanings[i].status;
    return IDEM_INTERNAL; /* the SQL, or a table that is not there */
}

static const char *
field(const PGresult *result, int which)
{
    const char *text = result ? PQresultErrorField(result, which) : NULL;

    return text ? text : "";
}

bool
pg_result_is_unrouted(const PGresult *result)
{
    return strcmp(field(result, PG_DIAG_SQLSTATE), "23514") == 0 &&
           field(result, PG_DIAG_CONSTRAINT_NAME)[0] == '\0';
}

/* The state is any feature that is not supported; only the place says which. */
bool
pg_result_is_outgrown(const PGresult *result)
{
    return strcmp(field(result, PG_DIAG_SQLSTATE), "0A000") == 0 &&
           strcmp(field(result, PG_DIAG_SOURCE_FUNCTION),
                  "RevalidateCachedQuery") == 0;
}

bool
pg_result_is_timeout(const PGresult *result)
{
    return strcmp(field(result, PG_DIAG_SQLSTATE), "57014") == 0;
}

enum idem_status
pg_fail_result(struct idem_error *err, const PGresult *result)
{
    const char *sqlstate = field(result, PG_DIAG_SQLSTATE);
    const char *text = field(result, PG_DIAG_MESSAGE_PRIMARY);

    if (!text[0])
        text = "the connection is lost";
    return idem_fail_reason(err, pg_sqlstate_status(sqlstate),
                            field(result, PG_DIAG_CONSTRAINT_NAME),
                            "PostgreSQL: %s%s%s", text,
                            sqlstate[0] ? ", SQLSTATE " : "", sqlstate);
}
