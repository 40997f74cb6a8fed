#include "support.h"

#include "budget.h"

#define SECOND INT64_C(1000000000)

static struct budget budget;

static int
set_up(void **state)
{
    (void)state;
    budget_init(&budget);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    budget_fini(&budget);
    return 0;
}

static unsigned
take_all(int64_t now_ns)
{
    unsigned taken = 0;

    while (taken < 1000 && budget_take(&budget, now_ns))
        taken++;
    return taken;
}

/* B034: a storm of failures adds a fifth to the load and no more. */
static void
repeats_are_a_share_of_the_calls(void **state)
{
    (void)state;
    budget_set(&budget, 200, 0, 10000);
    for (int i = 0; i < 100; i++)
        budget_call(&budget, 5 * SECOND);
    assert_int_equal(take_all(5 * SECOND), 20);
}

static void
a_few_are_always_allowed(void **state)
{
    (void)state;
    budget_set(&budget, 100, 3, 10000);
    budget_call(&budget, SECOND);
    assert_int_equal(take_all(SECOND), 3);
}

static void
what_is_older_than_the_window_is_forgotten(void **state)
{
    (void)state;
    budget_set(&budget, 500, 0, 10000);
    for (int i = 0; i < 10; i++)
        budget_call(&budget, SECOND);
    assert_int_equal(take_all(SECOND), 5);
    assert_int_equal(take_all(10 * SECOND), 0);
    assert_int_equal(take_all(11 * SECOND), 0); /* no calls, no repeats */
    budget_call(&budget, 12 * SECOND);
    budget_call(&budget, 12 * SECOND);
    assert_int_equal(take_all(12 * SECOND), 1);
}

static void
without_a_share_there_is_no_budget(void **state)
{
    (void)state;
    assert_int_equal(take_all(SECOND), 1000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(repeats_are_a_share_of_the_calls,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_few_are_always_allowed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_older_than_the_window_is_forgotten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_share_there_is_no_budget,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
