#include "support.h"

#include "attempts_world.h"
#include "policies.h"

#include <idem/reason.h>

#include <string.h>

#define HEDGE                                                                  \
    "\"hedgingPolicy\": {\"maxAttempts\": 3, \"hedgingDelay\": \"0.05s\","     \
    " \"nonFatalStatusCodes\": [\"UNAVAILABLE\"]}"
#define TIMED                                                                  \
    "\"attemptTimeout\": \"0.2s\", \"retryPolicy\": {\"maxAttempts\": 3,"      \
    " \"initialBackoff\": \"0.1s\", \"maxBackoff\": \"0.1s\","                 \
    " \"backoffMultiplier\": 1, \"retryableStatusCodes\": [\"ABORTED\"]}"

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

/* rpc 54: side by side under one key; the first answer is the call's, and the
 * others are detached, not cancelled. */
static void
hedges_fly_side_by_side_and_the_first_answer_wins(void **state)
{
    struct call *call;

    (void)state;
    attempts_world_open(&w, HEDGE);
    call = attempts_world_begin(&w, 0);
    for (unsigned n = 1; n < 3; n++) {
        attempts_world_await_sends(&w, n);
        attempts_world_pass_ms(&w, 50);
    }
    attempts_world_await_sends(&w, 3);
    assert_true(attempts_world_answer(&w, 1, IDEM_OK, IDEM_EFFECT_COMMITTED));
    assert_ended(IDEM_OK, IDEM_EFFECT_COMMITTED, IDEM_STOP_OK);
    assert_int_equal(w.outcome.attempts, 3);
    assert_string_equal(w.reply, "the reply");
    assert_string_equal(w.trailer, "1");
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(w.numbers[i], i + 1);
        assert_string_equal(w.keys[i], w.outcome.key);
        assert_int_equal(w.given_up[i], i == 1 ? IDEM_OK : IDEM_ABORTED);
    }
    call_unref(call);
    attempts_world_await_freed(&w, 4); /* with its attempts */
}

/* A6: the next one at once; and the failure of the last is the call's. */
static void
a_failure_brings_the_next_hedge_and_the_last_failure_ends_it(void **state)
{
    struct call *call;

    (void)state;
    attempts_world_open(&w, HEDGE);
    call = attempts_world_begin(&w, 0);
    for (unsigned i = 0; i < 3; i++) {
        attempts_world_await_sends(&w, i + 1);
        assert_true(attempts_world_answer(&w, i, IDEM_UNAVAILABLE,
                                          IDEM_EFFECT_ROLLED_BACK));
    }
    assert_ended(IDEM_UNAVAILABLE, IDEM_EFFECT_ROLLED_BACK, IDEM_STOP_ATTEMPTS);
    assert_string_equal(w.outcome.message, "attempt 2");
    call_unref(call);
}

/* rpc 54: what the others may have done is in the effect. */
static void
a_fatal_answer_ends_the_call_with_the_others_in_doubt(void **state)
{
    struct call *call;

    (void)state;
    attempts_world_open(&w, HEDGE);
    call = attempts_world_begin(&w, 0);
    attempts_world_await_sends(&w, 1);
    attempts_world_pass_ms(&w, 50);
    attempts_world_await_sends(&w, 2);
    assert_true(attempts_world_answer(&w, 0, IDEM_PERMISSION_DENIED,
                                      IDEM_EFFECT_REFUSED));
    assert_ended(IDEM_PERMISSION_DENIED, IDEM_EFFECT_IN_DOUBT,
                 IDEM_STOP_STATUS);
    call_unref(call);
}

/* rpc 59. */
static void
giving_up_cancels_all_and_ends_once(void **state)
{
    struct call *call;

    (void)state;
    attempts_world_open(&w, HEDGE);
    call = attempts_world_begin(&w, 0);
    attempts_world_await_sends(&w, 1);
    attempts_world_pass_ms(&w, 50);
    attempts_world_await_sends(&w, 2);
    call_interrupt(call, IDEM_CANCELLED);
    assert_ended(IDEM_CANCELLED, IDEM_EFFECT_IN_DOUBT, IDEM_STOP_INTERRUPTED);
    assert_int_equal(w.given_up[0], IDEM_CANCELLED);
    assert_int_equal(w.given_up[1], IDEM_CANCELLED);
    call_unref(call);
}

