#include "passage.h"

#include "fault.h"
#include "once_verdict.h"
#include "passage_outcome.h"

#include <idem/context_once.h>

/* transaction: STATEMENT (design.md 5). Down the chain the handler's first half
 * says what is to be run; then the store does all at once, and asks for the
 * second half between the statements and the record. */

void
passage_state(struct passage *passage)
{
    struct idem_call *call = passage->call;
    struct idem_arena *arena = idem_context_arena(call->context);

    passage->slot = (struct tx_slot){
        .store = passage->once->store,
        .mode = IDEM_MODE_TRANSACTION,
        .arena = arena,
        .deadline_ns = call->deadline_ns,
        .states = true,
    };
    statements_begin(&passage->slot.statements, arena);
    passage->stating = true;
    idem_context_set_slot(call->context, &passage->slot);
    idem_context_set_owned(call->context, true);
    idem_context_set_here(call->context, false);
    idem_context_set_task(call->context, IDEM_TASK_STATE);
    (void)IDEM_FAULT("once.handler.before");
    idem_call_resume(call, passage->up ? IDEM_AGAIN : IDEM_NEXT);
}

/* The second half, on a thread of the store, in the open transaction. True: the
 * ticket's answer is to be recorded. */
static bool
conclude(struct idem_ticket *ticket, const struct idem_rows *const *rows,
         const struct idem_error *failed)
{
    struct passage *passage = (struct passage *)ticket;
    struct idem_call *call = passage->call;

    once_count(passage->once, ONCE_EXECUTED);
    if (passage->effect == IDEM_EFFECT_REFUSED)
        passage->effect = IDEM_EFFECT_ROLLED_BACK;
    if (failed) {
        idem_call_fail_with(call, IDEM_EFFECT_ROLLED_BACK, failed);
    } else if (passage->stated) {
        passage->slot.rows = rows;
        idem_context_run(call->context);
        passage->slot.rows = NULL;
    }
    outcome_limit_reply(passage);
    passage->kept =
        (outcome_is_recorded(call) || outcome_is_exhausted(passage)) &&
        outcome_answer(passage);
    ticket->counts = !passage->kept && outcome_is_bad(passage);
    return passage->kept;
}

static void
ran(struct idem_ticket *ticket)
{
    struct passage *passage = (struct passage *)ticket;

    (void)IDEM_FAULT("once.complete.after");
    passage_heard(passage);
    switch ((int)ticket->verdict) {
    case IDEM_VERDICT_MINE:
        passage_take_word(passage);
        if (passage->kept)
            passage_note_recorded(passage);
        else
            passage_leave(passage, NULL);
        break;
    case IDEM_VERDICT_EXPIRED:
        if (ticket->id.key.sequence > 0)
            passage_ask_why_expired(passage);
        else
            passage_judge(passage);
        break;
    case IDEM_VERDICT_UNKNOWN:
        passage->effect = IDEM_EFFECT_IN_DOUBT;
        passage_run_again(passage);
        break;
    case IDEM_VERDICT_CONFLICT:
        passage->effect = IDEM_EFFECT_ROLLED_BACK;
        passage_run_again(passage);
        break;
    default:
        passage_judge(passage);
        break;
    }
}

/* What cannot be run is the program's fault, whatever the half has said. */
static void
check_statements(struct passage *passage)
{
    const struct idem_error *error = &passage->slot.statements.error;

    if (error->status != IDEM_OK)
        idem_call_fail_with(passage->call, IDEM_EFFECT_ROLLED_BACK, error);
}

/* Also a first half that fails goes to the store, without statements: the key
 * may have its answer, and a final "no" is recorded. */
void
passage_stated(struct passage *passage)
{
    struct once *once = passage->once;
    struct idem_call *call = passage->call;
    struct idem_ticket *ticket = &passage->ticket;

    passage->stating = false;
    passage->up = true;
    idem_context_set_task(call->context, IDEM_TASK_RUN);
    if (!outcome_was_begun(call)) {
        passage_leave(passage, NULL);
        return;
    }
    check_statements(passage);
    passage->stated = call->outcome.status == IDEM_OK;
    if (!passage->stated)
        passage->slot.statements.n = 0;
    ticket->statements = &passage->slot.statements;
    ticket->conclude = conclude;
    ticket->done = ran;
    passage_note_epoch(passage);
    once_count(once, ONCE_CLAIMS);
    (void)IDEM_FAULT("once.claim.before");
    once->store->ops->run(once->store, ticket);
}
