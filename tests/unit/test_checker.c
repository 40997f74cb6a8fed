/* A checker that cannot fail proves nothing: each rule is broken here once, and
 * is the only one that is told. */
#include "support.h"

#include "checker.h"

#include <idem/reason.h>

#define LEASE_MS 900

struct told {
    unsigned of[CHECKER_RULES + 1];
};

static void
note(void *with, unsigned rule, const char *key, const char *what)
{
    struct told *told = with;

    assert_true(rule >= 1 && rule <= CHECKER_RULES);
    assert_non_null(key);
    assert_non_null(what);
    told->of[rule]++;
}

/* A key that was done as it should: one effect, one record, an answer and its
 * replay. */
static struct checker *
well_done(enum checker_runs runs)
{
    struct checker *checker = checker_new();
    const struct checker_record record = {
        .key = "k", .state = "DONE", .executions = 1};
    struct checker_call call = {
        .key = "k",
        .began_ns = 1,
        .ended_ns = 5,
        .effect = IDEM_EFFECT_COMMITTED,
        .final = true,
        .reason = "",
        .reply = 77,
    };

    checker_key(checker, "k", runs, 1000);
    checker_effect(checker, "k", 10);
    checker_record(checker, &record);
    checker_call(checker, &call);
    call.began_ns = 6;
    call.ended_ns = 7;
    call.effect = IDEM_EFFECT_REPLAYED;
    checker_call(checker, &call);
    return checker;
}

/* Only this rule is broken; 0: none. */
static void
assert_breaks(struct checker *checker, unsigned rule)
{
    struct told told = {{0}};
    unsigned violations = checker_run(checker, LEASE_MS, note, &told);

    for (unsigned i = 1; i <= CHECKER_RULES; i++)
        if ((told.of[i] > 0) != (i == rule))
            fail_msg("I%u was told %u times", i, told.of[i]);
    assert_int_equal(violations > 0, rule != 0);
    checker_free(checker);
}

static struct checker_call
call_of(const char *key)
{
    const struct checker_call call = {.key = key,
                                      .began_ns = 20,
                                      .ended_ns = 30,
                                      .final = true,
                                      .reason = "",
                                      .reply = 77};

    return call;
}

static void
a_key_that_was_done_once_breaks_nothing(void **state)
{
    (void)state;
    assert_breaks(well_done(CHECKER_RUN_ONCE), 0);
    assert_breaks(well_done(CHECKER_RUN_AGAIN), 0);
}

static void
a_second_effect_breaks_1(void **state)
{
    struct checker *once = well_done(CHECKER_RUN_ONCE);
    struct checker *again = well_done(CHECKER_RUN_AGAIN);

    (void)state;
    checker_effect(once, "k", 11);
    assert_breaks(once, 1);
    checker_effect(again, "k", 11);
    assert_breaks(again, 1);
}

static void
a_second_final_answer_breaks_2(void **state)
{
    struct checker *checker = well_done(CHECKER_RUN_AGAIN);
    struct checker_call call = call_of("k");

    (void)state;
    call.status = IDEM_FAILED_PRECONDITION;
    call.reply = 0;
    checker_call(checker, &call);
    assert_breaks(checker, 2);
}

static void
a_doubt_after_a_final_answer_breaks_2(void **state)
{
    struct checker *checker = well_done(CHECKER_RUN_ONCE);
    struct checker_call call = call_of("k");

    (void)state;
    call.final = false;
    call.status = IDEM_ABORTED;
    call.reason = IDEM_KEY_IN_DOUBT;
    checker_call(checker, &call);
    assert_breaks(checker, 2);
}

static void
an_effect_behind_a_final_no_breaks_3(void **state)
{
    struct checker *checker = checker_new();
    const struct checker_record record = {.key = "k",
                                          .state = "DONE",
                                          .status = IDEM_FAILED_PRECONDITION,
                                          .executions = 1};
    struct checker_call call = call_of("k");

    (void)state;
    call.status = IDEM_FAILED_PRECONDITION;
    checker_key(checker, "k", CHECKER_RUN_ONCE, INT64_MAX);
    checker_record(checker, &record);
    checker_call(checker, &call);
    checker_effect(checker, "k", INT64_MIN);
    assert_breaks(checker, 3);
}

