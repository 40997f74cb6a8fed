#include "postgres_world.h"

#include <libpq-fe.h>
#include <stdio.h>

/* The pages of a day are filled as its records are used (decision 52). */

#define RECORDS 2000
#define PATIENCE_MS 60000

#define TODAY "(floor(extract(epoch FROM clock_timestamp()) / 86400))::int"
#define TABLE_OF(day)                                                          \
    "to_regclass('idem_record_' || to_char(date '1970-01-01' + " day           \
    ", 'YYYYMMDD'))"
#define COUNTED                                                                \
    "SELECT n_tup_ins >= 2000 AND n_tup_upd >= %d FROM pg_stat_all_tables "    \
    "WHERE relid = " TABLE_OF(TODAY)

/* Percent, of today and so many days. */
static int64_t
fill_of(struct postgres_world *world, int ahead)
{
    return postgres_sql(world->postgres,
                        "SELECT option_value::int FROM pg_class, "
                        "pg_options_to_table(reloptions) WHERE oid = " TABLE_OF(
                            TODAY " + %d") " AND option_name = 'fillfactor'",
                        ahead);
}

/* Records of today, whole as those of mode TRANSACTION are. */
static void
insert(struct postgres_world *world)
{
    postgres_sql(
        world->postgres,
        "INSERT INTO idem_record (key, state, token, executions, done_at, "
        "status, tenant, scope, key_text) SELECT (lpad(to_hex(" TODAY
        "::bigint * 86400000), 12, '0') || md5(random()::text || n))::varchar"
        "(32)::uuid, 'DONE', 1, 1, now(), 0, '', 's', n::text "
        "FROM generate_series(1, %d) AS n",
        RECORDS);
}

static void
await_counted(struct postgres_world *world, int changes)
{
    char sql[512];

    snprintf(sql, sizeof(sql), COUNTED, changes);
    assert_true(postgres_wait(world->postgres, PATIENCE_MS, sql));
}

/* As those of mode LEASED do, once each. */
static void
change(struct postgres_world *world)
{
    postgres_sql(world->postgres, "UPDATE idem_record SET executions = 2");
    await_counted(world, RECORDS);
}

static void
forget_counts(struct postgres_world *world)
{
    postgres_sql(world->postgres, "TRUNCATE idem_record");
    postgres_sql(
        world->postgres,
        "SELECT pg_stat_reset_single_table_counters(" TABLE_OF(TODAY) ")");
}

static void
a_day_that_nobody_has_used_has_room_for_small_replies(void **state)
{
    struct postgres_world *world = *state;

    world_maintain(world);
    assert_int_equal(fill_of(world, 0), 33);
    assert_int_equal(fill_of(world, 1), 33);
}

static void
days_whose_records_do_not_change_are_filled_up(void **state)
{
    struct postgres_world *world = *state;

    insert(world);
    await_counted(world, 0);
    world_maintain(world);
    assert_int_equal(fill_of(world, 0), 100);
    assert_int_equal(fill_of(world, 1), 100);
}

static void
records_that_change_where_there_is_no_room_get_room(void **state)
{
    struct postgres_world *world = *state;

    insert(world);
    await_counted(world, 0);
    world_maintain(world);
    forget_counts(world);
    insert(world);
    change(world);
    world_maintain(world);
    assert_int_equal(fill_of(world, 0), 25);
    assert_int_equal(fill_of(world, 1), 25);
    forget_counts(world);
    insert(world);
    change(world);
    world_maintain(world);
    assert_int_equal(fill_of(world, 0), 33);
}

static PGconn *
lock_today(struct postgres_world *world)
{
    PGconn *conn = PQconnectdb(postgres_conninfo(world->postgres));
    PGresult *result;

    PQclear(PQexec(conn, "BEGIN"));
    result = PQexec(conn, "DO $do$ BEGIN EXECUTE 'LOCK TABLE ' || " TABLE_OF(
                              TODAY) " || ' IN SHARE UPDATE EXCLUSIVE MODE'; "
                                     "END $do$");
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    return conn;
}

/* As autovacuum does while it is at a day. */
static void
a_day_that_somebody_is_at_is_left_to_the_next_turn(void **state)
{
    struct postgres_world *world = *state;
    PGconn *conn;

    insert(world);
    await_counted(world, 0);
    conn = lock_today(world);
    world_maintain(world);
    assert_int_equal(fill_of(world, 0), 33);
    PQfinish(conn);
    world_maintain(world);
    assert_int_equal(fill_of(world, 0), 100);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_day_that_nobody_has_used_has_room_for_small_replies, world_up,
            world_down),
        cmocka_unit_test_setup_teardown(
            days_whose_records_do_not_change_are_filled_up, world_up,
            world_down),
        cmocka_unit_test_setup_teardown(
            records_that_change_where_there_is_no_room_get_room, world_up,
            world_down),
        cmocka_unit_test_setup_teardown(
            a_day_that_somebody_is_at_is_left_to_the_next_turn, world_up,
            world_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
