#include "store_postgres_operation.h"

#include "fault.h"
#include "store_postgres_error.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>

/* The begin of mode TRANSACTION (semantics.md 4.4): in one round trip, but in
 * statements of their own, begin, try the key's lock, read the record, set the
 * savepoint that tells later whether the handler has ended the transaction.
 *
 * Beyond READ COMMITTED the record is read as of the lock's statement, so that
 * an answer committed in between is missed; the INSERT of our record then finds
 * it, and all is rolled back (B071). */

#define TAKEN_LEASE_MS 3600000 /* never seen by others: it is not committed */

enum opening { BEGIN, LOCK, LOOK, SAVEPOINT, OPENING };

static const char *const begins[] = {
    [IDEM_READ_COMMITTED] = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
    [IDEM_REPEATABLE_READ] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE",
    [IDEM_SERIALIZABLE] = "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE",
};

/* Waits of the database end when the call does. */
static void
lock_arguments(struct pg_arguments *arguments, const struct pg_session *session,
               const struct idem_ticket *ticket)
{
    const struct pg_store *postgres = session->postgres;
    int64_t now_ns = postgres->clock->monotonic_ns(postgres->clock);
    int64_t left_ms = (ticket->deadline_ns - now_ns) / 1000000;
    int64_t idle_ms = postgres->idle_ms;

    if (left_ms < 1)
        left_ms = 1;
    if (idle_ms > left_ms + COMMIT_GRACE_NS / 1000000)
        idle_ms = left_ms + COMMIT_GRACE_NS / 1000000;
    if (left_ms > postgres->statement_ms)
        left_ms = postgres->statement_ms;
    pg_arguments_int(arguments, pg_row_lock_of(&ticket->id));
    pg_arguments_int(arguments, left_ms);
    pg_arguments_int(arguments, idle_ms);
}

static void
name_savepoint(struct pg_session *session)
{
    snprintf(session->savepoint, sizeof(session->savepoint),
             "idem_h_%016" PRIx64 "_%u", (uint64_t)session->owner,
             ++session->savepoints);
}

static enum pg_end
roll_back(struct pg_session *session)
{
    struct pg_query query = pg_text_query("ROLLBACK");
    enum pg_end end = pg_session_run(session, &query, 1);

    pg_queries_clear(&query, 1);
    return end;
}

/* A released record is taken over inside the transaction, before the savepoint:
 * its row is ours until the end, so that completing it cannot fail. */
static enum pg_end
take_over(struct pg_session *session, struct idem_ticket *ticket,
          const struct record *record, bool *taken)
{
    char undo[64], again[64];
    struct pg_arguments arguments;
    struct pg_query queries[3];
    struct row_key key;
    enum pg_end end;

    snprintf(undo, sizeof(undo), "RELEASE SAVEPOINT %s", session->savepoint);
    snprintf(again, sizeof(again), "SAVEPOINT %s", session->savepoint);
    pg_row_key_of(&key, &ticket->id);
    pg_take_arguments(&arguments, &key, record, ticket, session->owner,
                      TAKEN_LEASE_MS);
    queries[0] = pg_text_query(undo);
    queries[1] = pg_session_query(session, SQL_TAKE, key.opaque, &arguments);
    queries[2] = pg_text_query(again);
    end = pg_session_run(session, queries, 3);
    *taken = end == PG_OK && pg_query_ok(&queries[2]) &&
             pg_query_rows(&queries[1]) == 1;
    if (*taken) {
        ticket->token = pg_value_int(queries[1].result, 0);
        ticket->executions = (unsigned)pg_value_int(queries[1].result, 1);
    }
    pg_queries_clear(queries, 3);
    return end;
}

/* The key is free: give the transaction to the handler. */
static enum pg_end
begin(struct pg_session *session, struct idem_ticket *ticket,
      const struct record *record)
{
    enum pg_end end = PG_OK;

    session->taken = record->state != RECORD_ABSENT;
    ticket->verdict = IDEM_VERDICT_MINE;
    ticket->token = 1;
    ticket->executions = 1;
    if (session->taken) {
        bool taken;

        end = take_over(session, ticket, record, &taken);
        if (end == PG_OK && !taken) {
            ticket->verdict = IDEM_VERDICT_RUNNING;
            ticket->wait_ms = 0;
            return roll_back(session);
        }
    }
    if (end == PG_OK)
        pg_tx_begin(session, ticket);
    return end;
}

