#include "retry.h"

#include "attempts.h"
#include "policies.h"
#include "retry_rule.h"

#include <idem/call.h>

#include <stdlib.h>

struct retrier {
    struct idem_interceptor base;
    struct policies *policies; /* NULL: the .proto alone */
};

/* Kept with each call. */
struct retry {
    const struct policy *policy; /* NULL: the .proto alone */
    struct retry_progress progress;
    struct idem_metadata metadata; /* as it came from above, without what the
                                    * interceptors below add per attempt */
    struct attempts *attempts;     /* NULL: one after another, by AGAIN */
};

static bool
is_safe(const struct idem_call *call)
{
    return call->key.size > 0 || call->method->read_only ||
           call->method->idempotent;
}

static const struct idem_retry_policy *
policy_of(const struct retry *retry, const struct idem_call *call)
{
    return retry->policy ? &retry->policy->retry : &call->method->retry;
}

static bool
is_too_large(const struct retry *retry, const struct idem_call *call)
{
    return retry->policy && retry->policy->max_retry > 0 &&
           call->request.size > retry->policy->max_retry;
}

/* --- Attempts that are calls themselves --- */

static int64_t
attempt_timeout_ms(const struct retry *retry, const struct idem_call *call)
{
    if (call->attempt_timeout_ms > 0)
        return call->attempt_timeout_ms;
    return retry->policy ? retry->policy->attempt_timeout_ms : 0;
}

/* A stream has one attempt at a time: its messages go to one server. */
static bool
wants_attempts(const struct retry *retry, const struct idem_call *call)
{
    if (call->method->streams)
        return false;
    return attempt_timeout_ms(retry, call) > 0 ||
           (retry->policy && retry->policy->hedging.max_attempts > 1);
}

/* A config is checked when it is read; the caller is here. */
static enum idem_step
refuse_unsafe(struct idem_call *call)
{
    idem_call_fail(
        call, IDEM_INVALID_ARGUMENT, IDEM_EFFECT_NOT_SENT, NULL,
        "attempt_timeout_ms: %.100s has neither a key nor a declared "
        "idempotence: it might take effect twice",
        call->method->name);
    return IDEM_ANSWER;
}

static enum idem_step
begin_attempts(struct retrier *self, struct retry *retry,
               struct idem_call *call)
{
    static const struct hedging no_hedging;
    bool too_large = is_too_large(retry, call);
    const struct plan_rules rules = {
        .retry = policy_of(retry, call),
        .hedging =
            too_large || !retry->policy ? &no_hedging : &retry->policy->hedging,
        .safe = is_safe(call),
        .keyed = call->key.size > 0,
        .too_large = too_large,
        .before = retry->progress.worst,
        .deadline_ns = call->deadline_ns,
        .throttle = self->policies ? &self->policies->throttle : NULL,
        .budget = self->policies ? &self->policies->budget : NULL,
        .clock = call->clock,
    };

    return attempts_begin(&retry->attempts, call, &self->base, &rules,
                          attempt_timeout_ms(retry, call));
}

/* --- One after another --- */

/* Whoever sent it down again from above has another key for it, or counts
 * tries of his own; what a key may have done is not taken back. */
static void
begin_anew(struct retry *retry)
{
    enum idem_effect worst = retry->attempts ? attempts_effect(retry->attempts)
                                             : retry->progress.worst;

    retry->progress = (struct retry_progress){.worst = worst};
}

static enum idem_step
retry_request(struct idem_interceptor *base, struct idem_call *call)
{
    struct retrier *self = (struct retrier *)base;
    struct retry *retry = idem_call_state(call, base);

    if (retry) { /* sent down again from above */
        begin_anew(retry);
        if (!retry->attempts)
            return IDEM_NEXT;
        attempts_fini(retry->attempts);
        return begin_attempts(self, retry, call);
    }
    if (call->attempt_timeout_ms > 0 && !is_safe(call))
        return refuse_unsafe(call);
    retry = idem_arena_zalloc(call->arena, sizeof(*retry));
    if (!retry) {
        idem_call_fail(call, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_NOT_SENT,
                       NULL, "no memory to count attempts in");
        return IDEM_ANSWER;
    }
    retry->policy = self->policies ? policies_of(self->policies, call) : NULL;
    retry->metadata = call->metadata;
    idem_call_set_state(call, base, retry);
    if (!wants_attempts(retry, call))
        return IDEM_NEXT;
    return begin_attempts(self, retry, call);
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
ask_about(struct retrier *self, const struct retry *retry,
          const struct idem_call *call)
{
    bool ok = call->outcome.status == IDEM_OK; /* whatever the time is */

    return (struct retry_question){
        .policy = policy_of(retry, call),
        .outcome = &call->outcome,
        .safe = is_safe(call),
        .keyed = call->key.size > 0,
        .too_large = is_too_large(retry, call),
        .committed = call->committed,
        .interrupted = !ok && idem_call_interrupted(call),
        .remaining_ns = ok ? 0 : idem_call_remaining_ns(call),
        .throttle = self->policies ? &self->policies->throttle : NULL,
        .budget = self->policies ? &self->policies->budget : NULL,
        .clock = call->clock,
    };
}

static enum idem_step
retry_reply(struct idem_interceptor *base, struct idem_call *call)
{
    struct retrier *self = (struct retrier *)base;
    struct retry *retry = idem_call_state(call, base);
    struct retry_question question = ask_about(self, retry, call);
    struct retry_answer answer;

    /* A stream that got on begins to count anew. */
    if (call->advanced)
        retry->progress.spent = retry->progress.pauses = 0;
    call->advanced = false;
    answer = retry_next(&retry->progress, &question);
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
retry_forget(struct idem_interceptor *base, struct idem_call *call)
{
    struct retry *retry = idem_call_state(call, base);

    if (retry)
        attempts_fini(retry->attempts);
}

static void
retry_free(struct idem_interceptor *base)
{
    free(base);
}

static const struct idem_interceptor_ops retry_ops = {
    .name = "retry",
    .band = IDEM_BAND_RETRY,
    .request = retry_request,
    .reply = retry_reply,
    .forget = retry_forget,
    .free = retry_free,
};

struct idem_interceptor *
retry_new(struct policies *policies)
{
    struct retrier *self = calloc(1, sizeof(*self));

    if (!self)
        return NULL;
    self->base.ops = &retry_ops;
    self->policies = policies;
    return &self->base;
}

struct idem_interceptor *
idem_retry_new(void)
{
    return retry_new(NULL);
}
