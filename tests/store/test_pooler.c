#include "postgres_world.h"

#include "child.h"
#include "pgbouncer.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Transactions and looks behind PgBouncer, which gives each transaction another
 * connection. That all else holds there too is the suite's to say
 * (test_postgres pooled). */

struct pooled {
    struct postgres_world *world;
    struct pgbouncer *pooler;
};

static int
set_up(void **state)
{
    static struct pooled pooled;
    struct postgres_world *world = world_open(false);

    pooled.world = world;
    pooled.pooler = pgbouncer_start(postgres_port(world->postgres));
    world->options.conninfo = postgres_conninfo(world->postgres);
    world->options.pooled_conninfo = pgbouncer_conninfo(pooled.pooler);
    world_reopen(world);
    *state = &pooled;
    return 0;
}

static int
tear_down(void **state)
{
    struct pooled *pooled = *state;

    pgbouncer_free(pooled->pooler);
    world_close(pooled->world);
    return 0;
}

/* What a query says on each of the pooler's connections, summed. */
static int64_t
ask_each(const struct pooled *pooled, const char *sql)
{
    PGconn *conn = PQconnectdb(pgbouncer_conninfo(pooled->pooler));
    int64_t sum = 0;

    for (unsigned i = 0; i < PGBOUNCER_POOL; i++) {
        PGresult *result = PQexec(conn, sql);

        if (PQresultStatus(result) != PGRES_TUPLES_OK)
            fail_msg("%s: %s", sql, PQerrorMessage(conn));
        sum += strtoll(PQgetvalue(result, 0, 0), NULL, 10);
        PQclear(result);
    }
    PQfinish(conn);
    return sum;
}

static void
pay_some(struct pooled *pooled)
{
    for (int i = 0; i < 4 * PGBOUNCER_POOL; i++) {
        struct suite_call call;

        world_call(&call, pooled->world);
        world_pay(&call);
        assert_int_equal(call_look(&call), IDEM_VERDICT_DONE);
        call_close(&call);
    }
}

/* B079: two of the same name would run each other's. */
static void
no_statement_is_left_under_a_name(void **state)
{
    struct pooled *pooled = *state;

    pay_some(pooled);
    assert_int_equal(
        ask_each(pooled, "SELECT count(*) FROM pg_prepared_statements"), 0);
}

static void
no_setting_and_no_lock_is_left(void **state)
{
    struct pooled *pooled = *state;

    pay_some(pooled);
    assert_int_equal(
        ask_each(pooled,
                 "SELECT count(*) FROM pg_settings WHERE source = 'session' "
                 "AND name NOT IN ('application_name', 'client_encoding')"),
        0);
    assert_int_equal(ask_each(pooled, "SELECT count(*) FROM pg_locks WHERE "
                                      "locktype = 'advisory'"),
                     0);
}

/* Whatever the role's default is, what is told as done is on disk; the
 * database's own limits hold as well. */
