#include "store_postgres_slot.h"

#include "fault.h"
#include "store_postgres_error.h"
#include "store_postgres_operation.h"

#include <idem/reason.h>

#include <string.h>

#define MOVES_MAX 10 /* of a record under one claim */

/* What an operation is, by its ticket's op. */
static const struct {
    enum slot_step step;
    enum record_state ours; /* what the record then is */
    const char *before, *after;
} operations[OPERATIONS] = {
    [OPERATION_CLAIM] = {SLOT_CLAIM, RECORD_RUNNING, "postgres.claim.before",
                         "postgres.claim.after"},
    [OPERATION_COMPLETE] = {SLOT_COMPLETE, RECORD_DONE,
                            "postgres.complete.before",
                            "postgres.complete.after"},
    [OPERATION_RELEASE] = {SLOT_RELEASE, RECORD_RELEASED,
                           "postgres.release.before", NULL},
    [OPERATION_DOUBT] = {SLOT_DOUBT, RECORD_DOUBT, "postgres.doubt.before",
                         NULL},
    [OPERATION_RENEW] = {SLOT_RENEW, RECORD_RUNNING, "postgres.renew.before",
                         NULL},
    [OPERATION_MARK] = {SLOT_MARK, RECORD_RUNNING, "postgres.mark.before",
                        "postgres.mark.after"},
};

static bool
is_claim(const struct pg_slot *slot)
{
    return slot->ticket->op == OPERATION_CLAIM;
}

static void
end(struct pg_slot *slot, enum idem_verdict verdict)
{
    slot->ticket->verdict = verdict;
    slot->step = SLOT_OVER;
}

static void
end_failed(struct pg_slot *slot, enum idem_status status, const char *reason,
           const char *why)
{
    pg_ticket_fail(slot->ticket, status, reason, why);
    slot->step = SLOT_OVER;
}

/* The row may be there, under an owner whose handler never began; but a handler
 * did begin, elsewhere, before a claim that is to probe. */
static void
remember(const struct pg_slot *slot, struct pg_session *session)
{
    if (is_claim(slot) && !slot->ticket->probe)
        pg_lost_remember(&session->postgres->lost, slot->ticket->id.digest,
                         slot->owner);
}

/* --- Beginning --- */

void
pg_slot_init(struct pg_slot *slot, struct pg_session *session,
             struct idem_ticket *ticket, int64_t owner)
{
    struct pg_store *postgres = session->postgres;
    int64_t before;

    slot->ticket = ticket;
    slot->owner = owner;
    slot->until_ns = pg_store_until(postgres, ticket->deadline_ns, GRACE_NS);
    slot->losses = slot->moves = 0;
    slot->begun = slot->again = false;
    pg_row_key_of(&slot->key, &ticket->id);
    if (!is_claim(slot))
        return;
    before = pg_lost_take(&postgres->lost, ticket->id.digest);
    if (before) {
        slot->owner = before;
        slot->again = true;
    }
}

/* False: there is no such day, so that nothing can be inserted; or the
 * connection is lost, which shows when the batch is sent. */
static bool
day_is_open(const struct pg_slot *slot, struct pg_session *session)
{
    struct windows *windows = &session->postgres->windows;
    int64_t day = slot->key.day, window_ms = slot->ticket->id.key.window_ms;

    return slot->key.opaque || pg_windows_known(windows, day, window_ms) ||
           (pg_note_window(session, slot->ticket) == PG_OK &&
            pg_windows_known(windows, day, window_ms));
}

void
pg_slot_begin(struct pg_slot *slot, struct pg_session *session)
{
    if (slot->begun)
        return;
    slot->begun = true;
    slot->step = operations[slot->ticket->op].step;
    session->until_ns = slot->until_ns;
    if (IDEM_FAULT(operations[slot->ticket->op].before))
        pg_session_close(session);
    if (is_claim(slot) &&
        (!day_is_open(slot, session) || slot->ticket->repeat || slot->again))
        slot->step = SLOT_LOOK;
}

/* --- What the record says to a claim --- */

