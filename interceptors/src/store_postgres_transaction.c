#include "store_postgres_operation.h"

#include "fault.h"
#include "store_postgres_error.h"

#include <libpq-fe.h>

/* The begin of mode TRANSACTION (semantics.md 4.4): in one round trip, but in
 * statements of their own, begin, try the key's lock, look for a record. A
 * first attempt is asked only whether there is none; with one, and for a
 * repeat, the record is read. At READ COMMITTED no savepoint is set until it is
 * wanted (decision 45).
 *
 * Beyond READ COMMITTED the record is read as of the lock's statement, so that
 * an answer committed in between is missed; the INSERT of our record then finds
 * it, and all is rolled back (B071). */

#define TAKEN_LEASE_MS 3600000 /* never seen by others: it is not committed */

enum opening { BEGIN, LOCK, LOOK, PLANS, GUARD, OPENING };
enum brief_opening { BRIEF_BEGIN, BRIEF_LOCK, BRIEF_LOOK, BRIEF_GUARD, BRIEF };

/* Waits of the database end when the call does. The session's own limits hold,
 * unless the call has less time; behind a pooler they are its transaction's. */
static struct pg_query
lock_query(const struct pg_session *session, const struct idem_ticket *ticket,
           struct pg_arguments *arguments)
{
    const struct pg_store *postgres = session->postgres;
    int64_t now_ns = postgres->clock->monotonic_ns(postgres->clock);
    int64_t left_ms = (ticket->deadline_ns - now_ns) / 1000000;
    int64_t idle_ms = postgres->idle_ms;
    bool limited;

    if (left_ms < 1)
        left_ms = 1;
    if (idle_ms > left_ms + COMMIT_GRACE_NS / 1000000)
        idle_ms = left_ms + COMMIT_GRACE_NS / 1000000;
    if (left_ms > postgres->statement_ms)
        left_ms = postgres->statement_ms;
    pg_arguments_int(arguments, pg_row_lock_of(&ticket->id));
    limited = left_ms < postgres->statement_ms || idle_ms < postgres->idle_ms;
    if (limited) {
        pg_arguments_int(arguments, left_ms);
        pg_arguments_int(arguments, idle_ms);
    }
    return pg_session_query(session, limited ? SQL_LOCK_LIMITED : SQL_LOCK,
                            false, arguments);
}

/* What it read under a stricter level must still count when its work is undone
 * and a "no" recorded, so that the transaction may not be another one then. */
static bool
is_guarded(const struct pg_session *session)
{
    return session->postgres->isolation != IDEM_READ_COMMITTED;
}

static enum pg_end
roll_back(struct pg_session *session)
{
    struct pg_query query =
        pg_session_query(session, SQL_ROLLBACK, false, NULL);
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
    char guard[PG_GUARD_MAX];
    struct pg_arguments arguments;
    struct pg_query queries[2];
    struct row_key key;
    enum pg_end end;

    pg_row_key_of(&key, &ticket->id);
    pg_take_arguments(&arguments, &key, record, ticket, session->owner,
                      TAKEN_LEASE_MS);
    queries[0] = pg_session_query(session, SQL_TAKE, key.opaque, &arguments);
    queries[1] = pg_guard_query(session, guard);
    end = pg_session_run(session, queries, 2);
    *taken = end == PG_OK && pg_query_ok(&queries[1]) &&
             pg_query_rows(&queries[0]) == 1;
    if (*taken) {
        ticket->token = pg_value_int(queries[0].result, 0);
        ticket->executions = (unsigned)pg_value_int(queries[0].result, 1);
    }
    pg_queries_clear(queries, 2);
    return end;
}

static enum pg_end
leave_running(struct pg_session *session, struct idem_ticket *ticket)
{
    pg_tell_running(ticket);
    return roll_back(session);
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
        if (end == PG_OK && !taken)
            return leave_running(session, ticket);
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
    if (end == PG_OK && !held)
        pg_tell_running(ticket);
    return end;
}

/* Nobody has the key's lock; but not all who claim take it. */
static enum pg_end
expire(struct pg_session *session, struct idem_ticket *ticket,
       const struct record *record)
{
    bool expired = true;
    enum pg_end end = roll_back(session);

    if (end == PG_OK)
        end = pg_expire(session, ticket, record, &expired);
    if (end == PG_OK && !expired)
        pg_tell_running(ticket);
    return end;
}

static enum pg_end
decide(struct pg_session *session, struct idem_ticket *ticket,
       const struct record *record, bool locked)
{
    enum record_move move = record_claim(record, ticket);

    if (move == RECORD_HOLD)
        return hold(session, ticket, record);
    if (move == RECORD_TAKE)
        return locked || !pg_is_open(record) ? begin(session, ticket, record)
                                             : leave_running(session, ticket);
    if (ticket->verdict == IDEM_VERDICT_EXPIRED)
        return locked ? expire(session, ticket, record)
                      : leave_running(session, ticket);
    return roll_back(session);
}

/* False: one of a round trip's statements has failed, and so has the ticket. */
static bool
all_ok(struct idem_ticket *ticket, const struct pg_query *queries, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (!pg_query_ok(&queries[i])) {
            ticket->verdict = IDEM_VERDICT_FAILED;
            (void)pg_fail_result(&ticket->error, queries[i].result);
            return false;
        }
    }
    return true;
}

