#include "support.h"

#include "fake_clock.h"
#include "retry_backoff.h"

#define MS INT64_C(1000000)

static struct fake_clock fake;

static int
set_up(void **state)
{
    (void)state;
    fake_clock_init(&fake);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    fake_clock_fini(&fake);
    return 0;
}

/* B033: client.md 2.3 as a table. */
static void
pauses_grow_to_their_cap(void **state)
{
    const struct {
        struct retry_backoff backoff;
        unsigned n;
        int64_t ms;
    } rows[] = {
        {{100, 2000, 2000}, 1, 100},
        {{100, 2000, 2000}, 2, 200},
        {{100, 2000, 2000}, 5, 1600},
        {{100, 2000, 2000}, 6, 2000},
        {{100, 2000, 1500}, 3, 225},
        {{5000, 2000, 2000}, 1, 2000},
        {{100, 2000, 1000}, 99, 100},
        {{100, 2000, 500}, 2, 50},
        {{100, 2000, 500}, 100, 1},
        {{0, 0, 0}, 1, 100},
        {{0, 0, 0}, 100, 2000},
        {{1, 20, 2000}, 200, 20},
        {{1, 20, 2000}, 4000000000, 20},
        {{-1, -1, 1}, 1, 100},
        {{1, INT64_MAX, UINT32_MAX}, 4000000000, 86400000},
        {{INT64_MAX, INT64_MAX, UINT32_MAX}, 9, 86400000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(retry_backoff_base_ns(&rows[i].backoff, rows[i].n),
                         rows[i].ms * MS);
}

/* B033: whatever the numbers are. */
static void
no_pause_is_shorter_than_its_minimum(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        struct retry_backoff backoff;
        int64_t pause_ns;

        fake.clock.random(&fake.clock, &backoff, sizeof(backoff));
        pause_ns = retry_backoff_ns(&backoff, i % 300, &fake.clock);
        assert_in_range(pause_ns, 8 * MS / 10,
                        INT64_C(86400000) * MS * 12 / 10);
    }
}

/* B034: waits differ between clients, all over the range. */
static void
pauses_are_spread_by_a_fifth(void **state)
{
    const struct retry_backoff backoff = {1000, 1000, 2000};
    int64_t least = INT64_MAX, most = 0;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        int64_t pause_ns = retry_backoff_ns(&backoff, 3, &fake.clock);

        assert_in_range(pause_ns, 800 * MS, 1200 * MS);
        least = pause_ns < least ? pause_ns : least;
        most = pause_ns > most ? pause_ns : most;
    }
    assert_true(least < 810 * MS && most > 1190 * MS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_grow_to_their_cap),
        cmocka_unit_test(no_pause_is_shorter_than_its_minimum),
        cmocka_unit_test(pauses_are_spread_by_a_fifth),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