static enum pg_end
hold(struct pg_session *session, struct idem_ticket *ticket,
     const struct record *record)
{
    bool held;
    enum pg_end end = roll_back(session);

    if (end == PG_OK)
        end = pg_hold(session, ticket, record, &held);
    if (end == PG_OK && !held) {
        ticket->verdict = IDEM_VERDICT_RUNNING;
        ticket->wait_ms = 0;
    }
    return end;
}

/* The lock is somebody's, and there is no record that says more. */
static bool
is_running(const struct record *record, bool locked)
{
    return !locked &&
           (record->state == RECORD_ABSENT || record->state == RECORD_RELEASED);
}

static enum pg_end
decide(struct pg_session *session, struct idem_ticket *ticket,
       const struct record *record, bool locked)
{
    enum record_move move = record_claim(record, ticket);

    if (move == RECORD_HOLD)
        return hold(session, ticket, record);
    if (move != RECORD_TAKE)
        return roll_back(session);
    if (!is_running(record, locked))
        return begin(session, ticket, record);
    ticket->verdict = IDEM_VERDICT_RUNNING;
    ticket->wait_ms = 0;
    return roll_back(session);
}

/* Read the answers of the round trip. False: the ticket has failed. */
static bool
opened(struct idem_ticket *ticket, const struct pg_query *queries,
       struct record *record)
{
    int64_t owner;

    for (int i = 0; i < OPENING; i++) {
        if (!pg_query_ok(&queries[i])) {
            ticket->verdict = IDEM_VERDICT_FAILED;
            (void)pg_fail_result(&ticket->error, queries[i].result);
            return false;
        }
    }
    if (pg_record_read(record, &owner, ticket, &queries[LOOK]))
        return true;
    pg_ticket_fail(ticket, IDEM_RESOURCE_EXHAUSTED, "",
                   "the recorded answer is over the call's memory");
    return false;
}

static enum pg_end
open_and_decide(struct pg_session *session, struct idem_ticket *ticket)
{
    char savepoint[64];
    struct pg_arguments lock = {0}, look;
    struct pg_query queries[OPENING];
    struct record record;
    struct row_key key;
    bool ok, locked;
    enum pg_end end;

    pg_row_key_of(&key, &ticket->id);
    name_savepoint(session);
    snprintf(savepoint, sizeof(savepoint), "SAVEPOINT %s", session->savepoint);
    lock_arguments(&lock, session, ticket);
    pg_look_arguments(&look, &key, ticket);
    queries[BEGIN] = pg_text_query(begins[session->postgres->isolation]);
    queries[LOCK] = pg_session_query(session, SQL_LOCK, false, &lock);
    queries[LOOK] = pg_session_query(session, SQL_LOOK, key.opaque, &look);
    queries[SAVEPOINT] = pg_text_query(savepoint);
    end = pg_session_run(session, queries, OPENING);
    if (end != PG_OK)
        return end;
    ok = opened(ticket, queries, &record);
    locked = ok && pg_value_bool(queries[LOCK].result, 0);
    pg_queries_clear(queries, OPENING);
    if (!ok)
        return roll_back(session);
    return decide(session, ticket, &record, locked);
}

/* A repeat mostly finds an answer: look before a transaction is begun. */
static enum pg_end
look_first(struct pg_session *session, struct idem_ticket *ticket, bool *over)
{
    struct record record;
    int64_t owner;
    bool found;
    enum pg_end end = pg_find(session, ticket, &record, &owner, &found);

    *over = end == PG_OK &&
            (!found || record_claim(&record, ticket) == RECORD_KEEP);
    return end;
}

enum pg_end
pg_transaction_claim(struct pg_session *session, struct idem_ticket *ticket,
                     bool again)
{
    bool over = false;
    enum pg_end end;

    (void)again;
    if (IDEM_FAULT("postgres.claim.before"))
        pg_session_close(session);
    end = pg_note_window(session, ticket);
    if (end == PG_OK && ticket->repeat)
        end = look_first(session, ticket, &over);
    if (end == PG_OK && !over)
        end = open_and_decide(session, ticket);
    if (IDEM_FAULT("postgres.begin.after") && end == PG_OK)
        session->link.broken = true;
    return end;
}
