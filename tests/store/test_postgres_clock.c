/* The database's own clock is moved: its statements ask clock_timestamp() and
 * now(), for which functions of ours stand in front of the system's. */
#include "postgres_world.h"

#include <libpq-fe.h>

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)
#define DAYS 24
#define HOURS_APART 6
#define KEYS_AT_ONCE 15 /* so many come each time */
#define KEYS_A_DAY (24 / HOURS_APART * KEYS_AT_ONCE)
#define REPEATED 10 /* every tenth, about */
#define WAIT_MS 20000
#define WARM 6 /* days until the first have gone */

/* Of the window of a day: today's, yesterday's, and the day before that, which
 * may have a key whose window is not over. */
#define DAYS_KEPT 3

static int64_t moved_ms; /* as in the table moved */

/* Made beside the tables: what is made without a schema goes where it is looked
 * for first. */
static int
set_up(void **state)
{
    struct postgres_world *world = world_open(false);

    postgres_sql(
        world->postgres,
        "CREATE TABLE moved (ms bigint NOT NULL);"
        "INSERT INTO moved VALUES (0);"
        "CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql "
        "VOLATILE AS $$ SELECT pg_catalog.clock_timestamp() + (SELECT ms FROM "
        "public.moved) * interval '1 ms' $$;"
        "CREATE FUNCTION now() RETURNS timestamptz LANGUAGE sql STABLE AS $$ "
        "SELECT pg_catalog.now() + (SELECT ms FROM public.moved) * interval "
        "'1 ms' $$;"
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET search_path = "
        "public, pg_catalog', current_database()); END $$");
    world_reopen(world);
    moved_ms = 0;
    *state = world;
    return 0;
}

static void
move(struct postgres_world *world, int64_t ms)
{
    moved_ms += ms;
    postgres_sql(world->postgres, "UPDATE moved SET ms = %lld",
                 (long long)moved_ms);
}

/* The database's, as it is moved. */
static int64_t
wall_ms(struct postgres_world *world)
{
    return world->factory.wall_ms(world);
}

/* As a server does: until it is known. MINE: it is done by this call. */
static enum idem_verdict
use(struct postgres_world *world, const char *key, int i)
{
    static const enum idem_mode modes[] = {IDEM_MODE_TRANSACTION,
                                           IDEM_MODE_LEASED};
    struct suite_call call;
    enum idem_verdict verdict;

    call_open(&call, &world->suite, key, modes[i % 2], 1);
    do
        verdict = world_claim(&call);
    while (verdict == IDEM_VERDICT_MINE &&
           call_complete(&call, IDEM_OK, "used") != IDEM_VERDICT_MINE);
    call_close(&call);
    return verdict;
}

/* Keys that come at one time. */
static void
spend_hours(struct postgres_world *world)
{
    int64_t now_ms = wall_ms(world);
    char key[IDEM_KEY_MAX + 1];

    for (int i = 0; i < KEYS_AT_ONCE; i++) {
        suite_key_at(key, now_ms, DAY_MS);
        assert_int_equal(use(world, key, i), IDEM_VERDICT_MINE);
        if (i % REPEATED == 0)
            assert_int_equal(use(world, key, i), IDEM_VERDICT_DONE);
    }
    move(world, HOURS_APART * HOUR_MS);
}

static void
spend_a_day(struct postgres_world *world)
{
    for (int hours = 0; hours < 24; hours += HOURS_APART)
        spend_hours(world);
    world_maintain(world);
}

/* All of ours, with indexes and what is dead in them. */
static int64_t
bytes(struct postgres_world *world)
{
    return postgres_sql(world->postgres,
                        "SELECT sum(pg_total_relation_size(oid))::bigint FROM "
                        "pg_class WHERE relname LIKE 'idem\\_%%' AND relkind = "
                        "'r'");
}

/* Fault 87, scaled down: keys of 24 days, a tenth of them repeated. */
static void
the_tables_grow_with_the_window_and_not_with_the_days(void **state)
{
    struct postgres_world *world = *state;
    int64_t warm = 0;

    for (int day = 0; day < DAYS; day++) {
        spend_a_day(world);
        assert_true(
            postgres_sql(world->postgres, "SELECT count(*) FROM idem_record") <=
            DAYS_KEPT * KEYS_A_DAY);
        assert_true(postgres_sql(world->postgres,
                                 "SELECT count(*) FROM "
                                 "idem_day WHERE open") <= DAYS_KEPT + 3);
        if (day == WARM)
            warm = bytes(world);
    }
    assert_true(bytes(world) <= warm + warm / 10);
}

