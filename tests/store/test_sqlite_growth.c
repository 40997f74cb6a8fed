/* Fault 87, scaled down: keys of 24 days, a tenth of them repeated, in a file
 * whose size follows the window and not the days. */
#include "sqlite_world.h"

#define DAY_MS INT64_C(86400000)
#define DAYS 24
#define KEYS_A_DAY 400
#define REPEATED 10 /* every tenth */
#define WARM 6      /* days until the first have gone */

/* Of the window of a day: today's, yesterday's, and the day before that, which
 * may have a key whose window is not over. */
#define DAYS_KEPT 3

static void
maintain(struct sqlite_world *world)
{
    struct idem_store *store = world->suite.store;

    assert_int_equal(store->ops->maintain(store, NULL), IDEM_OK);
}

static void
use(struct sqlite_world *world, const char *key)
{
    assert_int_equal(
        suite_claim_once(&world->suite, key, IDEM_MODE_TRANSACTION, 1),
        IDEM_VERDICT_MINE);
}

static void
spend_a_day(struct sqlite_world *world)
{
    char key[IDEM_KEY_MAX + 1];

    for (int i = 0; i < KEYS_A_DAY; i++) {
        suite_key_at(key, world->factory.wall_ms(world), DAY_MS);
        use(world, key);
        if (i % REPEATED == 0)
            assert_int_equal(
                suite_claim_once(&world->suite, key, IDEM_MODE_TRANSACTION, 1),
                IDEM_VERDICT_DONE);
        fake_clock_advance_ms(&world->clock, DAY_MS / KEYS_A_DAY);
    }
    maintain(world);
}

static int64_t
records(struct sqlite_world *world)
{
    return sqlite_world_number(world, "SELECT count(*) FROM idem_record");
}

static int64_t
pages(struct sqlite_world *world)
{
    return sqlite_world_number(world, "PRAGMA page_count");
}

static void
the_file_grows_with_the_window_and_not_with_the_days(void **state)
{
    struct sqlite_world *world = *state;
    int64_t warm = 0;

    for (int day = 0; day < DAYS; day++) {
        spend_a_day(world);
        assert_true(records(world) <= DAYS_KEPT * KEYS_A_DAY);
        assert_true(sqlite_world_number(world, "SELECT count(*) FROM "
                                               "idem_day") <= DAYS_KEPT + 3);
        if (day == WARM)
            warm = pages(world);
    }
    assert_true(pages(world) <= warm + warm / 10);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            the_file_grows_with_the_window_and_not_with_the_days,
            sqlite_world_set_up, sqlite_world_tear_down),
    };

    return cmocka_run_group_tests_name("growth", tests, NULL, NULL);
}