static void
tell_mine(struct pg_slot *slot, int64_t token, unsigned executions)
{
    slot->ticket->token = token;
    slot->ticket->executions = executions;
    end(slot, IDEM_VERDICT_MINE);
}

/* Released, or its lease is over: compare and set on what was just read. */
static enum pg_end
take_over(struct pg_slot *slot, struct pg_session *session,
          const struct record *record)
{
    struct idem_ticket *ticket = slot->ticket;
    struct pg_arguments arguments;
    struct pg_query query;
    enum pg_end end;

    pg_take_arguments(&arguments, &slot->key, record, ticket, slot->owner,
                      ticket->lease_ms);
    query = pg_session_query(session, SQL_TAKE, slot->key.opaque, &arguments);
    end = pg_session_run(session, &query, 1);
    if (end == PG_OK && !pg_query_ok(&query))
        pg_slot_fail(slot, &query);
    else if (end == PG_OK && pg_query_rows(&query) == 1)
        tell_mine(slot, pg_value_int(query.result, 0),
                  (unsigned)pg_value_int(query.result, 1));
    pg_queries_clear(&query, 1);
    return end;
}

/* What is not over looks once more: the record has changed meanwhile. */
static enum pg_end
move(struct pg_slot *slot, struct pg_session *session,
     const struct record *record)
{
    struct idem_ticket *ticket = slot->ticket;
    enum pg_end ending = PG_OK;
    bool over = true;

    switch (record_claim(record, ticket)) {
    case RECORD_TAKE:
        over = false;
        if (record->state == RECORD_ABSENT)
            slot->step = SLOT_CLAIM;
        else
            ending = take_over(slot, session, record);
        break;
    case RECORD_HOLD:
        ending = pg_hold(session, ticket, record, &over);
        break;
    case RECORD_ABANDON:
        ending = pg_write_abandoned(session, ticket, record, &over);
        break;
    case RECORD_KEEP:
        if (ticket->verdict == IDEM_VERDICT_EXPIRED)
            ending = pg_expire(session, ticket, record, &over);
        break;
    case RECORD_SETTLE:
        break;
    }
    if (over && ending == PG_OK)
        slot->step = SLOT_OVER;
    return ending;
}

/* A claim whose answer was lost, by this call or one before it: nobody began.
 * It is kept for whoever asks the same. */
static bool
is_ours(const struct pg_slot *slot, struct pg_session *session,
        const struct record *record, int64_t owner)
{
    if (!slot->again || record->state != RECORD_RUNNING || owner != slot->owner)
        return false;
    if (idem_fingerprint_match(&record->fingerprint,
                               &slot->ticket->fingerprint))
        return true;
    remember(slot, session);
    return false;
}

static void
decide(struct pg_slot *slot, struct pg_session *session,
       const struct record *record, int64_t owner)
{
    session->until_ns = slot->until_ns;
    if (is_ours(slot, session, record, owner)) {
        /* Its lease begins now. */
        slot->ticket->token = record->token;
        slot->ticket->executions = record->executions;
        slot->step = SLOT_RENEW;
    } else if (move(slot, session, record) != PG_OK) {
        pg_slot_lose(slot, session);
    } else if (slot->step != SLOT_OVER && ++slot->moves > MOVES_MAX) {
        end_failed(slot, IDEM_ABORTED, "", "the record keeps changing");
    }
}

/* Fenced: it may have been our own doing before, whose answer was lost on the
 * way to us or to the call. */
static void
recognize(struct pg_slot *slot, const struct record *record)
{
    struct idem_ticket *ticket = slot->ticket;

    slot->step = SLOT_OVER;
    if (record->state != operations[ticket->op].ours ||
        record->token != ticket->token)
        return;
    ticket->verdict = IDEM_VERDICT_MINE;
    ticket->answer.first_at_ms = record->answer.first_at_ms;
}

static void
read_record(struct pg_slot *slot, struct pg_session *session,
            const struct pg_row *row)
{
    struct record record;
    int64_t owner;

    if (!pg_record_read_row(&record, &owner, slot->ticket, row))
        end_failed(slot, IDEM_RESOURCE_EXHAUSTED, "",
                   "the recorded answer is over the call's memory");
    else if (is_claim(slot))
        decide(slot, session, &record, owner);
    else
        recognize(slot, &record);
}

