#include "store_postgres_operation.h"

#include "fault.h"
#include "store_postgres_error.h"

#include <idem/reason.h>

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

/* The end of mode TRANSACTION (semantics.md 4.4, b4 to b6). The record is
 * written by an INSERT that fails when a rival was first, so that the COMMIT
 * behind it in the same round trip cannot commit the handler's work alone. A
 * "no" is recorded without that work: behind the savepoint, or in a transaction
 * of its own right behind the one that is rolled back. A session's number is
 * looked at once more behind the INSERT: a rival's record may have come and,
 * acknowledged, gone since the claim (decision 60). */

#define CLOSING_MAX 6

/* The queries of the last round trip. */
struct closing {
    char saved[PG_GUARD_MAX];
    struct pg_query queries[CLOSING_MAX];
    unsigned n, recorded; /* the record's; COMMIT is the last */
    unsigned numbered;    /* what looks at a session's number; 0: nothing */
};

static void
fail_with(struct idem_ticket *ticket, const PGresult *result)
{
    ticket->verdict = IDEM_VERDICT_FAILED;
    (void)pg_fail_result(&ticket->error, result);
}

/* Nothing was committed, and the connection is not to be used again. */
static void
discard(struct pg_session *session, struct idem_ticket *ticket,
        enum idem_status status, const char *why)
{
    pg_session_close(session);
    pg_ticket_fail(ticket, status,
                   status == IDEM_UNAVAILABLE ? IDEM_STORE_AWAY : "", why);
}

/* Back to a session without a transaction; a lost one has none. */
static void
roll_back(struct pg_session *session)
{
    struct pg_query query =
        pg_session_query(session, SQL_ROLLBACK, false, NULL);
    enum pg_end end = pg_session_run(session, &query, 1);

    if (end == PG_OK && !pg_query_ok(&query))
        pg_session_close(session);
    pg_queries_clear(&query, 1);
}

/* The handler has ended the transaction by itself: what it wrote may stand, so
 * that nobody may run it again. */
static void
write_doubt(struct pg_session *session, struct idem_ticket *ticket)
{
    struct pg_arguments arguments;
    struct row_key key;
    long changed = -1;
    enum pg_end end = PG_LOST;

    pg_row_key_of(&key, &ticket->id);
    pg_identity_arguments(&arguments, &key, ticket);
    for (int i = 0; i < POSTGRES_TRIES && end == PG_LOST; i++) {
        if (!pg_link_is_up(&session->link) &&
            pg_session_open(session, &ticket->error) != IDEM_OK)
            break;
        session->until_ns = pg_store_until(
            session->postgres, ticket->deadline_ns, COMMIT_GRACE_NS);
        end = pg_change(session, ticket, SQL_DOUBT_UNSEEN, key.opaque,
                        &arguments, &changed);
    }
    ticket->verdict = IDEM_VERDICT_DOUBT;
}

static void
end_in_doubt(struct pg_session *session, struct idem_ticket *ticket)
{
    if (PQtransactionStatus(session->link.conn) != PQTRANS_IDLE)
        roll_back(session);
    write_doubt(session, ticket);
}

/* Which of the two it is: a rival's answer, or a record that says something
 * else, for the next claim to find. */
static void
tell_rival(struct pg_session *session, struct idem_ticket *ticket)
{
    struct record record;
    int64_t owner;
    bool found;

    roll_back(session);
    ticket->verdict = IDEM_VERDICT_CONFLICT;
    if (!pg_link_is_up(&session->link) ||
        pg_find(session, ticket, &record, &owner, &found) != PG_OK || !found ||
        record_claim(&record, ticket) != RECORD_KEEP ||
        ticket->verdict != IDEM_VERDICT_DONE)
        ticket->verdict = IDEM_VERDICT_CONFLICT;
}

static void
tell_error(struct pg_session *session, struct idem_ticket *ticket,
           const PGresult *result)
{
    fail_with(ticket, result);
    if (ticket->error.status == IDEM_ABORTED)
        ticket->verdict = IDEM_VERDICT_CONFLICT;
    roll_back(session);
}

static void
tell_saved_error(struct pg_session *session, struct idem_ticket *ticket,
                 const struct pg_query *query)
{
    const char *sqlstate = pg_query_sqlstate(query);

    if (strcmp(sqlstate, "25P01") == 0 || strcmp(sqlstate, "3B001") == 0)
        end_in_doubt(session, ticket);
    else
        tell_error(session, ticket, query->result);
}

static void
tell_recorded_error(struct pg_session *session, struct idem_ticket *ticket,
                    const struct pg_query *query)
{
    const char *sqlstate = pg_query_sqlstate(query);

    if (strcmp(sqlstate, "23505") == 0) {
        tell_rival(session, ticket);
    } else if (pg_result_is_unrouted(query->result)) {
        roll_back(session);
        pg_ticket_fail(ticket, IDEM_FAILED_PRECONDITION, IDEM_KEY_EXPIRED,
                       "the key's day was closed while its handler ran");
    } else {
        tell_error(session, ticket, query->result);
    }
}

