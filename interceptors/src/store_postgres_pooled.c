#include "store_postgres_pooled.h"

#include "store_postgres_error.h"
#include "store_postgres_session.h"

#include <libpq-fe.h>
#include <string.h>

/* $1 statement, $2 idle in transaction; ms. */
static const char limits_sql[] =
    "SELECT set_config('statement_timeout', $1::bigint::text, true), "
    "set_config('idle_in_transaction_session_timeout', $2::bigint::text, "
    "true), set_config('synchronous_commit', CASE "
    "current_setting('synchronous_commit') WHEN 'remote_apply' THEN "
    "'remote_apply' ELSE 'on' END, true), set_config('jit', 'off', true)";

static const char defaults_sql[] =
    "SELECT current_setting('default_transaction_isolation'), "
    "current_setting('default_transaction_read_only')";

static bool
begins(const struct pg_query *query)
{
    return query->text && strncmp(query->text, "BEGIN", 5) == 0;
}

/* An error of the limits is the error of what came behind them. */
static void
give_results(struct pg_query *queries, unsigned n, struct pg_query *all,
             unsigned at)
{
    for (unsigned i = 0; i < n; i++)
        queries[i].result = all[i < at ? i : i + 1].result;
    if (at < n && !pg_query_ok(&all[at])) {
        PQclear(queries[at].result);
        queries[at].result = all[at].result;
    } else {
        PQclear(all[at].result);
    }
}

enum pg_end
pg_pooled_run(struct pg_session *session, struct pg_query *queries, unsigned n)
{
    const struct pg_store *postgres = session->postgres;
    struct pg_query all[PG_POOLED_MAX + 1];
    struct pg_arguments limits = {0};
    unsigned at = begins(&queries[0]) ? 1 : 0;
    enum pg_end end;

    if (!pg_link_is_up(&session->link) ||
        PQtransactionStatus(session->link.conn) != PQTRANS_IDLE)
        return pg_link_run(&session->link, queries, n, session->until_ns);
    IDEM_ASSERT(n <= PG_POOLED_MAX);
    pg_arguments_int(&limits, postgres->statement_ms);
    pg_arguments_int(&limits, postgres->idle_ms);
    for (unsigned i = 0; i < n; i++)
        all[i < at ? i : i + 1] = queries[i];
    all[at] = (struct pg_query){.text = limits_sql, .arguments = &limits};
    end = pg_link_run(&session->link, all, n + 1, session->until_ns);
    give_results(queries, n, all, at);
    return end;
}

static enum idem_status
judge_defaults(const struct pg_query *query, struct idem_error *err)
{
    struct idem_bytes isolation, reads;

    if (!pg_query_ok(query))
        return pg_fail_result(err, query->result);
    isolation = pg_value_bytes(query->result, 0);
    reads = pg_value_bytes(query->result, 1);
    if (!idem_bytes_equal(isolation, idem_bytes_of("read committed")))
        return idem_fail(err, IDEM_FAILED_PRECONDITION,
                         "pooled_conninfo: default_transaction_isolation is "
                         "%.*s, and must be read committed for that role",
                         (int)isolation.size, (const char *)isolation.data);
    if (!idem_bytes_equal(reads, idem_bytes_of("off")))
        return idem_fail(err, IDEM_FAILED_PRECONDITION,
                         "pooled_conninfo: default_transaction_read_only is "
                         "on, and must be off for that role");
    return IDEM_OK;
}

enum idem_status
pg_pooled_check(struct pg_session *session, struct idem_error *err)
{
    struct pg_query query = pg_text_query(defaults_sql);
    enum idem_status status =
        pg_session_run(session, &query, 1) == PG_OK
            ? judge_defaults(&query, err)
            : idem_fail(err, IDEM_UNAVAILABLE, "the connection is lost");

    pg_queries_clear(&query, 1);
    return status;
}
