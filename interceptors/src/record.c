#include "record.h"

#include <idem/reason.h>

/* A RUNNING record whose lease is over is four more: the call that finds it
 * may run it again, must ask its probe, must hold it, or nothing of it was
 * begun. A call with a probe asks it of a key in doubt too. */
enum found {
    AT_ABSENT,
    AT_RUNNING,
    AT_LAPSED,
    AT_PROBED,
    AT_HELD,
    AT_UNBEGUN,
    AT_RELEASED,
    AT_DONE,
    AT_DOUBT,
    AT_DOUBT_PROBED,
    AT_ABANDONED,
};

/* LATE: the key's window is over, so that nothing may begin. */
enum asked {
    CLAIM,
    CLAIM_LATE,
    ABANDON,
    ABANDON_LATE,
    LOOK,
    LOOK_LATE,
    SETTLE,
    SETTLE_LATE,
};

enum arrow {
    ABSENT,
    RUNNING,
    DONE,
    DOUBT,
    ABANDONED,
    EXPIRED,
    TAKE,
    PROBE,
    HOLD,
    KILL,
    CLOSE,
};

static const struct {
    enum record_move move;
    enum idem_verdict verdict;
} meaning[] = {
    [ABSENT] = {RECORD_KEEP, IDEM_VERDICT_ABSENT},
    [RUNNING] = {RECORD_KEEP, IDEM_VERDICT_RUNNING},
    [DONE] = {RECORD_KEEP, IDEM_VERDICT_DONE},
    [DOUBT] = {RECORD_KEEP, IDEM_VERDICT_DOUBT},
    [ABANDONED] = {RECORD_KEEP, IDEM_VERDICT_ABANDONED},
    [EXPIRED] = {RECORD_KEEP, IDEM_VERDICT_EXPIRED},
    [TAKE] = {RECORD_TAKE, IDEM_VERDICT_MINE},
    [PROBE] = {RECORD_TAKE, IDEM_VERDICT_MINE},
    [HOLD] = {RECORD_HOLD, IDEM_VERDICT_DOUBT},
    [KILL] = {RECORD_ABANDON, IDEM_VERDICT_ABANDONED},
    [CLOSE] = {RECORD_SETTLE, IDEM_VERDICT_MINE},
};

#define ALWAYS(arrow)                                                          \
    {                                                                          \
        arrow, arrow, arrow, arrow, arrow, arrow, arrow, arrow                 \
    }

/* clang-format off */
static const unsigned char arrows[AT_ABANDONED + 1][SETTLE_LATE + 1] = {
    /*  CLAIM    late     ABANDON  late     LOOK     late     SETTLE   late */
    [AT_ABSENT] =
        {TAKE,    EXPIRED, KILL,    EXPIRED, ABSENT,  EXPIRED, ABSENT,  EXPIRED},
    [AT_RUNNING] = ALWAYS(RUNNING),
    [AT_LAPSED] =
        {TAKE,    HOLD,    HOLD,    HOLD,    RUNNING, RUNNING, CLOSE,   CLOSE},
    [AT_PROBED] =
        {PROBE,   HOLD,    HOLD,    HOLD,    DOUBT,   DOUBT,   CLOSE,   CLOSE},
    [AT_HELD] =
        {HOLD,    HOLD,    HOLD,    HOLD,    DOUBT,   DOUBT,   CLOSE,   CLOSE},
    [AT_UNBEGUN] =
        {TAKE,    KILL,    KILL,    KILL,    RUNNING, RUNNING, CLOSE,   CLOSE},
    [AT_RELEASED] =
        {TAKE,    EXPIRED, KILL,    KILL,    ABSENT,  EXPIRED, ABSENT,  EXPIRED},
    [AT_DONE] = ALWAYS(DONE),
    [AT_DOUBT] =
        {DOUBT,   DOUBT,   DOUBT,   DOUBT,   DOUBT,   DOUBT,   CLOSE,   CLOSE},
    [AT_DOUBT_PROBED] =
        {PROBE,   DOUBT,   DOUBT,   DOUBT,   DOUBT,   DOUBT,   CLOSE,   CLOSE},
    [AT_ABANDONED] = ALWAYS(ABANDONED),
};
/* clang-format on */

static bool
states(const struct idem_ticket *ticket, enum idem_after_crash after_crash)
{
    return ticket->mode == IDEM_MODE_LEASED &&
           ticket->after_crash == after_crash;
}

static enum found
find_lapsed(const struct record *record, const struct idem_ticket *ticket)
{
    if (record->unbegun && ticket->mode == IDEM_MODE_LEASED)
        return AT_UNBEGUN;
    if (states(ticket, IDEM_AFTER_CRASH_REEXECUTE))
        return AT_LAPSED;
    return states(ticket, IDEM_AFTER_CRASH_PROBE) ? AT_PROBED : AT_HELD;
}

static enum found
find(const struct record *record, const struct idem_ticket *ticket)
{
    switch (record->state) {
    case RECORD_ABSENT:
        return AT_ABSENT;
    case RECORD_RUNNING:
        return record->lease_left_ms > 0 ? AT_RUNNING
                                         : find_lapsed(record, ticket);
    case RECORD_RELEASED: /* by nobody: it says that it is expired */
        return record->executions > 0 ? AT_RELEASED : AT_ABSENT;
    case RECORD_DONE:
        return AT_DONE;
    case RECORD_DOUBT:
        return states(ticket, IDEM_AFTER_CRASH_PROBE) ? AT_DOUBT_PROBED
                                                      : AT_DOUBT;
    case RECORD_ABANDONED:
        break;
    }
    return AT_ABANDONED;
}

