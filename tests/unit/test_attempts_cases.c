#include "support.h"

#include "attempts_world.h"

#include <idem/reason.h>

#include <stdio.h>
#include <string.h>

/* Cases of other frameworks in which the endpoint takes its time: a call is
 * given up, or its time ends, while an attempt is at the server. */

#define MS INT64_C(1000000)
#define BACKOFF                                                                \
    "\"initialBackoff\": \"0.1s\", \"maxBackoff\": \"0.1s\","                  \
    " \"backoffMultiplier\": 1"
#define RETRY                                                                  \
    "\"retryPolicy\": {\"maxAttempts\": 3, " BACKOFF                           \
    ", \"retryableStatusCodes\": [\"ABORTED\"]}"
#define PAUSE_MS 120 /* the backoff at its longest */

static struct attempts_world w;

static int
tear_down(void **state)
{
    (void)state;
    attempts_world_close(&w);
    return 0;
}

static void
assert_ended(enum idem_status status, enum idem_effect effect,
             enum idem_stop stop)
{
    attempts_world_await_finish(&w);
    assert_int_equal(w.finishes, 1);
    assert_int_equal(w.outcome.status, status);
    assert_int_equal(w.outcome.effect, effect);
    assert_int_equal(w.outcome.stop, stop);
}

/* An author's, above retry: sends each call down once more. */
static enum idem_step
send_down_again(struct idem_interceptor *self, struct idem_call *call)
{
    static char seen;

    if (idem_call_state(call, self))
        return IDEM_NEXT;
    idem_call_set_state(call, self, &seen);
    return IDEM_AGAIN;
}

static void
free_nothing(struct idem_interceptor *self)
{
    (void)self;
}

static const struct idem_interceptor_ops twice_ops = {
    .name = "twice",
    .band = IDEM_BAND_OBSERVE,
    .reply = send_down_again,
    .free = free_nothing,
};

/* One whose first attempt has failed and whose second is at the server. */
static struct call *
begin_twice(int64_t timeout_ms)
{
    struct call *call;

    attempts_world_open(&w, RETRY);
    call = attempts_world_begin(&w, timeout_ms);
    attempts_world_await_sends(&w, 1);
    assert_true(
        attempts_world_answer(&w, 0, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK));
    attempts_world_pass_ms(&w, PAUSE_MS);
    attempts_world_await_sends(&w, 2);
    return call;
}

/* What the first round of attempts left in doubt no refusal of the second one
 * takes back, whether they are calls of their own (hedges) or not. */
static void
sent_down_again_a_call_keeps_its_doubt(void **state)
{
    static const char *const policies[] = {
        "\"hedgingPolicy\": {\"maxAttempts\": 2, \"hedgingDelay\": \"60s\"}",
        RETRY};
    static struct idem_interceptor twice = {.ops = &twice_ops};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct call *call;

        attempts_world_open(&w, policies[i]);
        assert_int_equal(chain_add(&w.chain, &twice, NULL), IDEM_OK);
        call = attempts_world_begin(&w, 0);
        attempts_world_await_sends(&w, 1);
        assert_true(
            attempts_world_answer(&w, 0, IDEM_INTERNAL, IDEM_EFFECT_IN_DOUBT));
        attempts_world_await_sends(&w, 2);
        assert_true(attempts_world_answer(&w, 1, IDEM_PERMISSION_DENIED,
                                          IDEM_EFFECT_REFUSED));
        assert_ended(IDEM_PERMISSION_DENIED, IDEM_EFFECT_IN_DOUBT,
                     IDEM_STOP_STATUS);
        assert_string_equal(w.keys[0], w.keys[1]);
        call_unref(call);
        if (i == 0)
            attempts_world_close(&w);
    }
}

