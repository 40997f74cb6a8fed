#include "postgres_world.h"

#include "fault.h"

#include <limits.h>
#include <stdio.h>

/* Calls of transaction STATEMENT that share a database transaction: round
 * trips, lost connections, rivals, locks. What each authority does with them is
 * in suite_statements.c. */

#define CROWD 50
#define LOST 50
#define RECORDS "shop.v1.Shop/Buy" /* only the second round trip has it */

static int64_t
effects(struct postgres_world *world, const struct suite_call *call)
{
    return postgres_sql(world->postgres,
                        "SELECT count(*) FROM effects WHERE key = '%s'",
                        call->key);
}

/* Some tests run a second time, shorter, with replies that do not wait for
 * rows. */
static bool replies_first;

static int
rounds(void)
{
    return replies_first ? LOST / 5 : LOST;
}

static void
open_paying(struct suite_call *call, struct postgres_world *world)
{
    world_call(call, world);
    call_add_effect(call, 1);
    if (replies_first)
        idem_statements_reply_first(&call->statements);
}

/* As a server does: until it is known. */
static enum idem_verdict
run_until_known(struct suite_call *call)
{
    enum idem_verdict verdict;

    do
        verdict = call_run(call);
    while (verdict == IDEM_VERDICT_UNKNOWN ||
           verdict == IDEM_VERDICT_CONFLICT || verdict == IDEM_VERDICT_RUNNING);
    return verdict;
}

static void
run_one(struct postgres_world *world)
{
    struct suite_call call;

    open_paying(&call, world);
    assert_int_equal(run_until_known(&call), IDEM_VERDICT_MINE);
    call_close(&call);
}

/* Issue 3, item 6. The fewest of several, for connections may be made
 * meanwhile. */
static void
a_call_takes_two_round_trips_or_one(void **state)
{
    struct postgres_world *world = *state;
    unsigned fewest = UINT_MAX;

    for (int i = 0; i < 20; i++) {
        unsigned before = tcp_proxy_trips(world->proxy), trips;

        run_one(world);
        trips = tcp_proxy_trips(world->proxy) - before;
        if (trips < fewest)
            fewest = trips;
    }
    assert_int_equal(fewest, replies_first ? 1 : 2);
}

/* Fault 15, B073 b, semantics.md M1. */
static void
a_commit_whose_answer_is_lost_never_runs_twice(void **state)
{
    struct postgres_world *world = *state;
    unsigned lost = 0;

    for (int i = 0; i < rounds(); i++) {
        struct suite_call call;

        open_paying(&call, world);
        tcp_proxy_cut(world->proxy, TCP_PROXY_CUT_AFTER, RECORDS, 1);
        lost += call_run(&call) == IDEM_VERDICT_UNKNOWN;
        (void)run_until_known(&call);
        assert_int_equal(effects(world, &call), 1);
        call_close(&call);
    }
    tcp_proxy_cut(world->proxy, TCP_PROXY_CUT_NEVER, "", 0);
    assert_int_equal(lost, rounds());
}

/* B073 a. */
static void
a_commit_that_is_not_sent_is_never_told_as_done(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call;

    open_paying(&call, world);
    tcp_proxy_cut(world->proxy, TCP_PROXY_CUT_BEFORE, RECORDS, 1);
    assert_int_equal(call_run(&call), IDEM_VERDICT_UNKNOWN);
    assert_int_equal(effects(world, &call), 0);
    assert_int_equal(run_until_known(&call), IDEM_VERDICT_MINE);
    assert_int_equal(effects(world, &call), 1);
    call_close(&call);
}

static void
statements_whose_connection_is_lost_are_sent_again(void **state)
{
    static const enum tcp_proxy_cut cuts[] = {TCP_PROXY_CUT_BEFORE,
                                              TCP_PROXY_CUT_AFTER};
    struct postgres_world *world = *state;

    for (unsigned i = 0; i < 2; i++) {
        struct suite_call call;

        open_paying(&call, world);
        tcp_proxy_cut(world->proxy, cuts[i], "BEGIN ISOLATION", 1);
        assert_int_equal(call_run(&call), IDEM_VERDICT_MINE);
        assert_int_equal(effects(world, &call), 1);
        call_close(&call);
    }
}

