#include "postgres_world.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Days, migrations and what the epoch says. The database's clock is not
 * moved here (test_postgres_clock.c does): days are put into its past. */

#define DAY_MS INT64_C(86400000)

static int64_t
today(struct postgres_world *world)
{
    return world->factory.wall_ms(world) / DAY_MS;
}

/* A partition of a day in the past, as if it had been made then. */
static void
open_day(struct postgres_world *world, int64_t day)
{
    postgres_sql(
        world->postgres,
        "DO $do$ DECLARE name text := 'idem_record_' || to_char("
        "date '1970-01-01' + %lld, 'YYYYMMDD'); "
        "a text := rpad(lpad(to_hex(%lld), 12, '0'), 32, '0'); "
        "b text := rpad(lpad(to_hex(%lld), 12, '0'), 32, '0'); BEGIN "
        "EXECUTE format('CREATE TABLE %%I PARTITION OF idem_record FOR VALUES "
        "FROM (%%L) TO (%%L)', name, a, b); "
        "INSERT INTO idem_day (day) VALUES (%lld); END $do$",
        (long long)day, (long long)(day * DAY_MS),
        (long long)((day + 1) * DAY_MS), (long long)day);
}

static bool
day_is_open(struct postgres_world *world, int64_t day)
{
    return postgres_sql(world->postgres,
                        "SELECT count(*) FROM idem_day WHERE open AND day = "
                        "%lld",
                        (long long)day) == 1;
}

/* Semantics M7, I7: the dropped partition is the fence. */
static void
a_day_whose_windows_are_over_is_dropped_and_its_keys_refused(void **state)
{
    struct postgres_world *world = *state;
    int64_t kept = today(world) - 20, dropped = today(world) - 21;
    struct suite_call call;
    char key[IDEM_KEY_MAX + 1];

    open_day(world, kept);
    open_day(world, dropped);
    suite_key_at(key, kept * DAY_MS + 5, 40 * DAY_MS);
    call_open(&call, &world->suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_complete(&call, IDEM_OK, "kept"), IDEM_VERDICT_MINE);
    world_maintain(world);
    assert_true(day_is_open(world, kept));
    assert_false(day_is_open(world, dropped));
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
    call_close(&call);
    suite_key_at(key, dropped * DAY_MS + 5, 40 * DAY_MS);
    assert_int_equal(
        suite_claim_once(&world->suite, key, IDEM_MODE_TRANSACTION, 1),
        IDEM_VERDICT_EXPIRED);
    assert_int_equal(suite_claim_once(&world->suite, key, IDEM_MODE_LEASED, 1),
                     IDEM_VERDICT_EXPIRED);
}

static void
a_dropped_day_is_never_opened_again(void **state)
{
    struct postgres_world *world = *state;
    int64_t dropped = today(world) - 31;

    open_day(world, dropped);
    world_maintain(world);
    world_maintain(world);
    assert_false(day_is_open(world, dropped));
}

/* Also without the table of days: the database itself refuses (23514). */
static void
a_day_without_a_partition_is_refused_by_the_database(void **state)
{
    struct postgres_world *world = *state;
    int64_t day = today(world) - 40;
    char key[IDEM_KEY_MAX + 1];

    postgres_sql(world->postgres, "INSERT INTO idem_day (day) VALUES (%lld)",
                 (long long)day);
    suite_key_at(key, day * DAY_MS, 400 * DAY_MS);
    assert_int_equal(suite_claim_once(&world->suite, key, IDEM_MODE_LEASED, 1),
                     IDEM_VERDICT_EXPIRED);
    postgres_sql(world->postgres, "DELETE FROM idem_day WHERE day = %lld",
                 (long long)day);
}

/* B083: the border of a partition lies between two days, a key on one side. */
static void
a_key_at_midnight_is_one_key(void **state)
{
    struct postgres_world *world = *state;
    int64_t midnight_ms = today(world) * DAY_MS;

    for (int64_t ms = midnight_ms - 1; ms <= midnight_ms; ms++) {
        char key[IDEM_KEY_MAX + 1];

        suite_key_at(key, ms, 3 * DAY_MS);
        assert_int_equal(
            suite_claim_once(&world->suite, key, IDEM_MODE_TRANSACTION, 1),
            IDEM_VERDICT_MINE);
        for (int i = 0; i < 2; i++)
            assert_int_equal(
                suite_claim_once(&world->suite, key, IDEM_MODE_TRANSACTION, 1),
                IDEM_VERDICT_DONE);
    }
}

