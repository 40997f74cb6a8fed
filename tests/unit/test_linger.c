#include "support.h"

#include <idem/linger.h>
#include <idem/threads.h>

/* A thread that has served somebody looks for the next thing before it sleeps
 * (decision 63). */

#define TURNS 10000

struct awaited {
    unsigned asked, comes_at; /* 0: never */
};

static bool
is_there(const void *with)
{
    struct awaited *awaited = *(struct awaited *const *)with;

    awaited->asked++;
    return awaited->asked == awaited->comes_at;
}

static bool
await(struct idem_linger *linger, struct awaited *awaited)
{
    return idem_linger(linger, is_there, &awaited);
}

static void
what_is_there_is_seen_at_once(void **state)
{
    struct idem_linger linger = {0};

    (void)state;
    for (unsigned i = 0; i < TURNS; i++) {
        struct awaited awaited = {.comes_at = 1};

        assert_true(await(&linger, &awaited));
        assert_int_equal(awaited.asked, 1);
        linger = (struct idem_linger){0}; /* a busy machine makes it sit out */
    }
}

/* A busy machine may take the processor away between two looks, but not each
 * time. */
static void
what_comes_soon_is_seen(void **state)
{
    unsigned seen = 0;

    (void)state;
    idem_threads_set_spin_us(IDEM_SPIN_US_MAX);
    for (unsigned i = 0; i < TURNS && seen == 0; i++) {
        struct idem_linger linger = {0};
        struct awaited awaited = {.comes_at = 2};

        seen += await(&linger, &awaited) && awaited.asked == 2;
    }
    assert_int_equal(seen, 1);
}

static void
what_never_comes_is_hardly_looked_for(void **state)
{
    struct idem_linger linger = {0};
    unsigned looked = 0;

    (void)state;
    idem_threads_set_spin_us(1);
    for (unsigned i = 0; i < TURNS; i++) {
        struct awaited awaited = {0};

        assert_false(await(&linger, &awaited));
        looked += awaited.asked > 0;
    }
    assert_in_range(looked, 1, TURNS / 100);
}

static void
with_a_time_of_0_nobody_looks(void **state)
{
    struct idem_linger linger = {0};
    struct awaited awaited = {.comes_at = 1};

    (void)state;
    idem_threads_set_spin_us(0);
    assert_false(await(&linger, &awaited));
    assert_int_equal(awaited.asked, 0);
}

static int
set_back(void **state)
{
    (void)state;
    idem_threads_set_spin_us(IDEM_SPIN_US);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_is_seen_at_once),
        cmocka_unit_test_teardown(what_comes_soon_is_seen, set_back),
        cmocka_unit_test_teardown(what_never_comes_is_hardly_looked_for,
                                  set_back),
        cmocka_unit_test_teardown(with_a_time_of_0_nobody_looks, set_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