/* Fault 59. */
static void
an_hour_back_runs_nothing_again(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call done, running;
    char key[IDEM_KEY_MAX + 1];

    suite_key_at(key, wall_ms(world), DAY_MS);
    call_open(&done, &world->suite, key, IDEM_MODE_TRANSACTION, 1);
    suite_key_at(key, wall_ms(world), DAY_MS);
    call_open(&running, &world->suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(world_claim(&done), IDEM_VERDICT_MINE);
    assert_int_equal(call_complete(&done, IDEM_OK, "paid"), IDEM_VERDICT_MINE);
    assert_int_equal(world_claim(&running), IDEM_VERDICT_MINE);
    move(world, -HOUR_MS);
    assert_int_equal(world_claim(&done), IDEM_VERDICT_DONE);
    assert_int_equal(suite_claim_once(&world->suite, key, IDEM_MODE_LEASED, 1),
                     IDEM_VERDICT_RUNNING);
    assert_int_equal(call_complete(&running, IDEM_OK, "x"), IDEM_VERDICT_MINE);
    assert_int_equal(world_claim(&running), IDEM_VERDICT_DONE);
    suite_key_at(key, wall_ms(world) + HOUR_MS, DAY_MS);
    assert_int_equal(use(world, key, 0), IDEM_VERDICT_MINE);
    assert_int_equal(use(world, key, 0), IDEM_VERDICT_DONE);
    call_close(&done);
    call_close(&running);
}

/* Fault 55: 61 minutes after a key of an hour was made, with its record and
 * without, and when its day has gone. */
static void
an_hours_key_after_61_minutes_is_replayed_or_refused(void **state)
{
    struct postgres_world *world = *state;
    char done[IDEM_KEY_MAX + 1], unused[IDEM_KEY_MAX + 1];

    suite_key_at(done, wall_ms(world), HOUR_MS);
    suite_key_at(unused, wall_ms(world), HOUR_MS);
    assert_int_equal(use(world, done, 0), IDEM_VERDICT_MINE);
    move(world, 61 * HOUR_MS / 60);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(use(world, done, i), IDEM_VERDICT_DONE);
        assert_int_equal(use(world, unused, i), IDEM_VERDICT_EXPIRED);
    }
    move(world, 3 * DAY_MS);
    world_maintain(world);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(use(world, done, i), IDEM_VERDICT_EXPIRED);
        assert_int_equal(use(world, unused, i), IDEM_VERDICT_EXPIRED);
    }
}

/* --- What is still under way when the window ends --- */

static void
run(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    PQclear(result);
}

static enum idem_verdict
claim_late(struct postgres_world *world, const char *key, enum idem_mode mode,
           bool repeat)
{
    struct suite_call late;
    enum idem_verdict verdict;

    call_open(&late, &world->suite, key, mode, 1);
    late.ticket.repeat = repeat;
    verdict = call_claim(&late);
    call_close(&late);
    return verdict;
}

/* I3: a final no, and then an effect, is what a late duplicate must not make of
 * a call that was in time. */
static void
a_call_that_began_in_time_is_not_expired_for_others(void **state)
{
    static const enum idem_mode modes[] = {IDEM_MODE_TRANSACTION,
                                           IDEM_MODE_LEASED};
    struct postgres_world *world = *state;
    char key[IDEM_KEY_MAX + 1];
    struct suite_call call;

    for (int i = 0; i < 2; i++) {
        suite_key_at(key, wall_ms(world), HOUR_MS);
        call_open(&call, &world->suite, key, modes[i], 1);
        call.ticket.lease_ms = DAY_MS;
        assert_int_equal(world_claim(&call), IDEM_VERDICT_MINE);
        move(world, HOUR_MS + 1);
        for (int repeat = 0; repeat < 2; repeat++)
            assert_int_equal(claim_late(world, key, modes[i], repeat),
                             IDEM_VERDICT_RUNNING);
        assert_int_equal(call_complete(&call, IDEM_OK, "used"),
                         IDEM_VERDICT_MINE);
        assert_int_equal(claim_late(world, key, modes[i], true),
                         IDEM_VERDICT_DONE);
        call_close(&call);
    }
}

/* A claim is committed after it has looked at the clock; until then nobody sees
 * it but by an insert, which waits for it (semantics.md M1). */
static void
a_claim_that_is_not_committed_yet_is_waited_for(void **state)
{
    static const enum idem_mode modes[] = {IDEM_MODE_LEASED,
                                           IDEM_MODE_TRANSACTION};
    struct postgres_world *world = *state;
    char key[IDEM_KEY_MAX + 1];
    struct suite_call first, late;
    PGconn *conn = PQconnectdb(postgres_conninfo(world->postgres));

    for (int i = 0; i < 2; i++) {
        suite_key_at(key, wall_ms(world), HOUR_MS);
        call_open(&first, &world->suite, key, IDEM_MODE_LEASED, 1);
        first.ticket.lease_ms = DAY_MS;
        assert_int_equal(world_claim(&first), IDEM_VERDICT_MINE);
        run(conn, "CREATE TABLE under_way AS SELECT * FROM idem_record");
        run(conn, "DELETE FROM idem_record");
        run(conn, "BEGIN");
        run(conn, "INSERT INTO idem_record SELECT * FROM under_way");
        move(world, HOUR_MS + 1);
        call_open(&late, &world->suite, key, modes[i], 1);
        call_start(&late, world->suite.store->ops->claim);
        assert_true(postgres_wait(world->postgres, WAIT_MS,
                                  "SELECT count(*) FROM pg_stat_activity "
                                  "WHERE wait_event_type = 'Lock'"));
        run(conn, "COMMIT");
        assert_int_equal(call_await(&late), IDEM_VERDICT_RUNNING);
        run(conn, "DROP TABLE under_way");
        call_close(&late);
        call_close(&first);
    }
    PQfinish(conn);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, world_down)
    const struct CMUnitTest tests[] = {
        TEST(the_tables_grow_with_the_window_and_not_with_the_days),
        TEST(an_hour_back_runs_nothing_again),
        TEST(an_hours_key_after_61_minutes_is_replayed_or_refused),
        TEST(a_call_that_began_in_time_is_not_expired_for_others),
        TEST(a_claim_that_is_not_committed_yet_is_waited_for),
    };

    return cmocka_run_group_tests_name("postgres clock", tests, NULL, NULL);
}