/* --- What a statement says --- */

void
pg_slot_answer(struct pg_slot *slot, struct pg_session *session,
               const struct pg_row *row)
{
    struct idem_ticket *ticket = slot->ticket;

    switch (slot->step) {
    case SLOT_LOOK:
        read_record(slot, session, row);
        return;
    case SLOT_CLAIM:
        tell_mine(slot, 1, 1);
        return;
    case SLOT_COMPLETE:
        ticket->answer.first_at_ms = pg_row_time_ms(row->of, row->at, 1);
        break;
    case SLOT_RELEASE:
    case SLOT_DOUBT:
    case SLOT_RENEW:
    case SLOT_MARK:
    case SLOT_OVER:
        break;
    }
    end(slot, IDEM_VERDICT_MINE);
}

/* A renewal and a mark that are asked again say the same again. */
static bool
may_be_ours(const struct pg_slot *slot)
{
    return slot->step == SLOT_COMPLETE ||
           (slot->again &&
            (slot->step == SLOT_RELEASE || slot->step == SLOT_DOUBT));
}

void
pg_slot_miss(struct pg_slot *slot)
{
    if (slot->step == SLOT_LOOK) {
        end_failed(slot, IDEM_INTERNAL, "", "a look without an answer");
        return;
    }
    if (is_claim(slot)) {
        slot->step = SLOT_LOOK;
        return;
    }
    slot->ticket->verdict = IDEM_VERDICT_FENCED;
    slot->step = may_be_ours(slot) ? SLOT_LOOK : SLOT_OVER;
}

/* A record that is to be changed is gone, with its partition or with a primary
 * that had not told its standby. */
static bool
has_vanished(const struct pg_slot *slot, const struct pg_query *query)
{
    return slot->step > SLOT_CLAIM &&
           (strcmp(pg_query_sqlstate(query), "22012") == 0 ||
            pg_result_is_unrouted(query->result));
}

void
pg_slot_fail(struct pg_slot *slot, const struct pg_query *query)
{
    if (has_vanished(slot, query)) {
        pg_slot_miss(slot);
        return;
    }
    end(slot, is_claim(slot) && pg_result_is_unrouted(query->result)
                  ? IDEM_VERDICT_EXPIRED
                  : IDEM_VERDICT_FAILED);
    (void)pg_fail_result(&slot->ticket->error, query->result);
}

/* --- What nothing is known of --- */

static void
end_lost(struct pg_slot *slot, struct pg_session *session)
{
    const struct idem_clock *clock = session->postgres->clock;

    remember(slot, session);
    if (clock->monotonic_ns(clock) >= slot->ticket->deadline_ns)
        end_failed(slot, IDEM_DEADLINE_EXCEEDED, "",
                   "PostgreSQL did not answer before the deadline");
    else
        end_failed(slot, IDEM_UNAVAILABLE, IDEM_STORE_AWAY,
                   "PostgreSQL: the connection was lost");
}

void
pg_slot_lose(struct pg_slot *slot, struct pg_session *session)
{
    slot->again = true;
    slot->begun = false;
    if (++slot->losses >= POSTGRES_TRIES)
        end_lost(slot, session);
}

void
pg_slot_expire(struct pg_slot *slot, struct pg_session *session)
{
    end_lost(slot, session);
}

void
pg_slot_refuse(struct pg_slot *slot, struct pg_session *session,
               const struct idem_error *why)
{
    if (slot->again)
        remember(slot, session);
    end(slot, IDEM_VERDICT_FAILED);
    slot->ticket->error = *why;
}

void
pg_slot_pass_fault(struct pg_slot *slot, struct pg_session *session)
{
    const char *after = operations[slot->ticket->op].after;

    if (after && IDEM_FAULT(after) && !slot->again) {
        pg_session_close(session);
        pg_slot_lose(slot, session);
    }
}