/* COMMIT of a failed transaction is answered with the tag ROLLBACK and no error
 * (semantics.md M4). */
static void
tell_commit(struct pg_session *session, struct idem_ticket *ticket,
            const struct closing *closing)
{
    const struct pg_query *last = &closing->queries[closing->n - 1];
    PGresult *commit = last->result;

    if (!pg_query_ok(last)) {
        tell_error(session, ticket, commit);
    } else if (strcmp(PQcmdStatus(commit), "COMMIT") != 0) {
        pg_ticket_fail(ticket, IDEM_INTERNAL, "",
                       "the transaction had failed: rolled back");
    } else {
        ticket->verdict = IDEM_VERDICT_MINE;
        ticket->answer.first_at_ms =
            session->taken
                ? pg_value_int(closing->queries[closing->recorded].result, 0)
                : session->begun_ms;
    }
}

/* Ended before the COMMIT was read: the database says so when it does. */
static void
tell_lost(struct idem_ticket *ticket, const struct pg_query *queries)
{
    ticket->verdict = IDEM_VERDICT_UNKNOWN;
    if (strcmp(pg_query_sqlstate(&queries[0]), "25P03") == 0)
        fail_with(ticket, queries[0].result);
}

/* What the handler wrote stands with its OK, and else is undone. */
static void
settle_work(struct pg_session *session, const struct idem_ticket *ticket,
            struct closing *closing)
{
    bool kept = ticket->answer.status == IDEM_OK;

    if (session->guarded) {
        snprintf(closing->saved, sizeof(closing->saved), "%s SAVEPOINT %s",
                 kept ? "RELEASE" : "ROLLBACK TO", session->savepoint);
        closing->queries[closing->n++] = pg_text_query(closing->saved);
    }
    if (!kept && session->touched &&
        (!session->guarded || session->guarded_late)) {
        closing->queries[closing->n++] =
            pg_session_query(session, SQL_ROLLBACK, false, NULL);
        closing->queries[closing->n++] = pg_begin_query(session);
    }
    closing->recorded = closing->n;
}

/* Its number was acknowledged: the next claim is told so. */
static void
tell_number(struct pg_session *session, struct idem_ticket *ticket,
            const struct pg_query *query)
{
    if (strcmp(pg_query_sqlstate(query), "22012") != 0) {
        tell_error(session, ticket, query->result);
        return;
    }
    roll_back(session);
    ticket->verdict = IDEM_VERDICT_CONFLICT;
}

static void
tell_closing(struct pg_session *session, struct idem_ticket *ticket,
             const struct closing *closing)
{
    const struct pg_query *queries = closing->queries;

    for (unsigned i = 0; i < closing->recorded; i++) {
        if (!pg_query_ok(&queries[i])) {
            tell_saved_error(session, ticket, &queries[i]);
            return;
        }
    }
    if (!pg_query_ok(&queries[closing->recorded]))
        tell_recorded_error(session, ticket, &queries[closing->recorded]);
    else if (closing->numbered && !pg_query_ok(&queries[closing->numbered]))
        tell_number(session, ticket, &queries[closing->numbered]);
    else
        tell_commit(session, ticket, closing);
}

static void
commit(struct pg_session *session, struct idem_ticket *ticket)
{
    struct closing closing = {.n = 0};
    struct pg_arguments arguments;
    struct pg_arguments number;
    uint8_t digest[32];
    struct row_key key;

    pg_row_key_of(&key, &ticket->id);
    if (session->taken)
        pg_fence_arguments(&arguments, &key, ticket->token);
    else
        pg_identity_arguments(&arguments, &key, ticket);
    pg_answer_arguments(&arguments, &ticket->answer);
    if (!session->taken)
        pg_arguments_int(&arguments, session->begun_ms);
    settle_work(session, ticket, &closing);
    closing.queries[closing.n++] =
        pg_session_query(session, session->taken ? SQL_COMPLETE : SQL_RECORD,
                         key.opaque, &arguments);
    if (ticket->id.key.sequence > 0) {
        closing.numbered = closing.n;
        closing.queries[closing.n++] =
            pg_number_query(session, ticket, &number, digest);
    }
    closing.queries[closing.n++] = pg_text_query("COMMIT");
    if (pg_session_try(session, closing.queries, closing.n) == PG_OK)
        tell_closing(session, ticket, &closing);
    else
        tell_lost(ticket, closing.queries);
    pg_queries_clear(closing.queries, closing.n);
}