/* Fault 59: the database's clock is an hour behind of what it was when the
 * records were written. What was done stays done; a lease lasts longer. */
static void
a_clock_that_stepped_back_runs_nothing_again(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call done, running, early;
    char key[IDEM_KEY_MAX + 1];

    suite_key(&world->suite, key);
    call_open(&done, &world->suite, key, IDEM_MODE_TRANSACTION, 1);
    suite_key(&world->suite, key);
    call_open(&running, &world->suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&done), IDEM_VERDICT_MINE);
    assert_int_equal(call_complete(&done, IDEM_OK, "paid"), IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&running), IDEM_VERDICT_MINE);
    postgres_sql(world->postgres,
                 "UPDATE idem_record SET first_at = first_at + interval '1 h', "
                 "done_at = done_at + interval '1 h', "
                 "lease_until = lease_until + interval '1 h'");
    assert_int_equal(call_claim(&done), IDEM_VERDICT_DONE);
    assert_int_equal(call_complete(&running, IDEM_OK, "x"), IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&running), IDEM_VERDICT_DONE);
    suite_key_at(key, world->factory.wall_ms(world) + 3600000, DAY_MS);
    call_open(&early, &world->suite, key, IDEM_MODE_TRANSACTION, 1);
    assert_int_equal(call_claim(&early), IDEM_VERDICT_MINE);
    assert_int_equal(call_complete(&early, IDEM_OK, "x"), IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&early), IDEM_VERDICT_DONE);
    call_close(&done);
    call_close(&running);
    call_close(&early);
}

/* B012, B018: first the answer goes, then the record, in batches. */
static void
an_opaque_key_loses_its_answer_and_then_its_record(void **state)
{
    struct postgres_world *world = *state;
    const char *key = "order-4711";

    assert_int_equal(suite_claim_once(&world->suite, key, IDEM_MODE_LEASED, 1),
                     IDEM_VERDICT_MINE);
    postgres_sql(world->postgres,
                 "UPDATE idem_record_opaque SET reap_at = now() - interval "
                 "'1 s'");
    world_maintain(world);
    {
        struct suite_call call;

        call_open(&call, &world->suite, key, IDEM_MODE_LEASED, 1);
        assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
        assert_int_equal(call.ticket.answer.status, IDEM_ALREADY_EXISTS);
        assert_text(call.ticket.answer.reason, "ANSWER_DROPPED");
        call_close(&call);
    }
    postgres_sql(world->postgres,
                 "UPDATE idem_record_opaque SET reap_at = now() - interval "
                 "'1 s', gone_at = now() - interval '1 s'");
    world_maintain(world);
    assert_int_equal(postgres_sql(world->postgres,
                                  "SELECT count(*) FROM idem_record_opaque"),
                     0);
}

/* B075: ten at once on the claim of a dead server. */
static void
an_orphaned_claim_is_taken_over_by_one(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call orphan, rivals[10];
    unsigned winners = 0;

    world_call(&orphan, world);
    orphan.ticket.mode = IDEM_MODE_LEASED;
    assert_int_equal(call_claim(&orphan), IDEM_VERDICT_MINE);
    suite_pass_lease(&world->suite);
    for (int i = 0; i < 10; i++) {
        call_open(&rivals[i], &world->suite, orphan.key, IDEM_MODE_LEASED, 1);
        call_start(&rivals[i], world->suite.store->ops->claim);
    }
    for (int i = 0; i < 10; i++)
        if (call_await(&rivals[i]) == IDEM_VERDICT_MINE)
            winners++;
        else
            assert_int_equal(rivals[i].ticket.verdict, IDEM_VERDICT_RUNNING);
    assert_int_equal(winners, 1);
    assert_int_equal(call_complete(&orphan, IDEM_OK, "late"),
                     IDEM_VERDICT_FENCED);
    for (int i = 0; i < 10; i++)
        call_close(&rivals[i]);
    call_close(&orphan);
}

