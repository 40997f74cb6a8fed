#include "attempt_plan.h"

#define NS_PER_MS 1000000

static bool
hedges(const struct plan *plan)
{
    return plan->rules.hedging->max_attempts > 1;
}

static int64_t
later(int64_t now_ns, int64_t pause_ns)
{
    return pause_ns < INT64_MAX - now_ns ? now_ns + pause_ns : INT64_MAX - 1;
}

static struct plan_step
start(struct plan *plan)
{
    plan->flying++;
    return (struct plan_step){.start = true, .number = plan->number++};
}

static struct plan_step
wait_on(void)
{
    return (struct plan_step){.start = false};
}

static struct plan_step
end(struct plan *plan, enum idem_stop stop)
{
    plan->over = true;
    plan->stop = stop;
    plan->due_ns = INT64_MAX;
    return wait_on();
}

/* --- Hedges --- */

static bool
may_hedge(const struct plan *plan)
{
    return !plan->no_more && plan->hedges < plan->rules.hedging->max_attempts;
}

/* No hedge after those that fly; the last of them is the answer. */
static struct plan_step
no_more(struct plan *plan, enum idem_stop stop)
{
    plan->no_more = true;
    plan->stop = stop;
    plan->due_ns = INT64_MAX;
    return plan->flying == 0 ? end(plan, stop) : wait_on();
}

/* The next hedge; or the last outcome is the answer when nothing flies. */
static struct plan_step
plan_hedge(struct plan *plan, int64_t at_ns)
{
    if (!may_hedge(plan)) {
        plan->due_ns = INT64_MAX;
        return plan->flying > 0
                   ? wait_on()
                   : end(plan, plan->no_more ? plan->stop : IDEM_STOP_ATTEMPTS);
    }
    if (at_ns >= plan->rules.deadline_ns)
        return no_more(plan, IDEM_STOP_DEADLINE);
    plan->due_ns = at_ns;
    return wait_on();
}

static int64_t
next_hedge_ns(const struct plan *plan, int64_t now_ns)
{
    int64_t at_ns = later(now_ns, plan->rules.hedging->delay_ms * NS_PER_MS);

    return may_hedge(plan) && at_ns < plan->rules.deadline_ns ? at_ns
                                                              : INT64_MAX;
}

static struct plan_step
hedge(struct plan *plan, int64_t now_ns)
{
    if (plan->again) {
        plan->again = false;
    } else {
        if (plan->hedges > 0 && plan->rules.throttle &&
            !throttle_open(plan->rules.throttle))
            return no_more(plan, IDEM_STOP_THROTTLED);
        if (plan->hedges > 0 && plan->rules.budget &&
            !budget_take(plan->rules.budget, now_ns))
            return no_more(plan, IDEM_STOP_BUDGET);
        plan->hedges++;
    }
    plan->due_ns = next_hedge_ns(plan, now_ns);
    return start(plan);
}

/* Another attempt in the place of one that does not count, when nothing else
 * flies. Else those that fly are the call's hope. */
static struct plan_step
send_again(struct plan *plan, int64_t at_ns)
{
    if (plan->flying > 0)
        return wait_on();
    if (at_ns >= plan->rules.deadline_ns)
        return no_more(plan, IDEM_STOP_DEADLINE);
    plan->again = true;
    plan->due_ns = at_ns;
    return wait_on();
}

static struct plan_step
hedge_unsent(struct plan *plan, int64_t now_ns)
{
    int64_t pause_ns;

    if (!retry_pause_unsent(&plan->progress, plan->rules.clock, &pause_ns))
        return no_more(plan, IDEM_STOP_ATTEMPTS);
    if (plan->flying == 0)
        plan->number--;
    return send_again(plan, later(now_ns, pause_ns));
}

static struct plan_step
hedge_running(struct plan *plan, const struct idem_outcome *outcome,
              int64_t now_ns)
{
    return send_again(
        plan, later(now_ns, retry_pause_running_ns(&plan->progress, outcome,
                                                   plan->rules.clock)));
}

/* A failure that does not end the call. */
static struct plan_step
hedge_failed(struct plan *plan, const struct idem_outcome *outcome,
             int64_t now_ns)
{
    int64_t at_ns = now_ns;

    if (plan->rules.throttle && !throttle_failure(plan->rules.throttle))
        return no_more(plan, IDEM_STOP_THROTTLED);
    if (outcome->retry_after_ms > 0)
        at_ns = later(now_ns, retry_named_ns(outcome));
    return plan_hedge(plan, at_ns);
}