/* rpc 9, 47. */
static void
who_gives_up_at_the_second_attempt_is_told_cancelled(void **state)
{
    struct call *call = begin_twice(5000);

    (void)state;
    call_interrupt(call, IDEM_CANCELLED);
    assert_ended(IDEM_CANCELLED, IDEM_EFFECT_IN_DOUBT, IDEM_STOP_INTERRUPTED);
    assert_int_equal(w.given_up[1], IDEM_CANCELLED);
    assert_string_equal(w.trailer, "");
    assert_int_equal(w.sends, 2);
    assert_int_equal(w.outcome.attempts, 2);
    call_unref(call);
}

/* rpc 9, of who waits. */
static void
who_waits_at_the_second_attempt_is_told_deadline_exceeded(void **state)
{
    struct call *call = begin_twice(5000);

    (void)state;
    attempts_world_pass_ms(&w, 5000 - PAUSE_MS);
    assert_ended(IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_IN_DOUBT,
                 IDEM_STOP_INTERRUPTED);
    assert_int_equal(w.sends, 2);
    call_unref(call);
}

/* rpc 77: what came beside the failure of one hedge does not go with the end
 * of the call. */
static void
who_gives_up_gets_no_trailers_of_a_failure(void **state)
{
    struct call *call;

    (void)state;
    attempts_world_open(&w, "\"hedgingPolicy\": {\"maxAttempts\": 2,"
                            " \"nonFatalStatusCodes\": [\"UNAVAILABLE\"]}");
    call = attempts_world_begin(&w, 0);
    attempts_world_await_sends(&w, 2);
    assert_true(attempts_world_answer(&w, 0, IDEM_UNAVAILABLE,
                                      IDEM_EFFECT_ROLLED_BACK));
    call_interrupt(call, IDEM_CANCELLED);
    assert_ended(IDEM_CANCELLED, IDEM_EFFECT_IN_DOUBT, IDEM_STOP_INTERRUPTED);
    assert_string_equal(w.trailer, "");
    call_unref(call);
}

/* B040: nothing is begun after the deadline, and the caller sees how many
 * were. */
static void
attempts_end_with_their_call(void **state)
{
    struct call *call;

    (void)state;
    attempts_world_open(
        &w, "\"attemptTimeout\": \"0.4s\", \"retryPolicy\": {\"maxAttempts\": "
            "50, \"initialBackoff\": \"0.01s\", \"maxBackoff\": \"0.01s\","
            " \"backoffMultiplier\": 1,"
            " \"retryableStatusCodes\": [\"UNAVAILABLE\"]}");
    call = attempts_world_begin(&w, 1000);
    for (unsigned n = 1; n < 3; n++) {
        attempts_world_await_sends(&w, n);
        attempts_world_pass_ms(&w, 400);
        attempts_world_pass_ms(&w, 12);
    }
    attempts_world_await_sends(&w, 3);
    attempts_world_pass_ms(&w, 1000 - 2 * 412);
    assert_ended(IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_IN_DOUBT,
                 IDEM_STOP_INTERRUPTED);
    fake_clock_advance_ms(&w.fake, 60000);
    assert_int_equal(w.outcome.attempts, 3);
    assert_int_equal(w.sends, 3);
    call_unref(call);
}

static void
hedge_ten_times(const char *delay)
{
    char members[256];
    struct call *call;

    snprintf(members, sizeof members,
             "\"hedgingPolicy\": {\"maxAttempts\": 10, \"hedgingDelay\": "
             "\"%s\", \"nonFatalStatusCodes\": [\"UNAVAILABLE\"]}",
             delay);
    attempts_world_open(&w, members);
    w.method.retry.max_attempts = 10;
    call = attempts_world_begin(&w, 0);
    for (unsigned n = 1; n <= 5; n++) {
        attempts_world_await_sends(&w, n);
        assert_true(attempts_world_answer(&w, n - 1, IDEM_UNAVAILABLE,
                                          IDEM_EFFECT_ROLLED_BACK));
    }
    assert_ended(IDEM_UNAVAILABLE, IDEM_EFFECT_ROLLED_BACK, IDEM_STOP_ATTEMPTS);
    assert_int_equal(w.sends, 5);
    call_unref(call);
}

