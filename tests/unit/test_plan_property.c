#include "support.h"

#include "attempt_plan.h"
#include "fake_clock.h"

#include <idem/reason.h>

#include <stdlib.h>
#include <string.h>

/* A million random steps through the plan of attempts: outcomes, times that
 * servers name, times that come, callers who give up. Whatever comes: never
 * more attempts than allowed, never a repeat in doubt without a key, never one
 * after the end, nothing lost, one end, and a throttle and pauses whose
 * arithmetic is that of a model beside them.
 *
 *   test_plan_property [STEPS [SEED]] */

#define MS INT64_C(1000000)

static unsigned wanted = 1000000;
static uint64_t seed = 88172645463325252u;

static struct fake_clock fake;
static struct throttle throttle;
static int64_t model_max, model_ratio, model_tokens;
static unsigned steps;

struct life {
    struct idem_retry_policy retry;
    struct hedging hedging;
    struct plan plan;
    int64_t now_ns;
    unsigned started, ended;
    unsigned free; /* attempts that cost nothing */
    bool doubt;    /* an attempt may have taken effect, and nothing that came
                    * after it says whether */
    unsigned ends;
    unsigned pauses, unsent, waits; /* of the model of pauses */
    unsigned paid;                  /* attempts that the policy counts */
    bool refused;                   /* the repeat at once is used */
};