static void
other_bytes_break_4(void **state)
{
    struct checker *checker = well_done(CHECKER_RUN_ONCE);
    struct checker_call call = call_of("k");

    (void)state;
    call.reply = 78;
    checker_call(checker, &call);
    assert_breaks(checker, 4);
}

static void
a_key_without_an_end_breaks_5(void **state)
{
    struct checker *checker = checker_new();
    struct checker_call call = call_of("k");

    (void)state;
    call.final = false;
    call.status = IDEM_ABORTED;
    call.reason = IDEM_KEY_RUNNING;
    checker_key(checker, "k", CHECKER_RUN_ONCE, INT64_MAX);
    checker_call(checker, &call);
    assert_breaks(checker, 5);
}

static void
a_lease_of_years_breaks_5(void **state)
{
    struct checker *checker = checker_new();
    const struct checker_record record = {.key = "k",
                                          .state = "RUNNING",
                                          .executions = 1,
                                          .lease_left_ms = LEASE_MS + 1};

    (void)state;
    checker_key(checker, "k", CHECKER_RUN_ONCE, INT64_MAX);
    checker_record(checker, &record);
    assert_breaks(checker, 5);
}

static void
a_foreign_answer_breaks_6(void **state)
{
    struct checker *checker = well_done(CHECKER_RUN_ONCE);
    struct checker_call call = call_of("k");

    (void)state;
    call.foreign = true;
    checker_call(checker, &call);
    assert_breaks(checker, 6);
}

static void
an_effect_after_the_window_breaks_7(void **state)
{
    struct checker *checker = checker_new();
    const struct checker_record record = {
        .key = "k", .state = "DONE", .executions = 1};

    (void)state;
    checker_key(checker, "k", CHECKER_RUN_ONCE, 1000);
    checker_record(checker, &record);
    checker_effect(checker, "k", 1000);
    assert_breaks(checker, 7);
}

static void
an_effect_without_a_claim_breaks_8(void **state)
{
    struct checker *checker = checker_new();

    (void)state;
    checker_key(checker, "k", CHECKER_RUN_ONCE, INT64_MAX);
    checker_effect(checker, "k", INT64_MIN);
    assert_breaks(checker, 8);
}

static void
an_endless_entry_breaks_9(void **state)
{
    struct checker *checker = well_done(CHECKER_RUN_ONCE);

    (void)state;
    checker_cached(checker, "entry", 5000);
    checker_cached(checker, "other", -1);
    assert_breaks(checker, 9);
}

static void
a_yes_without_its_effect_breaks_10(void **state)
{
    struct checker *checker = checker_new();
    const struct checker_record record = {
        .key = "k", .state = "DONE", .executions = 1};
    struct checker_call call = call_of("k");

    (void)state;
    checker_key(checker, "k", CHECKER_RUN_ONCE, INT64_MAX);
    checker_record(checker, &record);
    checker_call(checker, &call);
    assert_breaks(checker, 10);
}

static void
a_yes_without_its_record_breaks_10(void **state)
{
    struct checker *checker = checker_new();
    const struct checker_record record = {
        .key = "k", .state = "DOUBT", .executions = 1};
    struct checker_call call = call_of("k");

    (void)state;
    checker_key(checker, "k", CHECKER_RUN_ONCE, INT64_MAX);
    checker_effect(checker, "k", INT64_MIN);
    checker_record(checker, &record);
    checker_call(checker, &call);
    assert_breaks(checker, 10);
}