/* B071: the unique index is the barrier, nobody is asked before. */
static void
of_two_servers_with_one_key_one_has_an_effect(void **state)
{
    struct postgres_world *world = *state;
    struct idem_store *other = world_store(world);

    for (int i = 0; i < rounds(); i++) {
        struct suite_call here, there;
        struct suite elsewhere = world->suite;

        elsewhere.store = other;
        open_paying(&here, world);
        call_open(&there, &elsewhere, here.key, IDEM_MODE_TRANSACTION, 1);
        call_add_effect(&there, 1);
        call_start(&here, here.suite->store->ops->run);
        call_start(&there, other->ops->run);
        (void)call_await(&here);
        (void)call_await(&there);
        (void)run_until_known(&here);
        assert_int_equal(run_until_known(&there), IDEM_VERDICT_DONE);
        assert_int_equal(effects(world, &here), 1);
        call_close(&there);
        call_close(&here);
    }
    idem_store_free(other);
}

/* --- Fifty at once --- */

struct crowd {
    struct suite_call calls[CROWD];
};

static void
crowd_open(struct crowd *crowd, struct postgres_world *world)
{
    for (unsigned i = 0; i < CROWD; i++)
        open_paying(&crowd->calls[i], world);
}

static void
crowd_start(struct crowd *crowd)
{
    for (unsigned i = 0; i < CROWD; i++)
        call_start(&crowd->calls[i], crowd->calls[i].suite->store->ops->run);
}

/* All but one: ran, and is there once. */
static void
crowd_close(struct crowd *crowd, struct postgres_world *world, unsigned but)
{
    for (unsigned i = 0; i < CROWD; i++) {
        struct suite_call *call = &crowd->calls[i];

        if (i != but) {
            if (call_await(call) != IDEM_VERDICT_MINE)
                assert_int_equal(run_until_known(call), IDEM_VERDICT_MINE);
            assert_int_equal(effects(world, call), 1);
        }
        call_close(call);
    }
}

/* Fault 22: COMMIT does not say whose row it was. */
static void
a_constraint_that_fails_at_commit_fails_its_own_call_only(void **state)
{
    static struct crowd crowd;
    struct postgres_world *world = *state;
    struct suite_call *bad = &crowd.calls[CROWD / 2];

    postgres_sql(world->postgres, "DROP TABLE IF EXISTS late; CREATE TABLE "
                                  "late (id BIGINT UNIQUE DEFERRABLE INITIALLY "
                                  "DEFERRED); INSERT INTO late VALUES (1)");
    crowd_open(&crowd, world);
    idem_statement_add(&bad->statements, "INSERT INTO late VALUES (1)",
                       IDEM_NO_VALUES);
    crowd_start(&crowd);
    assert_int_equal(call_await(bad), IDEM_VERDICT_FAILED);
    assert_int_equal(bad->ticket.error.status, IDEM_ALREADY_EXISTS);
    assert_int_equal(effects(world, bad), 0);
    crowd_close(&crowd, world, CROWD / 2);
}

/* The neighbours are over before the lock is free. */
static void
a_call_that_waits_for_a_lock_holds_nobody_up(void **state)
{
    static struct crowd crowd;
    struct postgres_world *world = *state;
    struct suite_call holder, *held = &crowd.calls[CROWD / 2];

    postgres_sql(world->postgres, "DROP TABLE IF EXISTS shelf; "
                                  "CREATE TABLE shelf (n BIGINT); "
                                  "INSERT INTO shelf VALUES (0)");
    world_call(&holder, world);
    assert_int_equal(call_claim(&holder), IDEM_VERDICT_MINE);
    assert_int_equal(idem_sql(holder.ticket.tx, NULL, NULL,
                              "UPDATE shelf SET n = n + 1", IDEM_NO_VALUES),
                     IDEM_OK);
    crowd_open(&crowd, world);
    idem_statement_add(&held->statements, "UPDATE shelf SET n = n + 1",
                       IDEM_NO_VALUES);
    crowd_start(&crowd);
    for (unsigned i = 0; i < CROWD; i++)
        if (&crowd.calls[i] != held)
            (void)call_await(&crowd.calls[i]);
    assert_int_equal(effects(world, held), 0);
    assert_int_equal(call_complete(&holder, IDEM_OK, "done"),
                     IDEM_VERDICT_MINE);
    if (call_await(held) != IDEM_VERDICT_MINE)
        assert_int_equal(run_until_known(held), IDEM_VERDICT_MINE);
    assert_int_equal(postgres_sql(world->postgres, "SELECT n FROM shelf"), 2);
    crowd_close(&crowd, world, CROWD);
    call_close(&holder);
}

