#include "support.h"

#include "crowd.h"
#include "sanitizer.h"

/* 100,000 calls in flight on one channel; fewer where a sanitizer has memory
 * and time of its own for each. */
#define CALLS (SANITIZED ? 10000 : 100000)
#define KIB 2.0 /* a call, and its message */

static struct crowd_seen seen;

/* B044 */
static void
very_many_calls_in_flight_are_each_told_once(void **state)
{
    (void)state;
    assert_int_equal(seen.told, CALLS);
    assert_int_equal(seen.ok, CALLS);
    assert_int_equal(seen.once, CALLS);
}

static void
each_of_them_is_small(void **state)
{
    (void)state;
    if (seen.kib == 0)
        skip(); /* a sanitizer's memory says nothing about ours */
    print_message("%.2f KiB a call\n", seen.kib);
    assert_true(seen.kib <= KIB);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(very_many_calls_in_flight_are_each_told_once),
        cmocka_unit_test(each_of_them_is_small),
    };

    seen = crowd_run(CALLS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
