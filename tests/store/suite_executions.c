#include "suite_call.h"

/* How often a key has run, and what that limits (semantics.md 3.3). */

/* An execution of mode TRANSACTION that writes, ends badly, and counts. */
static unsigned
fail_once(struct suite *suite, const char *key, int64_t amount)
{
    struct suite_call call;
    unsigned executions;

    call_open(&call, suite, key, IDEM_MODE_TRANSACTION, 1);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    executions = call.ticket.executions;
    assert_int_equal(call_effect(&call, amount), IDEM_OK);
    call.ticket.counts = true;
    assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
    call_close(&call);
    return executions;
}

static void
an_execution_that_counts_is_undone_and_counted(void **state)
{
    struct suite *suite = *state;
    char key[IDEM_KEY_MAX + 1];
    struct suite_call call;

    suite_key(suite, key);
    for (unsigned n = 1; n <= 3; n++)
        assert_int_equal(fail_once(suite, key, 5), n);
    assert_int_equal(suite_effects(suite, key), 0);
    call_open(&call, suite, key, IDEM_MODE_TRANSACTION, 1);
    assert_int_equal(call_look(&call), IDEM_VERDICT_ABSENT);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call.ticket.executions, 4);
    assert_int_equal(call_complete(&call, IDEM_INTERNAL, NULL),
                     IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
    assert_int_equal(call.ticket.answer.status, IDEM_INTERNAL);
    call_close(&call);
}

static void
an_execution_that_does_not_count_leaves_nothing(void **state)
{
    struct suite *suite = *state;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    for (int i = 0; i < 2; i++) {
        struct suite_call call;

        call_open(&call, suite, key, IDEM_MODE_TRANSACTION, 1);
        assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
        assert_int_equal(call.ticket.executions, 1);
        assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
        call_close(&call);
    }
}

/* A key that takes its server along each time. */
static void
a_lease_that_is_over_too_often_is_in_doubt(void **state)
{
    struct suite *suite = *state;
    char key[IDEM_KEY_MAX + 1];
    struct suite_call call;

    suite_key(suite, key);
    call_open(&call, suite, key, IDEM_MODE_LEASED, 1);
    call.ticket.max_executions = 3;
    for (unsigned n = 1; n <= 3; n++) {
        assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
        assert_int_equal(call.ticket.executions, n);
        suite_pass_lease(suite);
    }
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DOUBT);
    assert_int_equal(call_look(&call), IDEM_VERDICT_DOUBT);
    call_close(&call);
}

int
suite_run_executions(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_execution_that_counts_is_undone_and_counted),
        cmocka_unit_test(an_execution_that_does_not_count_leaves_nothing),
        cmocka_unit_test(a_lease_that_is_over_too_often_is_in_doubt),
    };

    return cmocka_run_group_tests_name("executions", tests, suite_set_up,
                                       suite_tear_down);
}
