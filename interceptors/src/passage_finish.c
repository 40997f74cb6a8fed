#include "passage.h"

#include "fault.h"
#include "late.h"
#include "once_answer.h"
#include "once_verdict.h"
#include "passage_outcome.h"
#include "renewal.h"

#include <idem/context_once.h>
#include <idem/reason.h>

#include <string.h>

/* What a handler did is written down also when its caller has given up; the
 * store gets at least this long for it. */
#define FINISH_NS (5000 * NS_PER_MS)

static void
ask_to(struct passage *passage, store_op_fn *op,
       void (*done)(struct idem_ticket *ticket))
{
    struct once *once = passage->once;
    int64_t least_ns = once->clock->monotonic_ns(once->clock) + FINISH_NS;

    if (passage->ticket.deadline_ns < least_ns)
        passage->ticket.deadline_ns = least_ns;
    passage->ticket.done = done;
    passage_note_epoch(passage);
    once_count(once, ONCE_CLAIMS);
    op(once->store, &passage->ticket);
}

/* The lease was lost while the handler ran: its answer is thrown away, and the
 * call gets what the record says. Not by a claim, which might run it again. */
static void
be_fenced(struct passage *passage)
{
    once_count(passage->once, ONCE_FENCED);
    passage->effect = IDEM_EFFECT_IN_DOUBT;
    passage->looking = true;
    passage_ask(passage);
}

/* --- Again: a conflict, or a commit that nobody knows of --- */

void
passage_run_again(struct passage *passage)
{
    const struct idem_call *call = passage->call;

    if (passage->repeats < passage->once->max_repeats) {
        passage_repeat(passage);
        return;
    }
    idem_call_fail(passage->call,
                   passage->effect == IDEM_EFFECT_IN_DOUBT ? IDEM_UNAVAILABLE
                                                           : IDEM_ABORTED,
                   passage->effect, NULL,
                   "%s could not commit in %u executions", call->method->name,
                   passage->repeats + 1);
    passage_leave(passage, NULL);
}

static void
released_to_repeat(struct idem_ticket *ticket)
{
    struct passage *passage = (struct passage *)ticket;

    passage->effect = IDEM_EFFECT_ROLLED_BACK;
    passage_run_again(passage);
}

/* --- Complete --- */

void
passage_note_recorded(struct passage *passage)
{
    struct once *once = passage->once;
    struct idem_call *call = passage->call;
    struct idem_answer *answer = &passage->ticket.answer;

    if (answer->first_at_ms == 0)
        answer->first_at_ms = once->clock->wall_ms(once->clock);
    answer->executions = passage->ticket.executions;
    call->outcome.final = true;
    if (call->outcome.effect == IDEM_EFFECT_REPLAYED) {
        call->outcome.first_at_ms = answer->first_at_ms;
        call->outcome.executions = answer->executions;
    }
    (void)IDEM_FAULT("once.fill.before");
    passage_remember(passage, answer);
    if (call->method->ask_redis == IDEM_ASK_REDIS_ALWAYS)
        passage_fill(passage, answer);
    (void)IDEM_FAULT("once.answer.before");
    /* Who waits beside it makes the reply of his own. */
    passage_leave(passage,
                  passage_wants_rebuild(passage, answer) ? NULL : answer);
}

/* TRANSACTION: nothing changed. LEASED: the effect is elsewhere and stands; the
 * record is written late. */
static void
fail_to_complete(struct passage *passage)
{
    struct idem_ticket *ticket = &passage->ticket;
    struct idem_call *call = passage->call;
    struct idem_error *error = &ticket->error;
    enum idem_effect effect = IDEM_EFFECT_ROLLED_BACK;

    once_count(passage->once, ONCE_STORE_FAILED);
    if (ticket->mode == IDEM_MODE_LEASED) {
        effect = IDEM_EFFECT_IN_DOUBT;
        late_start(passage->once, call, ticket,
                   passage->once->store->ops->complete);
    }
    if (error->status == IDEM_OK)
        error->status = IDEM_UNAVAILABLE;
    idem_call_fail_with(call, effect, error);
    passage_leave(passage, NULL);
}

/* The handler ended the transaction by itself. */
static void
be_in_doubt(struct passage *passage)
{
    verdict_refuse(passage);
    passage_leave(passage, NULL);
}

static void
completed(struct idem_ticket *ticket)
{
    struct passage *passage = (struct passage *)ticket;

    (void)IDEM_FAULT("once.complete.after");
    passage_heard(passage);
    switch ((int)ticket->verdict) {
    case IDEM_VERDICT_MINE:
        passage_note_recorded(passage);
        break;
    case IDEM_VERDICT_DONE:
        passage_replay(passage, &ticket->answer);
        break;
    case IDEM_VERDICT_FENCED:
        be_fenced(passage);
        break;
    case IDEM_VERDICT_DOUBT:
        be_in_doubt(passage);
        break;
    case IDEM_VERDICT_UNKNOWN:
        /* Only the claim waits for the lost commit to end one way or the
         * other: a look may be too early (semantics.md, M1). */
        passage->effect = IDEM_EFFECT_IN_DOUBT;
        passage_run_again(passage);
        break;
    case IDEM_VERDICT_CONFLICT:
        passage->effect = IDEM_EFFECT_ROLLED_BACK;
        passage_run_again(passage);
        break;
    default:
        fail_to_complete(passage);
        break;
    }
}

