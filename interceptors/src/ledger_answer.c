#include "ledger_answer.h"

#include <idem/reason.h>

#include <string.h>

static const Idem__V1__Resolution__State states[] = {
    [IDEM_VERDICT_ABSENT] = IDEM__V1__RESOLUTION__STATE__ABSENT,
    [IDEM_VERDICT_RUNNING] = IDEM__V1__RESOLUTION__STATE__RUNNING,
    [IDEM_VERDICT_DONE] = IDEM__V1__RESOLUTION__STATE__DONE,
    [IDEM_VERDICT_DOUBT] = IDEM__V1__RESOLUTION__STATE__IN_DOUBT,
    [IDEM_VERDICT_ABANDONED] = IDEM__V1__RESOLUTION__STATE__ABANDONED,
    [IDEM_VERDICT_EXPIRED] = IDEM__V1__RESOLUTION__STATE__EXPIRED,
};

static char *
text_of(struct idem_context *context, struct idem_bytes bytes)
{
    char *text = idem_context_alloc(context, bytes.size + 1);

    if (bytes.size > 0)
        memcpy(text, bytes.data, bytes.size);
    return text;
}

static idem_ledger_answer *
answer_of(struct idem_context *context, const struct idem_answer *recorded)
{
    static const idem_ledger_answer empty = IDEM_LEDGER_ANSWER_INIT;
    idem_ledger_answer *answer = idem_context_alloc(context, sizeof *answer);

    *answer = empty;
    answer->status = recorded->status;
    answer->message = text_of(context, recorded->message);
    answer->reason = text_of(context, recorded->reason);
    answer->reply.data =
        (uint8_t *)text_of(context, recorded->reply); /* bytes, not text */
    answer->reply.len = recorded->reply.size;
    return answer;
}

static enum idem_status
fail(struct idem_context *context, const struct idem_error *error)
{
    struct idem_error err = *error;

    if (err.status == IDEM_OK)
        err.status = IDEM_UNAVAILABLE;
    if (err.status == IDEM_UNAVAILABLE && err.reason[0] == '\0')
        memcpy(err.reason, IDEM_STORE_AWAY, sizeof IDEM_STORE_AWAY);
    return idem_context_fail_with(context, &err);
}

enum idem_status
ledger_answer(struct idem_context *context, const struct idem_ticket *ticket,
              idem_ledger_resolution *reply)
{
    if (ticket->verdict == IDEM_VERDICT_FAILED)
        return fail(context, &ticket->error);
    IDEM_ASSERT(ticket->verdict < sizeof states / sizeof *states &&
                states[ticket->verdict] != 0);
    reply->state = states[ticket->verdict];
    reply->first_at_ms = ticket->first_at_ms;
    if (ticket->verdict == IDEM_VERDICT_RUNNING)
        reply->lease_ms = ticket->wait_ms;
    if (ticket->verdict == IDEM_VERDICT_DONE) {
        reply->first_at_ms = ticket->answer.first_at_ms;
        reply->answer = answer_of(context, &ticket->answer);
    }
    return IDEM_OK;
}
