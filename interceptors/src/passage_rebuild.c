#include "passage.h"

#include "once_answer.h"

#include <idem/context_once.h>
#include <idem/reason.h>

#include <stdio.h>
#include <string.h>

/* A reply that was too large to be kept is made again for whoever repeats the
 * key (semantics.md 3.13). */

bool
passage_wants_rebuild(const struct passage *passage,
                      const struct idem_answer *answer)
{
    const struct idem_method *method = passage->call->method;

    return method->oversize == IDEM_OVERSIZE_REBUILD && method->rebuild &&
           answer->status == IDEM_OK &&
           idem_bytes_equal(answer->reason, idem_bytes_of(IDEM_ANSWER_DROPPED));
}

void
passage_rebuild(struct passage *passage, const struct idem_answer *answer)
{
    struct idem_call *call = passage->call;

    passage->rebuilding = true;
    passage->dropped = *answer;
    passage->effect = IDEM_EFFECT_REPLAYED;
    passage->slot = (struct tx_slot){
        .store = passage->once->store,
        .mode = IDEM_MODE_NONE,
        .arena = call->arena,
        .deadline_ns = call->deadline_ns,
    };
    idem_context_set_slot(call->context, &passage->slot);
    idem_context_set_here(call->context, false);
    idem_context_set_task(call->context, IDEM_TASK_REBUILD);
    idem_call_resume(call, passage->up ? IDEM_AGAIN : IDEM_NEXT);
}

/* It is done all the same, and final. */
static void
tell_dropped(struct passage *passage)
{
    struct idem_outcome *outcome = &passage->call->outcome;
    char why[sizeof(outcome->message)];
    size_t size;

    memcpy(why, outcome->message, sizeof(why));
    answer_replay(passage->call, &passage->dropped);
    size = strlen(outcome->message);
    snprintf(outcome->message + size, sizeof(outcome->message) - size,
             ", and not rebuilt: %s", why);
}

void
passage_end_rebuild(struct passage *passage)
{
    struct idem_call *call = passage->call;
    struct idem_answer answer = passage->dropped;

    tx_slot_end(&passage->slot);
    passage->up = true;
    if (call->outcome.status == IDEM_OK) {
        answer.reason = answer.message = (struct idem_bytes){NULL, 0};
        answer.reply = call->reply;
        answer_replay(call, &answer);
        call->outcome.rebuilt = true;
        once_count(passage->once, ONCE_REBUILT);
    } else
        tell_dropped(passage);
    once_count(passage->once, ONCE_REPLAYED);
    passage_leave(passage, NULL);
}
