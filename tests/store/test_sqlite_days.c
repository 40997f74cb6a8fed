#include "sqlite_world.h"

#include <idem/reason.h>

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)

/* The days whose keys are taken, and how they end. */

static int64_t
now_ms(struct sqlite_world *world)
{
    return world->factory.wall_ms(world);
}

static enum idem_verdict
claim(struct sqlite_world *world, const char *key)
{
    return suite_claim_once(&world->suite, key, IDEM_MODE_TRANSACTION, 1);
}

static void
maintain(struct sqlite_world *world)
{
    struct idem_store *store = world->suite.store;

    assert_int_equal(store->ops->maintain(store, NULL), IDEM_OK);
}

/* Move to a minute before midnight UTC. */
static void
move_to_the_end_of_the_day(struct sqlite_world *world)
{
    int64_t left = DAY_MS - now_ms(world) % DAY_MS;

    fake_clock_advance_ms(&world->clock, left - 60000);
}

/* B083: uniqueness does not end with the day. */
static void
a_key_keeps_its_record_over_midnight(void **state)
{
    struct sqlite_world *world = *state;
    char before[IDEM_KEY_MAX + 1], after[IDEM_KEY_MAX + 1];

    move_to_the_end_of_the_day(world);
    suite_key_at(before, now_ms(world), 3 * DAY_MS);
    suite_key_at(after, now_ms(world) + 120000, 3 * DAY_MS);
    assert_int_equal(claim(world, before), IDEM_VERDICT_MINE);
    assert_int_equal(claim(world, after), IDEM_VERDICT_MINE);
    for (int day = 0; day < 3; day++) {
        fake_clock_advance_ms(&world->clock, DAY_MS - 60000);
        maintain(world);
        assert_int_equal(claim(world, before), IDEM_VERDICT_DONE);
        assert_int_equal(claim(world, after), IDEM_VERDICT_DONE);
    }
}

/* semantics.md 3.6: forgotten is not the same as never seen. */
static void
a_key_whose_day_was_dropped_is_refused_and_never_runs(void **state)
{
    struct sqlite_world *world = *state;
    char key[IDEM_KEY_MAX + 1];

    suite_key_at(key, now_ms(world), DAY_MS);
    assert_int_equal(claim(world, key), IDEM_VERDICT_MINE);
    fake_clock_advance_ms(&world->clock, 3 * DAY_MS);
    assert_int_equal(claim(world, key), IDEM_VERDICT_DONE);
    maintain(world);
    assert_int_equal(sqlite_world_number(world, "SELECT count(*) FROM"
                                                " idem_record"),
                     0);
    assert_int_equal(claim(world, key), IDEM_VERDICT_EXPIRED);
}

/* Fault 59: the clock decides nothing about what was forgotten. */
static void
a_dropped_day_does_not_come_back_with_the_clock(void **state)
{
    struct sqlite_world *world = *state;
    char key[IDEM_KEY_MAX + 1];

    suite_key_at(key, now_ms(world), DAY_MS);
    assert_int_equal(claim(world, key), IDEM_VERDICT_MINE);
    fake_clock_advance_ms(&world->clock, 3 * DAY_MS);
    maintain(world);
    fake_clock_step_wall_ms(&world->clock, -3 * DAY_MS);
    maintain(world);
    sqlite_world_stop(world);
    sqlite_world_start(world);
    assert_int_equal(claim(world, key), IDEM_VERDICT_EXPIRED);
}

static void
a_day_is_kept_for_the_longest_window_of_its_keys(void **state)
{
    struct sqlite_world *world = *state;
    char brief[IDEM_KEY_MAX + 1], lasting[IDEM_KEY_MAX + 1];

    suite_key_at(brief, now_ms(world), HOUR_MS);
    suite_key_at(lasting, now_ms(world), 30 * DAY_MS);
    assert_int_equal(claim(world, brief), IDEM_VERDICT_MINE);
    assert_int_equal(claim(world, lasting), IDEM_VERDICT_MINE);
    fake_clock_advance_ms(&world->clock, 29 * DAY_MS);
    maintain(world);
    assert_int_equal(claim(world, brief), IDEM_VERDICT_DONE);
    assert_int_equal(claim(world, lasting), IDEM_VERDICT_DONE);
    fake_clock_advance_ms(&world->clock, 3 * DAY_MS);
    maintain(world);
    assert_int_equal(claim(world, lasting), IDEM_VERDICT_EXPIRED);
}

