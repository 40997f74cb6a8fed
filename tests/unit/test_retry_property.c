#include "support.h"

#include "retry_world.h"

#include <idem/reason.h>

#include <stdlib.h>
#include <string.h>

/* Random answers, policies, clock steps and callers who give up. Whatever
 * comes: never more attempts than the policy has, never a repeat in doubt
 * without a key, never a pause beyond the deadline, one key, one end, and an
 * effect that is not better than what happened. Through the chain, with its
 * timers and threads; the rule alone is test_plan_property's, by the million.
 *
 *   test_retry_property [STEPS] */

#define MS INT64_C(1000000)

static unsigned wanted = 100000;

static struct retry_world w;
static unsigned steps;

/* What a call has been through, by the endpoint's own account. */
struct past {
    unsigned answers;  /* that the policy pays for */
    unsigned refusals; /* UNAVAILABLE, without a time */
    bool doubt;        /* an attempt may have taken effect */
    bool over;         /* no attempt may follow the last answer */
    char key[IDEM_KEY_MAX + 1];
};

static uint64_t
pick(uint64_t below)
{
    return (uint64_t)idem_clock_between(&w.fake.clock, 0, (int64_t)below - 1);
}

static bool
safe_in_doubt(const struct retry_call *call)
{
    return call->call.base.key.size > 0 || call->method.read_only ||
           call->method.idempotent;
}

static void
draw(struct idem_outcome *outcome)
{
    static const enum idem_status statuses[] = {
        IDEM_OK,          IDEM_UNAVAILABLE,       IDEM_UNAVAILABLE,
        IDEM_UNAVAILABLE, IDEM_ABORTED,           IDEM_RESOURCE_EXHAUSTED,
        IDEM_INTERNAL,    IDEM_DEADLINE_EXCEEDED,
    };

    outcome->status = statuses[pick(8)];
    outcome->effect = (enum idem_effect)pick(6);
    outcome->final = pick(40) == 0;
    outcome->retry_after_ms = pick(4) ? -1 : (int64_t)pick(300);
    if (outcome->status == IDEM_OK)
        outcome->effect =
            pick(2) ? IDEM_EFFECT_COMMITTED : IDEM_EFFECT_REPLAYED;
    if (outcome->status == IDEM_ABORTED && pick(2)) {
        strcpy(outcome->reason, IDEM_KEY_RUNNING);
        outcome->effect = IDEM_EFFECT_REFUSED;
    }
}

static bool
paid_for(const struct retry_call *call, const struct idem_outcome *outcome)
{
    if (outcome->status == IDEM_UNAVAILABLE &&
        outcome->effect == IDEM_EFFECT_NOT_SENT)
        return false;
    return call->call.base.key.size == 0 ||
           strcmp(outcome->reason, IDEM_KEY_RUNNING) != 0;
}

static void
remember(struct retry_call *call, struct past *past)
{
    const struct idem_outcome *outcome = &call->call.base.outcome;

    past->answers += paid_for(call, outcome);
    past->refusals += outcome->status == IDEM_UNAVAILABLE &&
                      outcome->effect == IDEM_EFFECT_REFUSED &&
                      outcome->retry_after_ms < 0;
    if (outcome->effect == IDEM_EFFECT_IN_DOUBT)
        past->doubt = true;
    past->over =
        outcome->status == IDEM_OK || outcome->final ||
        (outcome->effect == IDEM_EFFECT_IN_DOUBT && !safe_in_doubt(call));
}

static void
answer_at_random(struct retry_call *call, unsigned n)
{
    const struct idem_call *base = &call->call.base;
    struct past *past = call->user;
    unsigned allowed = call->method.retry.max_attempts;

    assert_false(past->over);
    assert_true(past->answers < (allowed ? allowed : 1) + (past->refusals > 0));
    /* As it was planned: the clock may jump over the pause and the deadline. */
    assert_true(call->call.nap.at_ns < base->deadline_ns);
    if (n == 1 && base->key.size > 0)
        memcpy(past->key, base->key.data, base->key.size);
    assert_int_equal(strlen(past->key), base->key.size);
    if (base->key.size > 0)
        assert_memory_equal(past->key, base->key.data, base->key.size);
    draw(&call->call.base.outcome);
    remember(call, past);
    if (pick(50) == 0) {
        call_interrupt(&call->call, IDEM_CANCELLED);
        past->over = true;
    }
    steps++;
}

static struct retry_call *
new_call(struct past *past)
{
    struct retry_call *call =
        retry_call_new(&w, answer_at_random, (unsigned)pick(6),
                       (uint32_t)pick(1u << 17) | 1u << IDEM_UNAVAILABLE,
                       pick(3) ? 1 + (int64_t)pick(20000) : 0);

    call->user = past;
    call->method.mode = pick(4) ? IDEM_MODE_TRANSACTION : IDEM_MODE_NONE;
    call->method.read_only = pick(8) == 0;
    call->method.idempotent = pick(8) == 0;
    return call;
}

static void
run_call(void)
{
    struct past past = {.answers = 0};
    struct retry_call *call = new_call(&past);

    retry_call_begin(call);
    while (!retry_call_finished(call)) {
        if (pick(30) == 0)
            call_interrupt(&call->call, IDEM_CANCELLED);
        else
            retry_world_advance_ns(&w, (int64_t)pick(2000) * MS);
        fake_clock_step_wall_ms(&w.fake, (int64_t)pick(20000) - 10000);
    }
    if (past.doubt && call->outcome.effect != IDEM_EFFECT_IN_DOUBT)
        assert_true(call->outcome.final ||
                    call->outcome.effect == IDEM_EFFECT_COMMITTED ||
                    call->outcome.effect == IDEM_EFFECT_REPLAYED);
    retry_call_free(call);
}

static void
no_sequence_of_answers_breaks_the_rules(void **state)
{
    (void)state;
    retry_world_open(&w);
    while (steps < wanted)
        run_call();
    retry_world_close(&w);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_sequence_of_answers_breaks_the_rules),
    };

    if (argc > 1)
        wanted = (unsigned)strtoul(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
