#include "support.h"

#include "attempt_plan.h"
#include "fake_clock.h"

#include <idem/reason.h>

#include <string.h>

#define MS INT64_C(1000000)
#define BIT(status) (1u << IDEM_##status)

static struct fake_clock fake;
static struct plan plan;
static struct plan_rules rules;
static struct idem_retry_policy retry;
static struct hedging hedging;
static struct throttle throttle;
static int64_t now_ns;

static int
set_up(void **state)
{
    (void)state;
    fake_clock_init(&fake);
    throttle_init(&throttle);
    now_ns = 0;
    retry = (struct idem_retry_policy){3, 100, 2000, 2000, BIT(ABORTED)};
    hedging = (struct hedging){3, 50, BIT(ABORTED)};
    rules = (struct plan_rules){
        .retry = &retry,
        .hedging = &hedging,
        .safe = true,
        .keyed = true,
        .deadline_ns = INT64_MAX,
        .throttle = &throttle,
        .clock = &fake.clock,
    };
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    throttle_fini(&throttle);
    fake_clock_fini(&fake);
    return 0;
}

static struct plan_step
ends_with(enum idem_status status, enum idem_effect effect,
          int64_t retry_after_ms, const char *reason)
{
    struct idem_outcome outcome = {
        .status = status, .effect = effect, .retry_after_ms = retry_after_ms};

    strcpy(outcome.reason, reason);
    return plan_ended(&plan, &outcome, now_ns);
}

static struct plan_step
ends(enum idem_status status, enum idem_effect effect)
{
    return ends_with(status, effect, -1, "");
}

/* To the time that is planned. */
static struct plan_step
come_due(void)
{
    assert_true(plan.due_ns < INT64_MAX);
    now_ns = plan.due_ns > now_ns ? plan.due_ns : now_ns;
    return plan_due(&plan, now_ns);
}

static void
assert_over(enum idem_stop stop, enum idem_effect effect)
{
    assert_true(plan.over);
    assert_int_equal(plan.flying, 0);
    assert_int_equal(plan.stop, stop);
    assert_int_equal(plan.progress.worst, effect);
}

/* rpc 54: one each delay until there are enough. */
static void
hedges_begin_every_delay_until_the_maximum(void **state)
{
    struct plan_step step;

    (void)state;
    plan_begin(&plan, &rules, now_ns);
    assert_int_equal(plan.flying, 1);
    for (unsigned n = 2; n <= 3; n++) {
        assert_int_equal(plan.due_ns, (n - 1) * 50 * MS);
        step = come_due();
        assert_true(step.start);
        assert_int_equal(step.number, n);
    }
    assert_int_equal(plan.due_ns, INT64_MAX);
    assert_true(ends(IDEM_OK, IDEM_EFFECT_COMMITTED).choose);
    assert_true(plan.over);
    assert_false(ends(IDEM_ABORTED, IDEM_EFFECT_IN_DOUBT).choose);
    assert_false(ends(IDEM_ABORTED, IDEM_EFFECT_IN_DOUBT).choose);
    assert_over(IDEM_STOP_OK, IDEM_EFFECT_COMMITTED);
}

static void
before_its_delay_nothing_begins(void **state)
{
    (void)state;
    plan_begin(&plan, &rules, now_ns);
    assert_false(plan_due(&plan, 49 * MS).start);
    assert_true(plan_due(&plan, 50 * MS).start);
}

/* rpc 54: a fatal status ends the call; what the others did is in its effect.
 */
static void
a_fatal_status_ends_the_call_and_the_others_doubt_it(void **state)
{
    (void)state;
    plan_begin(&plan, &rules, now_ns);
    come_due();
    assert_true(ends(IDEM_PERMISSION_DENIED, IDEM_EFFECT_REFUSED).choose);
    assert_true(plan.over);
    assert_false(ends(IDEM_ABORTED, IDEM_EFFECT_IN_DOUBT).choose);
    assert_over(IDEM_STOP_STATUS, IDEM_EFFECT_IN_DOUBT);
}

/* A6: the next one at once after a failure that is not fatal. */
static void
after_a_failure_the_next_begins_at_once(void **state)
{
    (void)state;
    plan_begin(&plan, &rules, now_ns);
    now_ns = 10 * MS;
    ends(IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK);
    assert_int_equal(plan.due_ns, 10 * MS);
    assert_true(come_due().start);
    assert_int_equal(plan.due_ns, 60 * MS);
}