static struct plan_step
hedge_ended(struct plan *plan, const struct idem_outcome *outcome,
            int64_t now_ns)
{
    if (outcome->status == IDEM_OK) {
        if (plan->rules.throttle)
            throttle_success(plan->rules.throttle);
        return end(plan, IDEM_STOP_OK);
    }
    if (outcome->final)
        return end(plan, IDEM_STOP_FINAL);
    if (outcome->retry_after_ms == IDEM_RETRY_NEVER) {
        if (plan->rules.throttle)
            (void)throttle_failure(plan->rules.throttle);
        return no_more(plan, IDEM_STOP_PUSHBACK);
    }
    if (retry_never_left(outcome))
        return hedge_unsent(plan, now_ns);
    if (retry_turned_away(outcome) && !plan->progress.refused) {
        plan->progress.refused = true;
        return start(plan);
    }
    if (plan->rules.keyed && retry_first_runs(outcome))
        return hedge_running(plan, outcome, now_ns);
    if (!retry_is_repeated(outcome, plan->rules.hedging->non_fatal))
        return end(plan, IDEM_STOP_STATUS);
    return hedge_failed(plan, outcome, now_ns);
}

/* --- One after another --- */

static struct plan_step
retry_ended(struct plan *plan, const struct idem_outcome *outcome,
            int64_t now_ns)
{
    const struct plan_rules *rules = &plan->rules;
    struct retry_question question = {
        .policy = rules->retry,
        .outcome = outcome,
        .safe = rules->safe,
        .keyed = rules->keyed,
        .too_large = rules->too_large,
        .remaining_ns = rules->deadline_ns == INT64_MAX
                            ? INT64_MAX
                            : rules->deadline_ns - now_ns,
        .throttle = rules->throttle,
        .budget = rules->budget,
        .clock = rules->clock,
    };
    struct retry_answer answer = retry_next(&plan->progress, &question);

    if (!answer.go)
        return end(plan, answer.stop);
    if (!answer.seen)
        plan->number--;
    if (answer.pause_ns == 0)
        return start(plan);
    plan->due_ns = later(now_ns, answer.pause_ns);
    return wait_on();
}

/* --- Events --- */

void
plan_begin(struct plan *plan, const struct plan_rules *rules, int64_t now_ns)
{
    *plan = (struct plan){
        .rules = *rules,
        .progress = {.worst = rules->before},
        .number = 1,
        .due_ns = INT64_MAX,
    };
    if (hedges(plan))
        (void)hedge(plan, now_ns);
    else
        (void)start(plan);
}

struct plan_step
plan_due(struct plan *plan, int64_t now_ns)
{
    if (plan->over || now_ns < plan->due_ns)
        return wait_on();
    if (hedges(plan))
        return hedge(plan, now_ns);
    plan->due_ns = INT64_MAX;
    return start(plan);
}

/* Those that are dropped still say what they did. */
static struct plan_step
dropped(struct plan *plan, const struct idem_outcome *outcome)
{
    bool better = outcome->status == IDEM_OK &&
                  plan->stop != IDEM_STOP_INTERRUPTED && !plan->settled;

    if (!plan->settled)
        plan->progress.worst = retry_effect(&plan->progress, outcome);
    if (better) {
        plan->settled = true;
        plan->stop = IDEM_STOP_OK;
    }
    return (struct plan_step){.choose = better};
}

struct plan_step
plan_ended(struct plan *plan, const struct idem_outcome *outcome,
           int64_t now_ns)
{
    struct plan_step step;

    plan->flying--;
    if (plan->over)
        return dropped(plan, outcome);
    if (!hedges(plan)) {
        step = retry_ended(plan, outcome, now_ns);
    } else {
        plan->progress.worst = retry_effect(&plan->progress, outcome);
        if (!retry_never_left(outcome))
            plan->progress.unsent = 0;
        step = hedge_ended(plan, outcome, now_ns);
    }
    step.choose = true;
    plan->settled = plan->over && outcome->status == IDEM_OK;
    return step;
}

void
plan_give_up(struct plan *plan)
{
    if (!plan->over)
        (void)end(plan, IDEM_STOP_INTERRUPTED);
}