/* A pool that holds its connections while partitions come and go. */
static void
two_may_maintain_at_once(void **state)
{
    struct postgres_world *world = *state;
    struct idem_store *other = world_store(world);

    world_maintain(world);
    assert_int_equal(other->ops->maintain(other, NULL), IDEM_OK);
    assert_true(day_is_open(world, today(world) + 2));
    idem_store_free(other);
}

/* Semantics 4.5: a restore is another generation, so another epoch. */
static void
the_epoch_changes_with_the_generation(void **state)
{
    struct postgres_world *world = *state;
    char before[IDEM_EPOCH_MAX], after[IDEM_EPOCH_MAX];

    world->suite.store->ops->epoch(world->suite.store, before);
    assert_true(before[0] != '\0');
    postgres_sql(world->postgres,
                 "UPDATE idem_meta SET generation = generation + 1");
    world_reopen(world);
    world->suite.store->ops->epoch(world->suite.store, after);
    assert_true(after[0] != '\0');
    assert_string_not_equal(before, after);
}

static void *
migrate(void *with)
{
    struct idem_error err = {0};
    unsigned applied = 0;

    if (idem_postgres_migrate(with, &applied, &err) != IDEM_OK) {
        print_error("migrate: %s\n", err.message);
        applied = 1000;
    }
    return (void *)(uintptr_t)applied;
}

static void
migrations_run_once_however_many_migrate(void **state)
{
    struct postgres *postgres = postgres_start(NULL);
    union {
        const char *text;
        void *with;
    } conninfo = {postgres_conninfo(postgres)};
    pthread_t threads[4];
    uintptr_t sum = 0;
    unsigned again = 1000;

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, migrate, conninfo.with), 0);
    for (int i = 0; i < 4; i++) {
        void *applied;

        pthread_join(threads[i], &applied);
        sum += (uintptr_t)applied;
    }
    assert_int_equal(sum,
                     postgres_sql(postgres, "SELECT version FROM idem_meta"));
    assert_int_equal(idem_postgres_migrate(conninfo.text, &again, NULL),
                     IDEM_OK);
    assert_int_equal(again, 0);
    postgres_free(postgres);
}

static enum idem_status
try_open(struct postgres *postgres, struct idem_error *err)
{
    const struct idem_postgres_options options = {
        .conninfo = postgres_conninfo(postgres), .connections = 1};
    struct idem_store *store = NULL;
    enum idem_status status = idem_postgres_open(&store, &options, err);

    idem_store_free(store);
    return status;
}

static void
another_schema_is_refused_with_both_versions(void **state)
{
    struct postgres *postgres = postgres_start(NULL);
    struct idem_error err;

    (void)state;
    assert_int_equal(try_open(postgres, &err), IDEM_FAILED_PRECONDITION);
    assert_non_null(strstr(err.message, "idemctl migrate"));
    assert_int_equal(
        idem_postgres_migrate(postgres_conninfo(postgres), NULL, NULL),
        IDEM_OK);
    assert_int_equal(try_open(postgres, &err), IDEM_OK);
    postgres_sql(postgres, "UPDATE idem_meta SET version = 99");
    assert_int_equal(try_open(postgres, &err), IDEM_FAILED_PRECONDITION);
    assert_non_null(strstr(err.message, "schema 99"));
    assert_int_equal(
        idem_postgres_migrate(postgres_conninfo(postgres), NULL, &err),
        IDEM_FAILED_PRECONDITION);
    assert_non_null(strstr(err.message, "schema 99"));
    postgres_free(postgres);
}

static void
count_problems(void *with, bool ok, const char *what)
{
    (void)what;
    if (!ok)
        ++*(unsigned *)with;
}

static void
doctor_tells_what_is_missing(void **state)
{
    const struct postgres_options durable = {.durable = true};
    struct postgres *postgres = postgres_start(&durable);
    const char *conninfo = postgres_conninfo(postgres);
    unsigned problems = 0;

    (void)state;
    assert_int_equal(
        idem_postgres_doctor(conninfo, count_problems, &problems, NULL),
        IDEM_FAILED_PRECONDITION);
    assert_int_equal(idem_postgres_migrate(conninfo, NULL, NULL), IDEM_OK);
    problems = 0;
    assert_int_equal(
        idem_postgres_doctor(conninfo, count_problems, &problems, NULL),
        IDEM_OK);
    assert_int_equal(problems, 0);
    postgres_sql(postgres, "DELETE FROM idem_day WHERE day = (SELECT max(day) "
                           "- 1 FROM idem_day)");
    assert_int_equal(
        idem_postgres_doctor(conninfo, count_problems, &problems, NULL),
        IDEM_FAILED_PRECONDITION);
    assert_int_equal(problems, 1);
    postgres_free(postgres);
}