/* How the handler left the connection. True: the transaction is whole. */
static bool
is_left_well(struct pg_session *session, struct idem_ticket *ticket)
{
    PGconn *conn = session->link.conn;

    if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF ||
        PQtransactionStatus(conn) == PQTRANS_ACTIVE) {
        discard(session, ticket, IDEM_INTERNAL,
                "the handler left the connection in the middle of a statement");
        return false;
    }
    if (PQtransactionStatus(conn) != PQTRANS_IDLE)
        return true;
    end_in_doubt(session, ticket);
    return false;
}

static void
fail_swallowed(struct pg_session *session, struct idem_ticket *ticket)
{
    roll_back(session);
    pg_tell_swallowed(session, ticket);
}

void
pg_transaction_complete(struct pg_session *session, struct idem_ticket *ticket)
{
    session->until_ns =
        pg_store_until(session->postgres, ticket->deadline_ns, COMMIT_GRACE_NS);
    ticket->tx = NULL;
    if (IDEM_FAULT("postgres.commit.before"))
        session->link.broken = true;
    if (!pg_link_is_up(&session->link))
        discard(session, ticket, IDEM_UNAVAILABLE,
                "the connection was lost before the commit");
    else if (!is_left_well(session, ticket))
        return;
    else if (pg_is_swallowed(session, ticket))
        fail_swallowed(session, ticket);
    else
        commit(session, ticket);
    if (IDEM_FAULT("postgres.commit.after")) {
        pg_session_close(session);
        ticket->verdict = IDEM_VERDICT_UNKNOWN;
    }
}

/* Behind the savepoint the record is ours to change. */
static void
commit_count(struct pg_session *session, struct idem_ticket *ticket)
{
    struct pg_arguments arguments;
    struct pg_query queries[2];
    struct row_key key;

    pg_row_key_of(&key, &ticket->id);
    if (session->taken)
        pg_fence_arguments(&arguments, &key, ticket->token);
    else
        pg_identity_arguments(&arguments, &key, ticket);
    queries[0] =
        pg_session_query(session, session->taken ? SQL_RELEASE : SQL_COUNT,
                         key.opaque, &arguments);
    queries[1] = pg_text_query("COMMIT");
    if (pg_session_run(session, queries, 2) == PG_LOST)
        pg_session_close(session);
    pg_queries_clear(queries, 2);
}

/* Behind no savepoint: in a transaction of its own. */
static void
count_alone(struct pg_session *session, struct idem_ticket *ticket)
{
    struct pg_arguments arguments;
    struct row_key key;
    long changed;

    roll_back(session);
    if (!ticket->counts || !pg_link_is_up(&session->link))
        return;
    pg_row_key_of(&key, &ticket->id);
    pg_identity_arguments(&arguments, &key, ticket);
    (void)pg_change(session, ticket, SQL_COUNT, key.opaque, &arguments,
                    &changed);
}

/* Did the savepoint still stand? Else the handler has ended the transaction,
 * and may have begun another. */
static void
undo_guarded(struct pg_session *session, struct idem_ticket *ticket)
{
    char saved[PG_GUARD_MAX];
    struct pg_query query;
    const char *sqlstate;
    bool doubt;

    snprintf(saved, sizeof(saved), "ROLLBACK TO SAVEPOINT %s",
             session->savepoint);
    query = pg_text_query(saved);
    if (pg_session_run(session, &query, 1) != PG_OK)
        return;
    sqlstate = pg_query_sqlstate(&query);
    doubt = strcmp(sqlstate, "3B001") == 0 || strcmp(sqlstate, "25P01") == 0;
    if (pg_query_ok(&query) && session->guarded_late)
        count_alone(session, ticket);
    else if (pg_query_ok(&query) && ticket->counts)
        commit_count(session, ticket);
    pg_queries_clear(&query, 1);
    if (pg_link_is_up(&session->link) &&
        PQtransactionStatus(session->link.conn) != PQTRANS_IDLE)
        roll_back(session);
    if (doubt)
        write_doubt(session, ticket);
}

/* What the handler wrote is undone; that it ran stays. */
static void
undo(struct pg_session *session, struct idem_ticket *ticket)
{
    ticket->verdict = IDEM_VERDICT_MINE;
    if (session->guarded)
        undo_guarded(session, ticket);
    else
        count_alone(session, ticket);
    if (ticket->verdict == IDEM_VERDICT_FAILED)
        ticket->verdict = IDEM_VERDICT_MINE;
}

void
pg_transaction_release(struct pg_session *session, struct idem_ticket *ticket)
{
    session->until_ns =
        pg_store_until(session->postgres, ticket->deadline_ns, COMMIT_GRACE_NS);
    ticket->tx = NULL;
    (void)IDEM_FAULT("postgres.release.before");
    if (!pg_link_is_up(&session->link) ||
        PQtransactionStatus(session->link.conn) == PQTRANS_ACTIVE) {
        /* A transaction ends with its connection. */
        pg_session_close(session);
        ticket->verdict = IDEM_VERDICT_MINE;
    } else if (is_left_well(session, ticket)) {
        undo(session, ticket);
    }
}