/* rpc 63. */
static void
a_call_that_is_given_up_before_it_begins_sends_nothing(void **state)
{
    struct call *call;

    (void)state;
    attempts_world_open(&w, HEDGE);
    call = attempts_world_call(&w, 0);
    call_interrupt(call, IDEM_CANCELLED);
    call_begin(call);
    attempts_world_await_finish(&w);
    assert_int_equal(w.outcome.status, IDEM_CANCELLED);
    assert_int_equal(w.outcome.effect, IDEM_EFFECT_NOT_SENT);
    assert_int_equal(w.sends, 0);
    call_unref(call);
}

static void
no_hedge_begins_after_the_deadline(void **state)
{
    struct call *call;

    (void)state;
    attempts_world_open(&w, HEDGE);
    call = attempts_world_begin(&w, 1);
    attempts_world_await_sends(&w, 1);
    attempts_world_pass_ms(&w, 1);
    assert_ended(IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_IN_DOUBT,
                 IDEM_STOP_INTERRUPTED);
    assert_int_equal(w.sends, 1);
    call_unref(call);
}

static void
the_calls_deadline_ends_all_attempts(void **state)
{
    struct call *call;

    (void)state;
    attempts_world_open(&w, HEDGE);
    call = attempts_world_begin(&w, 80);
    attempts_world_await_sends(&w, 1);
    attempts_world_pass_ms(&w, 50);
    attempts_world_await_sends(&w, 2);
    attempts_world_pass_ms(&w, 30);
    assert_ended(IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_IN_DOUBT,
                 IDEM_STOP_INTERRUPTED);
    assert_int_equal(w.given_up[0], IDEM_ABORTED); /* a DETACH */
    call_unref(call);
}

/* rpc 13: detached, counted, and repeated under the same key. */
static void
an_attempt_whose_time_is_over_is_followed_by_another(void **state)
{
    struct call *call;

    (void)state;
    attempts_world_open(&w, TIMED);
    call = attempts_world_begin(&w, 0);
    attempts_world_await_sends(&w, 1);
    attempts_world_pass_ms(&w, 200);
    attempts_world_pass_ms(&w, 120);
    attempts_world_await_sends(&w, 2);
    assert_int_equal(w.given_up[0], IDEM_DEADLINE_EXCEEDED);
    assert_true(
        attempts_world_answer(&w, 1, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK));
    attempts_world_pass_ms(&w, 120);
    attempts_world_await_sends(&w, 3);
    assert_true(attempts_world_answer(&w, 2, IDEM_OK, IDEM_EFFECT_REPLAYED));
    assert_ended(IDEM_OK, IDEM_EFFECT_REPLAYED, IDEM_STOP_OK);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(w.numbers[i], i + 1);
        assert_string_equal(w.keys[i], w.outcome.key);
    }
    call_unref(call);
}

/* rpc 14. */
static void
when_no_attempt_is_answered_the_call_is_in_doubt(void **state)
{
    struct call *call;

    (void)state;
    attempts_world_open(&w, TIMED);
    call = attempts_world_begin(&w, 0);
    for (unsigned n = 1; n <= 3; n++) {
        attempts_world_await_sends(&w, n);
        attempts_world_pass_ms(&w, 200);
        if (n < 3)
            attempts_world_pass_ms(&w, 120);
    }
    assert_ended(IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_IN_DOUBT,
                 IDEM_STOP_ATTEMPTS);
    assert_string_equal(w.outcome.reason, IDEM_ATTEMPT_TIMEOUT);
    call_unref(call);
}

/* A hedgingPolicy for all does not reach a method that might be done twice. */
static void
what_has_no_key_is_never_hedged(void **state)
{
    struct call *call;

    (void)state;
    attempts_world_open(&w, HEDGE);
    w.method.mode = IDEM_MODE_NONE;
    w.method.retry = (struct idem_retry_policy){.max_attempts = 0};
    call = attempts_world_begin(&w, 0);
    attempts_world_await_sends(&w, 1);
    assert_true(
        attempts_world_answer(&w, 0, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT));
    assert_ended(IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT, IDEM_STOP_NO_POLICY);
    assert_int_equal(w.sends, 1);
    call_unref(call);
}