static void
each_transaction_has_its_limits(void **state)
{
    struct pooled *pooled = *state;
    struct suite_call call;
    struct idem_rows *rows;

    postgres_sql(pooled->world->postgres,
                 "ALTER ROLE idem SET synchronous_commit = off");
    pgbouncer_free(pooled->pooler);
    pooled->pooler = pgbouncer_start(postgres_port(pooled->world->postgres));
    pooled->world->options.pooled_conninfo = pgbouncer_conninfo(pooled->pooler);
    world_reopen(pooled->world);
    world_call(&call, pooled->world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(
        idem_sql(call.ticket.tx, &rows, NULL,
                 "SELECT current_setting('synchronous_commit'), "
                 "current_setting('statement_timeout'), "
                 "current_setting('idle_in_transaction_session_timeout')",
                 IDEM_NO_VALUES),
        IDEM_OK);
    assert_string_equal(idem_rows_text(rows, 0, 0), "on");
    assert_string_equal(idem_rows_text(rows, 0, 1), "10s");
    assert_string_equal(idem_rows_text(rows, 0, 2), "10s");
    assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
    call_close(&call);
    postgres_sql(pooled->world->postgres,
                 "ALTER ROLE idem RESET synchronous_commit");
}

/* The next transaction of anybody would meet it. */
static void
what_outlasts_a_transaction_is_refused(void **state)
{
    struct pooled *pooled = *state;
    struct suite_call call;
    struct idem_error err;

    world_call(&call, pooled->world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(idem_sql(call.ticket.tx, NULL, &err,
                              "SET search_path = other", IDEM_NO_VALUES),
                     IDEM_INTERNAL);
    assert_non_null(strstr(err.message, "SET search_path = other"));
    assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(idem_sql(call.ticket.tx, NULL, &err,
                              "SET LOCAL search_path = other", IDEM_NO_VALUES),
                     IDEM_OK);
    assert_int_equal(call_complete(&call, IDEM_OK, "set"), IDEM_VERDICT_MINE);
    call_close(&call);
}

static void
assert_refused(struct pooled *pooled, const char *setting)
{
    struct idem_postgres_options options = pooled->world->options;
    struct pgbouncer *pooler;
    struct idem_store *store;
    struct idem_error err;

    postgres_sql(pooled->world->postgres, "ALTER ROLE idem SET %s", setting);
    pooler = pgbouncer_start(postgres_port(pooled->world->postgres));
    postgres_sql(pooled->world->postgres, "ALTER ROLE idem RESET ALL");
    options.pooled_conninfo = pgbouncer_conninfo(pooler);
    assert_int_equal(idem_postgres_open(&store, &options, &err),
                     IDEM_FAILED_PRECONDITION);
    assert_non_null(strstr(err.message, "pooled_conninfo"));
    assert_non_null(strstr(err.message, "default_transaction_isolation"));
    pgbouncer_free(pooler);
}

static void
a_role_of_another_isolation_is_refused_at_start(void **state)
{
    assert_refused(*state, "default_transaction_isolation = serializable");
}

static void
a_conninfo_that_is_wrong_is_refused(void **state)
{
    struct pooled *pooled = *state;
    struct idem_postgres_options options = pooled->world->options;
    struct idem_store *store;
    struct idem_error err;

    options.pooled_conninfo = "host";
    assert_int_equal(idem_postgres_open(&store, &options, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_int_equal(strncmp(err.message, "pooled_conninfo: ", 17), 0);
}

struct waited {
    struct idem_store *store;
    char epoch[IDEM_EPOCH_MAX];
};

static bool
is_another(void *with)
{
    struct waited *waited = with;
    char now[IDEM_EPOCH_MAX];

    waited->store->ops->epoch(waited->store, now);
    return now[0] && strcmp(now, waited->epoch) != 0;
}

/* The pooler's side stays as it is, whatever becomes of the server. */
static void
another_epoch_is_seen_though_the_pooler_hides_it(void **state)
{
    struct pooled *pooled = *state;
    struct waited waited = {.store = pooled->world->suite.store};

    assert_true(child_wait_until(is_another, &waited, 20000));
    waited.store->ops->epoch(waited.store, waited.epoch);
    postgres_sql(pooled->world->postgres,
                 "UPDATE idem_meta SET generation = generation + 1; "
                 "SELECT count(pg_terminate_backend(pid)) FROM "
                 "pg_stat_activity WHERE pid <> pg_backend_pid() AND "
                 "application_name = 'idem'");
    for (int i = 0; i < 4; i++) {
        struct suite_call call;

        world_call(&call, pooled->world);
        call.ticket.mode = IDEM_MODE_LEASED;
        assert_int_equal(world_claim(&call), IDEM_VERDICT_MINE);
        (void)call_release(&call);
        call_close(&call);
    }
    assert_true(child_wait_until(is_another, &waited, 20000));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_statement_is_left_under_a_name),
        cmocka_unit_test(no_setting_and_no_lock_is_left),
        cmocka_unit_test(each_transaction_has_its_limits),
        cmocka_unit_test(what_outlasts_a_transaction_is_refused),
        cmocka_unit_test(a_role_of_another_isolation_is_refused_at_start),
        cmocka_unit_test(a_conninfo_that_is_wrong_is_refused),
        cmocka_unit_test(another_epoch_is_seen_though_the_pooler_hides_it),
    };

    return cmocka_run_group_tests_name("pooled", tests, set_up, tear_down);
}
