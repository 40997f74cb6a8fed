#include "store_postgres_operation.h"

#include "store_postgres_error.h"

/* A read-only transaction for a handler of mode NONE. */

enum pg_end
pg_read_begin(struct pg_session *session, struct idem_ticket *ticket,
              bool again)
{
    struct pg_query queries[] = {
        pg_text_query("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"),
        pg_session_query(session, SQL_READ, false, NULL)};
    enum pg_end end = pg_session_run(session, queries, 2);

    (void)again;
    if (end != PG_OK)
        return end;
    if (pg_query_ok(&queries[1])) {
        session->guarded = false;
        ticket->verdict = IDEM_VERDICT_MINE;
        pg_tx_begin(session, ticket);
    } else {
        ticket->verdict = IDEM_VERDICT_FAILED;
        (void)pg_fail_result(&ticket->error, queries[1].result);
    }
    pg_queries_clear(queries, 2);
    return PG_OK;
}

void
pg_read_end(struct pg_session *session)
{
    struct pg_query query = pg_text_query("ROLLBACK");
    const struct idem_clock *clock = session->postgres->clock;

    session->until_ns = clock->monotonic_ns(clock) + COMMIT_GRACE_NS;
    if (!pg_link_is_up(&session->link))
        pg_session_close(session);
    else if (pg_session_run(session, &query, 1) == PG_OK &&
             !pg_query_ok(&query))
        pg_session_close(session);
    pg_queries_clear(&query, 1);
}
