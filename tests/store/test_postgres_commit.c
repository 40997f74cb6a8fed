#include "postgres_world.h"

#include "tx.h"

#include <libpq-fe.h>
#include <limits.h>
#include <stdio.h>

/* The end of a transaction, when the database, the network or the handler do
 * what they should not. */

#define LOST_COMMITS 400

/* Fault 15, B073 b, semantics.md M1. */
static void
a_commit_whose_connection_is_cut_at_once_never_runs_twice(void **state)
{
    struct postgres_world *world = *state;
    unsigned lost = 0;

    for (int i = 0; i < LOST_COMMITS; i++) {
        struct suite_call call;

        world_call(&call, world);
        assert_int_equal(world_claim(&call), IDEM_VERDICT_MINE);
        assert_int_equal(call_effect(&call, 1), IDEM_OK);
        tcp_proxy_cut(world->proxy, TCP_PROXY_CUT_AFTER, "COMMIT", 1);
        if (call_complete(&call, IDEM_OK, "paid") == IDEM_VERDICT_UNKNOWN)
            lost++;
        world_pay(&call);
        call_close(&call);
    }
    tcp_proxy_cut(world->proxy, TCP_PROXY_CUT_NEVER, "", 0);
    assert_int_equal(lost, LOST_COMMITS);
    assert_int_equal(postgres_sql(world->postgres,
                                  "SELECT count(DISTINCT key) FROM effects") >=
                         LOST_COMMITS,
                     1);
    assert_int_equal(postgres_sql(world->postgres,
                                  "SELECT count(*) FROM (SELECT key FROM "
                                  "effects GROUP BY key HAVING count(*) > "
                                  "1) AS twice"),
                     0);
}

/* B073 a. */
static void
a_commit_that_is_cut_before_it_is_sent_is_never_told_as_done(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call;

    world_call(&call, world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_effect(&call, 1), IDEM_OK);
    tcp_proxy_cut(world->proxy, TCP_PROXY_CUT_BEFORE, "COMMIT", 1);
    assert_int_equal(call_complete(&call, IDEM_OK, "paid"),
                     IDEM_VERDICT_UNKNOWN);
    assert_runs_again(world, &call);
}

/* Fault 19, B074, semantics.md M4: through the connection itself, so that the
 * framework does not see the statement fail. */
static void
a_raw_statement_that_failed_unheard_is_not_committed(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call;

    world_call(&call, world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_effect(&call, 1), IDEM_OK);
    assert_false(world_raw(&call, "SELECT 1 / 0"));
    assert_int_equal(call_complete(&call, IDEM_OK, "paid"),
                     IDEM_VERDICT_FAILED);
    assert_int_equal(call.ticket.error.status, IDEM_INTERNAL);
    assert_runs_again(world, &call);
}

