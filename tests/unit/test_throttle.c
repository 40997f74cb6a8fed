#include "support.h"

#include "throttle.h"

#define ONE 1000

static struct throttle throttle;

static int
set_up(void **state)
{
    (void)state;
    throttle_init(&throttle);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    throttle_fini(&throttle);
    return 0;
}

/* rpc 33, client.md 2.5: gRPC's own example, 4 tokens at most, 1.6 for a
 * success. F: a failure, and whether another attempt may follow. */
static void
the_worked_example_comes_out(void **state)
{
    static const struct {
        char what;
        int64_t tokens_milli;
        bool open;
    } table[] = {
        {'F', 3000, true},  {'S', 4000, true},  {'F', 3000, true},
        {'F', 2000, false}, {'F', 1000, false}, {'F', 0, false},
        {'F', 0, false},    {'S', 1600, false}, {'S', 3200, true},
        {'F', 2200, true},  {'F', 1200, false}, {'S', 2800, true},
        {'F', 1800, false}, {'S', 3400, true},  {'F', 2400, true},
    };

    (void)state;
    throttle_set(&throttle, 4 * ONE, 1600);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].what == 'S')
            throttle_success(&throttle);
        else
            assert_int_equal(throttle_failure(&throttle), table[i].open);
        assert_int_equal(throttle.tokens_milli, table[i].tokens_milli);
        assert_int_equal(throttle_open(&throttle), table[i].open);
    }
}

/* rpc 33: 3 of 4 are 7.5 of 10, and who began before counts in the same. */
static void
other_numbers_keep_it_as_full_as_it_was(void **state)
{
    (void)state;
    throttle_set(&throttle, 4 * ONE, ONE);
    assert_true(throttle_failure(&throttle));
    throttle_set(&throttle, 10 * ONE, ONE);
    assert_int_equal(throttle.tokens_milli, 7500);
    assert_true(throttle_failure(&throttle));
    assert_int_equal(throttle.tokens_milli, 6500);
}

static void
exactly_half_is_closed(void **state)
{
    (void)state;
    throttle_set(&throttle, 2 * ONE, ONE);
    assert_false(throttle_failure(&throttle));
    throttle_success(&throttle);
    assert_true(throttle_open(&throttle));
}

static void
without_numbers_it_is_never_closed(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        assert_true(throttle_failure(&throttle));
    throttle_set(&throttle, ONE, ONE);
    assert_false(throttle_failure(&throttle));
    throttle_set(&throttle, 0, 0);
    assert_true(throttle_failure(&throttle));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_worked_example_comes_out, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(other_numbers_keep_it_as_full_as_it_was,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(exactly_half_is_closed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(without_numbers_it_is_never_closed,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
