/* What an attempt may have done decides whether it is repeated, and what is
 * said of the effect. */
#include "retry_story.h"

#include <string.h>

/* rpc 29: ten attempts that never reach the wire, no policy at all. */
static void
what_never_left_is_sent_again_without_an_attempt_or_a_number(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 0, 0);
    story.question.keyed = false;
    for (int i = 0; i < 10; i++) {
        struct retry_answer answer =
            story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT);

        assert_true(answer.go);
        assert_false(answer.seen);
        assert_in_range(answer.pause_ns, 8 * MS, 1200 * MS);
    }
    assert_stop(story_end(&story, IDEM_OK, IDEM_EFFECT_COMMITTED),
                IDEM_STOP_OK);
}

static void
what_never_leaves_ends_some_day(void **state)
{
    struct story story;
    int repeats = 0;

    (void)state;
    story_begin(&story, 0, 0);
    while (story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT).go)
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
    story_begin(&story, 0, 0);
    answer = story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED);
    assert_true(answer.go);
    assert_int_equal(answer.pause_ns, 0);
    assert_false(answer.seen);
    assert_stop(story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED),
                IDEM_STOP_NO_POLICY);

    story_begin(&story, 3, BIT(UNAVAILABLE));
    story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED);
    assert_pause_around(
        story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED), 100);
}

static void
a_refusal_that_names_a_time_is_not_repeated_before(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 3, BIT(UNAVAILABLE));
    assert_int_equal(
        story_end_later(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED, 700)
            .pause_ns,
        700 * MS);
}

/* B035: a request over a limit fails the same way each time. */
static void
a_limit_is_not_tried_again_unless_the_server_names_a_time(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 5, BIT(RESOURCE_EXHAUSTED));
    assert_stop(
        story_end(&story, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_NOT_SENT),
        IDEM_STOP_STATUS);
    assert_stop(story_end(&story, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED),
                IDEM_STOP_STATUS);
    assert_int_equal(story_end_later(&story, IDEM_RESOURCE_EXHAUSTED,
                                     IDEM_EFFECT_REFUSED, 50)
                         .pause_ns,
                     50 * MS);
}

/* B031. */
static void
without_a_key_doubt_is_never_repeated(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 3, BIT(UNAVAILABLE));
    story.question.keyed = false;
    story.question.safe = false;
    assert_stop(story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT),
                IDEM_STOP_IN_DOUBT);
    assert_int_equal(story.progress.worst, IDEM_EFFECT_IN_DOUBT);
}

static void
doubt_is_repeated_with_a_key_or_a_declared_idempotence(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 3,
                0); /* a lost connection is repeated in whatever list */
    assert_true(story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT).go);

    story_begin(&story, 3, 0);
    story.question.keyed = false;
    assert_true(story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT).go);
}

/* B032. */
static void
waiting_for_the_first_call_with_the_key_costs_no_attempt(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 2, BIT(UNAVAILABLE));
    assert_true(story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT).go);
    strcpy(story.outcome.reason, IDEM_KEY_RUNNING);
    for (int i = 0; i < 50; i++) {
        struct retry_answer answer = story_end_later(
            &story, IDEM_ABORTED, IDEM_EFFECT_REFUSED, i % 2 ? 40 : -1);

        assert_true(answer.go);
        assert_true(answer.seen);
        assert_true(answer.pause_ns > 0);
    }
    story.outcome.reason[0] = 0;
    assert_stop(story_end(&story, IDEM_OK, IDEM_EFFECT_REPLAYED), IDEM_STOP_OK);
    assert_int_equal(story.progress.worst, IDEM_EFFECT_REPLAYED);
}

/* rpc 102. */
static void
doubt_stays_until_a_stored_answer_settles_it(void **state)
{
    struct story story;

    (void)state;
    story_begin(&story, 9, BIT(UNAVAILABLE) | BIT(ABORTED));
    story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT);
    assert_int_equal(story.progress.worst, IDEM_EFFECT_NOT_SENT);
    story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED);
    story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED);
    story_end(&story, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK);
    assert_int_equal(story.progress.worst, IDEM_EFFECT_IN_DOUBT);

    story.outcome.final = true;
    story_end(&story, IDEM_NOT_FOUND, IDEM_EFFECT_ROLLED_BACK);
    assert_int_equal(story.progress.worst, IDEM_EFFECT_ROLLED_BACK);
}

static void
that_a_key_is_forgotten_settles_nothing(void **state)
{
    static const char *const reasons[] = {IDEM_KEY_EXPIRED, IDEM_KEY_STALE};

    (void)state;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        struct story story;

        story_begin(&story, 3, BIT(UNAVAILABLE));
        story_end(&story, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
        story.outcome.final = true;
        strcpy(story.outcome.reason, reasons[i]);
        story_end(&story, IDEM_FAILED_PRECONDITION, IDEM_EFFECT_REFUSED);
        assert_int_equal(story.progress.worst, IDEM_EFFECT_IN_DOUBT);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
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
        cmocka_unit_test(doubt_stays_until_a_stored_answer_settles_it),
        cmocka_unit_test(that_a_key_is_forgotten_settles_nothing),
    };

    return cmocka_run_group_tests(tests, story_set_up, story_tear_down);
}
