#include "support.h"

#include "fake_clock.h"
#include "retry_rule.h"

#include <idem/reason.h>

#include <string.h>

#define MS INT64_C(1000000)
#define BIT(status) (1u << IDEM_##status)

/* A call whose attempts a test ends one after another. */
struct story {
    struct idem_method method;
    struct retry_progress progress;
    struct retry_question question;
    struct idem_outcome outcome;
};

static struct fake_clock fake;

static int
set_up(void **state)
{
    (void)state;
    fake_clock_init(&fake);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    fake_clock_fini(&fake);
    return 0;
}

static void
begin(struct story *story, unsigned max_attempts, uint32_t retryable)
{
    *story = (struct story){
        .method = {.retry = {.max_attempts = max_attempts,
                             .initial_backoff_ms = 100,
                             .max_backoff_ms = 2000,
                             .backoff_multiplier_milli = 2000,
                             .retryable = retryable}},
    };
    story->question = (struct retry_question){
        .policy = &story->method.retry,
        .outcome = &story->outcome,
        .keyed = true,
        .safe = true,
        .remaining_ns = INT64_MAX,
        .clock = &fake.clock,
    };
}

/* An attempt ends so; what follows? */
static struct retry_answer
end(struct story *story, enum idem_status status, enum idem_effect effect)
{
    story->outcome.status = status;
    story->outcome.effect = effect;
    story->outcome.retry_after_ms = -1;
    return retry_next(&story->progress, &story->question);
}

static struct retry_answer
end_later(struct story *story, enum idem_status status, enum idem_effect effect,
          int64_t retry_after_ms)
{
    story->outcome.status = status;
    story->outcome.effect = effect;
    story->outcome.retry_after_ms = retry_after_ms;
    return retry_next(&story->progress, &story->question);
}

static void
assert_stop(struct retry_answer answer, enum idem_stop stop)
{
    assert_false(answer.go);
    assert_int_equal(answer.stop, stop);
}

static void
assert_pause_around(struct retry_answer answer, int64_t ms)
{
    assert_true(answer.go);
    assert_in_range(answer.pause_ns, ms * MS * 8 / 10, ms * MS * 12 / 10);
}

/* rpc 1. */
static void
a_listed_status_is_repeated_and_numbered(void **state)
{
    struct story story;
    struct retry_answer answer;

    (void)state;
    begin(&story, 3, BIT(ABORTED));
    answer = end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK);
    assert_pause_around(answer, 100);
    assert_true(answer.seen);
    assert_stop(end(&story, IDEM_OK, IDEM_EFFECT_COMMITTED), IDEM_STOP_OK);
}

/* rpc 2. */
static void
attempts_run_out(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 2, BIT(ABORTED));
    assert_true(end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK).go);
    assert_stop(end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK),
                IDEM_STOP_ATTEMPTS);
}

/* rpc 18, 73: there was no connection, and the call does not wait for one. */
static void
no_connection_is_an_attempt_like_any_other(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 2, BIT(UNAVAILABLE));
    strcpy(story.outcome.reason, IDEM_NOT_CONNECTED);
    assert_pause_around(end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT),
                        100);
    assert_stop(end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT),
                IDEM_STOP_ATTEMPTS);

    begin(&story, 0, 0);
    strcpy(story.outcome.reason, IDEM_NOT_CONNECTED);
    assert_stop(end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT),
                IDEM_STOP_NO_POLICY);
}

/* rpc 3, 45. */
static void
without_a_policy_an_answer_is_not_repeated(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 0, BIT(ABORTED));
    assert_stop(end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK),
                IDEM_STOP_NO_POLICY);
}

static void
a_status_that_is_not_listed_ends_the_call(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 3, BIT(UNAVAILABLE));
    assert_stop(end(&story, IDEM_PERMISSION_DENIED, IDEM_EFFECT_REFUSED),
                IDEM_STOP_STATUS);
    assert_stop(end_later(&story, IDEM_NOT_FOUND, IDEM_EFFECT_ROLLED_BACK, 5),
                IDEM_STOP_STATUS);
}

