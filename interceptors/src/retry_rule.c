#include "retry_rule.h"

#include "retry_backoff.h"

#include <idem/reason.h>

#include <string.h>

#define MS 1000000LL
#define UNSENT_MAX 1000 /* in a row, as grpc-java's cap */

/* As a connection backs off. */
static const struct retry_backoff unsent_backoff = {10, 1000, 2000};

/* For the first call with a key, when the server names no time. */
static const struct retry_backoff running_backoff = {20, 1000, 2000};

static struct retry_answer
stop(enum retry_stop why)
{
    return (struct retry_answer){.stop = why};
}

static struct retry_answer
go(const struct retry_question *question, int64_t pause_ns, bool seen)
{
    if (pause_ns >= question->remaining_ns)
        return stop(RETRY_STOP_DEADLINE);
    return (struct retry_answer){RETRY_GO, pause_ns, seen};
}

static bool
has_code(uint32_t set, enum idem_status status)
{
    return set & 1u << status;
}

static bool
named(const struct idem_outcome *outcome)
{
    return outcome->retry_after_ms >= 0;
}

static int64_t
named_ns(const struct idem_outcome *outcome)
{
    int64_t ns;

    if (__builtin_mul_overflow(outcome->retry_after_ms, MS, &ns))
        return INT64_MAX;
    return ns;
}

/* There was no connection, and the call does not wait for one: an attempt like
 * any other that failed (rpc 18, 73). */
static bool
not_connected(const struct idem_outcome *outcome)
{
    return outcome->effect == IDEM_EFFECT_NOT_SENT &&
           strcmp(outcome->reason, IDEM_NOT_CONNECTED) == 0;
}

/* Only the way to the server failed: a request that is too large never leaves
 * either, and it never will (case B035). */
static bool
never_left(const struct idem_outcome *outcome)
{
    return outcome->effect == IDEM_EFFECT_NOT_SENT &&
           outcome->status == IDEM_UNAVAILABLE && !not_connected(outcome);
}

static bool
turned_away(const struct idem_outcome *outcome)
{
    return outcome->effect == IDEM_EFFECT_REFUSED &&
           outcome->status == IDEM_UNAVAILABLE && !named(outcome);
}

static bool
first_still_runs(const struct idem_outcome *outcome)
{
    return outcome->status == IDEM_ABORTED &&
           strcmp(outcome->reason, IDEM_KEY_RUNNING) == 0;
}

static bool
may_repeat_doubt(const struct retry_question *question)
{
    return question->keyed || question->method->read_only ||
           question->method->idempotent;
}

/* Is it a status that the policy repeats? A connection that was lost is, in
 * whatever list. A limit is the same each time, unless the server names a time
 * at which it is not (client.md 2.13). */
static bool
is_repeated(const struct retry_question *question)
{
    const struct idem_outcome *outcome = question->outcome;

    if (outcome->effect == IDEM_EFFECT_NOT_SENT && !not_connected(outcome))
        return false;
    if (outcome->effect == IDEM_EFFECT_IN_DOUBT &&
        outcome->status == IDEM_UNAVAILABLE)
        return true;
    if (outcome->effect == IDEM_EFFECT_REFUSED &&
        outcome->status == IDEM_RESOURCE_EXHAUSTED && !named(outcome))
        return false;
    return has_code(question->method->retry.retryable, outcome->status);
}

/* The server's time is obeyed exactly, and the pauses begin anew after it. */
static int64_t
policy_pause_ns(struct retry_progress *progress,
                const struct retry_question *question)
{
    const struct idem_retry_policy *policy = &question->method->retry;
    struct retry_backoff backoff = {policy->initial_backoff_ms,
                                    policy->max_backoff_ms,
                                    policy->backoff_multiplier_milli};

    if (named(question->outcome)) {
        progress->pauses = 0;
        return named_ns(question->outcome);
    }
    return retry_backoff_ns(&backoff, ++progress->pauses, question->clock);
}

static struct retry_answer
by_policy(struct retry_progress *progress,
          const struct retry_question *question)
{
    progress->spent++;
    if (!is_repeated(question))
        return stop(RETRY_STOP_STATUS);
    if (question->outcome->effect == IDEM_EFFECT_IN_DOUBT &&
        !may_repeat_doubt(question))
        return stop(RETRY_STOP_IN_DOUBT);
    if (progress->spent >= question->method->retry.max_attempts)
        return stop(RETRY_STOP_ATTEMPTS);
    return go(question, policy_pause_ns(progress, question), true);
}

static struct retry_answer
after_unsent(struct retry_progress *progress,
             const struct retry_question *question)
{
    if (++progress->unsent > UNSENT_MAX)
        return stop(RETRY_STOP_ATTEMPTS);
    return go(
        question,
        retry_backoff_ns(&unsent_backoff, progress->unsent, question->clock),
        false);
}

/* Waiting for the first call with this key spends no attempt: otherwise a slow
 * first one uses up the budget of those that wait for it (case B032). */
static struct retry_answer
after_running(struct retry_progress *progress,
              const struct retry_question *question)
{
    int64_t pause_ns =
        named(question->outcome)
            ? named_ns(question->outcome)
            : retry_backoff_ns(&running_backoff, ++progress->waits,
                               question->clock);

    return go(question, pause_ns, true);
}

static void
count(struct retry_progress *progress, const struct idem_outcome *outcome)
{
    if (!never_left(outcome))
        progress->unsent = 0;
    progress->worst = retry_effect(progress, outcome);
}

/* A stored answer, or an effect that stands, is what became of the key. That a
 * key is expired says nothing of what it did before. */
static bool
settles(const struct idem_outcome *last)
{
    if (last->effect == IDEM_EFFECT_COMMITTED ||
        last->effect == IDEM_EFFECT_REPLAYED)
        return true;
    return last->final && strcmp(last->reason, IDEM_KEY_EXPIRED) != 0;
}

enum idem_effect
retry_effect(const struct retry_progress *progress,
             const struct idem_outcome *last)
{
    if (settles(last) || last->effect > progress->worst)
        return last->effect;
    return progress->worst;
}

struct retry_answer
retry_next(struct retry_progress *progress,
           const struct retry_question *question)
{
    const struct idem_outcome *outcome = question->outcome;

    count(progress, outcome);
    if (outcome->status == IDEM_OK)
        return stop(RETRY_STOP_OK);
    if (question->interrupted)
        return stop(RETRY_STOP_INTERRUPTED);
    if (outcome->final)
        return stop(RETRY_STOP_FINAL);

    if (never_left(outcome))
        return after_unsent(progress, question);
    if (turned_away(outcome) && !progress->refused) {
        progress->refused = true;
        return go(question, 0, false);
    }
    if (question->keyed && first_still_runs(outcome))
        return after_running(progress, question);
    return by_policy(progress, question);
}