/* Calls keep the config that they began with. */
static void
a_config_that_changes_is_for_the_next_call(void **state)
{
    struct call *call, *next;

    (void)state;
    attempts_world_open(&w, HEDGE);
    call = attempts_world_begin(&w, 0);
    attempts_world_await_sends(&w, 1);
    assert_int_equal(policies_load(w.policies, "{}", false, NULL), IDEM_OK);
    next = attempts_world_begin(&w, 0);
    attempts_world_await_sends(&w, 2);
    attempts_world_pass_ms(&w, 50);
    attempts_world_await_sends(&w, 3);
    assert_string_equal(w.keys[2], w.keys[0]);
    assert_true(attempts_world_answer(&w, 1, IDEM_OK, IDEM_EFFECT_COMMITTED));
    assert_true(attempts_world_answer(&w, 2, IDEM_OK, IDEM_EFFECT_COMMITTED));
    call_unref(call);
    call_unref(next);
    assert_int_equal(w.finishes, 2);
}

/* rpc 15, 41, 65, B035: over what is kept, it is refused and not sent once and
 * lost; or sent once, if the config says so. */
static void
a_request_over_the_limit_is_refused_or_sent_once(void **state)
{
    struct call *call;

    (void)state;
    attempts_world_open(&w, TIMED ", \"maxRetryBytes\": 4");
    w.request = idem_bytes_of("five!");
    call = attempts_world_begin(&w, 0);
    assert_ended(IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_NOT_SENT,
                 IDEM_STOP_UNASKED);
    call_unref(call);
    attempts_world_close(&w);

    attempts_world_open(&w, TIMED ", \"maxRetryBytes\": 4,"
                                  " \"overRetryBytes\": \"SEND_ONCE\"");
    w.request = idem_bytes_of("five!");
    call = attempts_world_begin(&w, 0);
    assert_true(
        attempts_world_answer(&w, 0, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK));
    assert_ended(IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, IDEM_STOP_BUFFER);
    call_unref(call);
}

struct answerer {
    pthread_t thread;
    pthread_barrier_t *together;
    unsigned i;
};

static void *
answer(void *with)
{
    struct answerer *self = with;

    pthread_barrier_wait(self->together);
    (void)attempts_world_answer(&w, self->i, IDEM_OK, IDEM_EFFECT_COMMITTED);
    return NULL;
}

/* rpc 58: two answers and a caller who gives up, all at once. */
static void
answers_at_once_end_the_call_once(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        pthread_barrier_t together;
        struct answerer answerers[2];
        struct call *call;

        attempts_world_open(&w, HEDGE);
        call = attempts_world_begin(&w, 0);
        attempts_world_await_sends(&w, 1);
        attempts_world_pass_ms(&w, 50);
        attempts_world_await_sends(&w, 2);
        pthread_barrier_init(&together, NULL, 3);
        for (unsigned i = 0; i < 2; i++) {
            answerers[i] = (struct answerer){.together = &together, .i = i};
            pthread_create(&answerers[i].thread, NULL, answer, &answerers[i]);
        }
        pthread_barrier_wait(&together);
        call_interrupt(call, IDEM_CANCELLED);
        for (unsigned i = 0; i < 2; i++)
            pthread_join(answerers[i].thread, NULL);
        attempts_world_await_finish(&w);
        assert_int_equal(w.finishes, 1);
        if (w.outcome.status != IDEM_OK)
            assert_int_equal(w.outcome.status, IDEM_CANCELLED);
        call_unref(call);
        pthread_barrier_destroy(&together);
        if (round < 199)
            attempts_world_close(&w);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, tear_down)
        TEST(hedges_fly_side_by_side_and_the_first_answer_wins),
        TEST(a_failure_brings_the_next_hedge_and_the_last_failure_ends_it),
        TEST(a_fatal_answer_ends_the_call_with_the_others_in_doubt),
        TEST(giving_up_cancels_all_and_ends_once),
        TEST(a_call_that_is_given_up_before_it_begins_sends_nothing),
        TEST(no_hedge_begins_after_the_deadline),
        TEST(the_calls_deadline_ends_all_attempts),
        TEST(an_attempt_whose_time_is_over_is_followed_by_another),
        TEST(when_no_attempt_is_answered_the_call_is_in_doubt),
        TEST(what_has_no_key_is_never_hedged),
        TEST(a_config_that_changes_is_for_the_next_call),
        TEST(a_request_over_the_limit_is_refused_or_sent_once),
        TEST(answers_at_once_end_the_call_once),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