static void
a_final_answer_is_never_repeated(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 5, BIT(UNAVAILABLE) | BIT(FAILED_PRECONDITION));
    story.outcome.final = true;
    assert_stop(end(&story, IDEM_FAILED_PRECONDITION, IDEM_EFFECT_ROLLED_BACK),
                IDEM_STOP_FINAL);
    assert_stop(end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REPLAYED),
                IDEM_STOP_FINAL);
}

/* rpc 6: the server's time exactly, and the pauses begin anew. */
static void
the_servers_time_is_obeyed_exactly(void **state)
{
    struct story story;
    struct retry_answer answer;

    (void)state;
    begin(&story, 9, BIT(ABORTED));
    assert_pause_around(end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK),
                        100);
    assert_pause_around(end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK),
                        200);
    answer = end_later(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, 2000);
    assert_int_equal(answer.pause_ns, 2000 * MS);
    assert_pause_around(end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK),
                        100);
}

/* rpc 29: ten attempts that never reach the wire, no policy at all. */
static void
what_never_left_is_sent_again_without_an_attempt_or_a_number(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 0, 0);
    story.question.keyed = false;
    for (int i = 0; i < 10; i++) {
        struct retry_answer answer =
            end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT);

        assert_true(answer.go);
        assert_false(answer.seen);
        assert_in_range(answer.pause_ns, 8 * MS, 1200 * MS);
    }
    assert_stop(end(&story, IDEM_OK, IDEM_EFFECT_COMMITTED), IDEM_STOP_OK);
}

static void
what_never_leaves_ends_some_day(void **state)
{
    struct story story;
    int repeats = 0;

    (void)state;
    begin(&story, 0, 0);
    while (end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT).go)
        repeats++;
    assert_int_equal(repeats, 1000);
}

/* rpc 30. */
static void
a_refusal_is_repeated_once_at_once(void **state)
{
    struct story story;
    struct retry_answer answer;

    (void)state;
    begin(&story, 0, 0);
    answer = end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED);
    assert_true(answer.go);
    assert_int_equal(answer.pause_ns, 0);
    assert_false(answer.seen);
    assert_stop(end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED),
                IDEM_STOP_NO_POLICY);

    begin(&story, 3, BIT(UNAVAILABLE));
    end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED);
    assert_pause_around(end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED),
                        100);
}

static void
a_refusal_that_names_a_time_is_not_repeated_before(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 3, BIT(UNAVAILABLE));
    assert_int_equal(
        end_later(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED, 700).pause_ns,
        700 * MS);
}

/* B035: a request over a limit fails the same way each time. */
static void
a_limit_is_not_tried_again_unless_the_server_names_a_time(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 5, BIT(RESOURCE_EXHAUSTED));
    assert_stop(end(&story, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_NOT_SENT),
                IDEM_STOP_STATUS);
    assert_stop(end(&story, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED),
                IDEM_STOP_STATUS);
    assert_int_equal(
        end_later(&story, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED, 50)
            .pause_ns,
        50 * MS);
}

/* B031. */
static void
without_a_key_doubt_is_never_repeated(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 3, BIT(UNAVAILABLE));
    story.question.keyed = false;
    story.question.safe = false;
    assert_stop(end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT),
                IDEM_STOP_IN_DOUBT);
    assert_int_equal(story.progress.worst, IDEM_EFFECT_IN_DOUBT);
}

static void
doubt_is_repeated_with_a_key_or_a_declared_idempotence(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 3, 0); /* a lost connection is repeated in whatever list */
    assert_true(end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT).go);

    begin(&story, 3, 0);
    story.question.keyed = false;
    assert_true(end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT).go);
}

/* B032. */
static void
waiting_for_the_first_call_with_the_key_costs_no_attempt(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 2, BIT(UNAVAILABLE));
    assert_true(end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT).go);
    strcpy(story.outcome.reason, IDEM_KEY_RUNNING);
    for (int i = 0; i < 50; i++) {
        struct retry_answer answer = end_later(
            &story, IDEM_ABORTED, IDEM_EFFECT_REFUSED, i % 2 ? 40 : -1);

        assert_true(answer.go);
        assert_true(answer.seen);
        assert_true(answer.pause_ns > 0);
    }
    story.outcome.reason[0] = 0;
    assert_stop(end(&story, IDEM_OK, IDEM_EFFECT_REPLAYED), IDEM_STOP_OK);
    assert_int_equal(story.progress.worst, IDEM_EFFECT_REPLAYED);
}

