#include "support.h"

#include "fault.h"

#ifdef IDEM_FAULTS

static void
nothing_fails_without_a_plan(void **state)
{
    (void)state;
    fault_set(NULL);
    assert_false(IDEM_FAULT("a.b"));
}

static void
the_nth_time_fails_and_no_other(void **state)
{
    (void)state;
    fault_set("a.b:2:error");
    assert_false(IDEM_FAULT("a.b"));
    assert_false(IDEM_FAULT("a.bc"));
    assert_true(IDEM_FAULT("a.b"));
    assert_false(IDEM_FAULT("a.b"));
    fault_set(NULL);
}

static void
a_star_fails_every_time(void **state)
{
    (void)state;
    fault_set("x:1:delay=1,a.b:*:error");
    assert_false(IDEM_FAULT("x"));
    for (int i = 0; i < 3; i++)
        assert_true(IDEM_FAULT("a.b"));
    fault_set(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_fails_without_a_plan),
        cmocka_unit_test(the_nth_time_fails_and_no_other),
        cmocka_unit_test(a_star_fails_every_time),
    };

    return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}

#else

int
main(void)
{
    return 0; /* the points are compiled out */
}

#endif
