#include "retry_rule.h"

#include "retry_backoff.h"

#include <idem/reason.h>

#include <stdio.h>
#include <string.h>

#define MS 1000000LL
#define UNSENT_MAX 1000 /* in a row, as grpc-java's cap */

/* As a connection backs off. */
static const struct retry_backoff unsent_backoff = {10, 1000, 2000};

/* For the first call with a key, when the server names no time. */
static const struct retry_backoff running_backoff = {20, 1000, 2000};

static struct retry_answer
stop(enum idem_stop why)
{
    return (struct retry_answer){.stop = why};
}

static struct retry_answer
go(const struct retry_question *question, int64_t pause_ns, bool seen)
{
    if (pause_ns >= question->remaining_ns)
        return stop(IDEM_STOP_DEADLINE);
    return (struct retry_answer){
        .go = true, .pause_ns = pause_ns, .seen = seen};
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

int64_t
retry_named_ns(const struct idem_outcome *outcome)
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
bool
retry_never_left(const struct idem_outcome *outcome)
{
    return outcome->effect == IDEM_EFFECT_NOT_SENT &&
           outcome->status == IDEM_UNAVAILABLE && !not_connected(outcome);
}

bool
retry_turned_away(const struct idem_outcome *outcome)
{
    return outcome->effect == IDEM_EFFECT_REFUSED &&
           outcome->status == IDEM_UNAVAILABLE && outcome->retry_after_ms == -1;
}

bool
retry_first_runs(const struct idem_outcome *outcome)
{
    return outcome->status == IDEM_ABORTED &&
           strcmp(outcome->reason, IDEM_KEY_RUNNING) == 0;
}

/* Is it a status that the policy repeats? A connection that was lost and an
 * attempt whose time is over are, in whatever list. A limit is the same each
 * time, unless the server names a time at which it is not (client.md 2.13). */
bool
retry_is_repeated(const struct idem_outcome *outcome, uint32_t codes)
{
    if (strcmp(outcome->reason, IDEM_ATTEMPT_TIMEOUT) == 0)
        return true;
    if (outcome->effect == IDEM_EFFECT_NOT_SENT && !not_connected(outcome))
        return false;
    if (outcome->effect == IDEM_EFFECT_IN_DOUBT &&
        outcome->status == IDEM_UNAVAILABLE)
        return true;
    if (outcome->effect == IDEM_EFFECT_REFUSED &&
        outcome->status == IDEM_RESOURCE_EXHAUSTED && !named(outcome))
        return false;
    return has_code(codes, outcome->status);
}

/* The server's time is obeyed exactly, and the pauses begin anew after it. */
static int64_t
policy_pause_ns(struct retry_progress *progress,
                const struct retry_question *question)
{
    const struct idem_retry_policy *policy = question->policy;
    struct retry_backoff backoff = {policy->initial_backoff_ms,
                                    policy->max_backoff_ms,
                                    policy->backoff_multiplier_milli};

    if (named(question->outcome)) {
        progress->pauses = 0;
        return retry_named_ns(question->outcome);
    }
    return retry_backoff_ns(&backoff, ++progress->pauses, question->clock);
}

/* Why what the server said, or did not, ends the call. The throttle counts a
 * failure also when no attempt follows; a pushback counts whatever the status
 * (A6). UNASKED: it does not end it. */
static enum idem_stop
stop_by_answer(const struct retry_question *question)
{
    const struct idem_outcome *outcome = question->outcome;
    struct throttle *throttle = question->throttle;

    if (outcome->retry_after_ms == IDEM_RETRY_NEVER) {
        if (throttle)
            (void)throttle_failure(throttle);
        return IDEM_STOP_PUSHBACK;
    }
    if (outcome->final)
        return IDEM_STOP_FINAL;
    if (!retry_is_repeated(outcome, question->policy->retryable))
        return IDEM_STOP_STATUS;
    if (throttle && !throttle_failure(throttle))
        return IDEM_STOP_THROTTLED;
    if (outcome->effect == IDEM_EFFECT_IN_DOUBT && !question->safe)
        return IDEM_STOP_IN_DOUBT;
    return IDEM_STOP_UNASKED;
}

/* The order is client.md 2.4's, steps 3 to 9. */
static struct retry_answer
by_policy(struct retry_progress *progress,
          const struct retry_question *question)
{
    const struct idem_clock *clock = question->clock;
    struct retry_answer answer;
    enum idem_stop why;

    if (question->policy->max_attempts == 0)
        return stop(question->outcome->final ? IDEM_STOP_FINAL
                                             : IDEM_STOP_NO_POLICY);
    progress->spent++;
    why = stop_by_answer(question);
    if (why != IDEM_STOP_UNASKED)
        return stop(why);
    if (question->too_large)
        return stop(IDEM_STOP_BUFFER);
    if (progress->spent >= question->policy->max_attempts)
        return stop(IDEM_STOP_ATTEMPTS);
    answer = go(question, policy_pause_ns(progress, question), true);
    if (answer.go && question->budget &&
        !budget_take(question->budget, clock->monotonic_ns(clock)))
        return stop(IDEM_STOP_BUDGET);
    return answer;
}

static struct retry_answer
after_ok(const struct retry_question *question)
{
    if (question->throttle && question->policy->max_attempts > 0)
        throttle_success(question->throttle);
    return stop(IDEM_STOP_OK);
}

bool
retry_pause_unsent(struct retry_progress *progress,
                   const struct idem_clock *clock, int64_t *pause_ns)
{
    if (++progress->unsent > UNSENT_MAX)
        return false;
    *pause_ns = retry_backoff_ns(&unsent_backoff, progress->unsent, clock);
    return true;
}

static struct retry_answer
after_unsent(struct retry_progress *progress,
             const struct retry_question *question)
{
    int64_t pause_ns;

    if (!retry_pause_unsent(progress, question->clock, &pause_ns))
        return stop(IDEM_STOP_ATTEMPTS);
    return go(question, pause_ns, false);
}

/* Waiting for the first call with this key spends no attempt: otherwise a slow
 * first one uses up the budget of those that wait for it (case B032). */
int64_t
retry_pause_running_ns(struct retry_progress *progress,
                       const struct idem_outcome *outcome,
                       const struct idem_clock *clock)
{
    if (named(outcome))
        return retry_named_ns(outcome);
    return retry_backoff_ns(&running_backoff, ++progress->waits, clock);
}

static void
count(struct retry_progress *progress, const struct idem_outcome *outcome)
{
    if (!retry_never_left(outcome))
        progress->unsent = 0;
    progress->worst = retry_effect(progress, outcome);
}

/* Its record is gone: what it did before is not told. */
static bool
is_forgotten(const struct idem_outcome *last)
{
    return strcmp(last->reason, IDEM_KEY_EXPIRED) == 0 ||
           strcmp(last->reason, IDEM_KEY_STALE) == 0;
}

/* A stored answer, or an effect that stands, is what became of the key. */
static bool
settles(const struct idem_outcome *last)
{
    if (last->effect == IDEM_EFFECT_COMMITTED ||
        last->effect == IDEM_EFFECT_REPLAYED)
        return true;
    return last->final && !is_forgotten(last);
}

enum idem_effect
retry_effect(const struct retry_progress *progress,
             const struct idem_outcome *last)
{
    if (settles(last) || last->effect > progress->worst)
        return last->effect;
    return progress->worst;
}

void
retry_say_stop(struct idem_outcome *outcome, enum idem_stop stop)
{
    char last[IDEM_MESSAGE_MAX];

    outcome->stop = stop;
    outcome->last_status = outcome->status;
    if (stop != IDEM_STOP_DEADLINE)
        return;
    memcpy(last, outcome->message, sizeof last);
    outcome->status = IDEM_DEADLINE_EXCEEDED;
    snprintf(outcome->message, sizeof outcome->message,
             "%s; the last attempt: %s: %.160s", idem_stop_text(stop),
             idem_status_name(outcome->last_status), last);
}

struct retry_answer
retry_next(struct retry_progress *progress,
           const struct retry_question *question)
{
    const struct idem_outcome *outcome = question->outcome;

    count(progress, outcome);
    if (outcome->status == IDEM_OK)
        return after_ok(question);
    if (question->interrupted)
        return stop(IDEM_STOP_INTERRUPTED);
    if (question->committed)
        return stop(IDEM_STOP_COMMITTED);
    if (outcome->final)
        return by_policy(progress, question);

    if (retry_never_left(outcome))
        return after_unsent(progress, question);
    if (retry_turned_away(outcome) && !progress->refused) {
        progress->refused = true;
        return go(question, 0, false);
    }
    if (question->keyed && retry_first_runs(outcome))
        return go(question,
                  retry_pause_running_ns(progress, outcome, question->clock),
                  true);
    return by_policy(progress, question);
}
