/* When an attempt is followed by another one, and how long after. */
#include "retry_story.h"

#include <string.h>

/* rpc 1. */
static void
a_listed_status_is_repeated_and_numbered(void **state)
{
    struct story story;
    struct retry_answer answer;

    (void)state;
    story_begin(&story, 3, BIT(ABORTED));
    answer = story_end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK);
    assert_pause_around(answer, 100);
    assert_true(answer.seen);
    assert_stop(story_end(&story, IDEM_OK, IDEM_EFFECT_COMMITTED),
                IDEM_STOP_OK);
}

/* rpc 2. */
static void
attempts_run_out(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 2, BIT(ABORTED));
    assert_true(story_end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK).go);
    assert_stop(story_end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK),
                IDEM_STOP_ATTEMPTS);
}

/* rpc 18, 73: there was no connection, and the call does not wait for one. */
static void
no_connection_is_an_attempt_like_any_other(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 2, BIT(UNAVAILABLE));
    strcpy(story.outcome.reason, IDEM_NOT_CONNECTED);
    assert_pause_around(
        story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT), 100);
    assert_stop(story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT),
                IDEM_STOP_ATTEMPTS);

    story_begin(&story, 0, 0);
    strcpy(story.outcome.reason, IDEM_NOT_CONNECTED);
    assert_stop(story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT),
                IDEM_STOP_NO_POLICY);
}

/* rpc 3, 45. */
static void
without_a_policy_an_answer_is_not_repeated(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 0, BIT(ABORTED));
    assert_stop(story_end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK),
                IDEM_STOP_NO_POLICY);
}

static void
a_status_that_is_not_listed_ends_the_call(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 3, BIT(UNAVAILABLE));
    assert_stop(story_end(&story, IDEM_PERMISSION_DENIED, IDEM_EFFECT_REFUSED),
                IDEM_STOP_STATUS);
    assert_stop(
        story_end_later(&story, IDEM_NOT_FOUND, IDEM_EFFECT_ROLLED_BACK, 5),
        IDEM_STOP_STATUS);
}

static void
a_final_answer_is_never_repeated(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 5, BIT(UNAVAILABLE) | BIT(FAILED_PRECONDITION));
    story.outcome.final = true;
    assert_stop(
        story_end(&story, IDEM_FAILED_PRECONDITION, IDEM_EFFECT_ROLLED_BACK),
        IDEM_STOP_FINAL);
    assert_stop(story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REPLAYED),
                IDEM_STOP_FINAL);
}

/* rpc 6: the server's time exactly, and the pauses begin anew. */
static void
the_servers_time_is_obeyed_exactly(void **state)
{
    struct story story;
    struct retry_answer answer;

    (void)state;
    story_begin(&story, 9, BIT(ABORTED));
    assert_pause_around(
        story_end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK), 100);
    assert_pause_around(
        story_end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK), 200);
    answer =
        story_end_later(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, 2000);
    assert_int_equal(answer.pause_ns, 2000 * MS);
    assert_pause_around(
        story_end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK), 100);
}

/* rpc 11. */
static void
a_pause_that_would_miss_the_deadline_ends_the_call_at_once(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 3, BIT(ABORTED));
    story.question.remaining_ns = 50 * MS;
    assert_stop(story_end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK),
                IDEM_STOP_DEADLINE);
    assert_stop(story_end_later(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK,
                                INT64_MAX),
                IDEM_STOP_DEADLINE);
    story.question.remaining_ns = 0;
    assert_stop(story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED),
                IDEM_STOP_DEADLINE);
}

/* rpc 9, 10. */
static void
a_call_that_was_given_up_is_not_repeated(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 3, BIT(CANCELLED));
    story.question.interrupted = true;
    assert_stop(story_end(&story, IDEM_CANCELLED, IDEM_EFFECT_IN_DOUBT),
                IDEM_STOP_INTERRUPTED);
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
    story_begin(&story, 3, BIT(ABORTED));
    story.question.throttle = &throttle;
    assert_true(story_end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK).go);
    assert_stop(story_end_later(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK,
                                IDEM_RETRY_NEVER),
                IDEM_STOP_PUSHBACK);
    assert_int_equal(throttle.tokens_milli, 8000);
    assert_stop(story_end_later(&story, IDEM_INTERNAL, IDEM_EFFECT_ROLLED_BACK,
                                IDEM_RETRY_NEVER),
                IDEM_STOP_PUSHBACK);
    assert_int_equal(throttle.tokens_milli, 7000);

    story_begin(&story, 3, BIT(UNAVAILABLE));
    assert_stop(story_end_later(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED,
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
    story_begin(&story, 3, BIT(ABORTED));
    story.question.throttle = &throttle;
    assert_stop(story_end(&story, IDEM_INTERNAL, IDEM_EFFECT_ROLLED_BACK),
                IDEM_STOP_STATUS);
    assert_stop(
        story_end_later(&story, IDEM_INTERNAL, IDEM_EFFECT_ROLLED_BACK, 5),
        IDEM_STOP_STATUS);
    story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT);
    story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED);
    strcpy(story.outcome.reason, IDEM_KEY_RUNNING);
    story_end_later(&story, IDEM_ABORTED, IDEM_EFFECT_REFUSED, 5);
    assert_int_equal(throttle.tokens_milli, 10000);

    story.outcome.reason[0] = 0;
    story_end_later(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, 5);
    assert_int_equal(throttle.tokens_milli, 9000);
    assert_stop(story_end(&story, IDEM_OK, IDEM_EFFECT_REPLAYED), IDEM_STOP_OK);
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
    story_begin(&story, 5, BIT(ABORTED));
    story.question.throttle = &throttle;
    assert_stop(
        story_end_later(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, 5),
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
    story_begin(&story, 5, BIT(ABORTED));
    story.question.budget = &budget;
    assert_true(story_end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK).go);
    assert_stop(story_end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK),
                IDEM_STOP_BUDGET);
    budget_fini(&budget);
}

/* rpc 15, 41. */
static void
a_request_that_is_not_kept_is_sent_once(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 3, BIT(UNAVAILABLE));
    story.question.too_large = true;
    assert_stop(story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT),
                IDEM_STOP_BUFFER);
}

/* rpc 49. */
static void
a_named_time_raises_no_number_of_attempts(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 3, BIT(ABORTED));
    story_end_later(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, 700);
    assert_pause_around(
        story_end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK), 100);
    assert_stop(
        story_end_later(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, 1),
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
            a_pause_that_would_miss_the_deadline_ends_the_call_at_once),
        cmocka_unit_test(a_call_that_was_given_up_is_not_repeated),
        cmocka_unit_test(a_server_that_says_never_is_not_asked_again),
        cmocka_unit_test(only_a_failure_that_is_repeated_takes_a_token),
        cmocka_unit_test(a_closed_throttle_ends_the_call),
        cmocka_unit_test(a_budget_that_is_used_up_ends_the_call),
        cmocka_unit_test(a_request_that_is_not_kept_is_sent_once),
        cmocka_unit_test(a_named_time_raises_no_number_of_attempts),
    };

    return cmocka_run_group_tests(tests, story_set_up, story_tear_down);
}
