#include "postgres_world.h"

#include <pthread.h>
#include <stdio.h>

/* A day that is over goes while calls are under way, and nobody waits for it
 * (semantics.md 3.6). */

#define DAY_MS INT64_C(86400000)
#define OLD 21 /* days */

/* Who waits, and is not the database's own. */
#define WAITS "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype "

struct upkeep {
    struct idem_store *store;
    pthread_t thread;
    enum idem_status status;
    struct idem_error err;
};

static void *
maintain(void *with)
{
    struct upkeep *upkeep = with;

    upkeep->status = upkeep->store->ops->maintain(upkeep->store, &upkeep->err);
    return NULL;
}

static void
start(struct upkeep *upkeep, struct postgres_world *world)
{
    *upkeep = (struct upkeep){.store = world->suite.store};
    assert_int_equal(pthread_create(&upkeep->thread, NULL, maintain, upkeep),
                     0);
}

static void
end(struct upkeep *upkeep)
{
    pthread_join(upkeep->thread, NULL);
    if (upkeep->status != IDEM_OK)
        fail_msg("maintain: %s", upkeep->err.message);
}

static void
maintain_once(struct postgres_world *world)
{
    struct upkeep upkeep;

    start(&upkeep, world);
    end(&upkeep);
}

static int64_t
day_of(struct postgres_world *world)
{
    return world->factory.wall_ms(world) / DAY_MS - OLD;
}

/* A partition of a day in the past, as if it had been made then. */
static void
open_day(struct postgres_world *world)
{
    int64_t day = day_of(world);

    postgres_sql(world->postgres,
                 "DELETE FROM idem_day WHERE day = %lld; "
                 "CREATE TABLE idem_record_old (LIKE idem_record INCLUDING "
                 "ALL)",
                 (long long)day);
    postgres_sql(
        world->postgres,
        "DO $do$ DECLARE name text := 'idem_record_' || to_char("
        "date '1970-01-01' + %lld, 'YYYYMMDD'); BEGIN "
        "EXECUTE format('ALTER TABLE idem_record_old RENAME TO %%I', name); "
        "EXECUTE format('ALTER TABLE idem_record ATTACH PARTITION %%I FOR "
        "VALUES FROM (%%L) TO (%%L)', name, "
        "rpad(lpad(to_hex(%lld), 12, '0'), 32, '0'), "
        "rpad(lpad(to_hex(%lld), 12, '0'), 32, '0')); "
        "INSERT INTO idem_day (day) VALUES (%lld); END $do$",
        (long long)day, (long long)(day * DAY_MS),
        (long long)((day + 1) * DAY_MS), (long long)day);
}

static bool
has_table(struct postgres_world *world)
{
    return postgres_sql(world->postgres,
                        "SELECT count(*) FROM pg_class WHERE relname = "
                        "'idem_record_' || to_char(date '1970-01-01' + %lld, "
                        "'YYYYMMDD')",
                        (long long)day_of(world)) == 1;
}

static void
await_wait(struct postgres_world *world)
{
    assert_true(
        postgres_wait(world->postgres, 20000,
                      "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted"));
}

/* Fault 55. The upkeep waits for the transaction; for the upkeep nobody. */
static void
a_day_that_goes_holds_nobody_up(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call open, other;
    struct upkeep upkeep;

    open_day(world);
    world_call(&open, world);
    assert_int_equal(call_claim(&open), IDEM_VERDICT_MINE);
    start(&upkeep, world);
    await_wait(world);
    assert_int_equal(postgres_sql(world->postgres,
                                  "SELECT count(*) FROM pg_locks WHERE NOT "
                                  "granted AND locktype = 'relation'"),
                     0);
    world_call(&other, world);
    world_pay(&other);
    call_close(&other);
    assert_int_equal(call_complete(&open, IDEM_OK, "x"), IDEM_VERDICT_MINE);
    end(&upkeep);
    maintain_once(world);
    assert_false(has_table(world));
    call_close(&open);
}

/* Half-way out it is in nobody's way, and the next turn goes on. */
static void
one_that_was_broken_off_goes_the_next_time(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call open, other;
    struct upkeep upkeep;

    open_day(world);
    world_call(&open, world);
    assert_int_equal(call_claim(&open), IDEM_VERDICT_MINE);
    start(&upkeep, world);
    await_wait(world);
    postgres_sql(world->postgres, "SELECT count(pg_cancel_backend(pid)) FROM "
                                  "pg_locks WHERE NOT granted");
    end(&upkeep);
    assert_true(has_table(world));
    world_call(&other, world);
    world_pay(&other);
    call_close(&other);
    assert_int_equal(call_complete(&open, IDEM_OK, "x"), IDEM_VERDICT_MINE);
    maintain_once(world);
    assert_false(has_table(world));
    call_close(&open);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_day_that_goes_holds_nobody_up),
        cmocka_unit_test(one_that_was_broken_off_goes_the_next_time),
    };

    return cmocka_run_group_tests_name("postgres drop", tests, world_up,
                                       world_down);
}