/* rpc 11. */
static void
a_pause_that_would_miss_the_deadline_ends_the_call_at_once(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 3, BIT(ABORTED));
    story.question.remaining_ns = 50 * MS;
    assert_stop(end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK),
                IDEM_STOP_DEADLINE);
    assert_stop(
        end_later(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, INT64_MAX),
        IDEM_STOP_DEADLINE);
    story.question.remaining_ns = 0;
    assert_stop(end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED),
                IDEM_STOP_DEADLINE);
}

/* rpc 9, 10. */
static void
a_call_that_was_given_up_is_not_repeated(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 3, BIT(CANCELLED));
    story.question.interrupted = true;
    assert_stop(end(&story, IDEM_CANCELLED, IDEM_EFFECT_IN_DOUBT),
                IDEM_STOP_INTERRUPTED);
}

/* rpc 102. */
static void
doubt_stays_until_a_stored_answer_settles_it(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 9, BIT(UNAVAILABLE) | BIT(ABORTED));
    end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT);
    assert_int_equal(story.progress.worst, IDEM_EFFECT_NOT_SENT);
    end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED);
    end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED);
    end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK);
    assert_int_equal(story.progress.worst, IDEM_EFFECT_IN_DOUBT);

    story.outcome.final = true;
    end(&story, IDEM_NOT_FOUND, IDEM_EFFECT_ROLLED_BACK);
    assert_int_equal(story.progress.worst, IDEM_EFFECT_ROLLED_BACK);
}

static void
that_a_key_is_expired_settles_nothing(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 3, BIT(UNAVAILABLE));
    end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    story.outcome.final = true;
    strcpy(story.outcome.reason, IDEM_KEY_EXPIRED);
    end(&story, IDEM_FAILED_PRECONDITION, IDEM_EFFECT_REFUSED);
    assert_int_equal(story.progress.worst, IDEM_EFFECT_IN_DOUBT);
}

/* rpc 7, 53: and it counts as a failure whatever the status. */
static void
a_server_that_says_never_is_not_asked_again(void **state)
{
    struct story story;
    struct throttle throttle;

    (void)state;
    throttle_init(&throttle);
    throttle_set(&throttle, 10000, 1000);
    begin(&story, 3, BIT(ABORTED));
    story.question.throttle = &throttle;
    assert_true(end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK).go);
    assert_stop(end_later(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK,
                          IDEM_RETRY_NEVER),
                IDEM_STOP_PUSHBACK);
    assert_int_equal(throttle.tokens_milli, 8000);
    assert_stop(end_later(&story, IDEM_INTERNAL, IDEM_EFFECT_ROLLED_BACK,
                          IDEM_RETRY_NEVER),
                IDEM_STOP_PUSHBACK);
    assert_int_equal(throttle.tokens_milli, 7000);

    begin(&story, 3, BIT(UNAVAILABLE));
    assert_stop(end_later(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED,
                          IDEM_RETRY_NEVER),
                IDEM_STOP_PUSHBACK);
    throttle_fini(&throttle);
}

/* rpc 53: what is not listed takes no token, with a time or without; what is
 * free of charge takes none either. */
static void
only_a_failure_that_is_repeated_takes_a_token(void **state)
{
    struct story story;
    struct throttle throttle;

    (void)state;
    throttle_init(&throttle);
    throttle_set(&throttle, 10000, 500);
    begin(&story, 3, BIT(ABORTED));
    story.question.throttle = &throttle;
    assert_stop(end(&story, IDEM_INTERNAL, IDEM_EFFECT_ROLLED_BACK),
                IDEM_STOP_STATUS);
    assert_stop(end_later(&story, IDEM_INTERNAL, IDEM_EFFECT_ROLLED_BACK, 5),
                IDEM_STOP_STATUS);
    end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT);
    end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED);
    strcpy(story.outcome.reason, IDEM_KEY_RUNNING);
    end_later(&story, IDEM_ABORTED, IDEM_EFFECT_REFUSED, 5);
    assert_int_equal(throttle.tokens_milli, 10000);

    story.outcome.reason[0] = 0;
    end_later(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, 5);
    assert_int_equal(throttle.tokens_milli, 9000);
    assert_stop(end(&story, IDEM_OK, IDEM_EFFECT_REPLAYED), IDEM_STOP_OK);
    assert_int_equal(throttle.tokens_milli, 9500);
    throttle_fini(&throttle);
}