/* KEY_REUSED is final for another request, not for the key. */
static void
a_refusal_of_another_request_breaks_nothing(void **state)
{
    struct checker *checker = well_done(CHECKER_RUN_ONCE);
    struct checker_call call = call_of("k");

    (void)state;
    call.status = IDEM_INVALID_ARGUMENT;
    call.reason = IDEM_KEY_REUSED;
    call.reply = 0;
    checker_call(checker, &call);
    assert_breaks(checker, 0);
}

/* Its sender had its answer; whoever comes late is turned away. */
static struct checker *
forgotten(bool may_be, enum checker_runs runs)
{
    struct checker *checker = checker_new();
    struct checker_call call = call_of("k");

    checker_key(checker, "k", runs, INT64_MAX);
    if (may_be)
        checker_may_forget(checker, "k");
    checker_effect(checker, "k", INT64_MIN);
    checker_call(checker, &call);
    call.began_ns = 40;
    call.ended_ns = 50;
    call.status = IDEM_FAILED_PRECONDITION;
    call.reason = IDEM_KEY_STALE;
    call.reply = 0;
    checker_call(checker, &call);
    return checker;
}

static void
a_key_of_a_session_may_be_forgotten(void **state)
{
    struct told told = {{0}};
    struct checker *other = forgotten(false, CHECKER_RUN_ONCE);

    (void)state;
    assert_breaks(forgotten(true, CHECKER_RUN_ONCE), 0);
    assert_int_equal(checker_run(other, LEASE_MS, note, &told), 2);
    assert_int_equal(told.of[8], 1);
    assert_int_equal(told.of[10], 1);
    checker_free(other);
}

/* Forgotten or not, it has one effect. */
static void
a_late_effect_of_a_session_breaks_1(void **state)
{
    struct checker *checker = forgotten(true, CHECKER_RUN_ONCE);

    (void)state;
    checker_effect(checker, "k", INT64_MIN);
    assert_breaks(checker, 1);
}

/* … but where it may run again, nobody knows any more how often it did. */
static void
what_is_forgotten_has_no_count(void **state)
{
    struct checker *checker = forgotten(true, CHECKER_RUN_AGAIN);

    (void)state;
    checker_effect(checker, "k", INT64_MIN);
    assert_breaks(checker, 0);
}

static void
keys_of_others_are_passed_over(void **state)
{
    struct checker *checker = well_done(CHECKER_RUN_ONCE);
    const struct checker_record record = {.key = "other", .state = "RUNNING"};
    const struct checker_call call = call_of("other");

    (void)state;
    checker_pass_over_others(checker);
    checker_effect(checker, "other", 10);
    checker_effect(checker, "other", 11);
    checker_record(checker, &record);
    checker_call(checker, &call);
    checker_may_forget(checker, "other");
    assert_breaks(checker, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_that_was_done_once_breaks_nothing),
        cmocka_unit_test(a_second_effect_breaks_1),
        cmocka_unit_test(a_second_final_answer_breaks_2),
        cmocka_unit_test(a_doubt_after_a_final_answer_breaks_2),
        cmocka_unit_test(an_effect_behind_a_final_no_breaks_3),
        cmocka_unit_test(other_bytes_break_4),
        cmocka_unit_test(a_key_without_an_end_breaks_5),
        cmocka_unit_test(a_lease_of_years_breaks_5),
        cmocka_unit_test(a_foreign_answer_breaks_6),
        cmocka_unit_test(an_effect_after_the_window_breaks_7),
        cmocka_unit_test(an_effect_without_a_claim_breaks_8),
        cmocka_unit_test(an_endless_entry_breaks_9),
        cmocka_unit_test(a_yes_without_its_effect_breaks_10),
        cmocka_unit_test(a_yes_without_its_record_breaks_10),
        cmocka_unit_test(a_refusal_of_another_request_breaks_nothing),
        cmocka_unit_test(a_key_of_a_session_may_be_forgotten),
        cmocka_unit_test(a_late_effect_of_a_session_breaks_1),
        cmocka_unit_test(what_is_forgotten_has_no_count),
        cmocka_unit_test(keys_of_others_are_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