/* Each of two servers wants the rows of the other, so that shares deadlock. */
static void
shares_that_want_each_others_rows_come_to_an_end(void **state)
{
    static struct crowd here, there;
    struct postgres_world *world = *state;
    struct suite elsewhere = world->suite;

    elsewhere.store = world_store(world);
    postgres_sql(world->postgres,
                 "CREATE TABLE rows (id BIGINT PRIMARY KEY, n BIGINT); INSERT "
                 "INTO rows SELECT i, 0 FROM generate_series(0, %d) AS i",
                 CROWD - 1);
    crowd_open(&here, world);
    crowd_open(&there, world);
    for (unsigned i = 0; i < CROWD; i++) {
        there.calls[i].suite = &elsewhere;
        idem_statement_add(&here.calls[i].statements,
                           "UPDATE rows SET n = n + 1 WHERE id = $1",
                           IDEM_VALUES(idem_int(i)));
        idem_statement_add(&there.calls[i].statements,
                           "UPDATE rows SET n = n + 1 WHERE id = $1",
                           IDEM_VALUES(idem_int(CROWD - 1 - i)));
    }
    crowd_start(&here);
    crowd_start(&there);
    crowd_close(&here, world, CROWD);
    crowd_close(&there, world, CROWD);
    assert_int_equal(
        postgres_sql(world->postgres, "SELECT count(*) FROM rows WHERE n = 2"),
        CROWD);
    idem_store_free(elsewhere.store);
}

