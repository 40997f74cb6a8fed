#include "postgres_world.h"

#include "tx.h"

#include <libpq-fe.h>
#include <stdio.h>

/* What a handler's statements leave in its session or its transaction, and who
 * must not meet it. */

#define CROWD 20

/* Its session ends with its transaction, however that ends. What completing it
 * said. */
static enum idem_verdict
end_session_by(struct postgres_world *world, const char *sql)
{
    enum idem_verdict verdict;
    struct suite_call call;
    char gone[128];

    world_call(&call, world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    snprintf(gone, sizeof(gone),
             "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %d",
             (int)world_backend(&call));
    assert_int_equal(idem_sql(call.ticket.tx, NULL, NULL, sql, IDEM_NO_VALUES),
                     IDEM_OK);
    verdict = call_complete(&call, IDEM_OK, "paid");
    if (!postgres_wait(world->postgres, 10000, gone))
        fail_msg("the session goes on after %s", sql);
    call_close(&call);
    return verdict;
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
        assert_int_equal(end_session_by(world, makes[i]), IDEM_VERDICT_MINE);
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
    assert_int_equal(
        end_session_by(*state,
                       "DO $$ BEGIN SET search_path = pg_catalog; END $$"),
        IDEM_VERDICT_MINE);
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

/* Fault 21. */
static void
a_connection_left_in_copy_is_thrown_away(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call;

    world_call(&call, world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_true(world_raw(&call, "COPY effects FROM STDIN"));
    assert_int_equal(call_complete(&call, IDEM_OK, "paid"),
                     IDEM_VERDICT_FAILED);
    assert_runs_again(world, &call);
}

/* Fault 21. */
static void
a_connection_left_with_unread_results_is_thrown_away(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call;
    struct idem_tx *tx;

    world_call(&call, world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    tx = call.ticket.tx;
    assert_int_equal(PQsendQuery(tx->ops->postgres(tx), "SELECT 1"), 1);
    assert_int_equal(call_complete(&call, IDEM_OK, "paid"),
                     IDEM_VERDICT_FAILED);
    assert_runs_again(world, &call);
}

static void
what_a_handler_set_does_not_reach_the_next_one(void **state)
{
    static const char *const changes[] = {
        "SET synchronous_commit = off",
        "SET search_path = pg_catalog",
        "SELECT set_config('search_path', 'pg_catalog', false)",
        "DEALLOCATE ALL", /* ours too: the call fails, the next one does not */
        "SELECT pg_advisory_lock(7)",
        "CREATE TEMP TABLE mine (x INT)",
    };

    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        (void)end_session_by(*state, changes[i]);
}

/* What is told as done is on the disk (semantics.md 6, trap 10). */
static void
a_handler_cannot_make_its_own_commit_volatile(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call;

    postgres_sql(world->postgres,
                 "CREATE TABLE watched (x INT); CREATE TABLE seen (sync TEXT); "
                 "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS "
                 "$$ BEGIN INSERT INTO seen VALUES "
                 "(current_setting('synchronous_commit')); RETURN NULL; END $$;"
                 "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON watched "
                 "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
                 "EXECUTE FUNCTION see()");
    world_call(&call, world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(idem_sql(call.ticket.tx, NULL, NULL,
                              "SET LOCAL synchronous_commit = off",
                              IDEM_NO_VALUES),
                     IDEM_OK);
    assert_int_equal(idem_sql(call.ticket.tx, NULL, NULL,
                              "INSERT INTO watched VALUES (1)", IDEM_NO_VALUES),
                     IDEM_OK);
    assert_int_equal(call_complete(&call, IDEM_OK, "paid"), IDEM_VERDICT_MINE);
    assert_int_equal(postgres_sql(world->postgres, "SELECT count(*) FROM seen "
                                                   "WHERE sync = 'on'"),
                     1);
    call_close(&call);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_left_in_copy_is_thrown_away),
        cmocka_unit_test(a_connection_left_with_unread_results_is_thrown_away),
        cmocka_unit_test(what_a_handler_set_does_not_reach_the_next_one),
        cmocka_unit_test(a_handler_cannot_make_its_own_commit_volatile),
        cmocka_unit_test(a_table_of_the_session_goes_with_its_call),
        cmocka_unit_test(a_block_that_sets_goes_with_its_session),
        cmocka_unit_test(what_a_statement_sets_is_its_calls_alone),
    };

    return cmocka_run_group_tests_name("postgres leftovers", tests, world_up,
                                       world_down);
}