/* Read the answers of the round trip. False: the ticket has failed. */
static bool
opened(struct idem_ticket *ticket, const struct pg_query *queries, unsigned n,
       struct record *record)
{
    int64_t owner;

    if (!all_ok(ticket, queries, n))
        return false;
    if (pg_record_read(record, &owner, ticket, &queries[LOOK]))
        return true;
    pg_ticket_fail(ticket, IDEM_RESOURCE_EXHAUSTED, "",
                   "the recorded answer is over the call's memory");
    return false;
}

static enum pg_end
open_and_decide(struct pg_session *session, struct idem_ticket *ticket)
{
    unsigned n = OPENING - 1;
    struct pg_arguments lock = {0}, look;
    struct pg_query queries[OPENING];
    char guard[PG_GUARD_MAX];
    struct record record;
    struct row_key key;
    bool ok, locked;
    enum pg_end end;

    pg_row_key_of(&key, &ticket->id);
    pg_look_arguments(&look, &key, ticket);
    queries[BEGIN] = pg_begin_query(session);
    queries[LOCK] = lock_query(session, ticket, &lock);
    queries[LOOK] = pg_session_query(session, SQL_LOOK, key.opaque, &look);
    queries[PLANS] = pg_session_query(session, SQL_READ, false, NULL);
    if (is_guarded(session))
        queries[n++] = pg_guard_query(session, guard);
    end = pg_session_run(session, queries, n);
    if (end != PG_OK)
        return end;
    ok = opened(ticket, queries, n, &record);
    if (ok)
        session->begun_ms = pg_value_int(queries[PLANS].result, 0);
    locked = ok && pg_value_bool(queries[LOCK].result, 0);
    pg_queries_clear(queries, n);
    if (!ok)
        return roll_back(session);
    return decide(session, ticket, &record, locked);
}

static void
absent_arguments(struct pg_arguments *arguments, const struct row_key *key,
                 const struct idem_ticket *ticket)
{
    pg_arguments_bytes(arguments, (struct idem_bytes){key->bytes, 16});
    pg_arguments_int(arguments, key->opaque ? 0 : pg_window_of(key, ticket));
    pg_arguments_int(arguments, key->day);
}

/* Most first attempts find nothing. *known: there is something, or it is too
 * late, and nothing is open. */
static enum pg_end
open_absent(struct pg_session *session, struct idem_ticket *ticket, bool *known)
{
    static const struct record nothing = {.state = RECORD_ABSENT};
    unsigned n = BRIEF - 1;
    struct pg_arguments lock = {0}, look = {0};
    struct pg_query queries[BRIEF];
    char guard[PG_GUARD_MAX];
    struct row_key key;
    bool ok, locked;
    enum pg_end end;

    pg_row_key_of(&key, &ticket->id);
    absent_arguments(&look, &key, ticket);
    queries[BRIEF_BEGIN] = pg_begin_query(session);
    queries[BRIEF_LOCK] = lock_query(session, ticket, &lock);
    queries[BRIEF_LOOK] =
        pg_session_query(session, SQL_LOOK_ABSENT, key.opaque, &look);
    if (is_guarded(session))
        queries[n++] = pg_guard_query(session, guard);
    end = pg_session_run(session, queries, n);
    if (end != PG_OK)
        return end;
    ok = all_ok(ticket, queries, n);
    locked = ok && pg_value_bool(queries[BRIEF_LOCK].result, 0);
    *known = ok && !pg_value_bool(queries[BRIEF_LOOK].result, 0);
    if (ok)
        session->begun_ms = pg_value_int(queries[BRIEF_LOOK].result, 1);
    pg_queries_clear(queries, n);
    if (!ok || *known)
        return roll_back(session);
    return decide(session, ticket, &nothing, locked);
}

static enum pg_end
open_first(struct pg_session *session, struct idem_ticket *ticket)
{
    bool known = false;
    enum pg_end end = open_absent(session, ticket, &known);

    if (end == PG_OK && known)
        end = open_and_decide(session, ticket);
    return end;
}

/* A repeat mostly finds an answer: look before a transaction is begun. That a
 * key is expired is said by who has its lock. */
static enum pg_end
look_first(struct pg_session *session, struct idem_ticket *ticket, bool *over)
{
    struct record record;
    int64_t owner;
    bool found;
    enum pg_end end = pg_find(session, ticket, &record, &owner, &found);

    *over = end == PG_OK &&
            (!found || (record_claim(&record, ticket) == RECORD_KEEP &&
                        ticket->verdict != IDEM_VERDICT_EXPIRED));
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
    session->guarded = false;
    end = pg_note_window(session, ticket);
    if (end == PG_OK && ticket->repeat)
        end = look_first(session, ticket, &over);
    if (end == PG_OK && !over)
        end = ticket->repeat ? open_and_decide(session, ticket)
                             : open_first(session, ticket);
    if (IDEM_FAULT("postgres.begin.after") && end == PG_OK)
        session->link.broken = true;
    return end;
}