static void
run_select(struct postgres_world *world, int64_t wanted)
{
    struct suite_call call;

    world_call(&call, world);
    idem_statement_add(&call.statements, "SELECT * FROM changing",
                       IDEM_NO_VALUES);
    assert_int_equal(run_until_known(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call.number, wanted);
    call_close(&call);
}

/* A prepared statement outlives the table as it was. */
static void
a_table_may_be_changed_while_it_runs(void **state)
{
    struct postgres_world *world = *state;

    postgres_sql(world->postgres, "CREATE TABLE changing (a BIGINT); "
                                  "INSERT INTO changing VALUES (7)");
    run_select(world, 7);
    run_select(world, 7);
    postgres_sql(
        world->postgres,
        "ALTER TABLE changing ALTER a TYPE TEXT; ALTER TABLE changing "
        "ADD b TEXT; UPDATE changing SET a = '8'; ALTER TABLE changing "
        "ALTER a TYPE BIGINT USING a::bigint");
    for (int i = 0; i < 4; i++)
        run_select(world, 8);
}

/* dedup.md 6d: statistics of an empty partition make no plan that scans it. */
static void
repeats_are_looked_up_by_their_keys(void **state)
{
    struct postgres_world *world = *state;
    static struct crowd crowd;
    int64_t before;

    postgres_sql(world->postgres, "ANALYZE");
    crowd_open(&crowd, world);
    crowd_start(&crowd);
    for (unsigned i = 0; i < CROWD; i++)
        (void)call_await(&crowd.calls[i]);
    before = postgres_sql(world->postgres,
                          "SELECT sum(seq_scan) FROM pg_stat_user_tables "
                          "WHERE relname LIKE 'idem_record%%'");
    for (unsigned i = 0; i < CROWD; i++)
        crowd.calls[i].ticket.repeat = true;
    crowd_start(&crowd);
    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(call_await(&crowd.calls[i]), IDEM_VERDICT_DONE);
    world_reopen(world); /* its sessions tell what they counted */
    assert_int_equal(postgres_sql(world->postgres,
                                  "SELECT sum(seq_scan) FROM "
                                  "pg_stat_user_tables WHERE relname LIKE "
                                  "'idem_record%%'"),
                     before);
    for (unsigned i = 0; i < CROWD; i++)
        call_close(&crowd.calls[i]);
}

#ifdef IDEM_FAULTS

/* I1 at each point of a share that the process lives through. */
static void
a_fault_at_any_point_leaves_one_effect(void **state)
{
    static const char *const points[] = {
        "postgres.run.before", "postgres.run.concluded", "postgres.run.after"};
    static struct crowd crowd;
    struct postgres_world *world = *state;

    for (unsigned i = 0; i < sizeof points / sizeof *points; i++) {
        char plan[64];

        snprintf(plan, sizeof plan, "%s:20:error", points[i]);
        crowd_open(&crowd, world);
        fault_set(plan);
        crowd_start(&crowd);
        for (unsigned j = 0; j < CROWD; j++)
            (void)call_await(&crowd.calls[j]);
        fault_set(NULL);
        for (unsigned j = 0; j < CROWD; j++) {
            (void)run_until_known(&crowd.calls[j]);
            assert_int_equal(effects(world, &crowd.calls[j]), 1);
            call_close(&crowd.calls[j]);
        }
    }
}

#endif

/* A trip that has the COMMIT is not sent again: nobody knows what became of it.
 */
static void
one_trip_whose_connection_is_lost_is_unknown(void **state)
{
    static const enum tcp_proxy_cut cuts[] = {TCP_PROXY_CUT_BEFORE,
                                              TCP_PROXY_CUT_AFTER};
    struct postgres_world *world = *state;

    for (unsigned i = 0; i < 2; i++) {
        struct suite_call call;

        open_paying(&call, world);
        tcp_proxy_cut(world->proxy, cuts[i], "BEGIN ISOLATION", 1);
        assert_int_equal(call_run(&call), IDEM_VERDICT_UNKNOWN);
        (void)run_until_known(&call);
        assert_int_equal(effects(world, &call), 1);
        call_close(&call);
    }
}

static int
set_up_replies_first(void **state)
{
    (void)state;
    replies_first = true;
    return 0;
}

static int
tear_down_replies_first(void **state)
{
    (void)state;
    replies_first = false;
    return 0;
}

#define REPLIES_FIRST(test)                                                    \
    {                                                                          \
#test "_replies_first", test, set_up_replies_first,                    \
            tear_down_replies_first, NULL                                      \
    }

static int
set_up(void **state)
{
    struct postgres_world *world = world_open(false);

    /* who holds a lock keeps it until the test says so */
    world->options.idle_in_transaction_ms = 600000;
    world_reopen(world);
    *state = world;
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_takes_two_round_trips_or_one),
        cmocka_unit_test(a_commit_whose_answer_is_lost_never_runs_twice),
        cmocka_unit_test(a_commit_that_is_not_sent_is_never_told_as_done),
        cmocka_unit_test(statements_whose_connection_is_lost_are_sent_again),
        cmocka_unit_test(of_two_servers_with_one_key_one_has_an_effect),
        cmocka_unit_test(
            a_constraint_that_fails_at_commit_fails_its_own_call_only),
        cmocka_unit_test(a_call_that_waits_for_a_lock_holds_nobody_up),
        cmocka_unit_test(shares_that_want_each_others_rows_come_to_an_end),
        cmocka_unit_test(a_table_may_be_changed_while_it_runs),
        cmocka_unit_test(repeats_are_looked_up_by_their_keys),
        REPLIES_FIRST(a_call_takes_two_round_trips_or_one),
        REPLIES_FIRST(one_trip_whose_connection_is_lost_is_unknown),
        REPLIES_FIRST(a_commit_whose_answer_is_lost_never_runs_twice),
        REPLIES_FIRST(a_commit_that_is_not_sent_is_never_told_as_done),
        REPLIES_FIRST(of_two_servers_with_one_key_one_has_an_effect),
        REPLIES_FIRST(
            a_constraint_that_fails_at_commit_fails_its_own_call_only),
        REPLIES_FIRST(a_call_that_waits_for_a_lock_holds_nobody_up),
#ifdef IDEM_FAULTS
        cmocka_unit_test(a_fault_at_any_point_leaves_one_effect),
        REPLIES_FIRST(a_fault_at_any_point_leaves_one_effect),
#endif
    };

    return cmocka_run_group_tests_name("share", tests, set_up, world_down);
}
