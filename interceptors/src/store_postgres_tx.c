#include "store_postgres_operation.h"

#include "sql.h"
#include "store_postgres_error.h"
#include "store_postgres_session.h"
#include "store_postgres_values.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>

/* The SQL of handlers, on the session's connection and the handler's thread. */

static enum idem_status
judge(struct pg_session *session, PGresult *result, struct idem_rows **rows,
      struct idem_error *err)
{
    ExecStatusType status = PQresultStatus(result);

    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
        *rows = pg_rows_read(session->tx.arena, result);
        if (*rows)
            return IDEM_OK;
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                         "the rows are over the call's memory");
    }
    if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT ||
        status == PGRES_COPY_BOTH) {
        session->link.broken = true;
        return idem_fail(err, IDEM_INTERNAL,
                         "COPY needs the connection itself");
    }
    if (pg_result_is_outgrown(result)) {
        pg_session_outgrow(session);
        return idem_fail(err, IDEM_ABORTED, "a table was changed");
    }
    if (session->joint && pg_result_is_timeout(result))
        return idem_fail(err, IDEM_ABORTED, "it took too long for a group");
    return pg_fail_result(err, result);
}

/* A failure to wait leaves the connection for complete to discard. */
static enum idem_status
answer(struct pg_session *session, struct pg_plan *prepared,
       struct idem_rows **rows, struct idem_error *err)
{
    PGresult *result, *rest = NULL;
    enum pg_end end = pg_link_wait(&session->link, session->until_ns, &result);
    enum idem_status status;

    if (end == PG_LATE) {
        session->link.broken = true;
        return idem_fail(err, IDEM_DEADLINE_EXCEEDED,
                         "PostgreSQL did not answer in time");
    }
    if (prepared)
        pg_plan_prepared(prepared, result);
    status = judge(session, result, rows, err);
    PQclear(result);
    if (end == PG_OK && !session->link.broken)
        end = pg_link_wait(&session->link, session->until_ns, &rest);
    PQclear(rest);
    if (end != PG_OK)
        session->link.broken = true;
    return status;
}

static enum idem_status
ask(struct pg_session *session, const struct pg_query *query,
    struct pg_plan *prepared, struct idem_rows **rows, struct idem_error *err)
{
    if (pg_link_send_one(&session->link, query))
        return answer(session, prepared, rows, err);
    session->link.broken = true;
    return idem_fail(err, IDEM_UNAVAILABLE, "PostgreSQL: %.200s",
                     PQerrorMessage(session->link.conn));
}

/* Its statement goes in one round trip with what is in front of it. The first
 * that fails is the result. */
static enum idem_status
ask_behind(struct pg_session *session, const struct pg_query *queries,
           unsigned n_queries, struct pg_plan *plan, struct idem_rows **rows,
           struct idem_error *err)
{
    struct pg_query all[3];
    unsigned n = 0, first = 0;
    enum idem_status status;
    enum pg_end end;

    all[n++] = pg_session_query(session, session->front, false, NULL);
    for (unsigned i = 0; i < n_queries; i++)
        all[n++] = queries[i];
    end = pg_link_run(&session->link, all, n, session->until_ns);
    if (plan)
        pg_plan_prepared(plan, all[n - 2].result);
    while (first + 1 < n && pg_query_ok(&all[first]))
        first++;
    status = end == PG_OK
                 ? judge(session, all[first].result, rows, err)
                 : idem_fail(err, IDEM_UNAVAILABLE, "the connection is lost");
    pg_queries_clear(all, n);
    session->in_front = false;
    return status;
}

/* In a group the server's own limits come first: a call that is late is no
 * reason to lose the work of the others. */
static int64_t
until_ns(const struct pg_session *session)
{
    return pg_store_until(session->postgres,
                          session->joint ? INT64_MAX : session->tx.deadline_ns,
                          GRACE_NS);
}