static void
days_on_which_nothing_ran_are_made_afterwards(void **state)
{
    struct sqlite_world *world = *state;
    char key[IDEM_KEY_MAX + 1];

    sqlite_world_stop(world);
    fake_clock_advance_ms(&world->clock, 20 * DAY_MS);
    sqlite_world_start(world);
    maintain(world);
    assert_int_equal(
        sqlite_world_number(world, "SELECT count(*) FROM idem_day"), 4);
    suite_key_at(key, now_ms(world) - HOUR_MS, DAY_MS);
    assert_int_equal(claim(world, key), IDEM_VERDICT_MINE);
}

static void
a_store_that_runs_for_days_makes_them_by_itself(void **state)
{
    struct sqlite_world *world = *state;

    sqlite_world_stop(world);
    world->maintain_every_ms = 60000;
    sqlite_world_start(world);
    for (int day = 0; day < 10; day++) {
        char key[IDEM_KEY_MAX + 1];
        int64_t now_ns = world->clock.clock.monotonic_ns(&world->clock.clock);

        fake_clock_await_waiter(&world->clock, now_ns + INT64_C(60000000000));
        fake_clock_advance_ms(&world->clock, DAY_MS);
        suite_key(&world->suite, key);
        assert_int_equal(claim(world, key), IDEM_VERDICT_MINE);
    }
}

static void
many_records_are_dropped_in_steps(void **state)
{
    struct sqlite_world *world = *state;

    (void)sqlite_world_number(
        world, "INSERT INTO idem_record (minted_ms, digest, state, token,"
               " executions, first_at, tenant, scope, key)"
               " SELECT 1700000000000, unhexed, 'RELEASED', 1, 1, 0, '',"
               " '', '' FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL"
               " SELECT i + 1 FROM n WHERE i < 1700)"
               " SELECT CAST(printf('%032d', i) AS BLOB) AS unhexed"
               " FROM n) RETURNING 1");
    fake_clock_advance_ms(&world->clock, 3 * DAY_MS);
    maintain(world);
    assert_int_equal(sqlite_world_number(world, "SELECT count(*) FROM"
                                                " idem_record"),
                     0);
}

static void
claim_opaque(struct sqlite_world *world, struct suite_call *call,
             const char *key)
{
    call_open(call, &world->suite, key, IDEM_MODE_LEASED, 1);
    call->ticket.window_ms = 2 * DAY_MS;
}

/* Two tiers: the answer for its window, then that it is done, for 400 days. */
static void
an_opaque_key_loses_its_answer_and_then_itself(void **state)
{
    struct sqlite_world *world = *state;
    struct suite_call call;

    claim_opaque(world, &call, "order-4711");
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_complete(&call, IDEM_OK, "body"), IDEM_VERDICT_MINE);
    fake_clock_advance_ms(&world->clock, DAY_MS);
    maintain(world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
    assert_text(call.ticket.answer.reply, "body");
    fake_clock_advance_ms(&world->clock, 2 * DAY_MS);
    maintain(world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
    assert_int_equal(call.ticket.answer.status, IDEM_ALREADY_EXISTS);
    assert_text(call.ticket.answer.reason, IDEM_ANSWER_DROPPED);
    fake_clock_advance_ms(&world->clock, 400 * DAY_MS);
    maintain(world);
    assert_int_equal(
        sqlite_world_number(world, "SELECT count(*) FROM idem_record_opaque"),
        0);
    call_close(&call);
}

/* D5: what may have had half an effect is not thrown away. */
static void
an_opaque_key_in_doubt_is_kept(void **state)
{
    struct sqlite_world *world = *state;
    struct suite_call call;

    claim_opaque(world, &call, "order-4712");
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_doubt(&call), IDEM_VERDICT_MINE);
    for (int year = 0; year < 3; year++) {
        fake_clock_advance_ms(&world->clock, 401 * DAY_MS);
        maintain(world);
        assert_int_equal(call_claim(&call), IDEM_VERDICT_DOUBT);
    }
    call_close(&call);
}

#define IN_A_WORLD(test)                                                       \
    cmocka_unit_test_setup_teardown(test, sqlite_world_set_up,                 \
                                    sqlite_world_tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_key_keeps_its_record_over_midnight),
        IN_A_WORLD(a_key_whose_day_was_dropped_is_refused_and_never_runs),
        IN_A_WORLD(a_dropped_day_does_not_come_back_with_the_clock),
        IN_A_WORLD(a_day_is_kept_for_the_longest_window_of_its_keys),
        IN_A_WORLD(days_on_which_nothing_ran_are_made_afterwards),
        IN_A_WORLD(a_store_that_runs_for_days_makes_them_by_itself),
        IN_A_WORLD(many_records_are_dropped_in_steps),
        IN_A_WORLD(an_opaque_key_loses_its_answer_and_then_itself),
        IN_A_WORLD(an_opaque_key_in_doubt_is_kept),
    };

    return cmocka_run_group_tests_name("sqlite days", tests, NULL, NULL);
}
