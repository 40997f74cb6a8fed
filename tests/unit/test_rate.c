/* Rates of principals: how many, how often, and who is remembered. */
#include "support.h"

#include "rate.h"

#include <stdio.h>

#define MS INT64_C(1000000)

static const struct idem_method charge = {.name = "Charge"};
static const struct idem_method look = {.name = "Look"};

/* 10 in a second, 3 of them at once. */
static const struct idem_limit_policy ten = {
    .rate_calls = 10, .rate_per_ms = 1000, .rate_burst = 3};

static struct rates rates;

static int
set_up(void **state)
{
    (void)state;
    rates_init(&rates, 2);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    rates_fini(&rates);
    return 0;
}

static int64_t
take(const struct idem_method *method, const char *who, int64_t now_ms)
{
    return rates_take(&rates, method, &ten, idem_bytes_of(who), now_ms * MS);
}

static void
the_burst_passes_and_the_next_is_told_when(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(take(&charge, "ann", 5000), 0);
    assert_int_equal(take(&charge, "ann", 5000), 100 * MS);
    assert_int_equal(take(&charge, "ann", 5040), 60 * MS);
    assert_int_equal(take(&charge, "ann", 5099), 1 * MS);
    assert_int_equal(take(&charge, "ann", 5100), 0);
    assert_int_equal(take(&charge, "ann", 5100), 100 * MS);
}

/* Who is refused has not used anything up. */
static void
a_steady_caller_at_the_rate_is_never_refused(void **state)
{
    unsigned passed = 0;

    (void)state;
    for (int64_t ms = 0; ms < 10000; ms += 100)
        assert_int_equal(take(&charge, "ann", ms), 0);
    for (int64_t ms = 10000; ms < 20000; ms += 10)
        passed += take(&charge, "ann", ms) == 0;
    assert_in_range(passed, 100, 103);
}

static void
after_a_rest_no_more_than_the_burst_passes(void **state)
{
    unsigned passed = 0;

    (void)state;
    assert_int_equal(take(&charge, "ann", 0), 0);
    for (int i = 0; i < 10; i++)
        passed += take(&charge, "ann", 3600000) == 0;
    assert_int_equal(passed, 3);
}

static void
principals_and_methods_are_apart(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(take(&charge, "ann", 0), 0);
    assert_int_equal(take(&charge, "bob", 0), 0);
    assert_int_not_equal(take(&charge, "ann", 0), 0);
    assert_int_equal(take(&look, "bob", 0), 0);
}

/* Two are remembered here: the third pushes the longest unused one out. */
static void
the_last_used_are_remembered(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(take(&charge, "ann", 0), 0);
    assert_int_equal(take(&charge, "bob", 0), 0);
    assert_int_not_equal(take(&charge, "ann", 0), 0);
    assert_int_equal(take(&charge, "eve", 0), 0);
    assert_int_not_equal(take(&charge, "ann", 0), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(take(&charge, "bob", 0), 0);
}

/* A day, a burst of 100,000 and a clock far from zero: no number is too
 * large. */
static void
the_largest_numbers_that_are_taken_hold(void **state)
{
    static const struct idem_limit_policy slow = {
        .rate_calls = 1, .rate_per_ms = 86400000, .rate_burst = 100000};
    int64_t now_ns = INT64_C(86400000) * 365 * MS;

    (void)state;
    for (int i = 0; i < 100000; i++)
        assert_int_equal(
            rates_take(&rates, &charge, &slow, idem_bytes_of("ann"), now_ns),
            0);
    assert_int_equal(
        rates_take(&rates, &charge, &slow, idem_bytes_of("ann"), now_ns),
        86400000 * MS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            the_burst_passes_and_the_next_is_told_when, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_steady_caller_at_the_rate_is_never_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            after_a_rest_no_more_than_the_burst_passes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(principals_and_methods_are_apart,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_used_are_remembered, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_largest_numbers_that_are_taken_hold,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
