#include "passage_outcome.h"

#include "once_answer.h"

#include <idem/reason.h>

bool
outcome_was_begun(const struct idem_call *call)
{
    return call->outcome.effect != IDEM_EFFECT_REFUSED &&
           call->outcome.effect != IDEM_EFFECT_NOT_SENT;
}

bool
outcome_is_recorded(const struct idem_call *call)
{
    return call->outcome.status == IDEM_OK ||
           (call->method->recorded >> call->outcome.status & 1) != 0;
}

bool
outcome_is_bad(const struct passage *passage)
{
    enum idem_status status = passage->call->outcome.status;

    return passage->ticket.mode == IDEM_MODE_TRANSACTION &&
           (status == IDEM_INTERNAL || status == IDEM_UNKNOWN);
}

bool
outcome_is_exhausted(const struct passage *passage)
{
    unsigned max = passage->call->method->max_executions;

    return outcome_is_bad(passage) && max > 0 &&
           passage->ticket.executions >= max;
}

static bool
is_too_large(const struct idem_call *call)
{
    return call->outcome.status == IDEM_OK && call->method->max_reply > 0 &&
           call->reply.size > call->method->max_reply;
}

void
outcome_limit_reply(struct passage *passage)
{
    struct idem_call *call = passage->call;
    bool leased = passage->ticket.mode == IDEM_MODE_LEASED;

    if (!is_too_large(call) || call->method->oversize != IDEM_OVERSIZE_FAIL)
        return;
    idem_call_fail(
        call, IDEM_RESOURCE_EXHAUSTED,
        leased ? IDEM_EFFECT_IN_DOUBT : IDEM_EFFECT_ROLLED_BACK,
        IDEM_REPLY_TOO_LARGE, "the reply has %zu bytes; %s stores at most %zu",
        call->reply.size, call->method->name, call->method->max_reply);
}

bool
outcome_answer(struct passage *passage)
{
    struct idem_call *call = passage->call;
    struct idem_answer *answer = &passage->ticket.answer;
    struct idem_error err;
    enum idem_status status;

    if (is_too_large(call) && call->method->oversize != IDEM_OVERSIZE_FAIL)
        status = answer_without_reply(answer, call, &err);
    else
        status = answer_of_call(answer, call, &err);
    if (status != IDEM_OK)
        idem_call_fail_with(call, IDEM_EFFECT_ROLLED_BACK, &err);
    return status == IDEM_OK;
}