struct alarm {
    pthread_mutex_t lock;
    pthread_cond_t rung;
    char what[256];
};

static void
ring(void *with, const char *what)
{
    struct alarm *alarm = with;

    pthread_mutex_lock(&alarm->lock);
    snprintf(alarm->what, sizeof alarm->what, "%s", what);
    pthread_cond_signal(&alarm->rung);
    pthread_mutex_unlock(&alarm->lock);
}

static void
await_alarm(struct alarm *alarm)
{
    struct timespec until;
    int result = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&alarm->lock);
    while (!alarm->what[0] && result == 0)
        result = pthread_cond_timedwait(&alarm->rung, &alarm->lock, &until);
    pthread_mutex_unlock(&alarm->lock);
    assert_int_equal(result, 0);
}

/* Semantics, trap 7: a day that was there is not made again, so this one is
 * missing for good. */
static void
a_missing_tomorrow_is_an_alarm(void **state)
{
    struct alarm alarm = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
                          ""};
    struct postgres *postgres = postgres_start(NULL);
    const struct idem_postgres_options options = {
        .conninfo = postgres_conninfo(postgres),
        .maintain_every_ms = 10,
        .alarm = ring,
        .alarm_with = &alarm,
    };
    struct idem_store *store;
    struct idem_error err;

    (void)state;
    assert_int_equal(idem_postgres_migrate(options.conninfo, NULL, NULL),
                     IDEM_OK);
    assert_int_equal(idem_postgres_maintain(options.conninfo, 0, NULL),
                     IDEM_OK);
    postgres_sql(postgres, "DELETE FROM idem_day WHERE day = (SELECT max(day) "
                           "- 1 FROM idem_day)");
    assert_int_equal(idem_postgres_maintain(options.conninfo, 0, &err),
                     IDEM_FAILED_PRECONDITION);
    assert_non_null(strstr(err.message, "tomorrow's partition is missing"));
    assert_int_equal(idem_postgres_open(&store, &options, &err), IDEM_OK);
    await_alarm(&alarm);
    assert_non_null(strstr(alarm.what, "tomorrow's partition is missing"));
    assert_true(idem_postgres_alarms(store) > 0);
    idem_store_free(store);
    postgres_free(postgres);
}

static void
a_conninfo_that_is_none_is_told_at_open(void **state)
{
    const struct idem_postgres_options options = {.conninfo = "hst=x"};
    struct idem_store *store = NULL;
    struct idem_error err;

    (void)state;
    assert_int_equal(idem_postgres_open(&store, &options, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "hst"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_day_whose_windows_are_over_is_dropped_and_its_keys_refused),
        cmocka_unit_test(a_dropped_day_is_never_opened_again),
        cmocka_unit_test(a_day_without_a_partition_is_refused_by_the_database),
        cmocka_unit_test(a_key_at_midnight_is_one_key),
        cmocka_unit_test(a_clock_that_stepped_back_runs_nothing_again),
        cmocka_unit_test(an_opaque_key_loses_its_answer_and_then_its_record),
        cmocka_unit_test(an_orphaned_claim_is_taken_over_by_one),
        cmocka_unit_test(two_may_maintain_at_once),
        cmocka_unit_test(the_epoch_changes_with_the_generation),
        cmocka_unit_test(migrations_run_once_however_many_migrate),
        cmocka_unit_test(another_schema_is_refused_with_both_versions),
        cmocka_unit_test(doctor_tells_what_is_missing),
        cmocka_unit_test(a_missing_tomorrow_is_an_alarm),
        cmocka_unit_test(a_conninfo_that_is_none_is_told_at_open),
    };

    return cmocka_run_group_tests(tests, world_up, world_down);
}