/* rpc 61: a config that says ten, and the limit is five. */
static void
ten_hedges_are_five(void **state)
{
    (void)state;
    hedge_ten_times("0s");
    attempts_world_close(&w);
    hedge_ten_times("0.02s");
}

/* A program that takes more than five has all of them side by side. */
static void
as_many_hedges_fly_as_the_program_takes(void **state)
{
    struct call *call;

    (void)state;
    attempts_world_open_with(&w, "\"hedgingPolicy\": {\"maxAttempts\": 14}",
                             (struct idem_policy_options){.max_attempts = 14});
    w.method.retry.max_attempts = 14;
    call = attempts_world_begin(&w, 0);
    attempts_world_await_sends(&w, 14);
    assert_true(attempts_world_answer(&w, 13, IDEM_OK, IDEM_EFFECT_COMMITTED));
    assert_ended(IDEM_OK, IDEM_EFFECT_COMMITTED, IDEM_STOP_OK);
    assert_int_equal(w.outcome.attempts, 14);
    for (unsigned i = 0; i < 13; i++)
        assert_int_equal(w.given_up[i], IDEM_ABORTED);
    call_unref(call);
    attempts_world_await_freed(&w, 15); /* with its attempts */
}

#define STATED                                                                 \
    "\"retryPolicy\": {\"maxAttempts\": %u, " BACKOFF                          \
    ", \"retryableStatusCodes\": [\"ABORTED\"]}"

/* A call of a method whose .proto and config both say so many attempts, of a
 * program that takes so many: it fails until the last, which ends so. */
static void
assert_makes(unsigned stated, unsigned limit, unsigned made,
             enum idem_status last)
{
    char members[256];
    struct call *call;

    snprintf(members, sizeof members, STATED, stated);
    attempts_world_open_with(
        &w, members, (struct idem_policy_options){.max_attempts = limit});
    w.method.retry.max_attempts = stated;
    call = attempts_world_begin(&w, 0);
    for (unsigned n = 1; n < made; n++) {
        attempts_world_await_sends(&w, n);
        assert_true(attempts_world_answer(&w, n - 1, IDEM_ABORTED,
                                          IDEM_EFFECT_ROLLED_BACK));
        attempts_world_pass_ms(&w, PAUSE_MS);
    }
    attempts_world_await_sends(&w, made);
    assert_true(attempts_world_answer(
        &w, made - 1, last,
        last == IDEM_OK ? IDEM_EFFECT_COMMITTED : IDEM_EFFECT_ROLLED_BACK));
    attempts_world_await_finish(&w);
    assert_int_equal(w.outcome.status, last);
    assert_int_equal(w.outcome.stop,
                     last == IDEM_OK ? IDEM_STOP_OK : IDEM_STOP_ATTEMPTS);
    assert_int_equal(w.outcome.attempts, made);
    assert_int_equal(w.sends, made);
    call_unref(call);
    attempts_world_close(&w);
}

/* rpc 42: grpc-go's table. */
static void
a_program_lowers_and_raises_the_attempts(void **state)
{
    (void)state;
    assert_makes(9, 4, 4, IDEM_ABORTED);
    assert_makes(9, 7, 7, IDEM_ABORTED);
    assert_makes(3, 10, 3, IDEM_ABORTED);
    assert_makes(8, 1, 5, IDEM_ABORTED);
    assert_makes(3, 0, 3, IDEM_ABORTED);
}

/* rpc 67: ten are five; with eight, the eighth may be the one. */
static void
the_fifth_of_ten_is_the_last_unless_the_program_takes_more(void **state)
{
    (void)state;
    assert_makes(10, 0, 5, IDEM_ABORTED);
    assert_makes(10, 8, 8, IDEM_OK);
}