/* rpc 62: the failure that closes it ends its own call, however many attempts
 * and whatever time the server names. */
static void
a_closed_throttle_ends_the_call(void **state)
{
    struct story story;
    struct throttle throttle;

    (void)state;
    throttle_init(&throttle);
    throttle_set(&throttle, 2000, 1000);
    begin(&story, 5, BIT(ABORTED));
    story.question.throttle = &throttle;
    assert_stop(end_later(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, 5),
                IDEM_STOP_THROTTLED);
    throttle_fini(&throttle);
}

/* B034. */
static void
a_budget_that_is_used_up_ends_the_call(void **state)
{
    struct story story;
    struct budget budget;

    (void)state;
    budget_init(&budget);
    budget_set(&budget, 1, 1, 10000);
    begin(&story, 5, BIT(ABORTED));
    story.question.budget = &budget;
    assert_true(end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK).go);
    assert_stop(end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK),
                IDEM_STOP_BUDGET);
    budget_fini(&budget);
}

/* rpc 15, 41. */
static void
a_request_that_is_not_kept_is_sent_once(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 3, BIT(UNAVAILABLE));
    story.question.too_large = true;
    assert_stop(end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT),
                IDEM_STOP_BUFFER);
}

/* rpc 49. */
static void
a_named_time_raises_no_number_of_attempts(void **state)
{
    struct story story;

    (void)state;
    begin(&story, 3, BIT(ABORTED));
    end_later(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, 700);
    assert_pause_around(end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK),
                        100);
    assert_stop(end_later(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, 1),
                IDEM_STOP_ATTEMPTS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listed_status_is_repeated_and_numbered),
        cmocka_unit_test(attempts_run_out),
        cmocka_unit_test(no_connection_is_an_attempt_like_any_other),
        cmocka_unit_test(without_a_policy_an_answer_is_not_repeated),
        cmocka_unit_test(a_status_that_is_not_listed_ends_the_call),
        cmocka_unit_test(a_final_answer_is_never_repeated),
        cmocka_unit_test(the_servers_time_is_obeyed_exactly),
        cmocka_unit_test(
            what_never_left_is_sent_again_without_an_attempt_or_a_number),
        cmocka_unit_test(what_never_leaves_ends_some_day),
        cmocka_unit_test(a_refusal_is_repeated_once_at_once),
        cmocka_unit_test(a_refusal_that_names_a_time_is_not_repeated_before),
        cmocka_unit_test(
            a_limit_is_not_tried_again_unless_the_server_names_a_time),
        cmocka_unit_test(without_a_key_doubt_is_never_repeated),
        cmocka_unit_test(
            doubt_is_repeated_with_a_key_or_a_declared_idempotence),
        cmocka_unit_test(
            waiting_for_the_first_call_with_the_key_costs_no_attempt),
        cmocka_unit_test(
            a_pause_that_would_miss_the_deadline_ends_the_call_at_once),
        cmocka_unit_test(a_call_that_was_given_up_is_not_repeated),
        cmocka_unit_test(doubt_stays_until_a_stored_answer_settles_it),
        cmocka_unit_test(that_a_key_is_expired_settles_nothing),
        cmocka_unit_test(a_server_that_says_never_is_not_asked_again),
        cmocka_unit_test(only_a_failure_that_is_repeated_takes_a_token),
        cmocka_unit_test(a_closed_throttle_ends_the_call),
        cmocka_unit_test(a_budget_that_is_used_up_ends_the_call),
        cmocka_unit_test(a_request_that_is_not_kept_is_sent_once),
        cmocka_unit_test(a_named_time_raises_no_number_of_attempts),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
