#include "store_postgres_operation.h"

#include "fault.h"
#include "store_postgres_error.h"

#include <libpq-fe.h>

/* What became of a key, and the end of one that never ran. An open transaction
 * has no record yet; that it is under way shows by its lock. */

enum asking { BEGIN, LOCK, LOOK, ASKING };

/* In one transaction, the record in a statement after the lock was tried
 * (semantics.md M5). With stay the transaction, and so the lock, is kept. */
static enum pg_end
try_and_find(struct pg_session *session, struct idem_ticket *ticket, bool stay,
             struct record *record, bool *locked, bool *found)
{
    struct pg_arguments lock = {0}, look;
    struct pg_query queries[ASKING];
    unsigned first = stay ? BEGIN : LOCK;
    struct row_key key;
    int64_t owner;
    enum pg_end end;

    *found = false;
    pg_row_key_of(&key, &ticket->id);
    pg_arguments_int(&lock, pg_row_lock_of(&ticket->id));
    pg_look_arguments(&look, &key, ticket);
    queries[BEGIN] = pg_text_query("BEGIN");
    queries[LOCK] = pg_session_query(session, SQL_LOCK_SHARED, false, &lock);
    queries[LOOK] = pg_session_query(session, SQL_LOOK, key.opaque, &look);
    end = pg_session_run(session, queries + first, ASKING - first);
    if (end != PG_OK)
        return end;
    if (!pg_query_ok(&queries[LOOK])) {
        ticket->verdict = IDEM_VERDICT_FAILED;
        (void)pg_fail_result(&ticket->error, pg_query_ok(&queries[LOCK])
                                                 ? queries[LOOK].result
                                                 : queries[LOCK].result);
    } else if (!pg_record_read(record, &owner, ticket, &queries[LOOK])) {
        pg_ticket_fail(ticket, IDEM_RESOURCE_EXHAUSTED, "",
                       "the recorded answer is over the call's memory");
    } else {
        *locked = pg_value_bool(queries[LOCK].result, 0);
        *found = true;
    }
    pg_queries_clear(queries + first, ASKING - first);
    return PG_OK;
}

enum pg_end
pg_look(struct pg_session *session, struct idem_ticket *ticket, bool again)
{
    struct record record;
    bool locked, found, expired = true;
    enum pg_end end =
        try_and_find(session, ticket, false, &record, &locked, &found);

    (void)again;
    if (end != PG_OK || !found)
        return end;
    record_look(&record, ticket);
    if (ticket->verdict == IDEM_VERDICT_EXPIRED && locked)
        end = pg_expire(session, ticket, &record, &expired);
    if (!expired || (!locked && pg_is_open(&record) &&
                     (ticket->verdict == IDEM_VERDICT_ABSENT ||
                      ticket->verdict == IDEM_VERDICT_EXPIRED)))
        pg_tell_running(ticket);
    return end;
}

enum pg_end
pg_write_abandoned(struct pg_session *session, struct idem_ticket *ticket,
                   const struct record *record, bool *done)
{
    bool absent = record->state == RECORD_ABSENT;
    struct pg_arguments arguments;
    struct row_key key;
    long changed;
    enum pg_end end;

    pg_row_key_of(&key, &ticket->id);
    if (absent)
        pg_identity_arguments(&arguments, &key, ticket);
    else
        pg_fence_arguments(&arguments, &key, record->token);
    end = pg_change(session, ticket, absent ? SQL_ABANDON : SQL_ABANDON_AGAIN,
                    key.opaque, &arguments, &changed);
    *done = changed != 0;
    return end;
}

static enum pg_end
decide(struct pg_session *session, struct idem_ticket *ticket,
       const struct record *record, bool locked, bool *done)
{
    if (!locked && pg_is_open(record)) {
        pg_tell_running(ticket);
        return PG_OK;
    }
    switch (record_abandon(record, ticket)) {
    case RECORD_ABANDON:
        return pg_write_abandoned(session, ticket, record, done);
    case RECORD_HOLD:
        return pg_hold(session, ticket, record, done);
    case RECORD_KEEP:
        if (ticket->verdict == IDEM_VERDICT_EXPIRED)
            return pg_expire(session, ticket, record, done);
        break;
    case RECORD_TAKE:
    case RECORD_SETTLE:
        break;
    }
    return PG_OK;
}

/* A failed statement has rolled it back already. */
static enum pg_end
commit(struct pg_session *session, struct idem_ticket *ticket)
{
    struct pg_query query = pg_text_query("COMMIT");
    enum pg_end end = pg_session_run(session, &query, 1);

    if (end == PG_OK && !pg_query_ok(&query)) {
        ticket->verdict = IDEM_VERDICT_FAILED;
        (void)pg_fail_result(&ticket->error, query.result);
    }
    pg_queries_clear(&query, 1);
    return end;
}

/* The lock is held until the row is committed: a claim of mode TRANSACTION
 * meanwhile is told RUNNING, and one that has begun tells so here. */
static enum pg_end
abandon_once(struct pg_session *session, struct idem_ticket *ticket, bool *done)
{
    struct record record;
    bool locked = false, found;
    enum pg_end end =
        try_and_find(session, ticket, true, &record, &locked, &found);

    *done = true;
    if (end == PG_OK && found)
        end = decide(session, ticket, &record, locked, done);
    if (end == PG_OK)
        end = commit(session, ticket);
    return end;
}

enum pg_end
pg_abandon(struct pg_session *session, struct idem_ticket *ticket, bool again)
{
    bool done = false;
    enum pg_end end = PG_OK;

    (void)again;
    if (IDEM_FAULT("postgres.abandon.before"))
        pg_session_close(session);
    end = pg_note_window(session, ticket);
    while (end == PG_OK && !done)
        end = abandon_once(session, ticket, &done);
    return end;
}