static uint64_t
pick(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static struct idem_outcome
draw(void)
{
    static const enum idem_status statuses[] = {
        IDEM_OK,      IDEM_UNAVAILABLE,       IDEM_UNAVAILABLE,
        IDEM_ABORTED, IDEM_INTERNAL,          IDEM_RESOURCE_EXHAUSTED,
        IDEM_ABORTED, IDEM_DEADLINE_EXCEEDED,
    };
    struct idem_outcome outcome = {.status = statuses[pick(8)],
                                   .effect = (enum idem_effect)pick(6),
                                   .final = pick(60) == 0,
                                   .retry_after_ms = -1};

    if (pick(6) == 0)
        outcome.retry_after_ms =
            pick(3) ? (int64_t)pick(300) : IDEM_RETRY_NEVER;
    if (outcome.status == IDEM_OK)
        outcome.effect = pick(2) ? IDEM_EFFECT_COMMITTED : IDEM_EFFECT_REPLAYED;
    else if (outcome.status == IDEM_ABORTED && pick(2))
        strcpy(outcome.reason, IDEM_KEY_RUNNING);
    else if (outcome.status == IDEM_DEADLINE_EXCEEDED && pick(2))
        strcpy(outcome.reason, IDEM_ATTEMPT_TIMEOUT);
    return outcome;
}

/* --- The throttle's model: what moves it, by the table of client.md 2.5 --- */

static void
model_move(int64_t by)
{
    model_tokens += by;
    if (model_tokens < 0)
        model_tokens = 0;
    if (model_tokens > model_max)
        model_tokens = model_max;
}

static bool
model_is_open(void)
{
    return model_max == 0 || 2 * model_tokens > model_max;
}

static bool
costs_nothing(const struct life *life, const struct idem_outcome *outcome)
{
    if (outcome->final || outcome->status == IDEM_OK)
        return false;
    return retry_never_left(outcome) ||
           (retry_turned_away(outcome) && !life->refused) ||
           (life->plan.rules.keyed && retry_first_runs(outcome));
}

static void
model_ended(const struct life *life, const struct idem_outcome *outcome)
{
    bool hedges = life->hedging.max_attempts > 1;
    uint32_t codes = hedges ? life->hedging.non_fatal : life->retry.retryable;

    if (life->plan.over || (!hedges && life->retry.max_attempts == 0))
        return;
    if (outcome->status == IDEM_OK)
        model_move(model_ratio);
    else if (hedges && outcome->final)
        return;
    else if (!costs_nothing(life, outcome) ||
             (hedges && !outcome->final &&
              outcome->retry_after_ms == IDEM_RETRY_NEVER)) {
        if (outcome->retry_after_ms == IDEM_RETRY_NEVER ||
            (!outcome->final && retry_is_repeated(outcome, codes)))
            model_move(-1000);
    }
}

/* --- The pauses' model, by client.md 2.3 and 2.6, of one after another --- */

struct pause {
    int64_t least_ns, most_ns;
};

static struct pause
exactly(int64_t ms)
{
    return (struct pause){ms * MS, ms * MS};
}

/* The n-th pause, 20 % around it; to a microsecond, for the roundings. */
static struct pause
growing(double ms, double multiplier, double max_ms, unsigned n)
{
    for (unsigned i = 1; i < n; i++)
        ms *= multiplier;
    if (ms > max_ms)
        ms = max_ms;
    return (struct pause){(int64_t)(ms * 0.8 * MS) - 1000,
                          (int64_t)(ms * 1.2 * MS) + 1000};
}

static struct pause
model_pause(struct life *life, const struct idem_outcome *outcome)
{
    const struct idem_retry_policy *retry = &life->retry;
    bool named = outcome->retry_after_ms >= 0;

    if (retry_never_left(outcome))
        return growing(10, 2, 1000, ++life->unsent);
    life->unsent = 0;
    if (retry_turned_away(outcome) && !life->refused)
        return exactly(0);
    if (life->plan.rules.keyed && retry_first_runs(outcome))
        return named ? exactly(outcome->retry_after_ms)
                     : growing(20, 2, 1000, ++life->waits);
    if (named) {
        life->pauses = 0;
        return exactly(outcome->retry_after_ms);
    }
    return growing((double)retry->initial_backoff_ms,
                   retry->backoff_multiplier_milli / 1000.0,
                   (double)retry->max_backoff_ms, ++life->pauses);
}

/* Another one follows: after a pause of that length. */
static void
assert_paused(const struct life *life, struct pause pause)
{
    int64_t pause_ns = life->plan.due_ns - life->now_ns;

    if (life->plan.over)
        return;
    if (life->plan.flying > 0) /* at once */
        pause_ns = 0;
    if (pause_ns < pause.least_ns || pause_ns > pause.most_ns)
        fail_msg("a pause of %lld ns is not from %lld to %lld",
                 (long long)pause_ns, (long long)pause.least_ns,
                 (long long)pause.most_ns);
}

/* What became of the key is known from an effect that stands, or from an
 * answer that is recorded. */
static void
model_doubt(struct life *life, const struct idem_outcome *outcome)
{
    if (outcome->final || outcome->effect == IDEM_EFFECT_COMMITTED ||
        outcome->effect == IDEM_EFFECT_REPLAYED)
        life->doubt = outcome->effect == IDEM_EFFECT_IN_DOUBT;
    else if (outcome->effect == IDEM_EFFECT_IN_DOUBT)
        life->doubt = true;
}

/* --- A life --- */

static unsigned
allowed(const struct life *life)
{
    unsigned attempts = life->hedging.max_attempts > 1
                            ? life->hedging.max_attempts
                            : life->retry.max_attempts;

    return attempts > 0 ? attempts : 1;
}

static void
began(struct life *life)
{
    assert_false(life->plan.over);
    assert_true(life->started - life->free < allowed(life));
    if (life->doubt)
        assert_true(life->plan.rules.safe);
    assert_true(life->now_ns < life->plan.rules.deadline_ns);
    life->started++;
}

static void
end_one(struct life *life)
{
    struct idem_outcome outcome = draw();
    bool was_over = life->plan.over;
    bool hedges = life->hedging.max_attempts > 1;
    bool free = !was_over && costs_nothing(life, &outcome);
    struct pause pause = {0};
    struct plan_step step;

    life->free += free;
    life->paid += !free;
    model_ended(life, &outcome);
    model_doubt(life, &outcome);
    if (!hedges && !was_over)
        pause = model_pause(life, &outcome);
    life->refused |= free && retry_turned_away(&outcome);
    step = plan_ended(&life->plan, &outcome, life->now_ns);
    life->ended++;
    if (!hedges)
        assert_paused(life, pause);
    if (!hedges && !life->plan.over && !free)
        assert_true(model_is_open());
    if (!hedges && life->plan.over && life->plan.stop == IDEM_STOP_ATTEMPTS)
        assert_int_equal(life->paid, life->retry.max_attempts);
    assert_true(life->plan.due_ns == INT64_MAX ||
                life->plan.due_ns < life->plan.rules.deadline_ns);
    assert_int_equal(throttle.tokens_milli, model_tokens);
    if (step.choose && was_over)
        assert_int_equal(outcome.status, IDEM_OK);
    if (step.start)
        began(life);
}

static void
come_due(struct life *life)
{
    bool hedge = life->hedging.max_attempts > 1 && !life->plan.again;
    struct plan_step step;

    if (pick(3) == 0 && life->plan.due_ns < INT64_MAX)
        life->now_ns = life->plan.due_ns;
    else
        life->now_ns += (int64_t)pick(200) * MS;
    if (life->now_ns >= life->plan.rules.deadline_ns) {
        plan_give_up(&life->plan);
        return;
    }
    step = plan_due(&life->plan, life->now_ns);
    if (step.start && hedge)
        assert_true(model_is_open());
    if (step.start)
        began(life);
}

static void
draw_rules(struct life *life)
{
    unsigned mode = (unsigned)pick(3);
    bool keyed = pick(4) > 0;

    life->retry = (struct idem_retry_policy){
        (unsigned)pick(6), 1 + (int64_t)pick(100), 1 + (int64_t)pick(1000),
        1000 + 500 * (unsigned)pick(5), (uint32_t)pick(1u << 17) & ~1u};
    life->hedging =
        (struct hedging){mode == 0 ? 0 : 2 + (unsigned)pick(4),
                         (int64_t)pick(100), (uint32_t)pick(1u << 17) & ~1u};
    if (!keyed)
        life->hedging.max_attempts = 0; /* policy_make's rule */

    const struct plan_rules rules = {
        .retry = &life->retry,
        .hedging = &life->hedging,
        .safe = keyed || pick(2),
        .keyed = keyed,
        .too_large = false,
        .deadline_ns = pick(3) ? INT64_MAX : 1 + (int64_t)pick(5000) * MS,
        .throttle = &throttle,
        .clock = &fake.clock,
    };

    plan_begin(&life->plan, &rules, life->now_ns);
    life->started = 1;
}

static void
draw_throttle(void)
{
    model_max = (int64_t)pick(10) * 1000;
    model_ratio = 1 + (int64_t)pick(3000);
    throttle_set(&throttle, 0, 0);
    throttle_set(&throttle, model_max, model_ratio);
    model_tokens = model_max;
}

static void
live(void)
{
    struct life life = {.started = 0};

    if (pick(50) == 0)
        draw_throttle();
    draw_rules(&life);
    while (!(life.plan.over && life.plan.flying == 0)) {
        bool was_over = life.plan.over;

        steps++;
        assert_int_equal(life.plan.flying, life.started - life.ended);
        /* Nothing is lost: something flies, or something is planned. */
        assert_true(life.plan.over || life.plan.flying > 0 ||
                    life.plan.due_ns < INT64_MAX);
        if (pick(100) == 0)
            plan_give_up(&life.plan);
        else if (life.plan.flying > 0 && pick(2))
            end_one(&life);
        else
            come_due(&life);
        assert_false(was_over && !life.plan.over);
        life.ends += !was_over && life.plan.over;
    }
    assert_int_equal(life.started, life.ended);
    assert_int_equal(life.ends, 1);
    if (life.doubt && !life.plan.settled)
        assert_int_equal(life.plan.progress.worst, IDEM_EFFECT_IN_DOUBT);
    if (life.plan.stop == IDEM_STOP_OK)
        assert_true(life.plan.progress.worst == IDEM_EFFECT_COMMITTED ||
                    life.plan.progress.worst == IDEM_EFFECT_REPLAYED);
}

static void
a_million_steps_break_no_rule(void **state)
{
    (void)state;
    print_message("%u steps from seed %llu\n", wanted,
                  (unsigned long long)seed);
    fake_clock_init(&fake);
    throttle_init(&throttle);
    draw_throttle();
    while (steps < wanted)
        live();
    throttle_fini(&throttle);
    fake_clock_fini(&fake);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_steps_break_no_rule),
    };

    if (argc > 1)
        wanted = (unsigned)strtoul(argv[1], NULL, 10);
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 10) | 1; /* 0 would stay 0 */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