static void
complete(struct passage *passage)
{
    (void)IDEM_FAULT("once.complete.before");
    ask_to(passage, passage->once->store->ops->complete, completed);
}

/* --- Release and doubt --- */

static void
let_go(struct idem_ticket *ticket, store_op_fn *op)
{
    struct passage *passage = (struct passage *)ticket;

    if (ticket->verdict == IDEM_VERDICT_FENCED) {
        be_fenced(passage);
        return;
    }
    if (ticket->verdict == IDEM_VERDICT_DOUBT) {
        be_in_doubt(passage);
        return;
    }
    if (ticket->verdict == IDEM_VERDICT_FAILED) {
        once_count(passage->once, ONCE_STORE_FAILED);
        if (ticket->mode == IDEM_MODE_LEASED)
            late_start(passage->once, passage->call, ticket, op);
    }
    passage_leave(passage, NULL);
}

static void
released(struct idem_ticket *ticket)
{
    let_go(ticket, ((struct passage *)ticket)->once->store->ops->release);
}

static void
doubted(struct idem_ticket *ticket)
{
    struct once *once = ((struct passage *)ticket)->once;

    once_count(once, ONCE_IN_DOUBT);
    let_go(ticket, once->store->ops->doubt);
}

static void
release(struct passage *passage)
{
    ask_to(passage, passage->once->store->ops->release, released);
}

/* By the endpoint, which cannot send what the handler made. */
static bool
has_lost_reply(const struct idem_call *call)
{
    return call->outcome.status == IDEM_RESOURCE_EXHAUSTED &&
           strcmp(call->outcome.reason, IDEM_REPLY_TOO_LARGE) == 0;
}

/* --- What the handler's outcome asks for --- */

/* A serialization failure or deadlock in the handler, whatever it made of it.
 */
static bool
met_conflict(const struct passage *passage)
{
    const struct idem_tx *tx = passage->ticket.tx;

    return passage->ticket.mode == IDEM_MODE_TRANSACTION && tx &&
           tx->failed == IDEM_ABORTED;
}

/* Outside of the database nobody knows what a handler did before it gave up,
 * unless it says when it begins. */
static bool
may_have_acted(const struct passage *passage)
{
    return passage->ticket.mode == IDEM_MODE_LEASED &&
           (!passage->ticket.steps || passage->slot.begun);
}

/* Nobody may run it again before somebody has looked. */
static void
hold(struct passage *passage)
{
    passage->call->outcome.effect = IDEM_EFFECT_IN_DOUBT;
    ask_to(passage, passage->once->store->ops->doubt, doubted);
}

/* A handler that is to be tried again. */
static void
give_back(struct passage *passage)
{
    struct idem_call *call = passage->call;
    bool acted = may_have_acted(passage);

    if (acted)
        call->outcome.effect = IDEM_EFFECT_IN_DOUBT;
    if (acted && (call->outcome.status == IDEM_INTERNAL ||
                  call->outcome.status == IDEM_UNKNOWN))
        hold(passage);
    else {
        passage->ticket.counts = outcome_is_bad(passage);
        release(passage);
    }
}

static void
record(struct passage *passage)
{
    if (outcome_answer(passage)) {
        complete(passage);
        return;
    }
    if (passage->ticket.mode == IDEM_MODE_LEASED)
        hold(passage);
    else
        release(passage);
}

static void
finish_handler(struct passage *passage)
{
    struct idem_call *call = passage->call;
    bool leased = passage->ticket.mode == IDEM_MODE_LEASED;

    if (leased && has_lost_reply(call)) {
        call->outcome.effect = IDEM_EFFECT_IN_DOUBT;
        record(passage);
    } else if (outcome_is_exhausted(passage)) {
        once_count(passage->once, ONCE_EXHAUSTED);
        record(passage);
    } else if (outcome_is_recorded(call))
        record(passage);
    else
        give_back(passage);
}

/* A probe that was not asked, or does not know, or says "done" and no answer
 * that can be one, changes nothing: the key is in doubt as before. */
static void
finish_probe(struct passage *passage)
{
    struct idem_call *call = passage->call;

    if (idem_context_probed(call->context) != IDEM_PROBED_DONE ||
        (!outcome_is_recorded(call) && !has_lost_reply(call))) {
        hold(passage);
        return;
    }
    call->outcome.effect =
        has_lost_reply(call) ? IDEM_EFFECT_IN_DOUBT : IDEM_EFFECT_REPLAYED;
    record(passage);
}

/* The probe is all that has run. */
static bool
only_probed(const struct passage *passage)
{
    return passage->ticket.probe &&
           idem_context_probed(passage->call->context) != IDEM_PROBED_NOT_DONE;
}

void
passage_finish(struct passage *passage)
{
    struct idem_call *call = passage->call;

    if (passage->rebuilding) {
        passage_end_rebuild(passage);
        return;
    }
    if (passage->stating) {
        passage_stated(passage);
        return;
    }
    (void)IDEM_FAULT("once.handler.after");
    renewal_end(passage->renewal);
    passage->renewal = NULL;
    passage->up = true;
    outcome_limit_reply(passage);
    if (only_probed(passage)) {
        finish_probe(passage);
        return;
    }
    if (passage->ticket.probe)
        once_count(passage->once, ONCE_EXECUTED);
    if (!outcome_was_begun(call))
        release(passage);
    else if (met_conflict(passage))
        ask_to(passage, passage->once->store->ops->release, released_to_repeat);
    else
        finish_handler(passage);
}
