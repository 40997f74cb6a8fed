#include "postgres_world.h"

#include <stdio.h>

/* What a handler's statements leave in its session or its transaction, and who
 * must not meet it. */

#define CROWD 20

static int64_t
backend_of(struct suite_call *call)
{
    struct idem_rows *rows;

    assert_int_equal(idem_sql(call->ticket.tx, &rows, NULL,
                              "SELECT pg_backend_pid()", IDEM_NO_VALUES),
                     IDEM_OK);
    return idem_rows_int(rows, 0, 0);
}

/* Its session ends with its transaction. */
static void
assert_session_ends(struct postgres_world *world, const char *sql)
{
    struct suite_call call;
    char gone[128];

    world_call(&call, world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    snprintf(gone, sizeof(gone),
             "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %d",
             (int)backend_of(&call));
    assert_int_equal(idem_sql(call.ticket.tx, NULL, NULL, sql, IDEM_NO_VALUES),
                     IDEM_OK);
    assert_int_equal(call_complete(&call, IDEM_OK, "paid"), IDEM_VERDICT_MINE);
    if (!postgres_wait(world->postgres, 10000, gone))
        fail_msg("the session goes on after %s", sql);
    call_close(&call);
}

/* A table of the session hides the one of all: what the next call writes would
 * be gone with the session, and its record would say that it is done. */
static void
a_table_of_the_session_goes_with_its_call(void **state)
{
    static const char *const makes[] = {
        "SELECT * INTO TEMP effects FROM public.effects",
        "WITH a AS (SELECT 1 AS n) SELECT n into /**/ temporary mine FROM a",
        "CREATE TABLE pg_temp.effects (LIKE public.effects)",
        "CREATE TABLE IF NOT EXISTS \"pg_temp\".mine (x INT)",
    };
    struct postgres_world *world = *state;
    struct suite_call call;

    for (size_t i = 0; i < sizeof makes / sizeof *makes; i++)
        assert_session_ends(world, makes[i]);
    for (int i = 0; i < CROWD; i++) {
        world_call(&call, world);
        world_pay(&call);
        assert_int_equal(suite_effects(&world->suite, call.key), 1);
        call_close(&call);
    }
}

static void
a_block_that_sets_goes_with_its_session(void **state)
{
    assert_session_ends(*state,
                        "DO $$ BEGIN SET search_path = pg_catalog; END $$");
}

/* … of transaction STATEMENT, where many calls share one. */
static void
what_a_statement_sets_is_its_calls_alone(void **state)
{
    static struct suite_call calls[CROWD];
    struct postgres_world *world = *state;
    unsigned own = 0;

    postgres_sql(world->postgres,
                 "CREATE SCHEMA elsewhere; "
                 "CREATE TABLE elsewhere.effects (LIKE public.effects)");
    for (unsigned i = 0; i < CROWD; i++) {
        world_call(&calls[i], world);
        if (i % 4 == 0) {
            own++;
            idem_statement_add(&calls[i].statements,
                               "SET LOCAL search_path = elsewhere",
                               IDEM_NO_VALUES);
        }
        call_add_effect(&calls[i], 1);
    }
    for (unsigned i = 0; i < CROWD; i++)
        call_start(&calls[i], calls[i].suite->store->ops->run);
    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(call_await(&calls[i]), IDEM_VERDICT_MINE);
    assert_int_equal(
        postgres_sql(world->postgres, "SELECT count(*) FROM elsewhere.effects"),
        own);
    for (unsigned i = 0; i < CROWD; i++) {
        assert_int_equal(suite_effects(&world->suite, calls[i].key),
                         i % 4 != 0);
        call_close(&calls[i]);
    }
}

static int
set_up(void **state)
{
    *state = world_open(false);
    return 0;
}

static int
tear_down(void **state)
{
    world_close(*state);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_of_the_session_goes_with_its_call),
        cmocka_unit_test(a_block_that_sets_goes_with_its_session),
        cmocka_unit_test(what_a_statement_sets_is_its_calls_alone),
    };

    return cmocka_run_group_tests_name("postgres leftovers", tests, set_up,
                                       tear_down);
}
