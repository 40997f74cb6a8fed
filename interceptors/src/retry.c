#include <idem/call.h>
#include <idem/retry.h>

#include "retry_rule.h"

#include <stdlib.h>

/* Kept with each call. */
struct retry {
    struct retry_progress progress;
    struct idem_metadata metadata; /* as it came from above, without what the
                                    * interceptors below add per attempt */
};

static enum idem_step
retry_request(struct idem_interceptor *self, struct idem_call *call)
{
    struct retry *retry = idem_call_state(call, self);

    if (retry)
        return IDEM_NEXT;
    retry = idem_arena_zalloc(call->arena, sizeof(*retry));
    if (!retry) {
        idem_call_fail(call, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_NOT_SENT,
                       NULL, "no memory to count attempts in");
        return IDEM_ANSWER;
    }
    retry->metadata = call->metadata;
    idem_call_set_state(call, self, retry);
    return IDEM_NEXT;
}

/* The request as it was before the attempt that failed. */
static void
rewind_request(struct idem_call *call, const struct retry *retry, bool seen)
{
    call->metadata = retry->metadata;
    if (call->metadata.last)
        *call->metadata.last = NULL;
    call->attempt += seen;
}

static struct retry_question
ask_about(const struct idem_call *call)
{
    return (struct retry_question){
        .policy = &call->method->retry,
        .outcome = &call->outcome,
        .safe = call->key.size > 0 || call->method->read_only ||
                call->method->idempotent,
        .keyed = call->key.size > 0,
        .interrupted = idem_call_interrupted(call),
        .remaining_ns = idem_call_remaining_ns(call),
        .clock = call->clock,
    };
}

static enum idem_step
retry_reply(struct idem_interceptor *self, struct idem_call *call)
{
    struct retry *retry = idem_call_state(call, self);
    struct retry_question question = ask_about(call);
    struct retry_answer answer = retry_next(&retry->progress, &question);

    /* Also when it goes on: whoever interrupts the pause ends the call with the
     * effect that it has had so far. */
    call->outcome.effect = retry->progress.worst;
    retry_say_stop(&call->outcome,
                   answer.go ? IDEM_STOP_INTERRUPTED : answer.stop);
    if (!answer.go)
        return IDEM_NEXT;

    rewind_request(call, retry, answer.seen);
    if (answer.pause_ns == 0)
        return IDEM_AGAIN;
    return idem_call_sleep(call, answer.pause_ns, IDEM_AGAIN) ? IDEM_WAIT
                                                              : IDEM_NEXT;
}

static void
retry_free(struct idem_interceptor *self)
{
    free(self);
}

static const struct idem_interceptor_ops retry_ops = {
    .name = "retry",
    .band = IDEM_BAND_RETRY,
    .request = retry_request,
    .reply = retry_reply,
    .free = retry_free,
};

struct idem_interceptor *
idem_retry_new(void)
{
    struct idem_interceptor *retry = calloc(1, sizeof(*retry));

    if (retry)
        retry->ops = &retry_ops;
    return retry;
}