/* rpc 49 for hedges, A6: the server's time, then every delay again. */
static void
the_servers_time_moves_the_next_hedge(void **state)
{
    (void)state;
    plan_begin(&plan, &rules, now_ns);
    ends_with(IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, 700, "");
    assert_int_equal(plan.due_ns, 700 * MS);
    assert_true(come_due().start);
    assert_int_equal(plan.due_ns, 750 * MS);
}

/* rpc 57. */
static void
a_server_that_says_never_stops_new_hedges_only(void **state)
{
    (void)state;
    plan_begin(&plan, &rules, now_ns);
    come_due();
    ends_with(IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, IDEM_RETRY_NEVER, "");
    assert_false(plan.over);
    assert_int_equal(plan.due_ns, INT64_MAX);
    ends(IDEM_OK, IDEM_EFFECT_COMMITTED);
    assert_over(IDEM_STOP_OK, IDEM_EFFECT_COMMITTED);
}

/* rpc 55: all but one fail, the last one is waited for; when it fails too, its
 * failure is the call's. */
static void
the_last_that_fails_is_the_answer(void **state)
{
    (void)state;
    plan_begin(&plan, &rules, now_ns);
    come_due();
    come_due();
    ends(IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK);
    ends(IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK);
    assert_false(plan.over);
    assert_true(ends(IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK).choose);
    assert_over(IDEM_STOP_ATTEMPTS, IDEM_EFFECT_ROLLED_BACK);
}

/* rpc 62: closed already, the first goes all the same. */
static void
a_closed_throttle_lets_the_first_go_alone(void **state)
{
    (void)state;
    throttle_set(&throttle, 2000, 1000);
    assert_false(throttle_failure(&throttle));
    plan_begin(&plan, &rules, now_ns);
    assert_int_equal(plan.flying, 1);
    assert_false(come_due().start);
    assert_false(plan.over);
    ends(IDEM_OK, IDEM_EFFECT_COMMITTED);
    assert_over(IDEM_STOP_OK, IDEM_EFFECT_COMMITTED);
}

/* rpc 62: closed meanwhile by others, no further hedge begins, and the answer
 * of those that fly is the call's. */
static void
a_throttle_that_closes_stops_new_hedges(void **state)
{
    (void)state;
    throttle_set(&throttle, 2000, 1000);
    plan_begin(&plan, &rules, now_ns);
    assert_true(come_due().start);
    assert_false(throttle_failure(&throttle));
    assert_false(come_due().start);
    assert_int_equal(plan.due_ns, INT64_MAX);
    assert_int_equal(plan.flying, 2);
    assert_true(ends(IDEM_OK, IDEM_EFFECT_COMMITTED).choose);
    assert_false(ends(IDEM_ABORTED, IDEM_EFFECT_IN_DOUBT).choose);
    assert_over(IDEM_STOP_OK, IDEM_EFFECT_COMMITTED);
}

/* rpc 61. */
static void
without_a_delay_all_begin_at_once(void **state)
{
    unsigned begun = 1;

    (void)state;
    hedging = (struct hedging){5, 0, BIT(UNAVAILABLE)};
    plan_begin(&plan, &rules, now_ns);
    while (plan.due_ns <= now_ns && plan_due(&plan, now_ns).start)
        begun++;
    assert_int_equal(begun, 5);
    for (unsigned n = 0; n < 5; n++)
        ends_with(IDEM_UNAVAILABLE, IDEM_EFFECT_ROLLED_BACK, -1, "");
    assert_over(IDEM_STOP_ATTEMPTS, IDEM_EFFECT_ROLLED_BACK);
}

