#include "support.h"

#include "burst.h"

#include <idem/call.h>

#include <string.h>

/* What is put off to the end of what a thread does in one go. */

static unsigned runs[32]; /* of each number */

static void
run(void *with)
{
    (*(unsigned *)with)++;
}

static void
forget(void)
{
    memset(runs, 0, sizeof(runs));
}

static void
outside_a_burst_nothing_is_put_off(void **state)
{
    (void)state;
    forget();
    assert_false(idem_burst_put_off(run, &runs[0]));
    burst_begin();
    burst_end();
    assert_false(idem_burst_put_off(run, &runs[0]));
    assert_int_equal(runs[0], 0);
}

static void
what_is_put_off_runs_once_when_the_outermost_ends(void **state)
{
    (void)state;
    forget();
    burst_begin();
    burst_begin();
    for (int i = 0; i < 3; i++) {
        assert_true(idem_burst_put_off(run, &runs[0]));
        assert_true(idem_burst_put_off(run, &runs[1]));
    }
    burst_end();
    assert_int_equal(runs[0] + runs[1], 0);
    burst_end();
    assert_int_equal(runs[0], 1);
    assert_int_equal(runs[1], 1);
}

static void
what_finds_no_room_is_for_now(void **state)
{
    unsigned taken = 0;

    (void)state;
    forget();
    burst_begin();
    for (unsigned i = 0; i < 32; i++)
        taken += idem_burst_put_off(run, &runs[i]);
    assert_in_range(taken, 1, 31);
    assert_true(idem_burst_put_off(run, &runs[0])); /* it is there already */
    burst_end();
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(runs[i], i < taken);
}

static void
ask_again(void *with)
{
    run(with);
    assert_false(idem_burst_put_off(run, with));
}

static void
what_runs_at_the_end_is_outside(void **state)
{
    (void)state;
    forget();
    burst_begin();
    assert_true(idem_burst_put_off(ask_again, &runs[0]));
    burst_end();
    assert_int_equal(runs[0], 1);
}

static void
put_off(void *with)
{
    assert_true(idem_burst_put_off(run, with));
    assert_int_equal(*(unsigned *)with, 0);
}

static void
calls_that_are_resumed_together_are_one(void **state)
{
    (void)state;
    forget();
    idem_call_resume_all(put_off, &runs[0]);
    assert_int_equal(runs[0], 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outside_a_burst_nothing_is_put_off),
        cmocka_unit_test(what_is_put_off_runs_once_when_the_outermost_ends),
        cmocka_unit_test(what_finds_no_room_is_for_now),
        cmocka_unit_test(what_runs_at_the_end_is_outside),
        cmocka_unit_test(calls_that_are_resumed_together_are_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