/* Fault 22. */
static void
a_deferred_constraint_that_fails_at_commit_leaves_nothing(void **state)
{
    static const char insert[] = "INSERT INTO effects (id) VALUES (77)";
    struct postgres_world *world = *state;
    struct suite_call call;

    world_call(&call, world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_true(world_raw(&call, "SET CONSTRAINTS ALL DEFERRED"));
    assert_true(world_raw(&call, insert));
    assert_true(world_raw(&call, insert));
    assert_int_equal(call_complete(&call, IDEM_OK, "paid"),
                     IDEM_VERDICT_FAILED);
    assert_int_equal(call.ticket.error.status, IDEM_ALREADY_EXISTS);
    assert_string_equal(call.ticket.error.reason, "effects_id_key");
    assert_runs_again(world, &call);
}

/* Fault 23: whatever raises it, the whole transaction is to be run again. */
static void
a_conflict_is_told_as_one_and_the_third_attempt_succeeds(void **state)
{
    static const char *const codes[] = {"40001", "40P01"};
    struct postgres_world *world = *state;
    struct suite_call call;

    world_call(&call, world);
    for (int i = 0; i < 2; i++) {
        char sql[128];

        snprintf(sql, sizeof(sql),
                 "DO $$ BEGIN RAISE EXCEPTION 'now' USING ERRCODE = '%s'; "
                 "END $$",
                 codes[i]);
        assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
        assert_int_equal(call_effect(&call, 1), IDEM_OK);
        assert_int_equal(
            idem_sql(call.ticket.tx, NULL, NULL, sql, IDEM_NO_VALUES),
            IDEM_ABORTED);
        assert_int_equal(call_complete(&call, IDEM_OK, "paid"),
                         IDEM_VERDICT_CONFLICT);
    }
    assert_runs_again(world, &call);
}

/* Fault 23, when the conflict shows at COMMIT only. */
static void
a_conflict_at_commit_is_told_as_one(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call;

    postgres_sql(
        world->postgres,
        "CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'late' USING ERRCODE = '40001'; END $$; "
        "CREATE TABLE fragile (x int); "
        "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON fragile DEFERRABLE "
        "INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION conflict()");
    world_call(&call, world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_true(world_raw(&call, "INSERT INTO fragile VALUES (1)"));
    assert_int_equal(call_complete(&call, IDEM_OK, "paid"),
                     IDEM_VERDICT_CONFLICT);
    assert_runs_again(world, &call);
}

/* A rival that does not know of the lock. */
static void
write_rivals_record(struct postgres_world *world, const struct suite_call *call)
{
    char hex[65];

    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", call->ticket.id.digest[i]);
    postgres_sql(world->postgres,
                 "INSERT INTO idem_record (key, state, token, executions, "
                 "done_at, tenant, scope, key_text, raw, canonical, version, "
                 "status, message, reason, reply, trailers) SELECT "
                 "(lpad(to_hex(%lld), 12, '0') || substr('%s', 1, 20))::uuid, "
                 "'DONE', 1, 1, now(), 'tenant', 'shop.v1.Shop/Buy', '%s', "
                 "decode(repeat('01', 32), 'hex'), "
                 "decode(repeat('01', 32), 'hex'), 1, 0, '', '', 'rival', ''",
                 (long long)call->ticket.id.key.minted_ms, hex, call->key);
}

/* Fault 86: the lock's number is no part of the safety. A rival writes its
 * record first, and we a yes or a no. */
static void
a_rival_past_the_lock_wins_and_our_work_is_undone(void **state)
{
    static const enum idem_status ours[] = {IDEM_OK, IDEM_FAILED_PRECONDITION};
    struct postgres_world *world = *state;

    for (int i = 0; i < 2; i++) {
        struct suite_call call;

        world_call(&call, world);
        assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
        assert_int_equal(call_effect(&call, 1), IDEM_OK);
        write_rivals_record(world, &call);
        assert_int_equal(call_complete(&call, ours[i], "paid"),
                         IDEM_VERDICT_DONE);
        assert_text(call.ticket.answer.reply, "rival");
        assert_int_equal(world_effects(world, &call), 0);
        call_close(&call);
    }
}

static bool
is_in_one_transaction(struct postgres_world *world,
                      const struct suite_call *call)
{
    return postgres_sql(world->postgres,
                        "SELECT e.xmin = r.xmin FROM effects AS e, idem_record "
                        "AS r WHERE e.key = '%s' AND r.key_text = e.key",
                        call->key) == 1;
}

/* Decision 45: a savepoint would be a second transaction id. */
static void
what_a_handler_writes_has_its_records_transaction_id(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call;

    world_call(&call, world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_effect(&call, 1), IDEM_OK);
    assert_int_equal(call_complete(&call, IDEM_OK, "paid"), IDEM_VERDICT_MINE);
    assert_true(is_in_one_transaction(world, &call));
    call_close(&call);
}

/* Decision 45: behind a savepoint, but what was written before it goes too. */
static void
a_no_undoes_what_was_written_before_the_connection_was_asked_for(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call;

    world_call(&call, world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_effect(&call, 1), IDEM_OK);
    assert_true(world_raw(&call, "INSERT INTO effects (id) VALUES (78)"));
    assert_int_equal(call_complete(&call, IDEM_NOT_FOUND, "no"),
                     IDEM_VERDICT_MINE);
    assert_int_equal(world_effects(world, &call), 0);
    assert_int_equal(postgres_sql(world->postgres, "SELECT count(*) FROM "
                                                   "effects WHERE id = 78"),
                     0);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
    assert_int_equal(call.ticket.answer.status, IDEM_NOT_FOUND);
    call_close(&call);
}

static void
there_is_no_connection_behind_a_statement_that_failed(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call;
    struct idem_tx *tx;

    world_call(&call, world);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    tx = call.ticket.tx;
    assert_int_not_equal(
        idem_sql(tx, NULL, NULL, "SELECT 1 / 0", IDEM_NO_VALUES), IDEM_OK);
    assert_null(tx->ops->postgres(tx));
    assert_int_equal(call_complete(&call, IDEM_NOT_FOUND, "no"),
                     IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
    call_close(&call);
}

/* B071: the winner is open while the loser comes; it never waits for it. */
static void
the_loser_does_not_wait_and_replays_later(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call winner, loser;

    world_call(&winner, world);
    call_open(&loser, &world->suite, winner.key, IDEM_MODE_TRANSACTION, 1);
    assert_int_equal(call_claim(&winner), IDEM_VERDICT_MINE);
    assert_int_equal(call_effect(&winner, 1), IDEM_OK);
    assert_int_equal(call_claim(&loser), IDEM_VERDICT_RUNNING);
    assert_int_equal(call_look(&loser), IDEM_VERDICT_RUNNING);
    assert_int_equal(call_complete(&winner, IDEM_OK, "paid"),
                     IDEM_VERDICT_MINE);
    for (int i = 0; i < 3; i++) { /* B070 */
        assert_int_equal(call_claim(&loser), IDEM_VERDICT_DONE);
        assert_text(loser.ticket.answer.reply, "paid");
    }
    assert_int_equal(world_effects(world, &winner), 1);
    call_close(&winner);
    call_close(&loser);
}

/* Issue 3, item 6: one to begin, one a statement, one to end. The fewest of
 * several, for connections are made and statements prepared meanwhile. */
static void
an_interactive_call_begins_and_ends_in_a_round_trip_each(void **state)
{
    struct postgres_world *world = *state;
    unsigned fewest = UINT_MAX;

    for (int i = 0; i < 20; i++) {
        unsigned before = tcp_proxy_trips(world->proxy), trips;
        struct suite_call call;

        world_call(&call, world);
        assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
        assert_int_equal(call_effect(&call, 1), IDEM_OK);
        assert_int_equal(call_complete(&call, IDEM_OK, "paid"),
                         IDEM_VERDICT_MINE);
        trips = tcp_proxy_trips(world->proxy) - before;
        if (trips < fewest)
            fewest = trips;
        call_close(&call);
    }
    assert_int_equal(fewest, 3);
}

/* A prepared statement outlives the table as it was: a conflict, and then all
 * connections know. */
static void
a_table_may_be_changed_under_a_handler(void **state)
{
    struct postgres_world *world = *state;
    enum idem_status status = IDEM_OK;

    postgres_sql(world->postgres, "CREATE TABLE moving (a BIGINT)");
    for (int i = 0; i < 12; i++) {
        struct suite_call call;

        if (i == 8)
            postgres_sql(world->postgres, "ALTER TABLE moving ADD b TEXT");
        world_call(&call, world);
        assert_int_equal(world_claim(&call), IDEM_VERDICT_MINE);
        status = idem_sql(call.ticket.tx, NULL, NULL, "SELECT * FROM moving",
                          IDEM_NO_VALUES);
        if (status == IDEM_OK) {
            assert_int_equal(call_complete(&call, IDEM_OK, "paid"),
                             IDEM_VERDICT_MINE);
        } else {
            assert_int_equal(i, 8);
            assert_int_equal(status, IDEM_ABORTED);
            assert_int_equal(call_complete(&call, IDEM_OK, "paid"),
                             IDEM_VERDICT_CONFLICT);
        }
        call_close(&call);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_commit_that_is_cut_before_it_is_sent_is_never_told_as_done),
        cmocka_unit_test(a_raw_statement_that_failed_unheard_is_not_committed),
        cmocka_unit_test(
            an_interactive_call_begins_and_ends_in_a_round_trip_each),
        cmocka_unit_test(a_table_may_be_changed_under_a_handler),
        cmocka_unit_test(
            a_deferred_constraint_that_fails_at_commit_leaves_nothing),
        cmocka_unit_test(
            a_conflict_is_told_as_one_and_the_third_attempt_succeeds),
        cmocka_unit_test(a_conflict_at_commit_is_told_as_one),
        cmocka_unit_test(a_rival_past_the_lock_wins_and_our_work_is_undone),
        cmocka_unit_test(what_a_handler_writes_has_its_records_transaction_id),
        cmocka_unit_test(
            a_no_undoes_what_was_written_before_the_connection_was_asked_for),
        cmocka_unit_test(there_is_no_connection_behind_a_statement_that_failed),
        cmocka_unit_test(the_loser_does_not_wait_and_replays_later),
        cmocka_unit_test(
            a_commit_whose_connection_is_cut_at_once_never_runs_twice),
    };

    return cmocka_run_group_tests(tests, world_up, world_down);
}