static void
a_lost_connection_is_not_fatal_in_whatever_list(void **state)
{
    (void)state;
    hedging.non_fatal = 0;
    plan_begin(&plan, &rules, now_ns);
    ends(IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    assert_false(plan.over);
    assert_true(come_due().start);
    ends(IDEM_OK, IDEM_EFFECT_REPLAYED);
    assert_over(IDEM_STOP_OK, IDEM_EFFECT_REPLAYED);
}

/* rpc 50: what was not sent, or was refused once, costs no hedge. */
static void
what_costs_nothing_is_sent_again(void **state)
{
    (void)state;
    hedging.max_attempts = 2;
    hedging.delay_ms = 100000;
    plan_begin(&plan, &rules, now_ns);
    for (int i = 0; i < 10; i++) {
        ends(IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT);
        assert_true(plan.due_ns > now_ns);

        struct plan_step step = come_due();

        assert_true(step.start);
        assert_int_equal(step.number, 1);
    }
    assert_true(ends(IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED).start);
    ends(IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK);
    assert_false(plan.over);
    assert_true(come_due().start);
    ends(IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK);
    assert_over(IDEM_STOP_ATTEMPTS, IDEM_EFFECT_ROLLED_BACK);
}

/* B032: also when no hedge is left. */
static void
the_first_call_with_the_key_is_waited_for(void **state)
{
    (void)state;
    hedging.max_attempts = 2;
    plan_begin(&plan, &rules, now_ns);
    come_due();
    ends(IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    for (int i = 0; i < 20; i++) {
        ends_with(IDEM_ABORTED, IDEM_EFFECT_REFUSED, 40, IDEM_KEY_RUNNING);
        assert_false(plan.over);
        assert_true(come_due().start);
    }
    ends(IDEM_OK, IDEM_EFFECT_REPLAYED);
    assert_over(IDEM_STOP_OK, IDEM_EFFECT_REPLAYED);
}

/* rpc 59. */
static void
giving_up_waits_for_all_and_keeps_the_worst(void **state)
{
    (void)state;
    plan_begin(&plan, &rules, now_ns);
    come_due();
    plan_give_up(&plan);
    assert_int_equal(plan.flying, 2);
    assert_false(plan_due(&plan, now_ns + 1000 * MS).start);
    ends(IDEM_CANCELLED, IDEM_EFFECT_NOT_SENT);
    ends(IDEM_CANCELLED, IDEM_EFFECT_IN_DOUBT);
    assert_over(IDEM_STOP_INTERRUPTED, IDEM_EFFECT_IN_DOUBT);
}

/* Two answers at once: the effect stands, so the call says so. */
static void
an_ok_that_comes_late_is_better_than_a_failure(void **state)
{
    (void)state;
    plan_begin(&plan, &rules, now_ns);
    come_due();
    ends(IDEM_PERMISSION_DENIED, IDEM_EFFECT_REFUSED);
    assert_true(ends(IDEM_OK, IDEM_EFFECT_COMMITTED).choose);
    assert_over(IDEM_STOP_OK, IDEM_EFFECT_COMMITTED);
}

/* rpc 13: an attempt whose time is over is repeated in whatever list. */
static void
one_after_another_as_retries_are(void **state)
{
    struct plan_step step;

    (void)state;
    hedging.max_attempts = 0;
    plan_begin(&plan, &rules, now_ns);
    assert_int_equal(plan.due_ns, INT64_MAX);
    ends_with(IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_IN_DOUBT, -1,
              IDEM_ATTEMPT_TIMEOUT);
    assert_in_range(plan.due_ns, 80 * MS, 120 * MS);
    step = come_due();
    assert_true(step.start);
    assert_int_equal(step.number, 2);
    ends(IDEM_ABORTED, IDEM_EFFECT_REFUSED);
    assert_int_equal(come_due().number, 3);
    ends(IDEM_OK, IDEM_EFFECT_REPLAYED);
    assert_over(IDEM_STOP_OK, IDEM_EFFECT_REPLAYED);
}

/* rpc 14. */
static void
the_last_attempts_time_out_is_in_doubt(void **state)
{
    (void)state;
    hedging.max_attempts = 0;
    retry.max_attempts = 2;
    plan_begin(&plan, &rules, now_ns);
    ends_with(IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_IN_DOUBT, -1,
              IDEM_ATTEMPT_TIMEOUT);
    come_due();
    ends_with(IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_IN_DOUBT, -1,
              IDEM_ATTEMPT_TIMEOUT);
    assert_over(IDEM_STOP_ATTEMPTS, IDEM_EFFECT_IN_DOUBT);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(hedges_begin_every_delay_until_the_maximum),
        TEST(before_its_delay_nothing_begins),
        TEST(a_fatal_status_ends_the_call_and_the_others_doubt_it),
        TEST(after_a_failure_the_next_begins_at_once),
        TEST(the_servers_time_moves_the_next_hedge),
        TEST(a_server_that_says_never_stops_new_hedges_only),
        TEST(the_last_that_fails_is_the_answer),
        TEST(a_closed_throttle_lets_the_first_go_alone),
        TEST(a_throttle_that_closes_stops_new_hedges),
        TEST(without_a_delay_all_begin_at_once),
        TEST(a_lost_connection_is_not_fatal_in_whatever_list),
        TEST(what_costs_nothing_is_sent_again),
        TEST(the_first_call_with_the_key_is_waited_for),
        TEST(giving_up_waits_for_all_and_keeps_the_worst),
        TEST(an_ok_that_comes_late_is_better_than_a_failure),
        TEST(one_after_another_as_retries_are),
        TEST(the_last_attempts_time_out_is_in_doubt),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