static enum idem_status
tx_exec(struct idem_tx *tx, struct idem_rows **rows, struct idem_error *err,
        const char *sql, const struct idem_value *values, size_t n)
{
    struct pg_session *session = (struct pg_session *)tx;
    struct pg_values parameters;
    struct pg_query queries[2];
    struct pg_plan *plan;
    unsigned n_queries;
    enum idem_status status =
        pg_values_fill(&parameters, tx->arena, values, n, err);

    if (status != IDEM_OK)
        return status;
    if (!pg_link_is_up(&session->link))
        return idem_fail(err, IDEM_UNAVAILABLE, "the connection is lost");
    if (session->pooled && sql_changes_session(sql))
        return idem_fail(err, IDEM_INTERNAL,
                         "behind a pooler nothing may outlast the transaction: "
                         "%.60s",
                         sql);
    session->until_ns = until_ns(session);
    session->touched = true;
    session->soiled |= sql_changes_session(sql);
    session->changed |= sql_changes_transaction(sql);
    n_queries = pg_plans_run(&session->plans, sql, &parameters, queries, &plan);
    if (session->in_front)
        return ask_behind(session, queries, n_queries, plan, rows, err);
    for (unsigned i = 0; i < n_queries && status == IDEM_OK; i++)
        status = ask(session, &queries[i], i == 0 ? plan : NULL, rows, err);
    return status;
}

struct pg_query
pg_begin_query(const struct pg_session *session)
{
    static const char *const begins[] = {
        [IDEM_READ_COMMITTED] =
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        [IDEM_REPEATABLE_READ] =
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE",
        [IDEM_SERIALIZABLE] = "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE",
    };

    return pg_text_query(begins[session->postgres->isolation]);
}

/* Its name is not to be guessed by a handler. */
struct pg_query
pg_guard_query(struct pg_session *session, char text[PG_GUARD_MAX])
{
    snprintf(session->savepoint, sizeof(session->savepoint),
             "idem_h_%016" PRIx64 "_%u", (uint64_t)session->owner,
             ++session->savepoints);
    snprintf(text, PG_GUARD_MAX, "SAVEPOINT %s", session->savepoint);
    session->guarded = true;
    return pg_text_query(text);
}

/* Through idem_sql nobody ends the transaction; on the connection he may. */
static bool
guard(struct pg_session *session)
{
    char text[PG_GUARD_MAX];
    struct pg_query query;
    bool ok;

    if (session->guarded)
        return true;
    session->until_ns = until_ns(session);
    session->guarded_late = session->touched;
    query = pg_guard_query(session, text);
    ok = pg_link_run(&session->link, &query, 1, session->until_ns) == PG_OK &&
         pg_query_ok(&query);
    pg_queries_clear(&query, 1);
    return ok;
}

/* Handed over as libpq gives it, blocking; NULL when there is nothing to be
 * done with it any more. */
static struct pg_conn *
tx_postgres(struct idem_tx *tx)
{
    struct pg_session *session = (struct pg_session *)tx;

    if (tx->failed != IDEM_OK || !pg_link_is_up(&session->link) ||
        !guard(session))
        return NULL;
    session->touched = true;
    session->soiled = true;
    PQsetnonblocking(session->link.conn, 0);
    return session->link.conn;
}

static struct sqlite3 *
tx_sqlite(struct idem_tx *tx)
{
    (void)tx;
    return NULL;
}

static const struct tx_ops ops = {tx_exec, tx_postgres, tx_sqlite};

void
pg_tx_begin(struct pg_session *session, struct idem_ticket *ticket)
{
    session->pinned = true;
    session->touched = false;
    session->guarded_late = false;
    session->tx = (struct idem_tx){
        .ops = &ops,
        .arena = ticket->arena,
        .clock = session->postgres->clock,
        .deadline_ns = ticket->deadline_ns,
    };
    ticket->tx = &session->tx;
    ticket->here = true;
}

void
pg_tell_swallowed(struct pg_session *session, struct idem_ticket *ticket)
{
    enum idem_status failed = session->tx.failed;

    if (failed == IDEM_ABORTED)
        ticket->verdict = IDEM_VERDICT_CONFLICT;
    else if (failed == IDEM_DEADLINE_EXCEEDED)
        pg_ticket_fail(ticket, failed, "", "a statement ran out of time");
    else
        pg_ticket_fail(ticket, IDEM_INTERNAL, "",
                       "a statement failed and the handler answered OK");
}

bool
pg_is_swallowed(const struct pg_session *session,
                const struct idem_ticket *ticket)
{
    return ticket->answer.status == IDEM_OK &&
           (session->tx.failed != IDEM_OK ||
            PQtransactionStatus(session->link.conn) == PQTRANS_INERROR);
}