/* What .proto and config say of repeats is not taken. */
static void
assert_asks_once(const char *members)
{
    struct call *call;

    attempts_world_open_with(&w, members,
                             (struct idem_policy_options){.no_retries = true});
    call = attempts_world_begin(&w, 0);
    attempts_world_await_sends(&w, 1);
    fake_clock_advance_ms(&w.fake, 60000);
    assert_true(
        attempts_world_answer(&w, 0, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK));
    assert_ended(IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, IDEM_STOP_NO_POLICY);
    assert_int_equal(w.sends, 1);
    call_unref(call);
    attempts_world_close(&w);
}

/* rpc 3, 45. */
static void
a_program_that_switches_retries_off_asks_once(void **state)
{
    (void)state;
    assert_asks_once(RETRY);
    assert_asks_once(RETRY ", \"attemptTimeout\": \"0.1s\"");
    assert_asks_once("\"hedgingPolicy\": {\"maxAttempts\": 3,"
                     " \"nonFatalStatusCodes\": [\"ABORTED\"]}");
}

/* rpc 65: of exactly the limit, it is kept. */
static void
a_request_of_the_limit_is_repeated(void **state)
{
    struct call *call;

    (void)state;
    attempts_world_open(&w, RETRY ", \"maxRetryBytes\": 4");
    w.request = idem_bytes_of("four");
    call = attempts_world_begin(&w, 0);
    attempts_world_await_sends(&w, 1);
    assert_true(
        attempts_world_answer(&w, 0, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK));
    attempts_world_pass_ms(&w, PAUSE_MS);
    attempts_world_await_sends(&w, 2);
    assert_true(attempts_world_answer(&w, 1, IDEM_OK, IDEM_EFFECT_COMMITTED));
    assert_ended(IDEM_OK, IDEM_EFFECT_COMMITTED, IDEM_STOP_OK);
    call_unref(call);
}

/* Answered by nobody, it ends after that time and not before. */
static void
assert_ends_after_ms(const char *timeout, int64_t timeout_ms, int64_t ms)
{
    char members[64];
    struct call *call;

    snprintf(members, sizeof members, "\"timeout\": \"%s\"", timeout);
    attempts_world_open(&w, members);
    call = attempts_world_begin(&w, timeout_ms);
    attempts_world_await_sends(&w, 1);
    fake_clock_await_waiter(&w.fake,
                            w.fake.clock.monotonic_ns(&w.fake.clock) + ms * MS);
    fake_clock_advance_ms(&w.fake, ms - 1);
    assert_int_equal(w.finishes, 0);
    attempts_world_pass_ms(&w, 1);
    assert_ended(IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_IN_DOUBT,
                 IDEM_STOP_INTERRUPTED);
    call_unref(call);
    attempts_world_close(&w);
}

/* rpc 71. */
static void
the_smaller_of_two_timeouts_wins(void **state)
{
    (void)state;
    assert_ends_after_ms("3600s", 2, 2);
    assert_ends_after_ms("0.002s", 3600000, 2);
    assert_ends_after_ms("0.002s", 0, 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, tear_down)
        TEST(sent_down_again_a_call_keeps_its_doubt),
        TEST(who_gives_up_at_the_second_attempt_is_told_cancelled),
        TEST(who_waits_at_the_second_attempt_is_told_deadline_exceeded),
        TEST(who_gives_up_gets_no_trailers_of_a_failure),
        TEST(attempts_end_with_their_call),
        TEST(ten_hedges_are_five),
        TEST(as_many_hedges_fly_as_the_program_takes),
        cmocka_unit_test(a_program_that_switches_retries_off_asks_once),
        cmocka_unit_test(a_program_lowers_and_raises_the_attempts),
        cmocka_unit_test(
            the_fifth_of_ten_is_the_last_unless_the_program_takes_more),
        TEST(a_request_of_the_limit_is_repeated),
        cmocka_unit_test(the_smaller_of_two_timeouts_wins),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