static void
tell_answer(const struct record *record, struct idem_ticket *ticket)
{
    ticket->answer = record->answer;
    if (record->dropped)
        ticket->answer = (struct idem_answer){
            .status = IDEM_ALREADY_EXISTS,
            .message = idem_bytes_of("done; its answer is not kept any more"),
            .reason = idem_bytes_of(IDEM_ANSWER_DROPPED),
            .first_at_ms = record->answer.first_at_ms,
        };
    ticket->answer.executions = record->executions;
}

/* A dead letter: it has killed its server too often. */
static bool
is_exhausted(const struct record *record, const struct idem_ticket *ticket)
{
    return record->state == RECORD_RUNNING && ticket->max_executions > 0 &&
           record->executions >= ticket->max_executions;
}

/* An execution outside of the database had it and gave it back: what it did
 * before is not known. */
static bool
may_have_acted(const struct record *record, const struct idem_ticket *ticket)
{
    return ticket->mode == IDEM_MODE_LEASED && record->executions > 0 &&
           !record->unbegun;
}

static enum record_move
step(const struct record *record, struct idem_ticket *ticket, enum asked asked)
{
    unsigned late = record->window_over ? 1 : 0;
    unsigned arrow = arrows[find(record, ticket)][asked + late];

    if (meaning[arrow].move == RECORD_TAKE && is_exhausted(record, ticket))
        arrow = HOLD;
    ticket->verdict = meaning[arrow].verdict;
    ticket->probe = arrow == PROBE;
    ticket->first_at_ms = record->answer.first_at_ms;
    if (ticket->verdict == IDEM_VERDICT_DONE)
        tell_answer(record, ticket);
    if (ticket->verdict == IDEM_VERDICT_ABANDONED &&
        !may_have_acted(record, ticket))
        ticket->first_at_ms = 0;
    if (ticket->verdict == IDEM_VERDICT_DOUBT)
        ticket->token = record->token;
    if (ticket->verdict == IDEM_VERDICT_RUNNING)
        ticket->wait_ms = record->lease_left_ms > 0 ? record->lease_left_ms : 0;
    return meaning[arrow].move;
}

/* SHA-256 of two keys being the same is not to be expected; answering one with
 * the other's answer is not to be risked. */
static bool
tell_other_key(const struct record *record, struct idem_ticket *ticket)
{
    if (record->state == RECORD_ABSENT || record->same_key)
        return false;
    ticket->verdict = IDEM_VERDICT_FAILED;
    (void)idem_fail(&ticket->error, IDEM_DATA_LOSS,
                    "two keys have one digest in the store");
    return true;
}

/* Comes before every other decision (semantics.md 3.4). */
static bool
tell_reused(const struct record *record, struct idem_ticket *ticket)
{
    if (record->state == RECORD_ABSENT || !record->has_fingerprint ||
        ticket->fingerprint.version == 0 ||
        idem_fingerprint_match(&record->fingerprint, &ticket->fingerprint))
        return false;
    ticket->verdict = IDEM_VERDICT_REUSED;
    ticket->recorded = record->fingerprint;
    ticket->first_at_ms = record->answer.first_at_ms;
    return true;
}

enum record_move
record_claim(const struct record *record, struct idem_ticket *ticket)
{
    if (tell_other_key(record, ticket) || tell_reused(record, ticket))
        return RECORD_KEEP;
    return step(record, ticket, CLAIM);
}

enum record_move
record_abandon(const struct record *record, struct idem_ticket *ticket)
{
    if (tell_other_key(record, ticket))
        return RECORD_KEEP;
    return step(record, ticket, ABANDON);
}

void
record_look(const struct record *record, struct idem_ticket *ticket)
{
    if (!tell_other_key(record, ticket) && !tell_reused(record, ticket))
        (void)step(record, ticket, LOOK);
}

static bool
is_answer(const struct record *record, const struct idem_answer *answer)
{
    return record->state == RECORD_DONE &&
           record->answer.status == answer->status &&
           idem_bytes_equal(record->answer.message, answer->message) &&
           idem_bytes_equal(record->answer.reason, answer->reason) &&
           idem_bytes_equal(record->answer.reply, answer->reply);
}

/* The same settlement, whose answer was lost. */
static bool
is_settled(const struct record *record, const struct idem_ticket *ticket)
{
    if (record->token != ticket->token + 1)
        return false;
    return ticket->settlement->took_effect ? is_answer(record, &ticket->answer)
                                           : record->state == RECORD_RELEASED;
}

enum record_move
record_settle(const struct record *record, struct idem_ticket *ticket)
{
    enum record_move move;

    if (tell_other_key(record, ticket))
        return RECORD_KEEP;
    if (is_settled(record, ticket)) {
        ticket->verdict = IDEM_VERDICT_MINE;
        return RECORD_KEEP;
    }
    move = step(record, ticket, SETTLE);
    if (move != RECORD_SETTLE || record->token == ticket->token)
        return move;
    ticket->verdict = IDEM_VERDICT_FENCED;
    return RECORD_KEEP;
}
