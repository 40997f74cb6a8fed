/* The adaptive limit: each rule, and a service that can do so much. */
#include "support.h"

#include "adapt.h"

#define MS INT64_C(1000000)

static void
done(struct adapt *adapt, int64_t began_ns, int64_t now_ns, bool late)
{
    adapt_done(adapt, began_ns, now_ns, late, adapt->limit);
}

static void
it_begins_with_a_hundred_or_what_there_may_be(void **state)
{
    struct adapt adapt;

    (void)state;
    adapt_init(&adapt, 8, 10000);
    assert_int_equal(adapt.limit, 100);
    adapt_init(&adapt, 8, 50);
    assert_int_equal(adapt.limit, 50);
    adapt_init(&adapt, 200, 10000);
    assert_int_equal(adapt.limit, 200);
}

static void
as_many_in_time_as_there_may_be_are_one_more(void **state)
{
    struct adapt adapt;

    (void)state;
    adapt_init(&adapt, 8, 101);
    for (int i = 0; i < 99; i++)
        done(&adapt, 0, MS, false);
    assert_int_equal(adapt.limit, 100);
    done(&adapt, 0, MS, false);
    assert_int_equal(adapt.limit, 101);
    for (int i = 0; i < 1000; i++)
        done(&adapt, 0, MS, false);
    assert_int_equal(adapt.limit, 101);
}

static void
what_nobody_uses_does_not_grow(void **state)
{
    struct adapt adapt;

    (void)state;
    adapt_init(&adapt, 8, 10000);
    for (int i = 0; i < 1000; i++)
        adapt_done(&adapt, 0, MS, false, 49);
    assert_int_equal(adapt.limit, 100);
}

/* A hundred late ones of one jam are one cut, not a hundred. */
static void
calls_of_one_jam_cut_once(void **state)
{
    struct adapt adapt;

    (void)state;
    adapt_init(&adapt, 8, 10000);
    for (int i = 0; i < 100; i++)
        done(&adapt, 5 * MS, 20 * MS, true);
    assert_int_equal(adapt.limit, 90);
    done(&adapt, 19 * MS, 30 * MS, true);
    assert_int_equal(adapt.limit, 90);
    done(&adapt, 20 * MS, 40 * MS, true);
    assert_int_equal(adapt.limit, 81);
}

static void
it_never_goes_below_the_least(void **state)
{
    struct adapt adapt;

    (void)state;
    adapt_init(&adapt, 8, 10000);
    for (int64_t at = 1; at < 100; at++)
        done(&adapt, at * MS, (at + 1) * MS, true);
    assert_int_equal(adapt.limit, 8);
}

/* A service that does `width` calls at a time in 10 ms each; those that are let
 * in beyond it wait, so that a call takes in_use / width times as long. Callers
 * always want more. Calls over 40 ms are late. Returns the mean limit after it
 * has settled. */
static unsigned
settle(unsigned width, unsigned rounds)
{
    struct adapt adapt;
    int64_t now_ns = 0;
    uint64_t sum = 0;

    adapt_init(&adapt, 1, 100000);
    for (unsigned round = 0; round < rounds; round++) {
        unsigned in_use = adapt.limit;
        int64_t takes_ns = 10 * MS;

        if (in_use > width)
            takes_ns = takes_ns * in_use / width;
        for (unsigned i = 0; i < in_use; i++)
            adapt_done(&adapt, now_ns, now_ns + takes_ns, takes_ns > 40 * MS,
                       in_use);
        now_ns += takes_ns;
        if (round >= rounds / 2)
            sum += adapt.limit;
    }
    return (unsigned)(sum / (rounds - rounds / 2));
}

/* Full, and never far over what can be done in time: four times the width. */
static void
it_finds_what_a_service_can_do(void **state)
{
    static const unsigned widths[] = {5, 50, 500};

    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        unsigned mean = settle(widths[i], 20000);

        assert_in_range(mean, 2 * widths[i], 4 * widths[i]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_begins_with_a_hundred_or_what_there_may_be),
        cmocka_unit_test(as_many_in_time_as_there_may_be_are_one_more),
        cmocka_unit_test(what_nobody_uses_does_not_grow),
        cmocka_unit_test(calls_of_one_jam_cut_once),
        cmocka_unit_test(it_never_goes_below_the_least),
        cmocka_unit_test(it_finds_what_a_service_can_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
