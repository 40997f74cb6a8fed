/* Interactive calls that share a transaction: neighbours, failing commits, lost
 * connections, rivals, locks. */
#include "joint_world.h"

#include "fault.h"

#include <stdio.h>
#include <string.h>

/* Records are written by the transaction itself, not in a savepoint. */
static void
calls_of_a_group_share_a_commit(void **state)
{
    static struct crowd crowd;
    struct postgres_world *world = *state;

    crowd_open(&crowd, world);
    crowd_run(&crowd);
    crowd_close(&crowd, CROWD);
    assert_int_equal(postgres_sql(world->postgres,
                                  "SELECT count(DISTINCT xmin::text) FROM "
                                  "idem_record"),
                     2); /* the first alone, then all */
    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(crowd.calls[i].runs, 1);
}

/* B041, B074, semantics.md 4.4 b4. */
static void
one_that_fails_does_not_touch_its_neighbours(void **state)
{
    static struct crowd crowd;
    static const struct {
        handler_fn *handler;
        enum ending ending;
        enum idem_verdict verdict;
    } ways[] = {
        {pay_and_say_no, RECORDED, IDEM_VERDICT_MINE},
        {pay_and_say_no, RELEASED, IDEM_VERDICT_MINE},
        {fail_unheard, RECORDED, IDEM_VERDICT_FAILED},
        {break_a_constraint, RECORDED, IDEM_VERDICT_MINE},
        {say_no_without_sql, RECORDED, IDEM_VERDICT_MINE},
    };
    struct postgres_world *world = *state;

    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        for (unsigned bad = 0; bad < CROWD; bad += CROWD - 1) {
            crowd_open(&crowd, world);
            crowd.calls[bad].handler = ways[i].handler;
            crowd.calls[bad].ending = ways[i].ending;
            crowd_run(&crowd);
            assert_int_equal(crowd.calls[bad].call.ticket.verdict,
                             ways[i].verdict);
            assert_int_equal(effects(&crowd.calls[bad]), 0);
            for (unsigned j = 0; j < CROWD; j++)
                assert_int_equal(crowd.calls[j].runs, 1);
            crowd_close(&crowd, bad);
        }
    }
}

/* What is told as final is recorded. */
static void
a_no_of_a_group_is_recorded_and_a_release_is_not(void **state)
{
    struct postgres_world *world = *state;
    struct joint_call no, released;

    joint_open(&no, world);
    joint_open(&released, world);
    no.handler = released.handler = pay_and_say_no;
    released.ending = RELEASED;
    joint_start(&no);
    joint_start(&released);
    assert_int_equal(joint_await(&no), IDEM_VERDICT_MINE);
    assert_int_equal(joint_await(&released), IDEM_VERDICT_MINE);
    joint_start(&no);
    assert_int_equal(joint_await(&no), IDEM_VERDICT_DONE);
    assert_int_equal(no.call.ticket.answer.status, IDEM_NOT_FOUND);
    released.handler = pay;
    released.ending = RECORDED;
    joint_start(&released);
    assert_int_equal(joint_await(&released), IDEM_VERDICT_MINE);
    assert_int_equal(effects(&released), 1);
    call_close(&no.call);
    call_close(&released.call);
}

/* Issue 3, item 7 of the rules: executions that ended badly are counted. */
static void
one_that_ended_badly_is_counted(void **state)
{
    struct postgres_world *world = *state;
    struct joint_call call;

    joint_open(&call, world);
    call.handler = pay_and_say_no;
    call.ending = RELEASED;
    call.call.ticket.counts = true;
    joint_start(&call);
    assert_int_equal(joint_await(&call), IDEM_VERDICT_MINE);
    call.handler = pay;
    call.ending = RECORDED;
    call.call.ticket.counts = false;
    joint_start(&call);
    assert_int_equal(joint_await(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call.call.ticket.executions, 2);
    assert_int_equal(effects(&call), 1);
    call_close(&call.call);
}

/* Fault 22: COMMIT does not say whose row it was. */
static void
a_commit_that_fails_sends_each_back_alone(void **state)
{
    static struct crowd crowd;
    struct postgres_world *world = *state;
    struct joint_call *bad = &crowd.calls[CROWD / 2];

    postgres_sql(world->postgres,
                 "CREATE TABLE late (id BIGINT UNIQUE DEFERRABLE INITIALLY "
                 "DEFERRED); INSERT INTO late VALUES (1)");
    crowd_open(&crowd, world);
    bad->handler = fail_at_commit;
    crowd_run(&crowd);
    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(crowd.calls[i].call.ticket.verdict,
                         IDEM_VERDICT_CONFLICT);
    assert_int_equal(joint_end(bad), IDEM_VERDICT_FAILED);
    assert_int_equal(bad->call.ticket.error.status, IDEM_ALREADY_EXISTS);
    assert_int_equal(effects(bad), 0);
    crowd_close(&crowd, CROWD / 2);
}

/* Fault 15, B073 b, semantics.md M1. */
static void
a_commit_whose_answer_is_lost_never_runs_twice(void **state)
{
    static const enum tcp_proxy_cut cuts[] = {TCP_PROXY_CUT_BEFORE,
                                              TCP_PROXY_CUT_AFTER};
    static struct crowd crowd;
    struct postgres_world *world = *state;

    for (unsigned i = 0; i < 8; i++) {
        crowd_open(&crowd, world);
        tcp_proxy_cut(world->proxy, cuts[i % 2], RECORDS, 1 + i / 2 % 2);
        crowd_run(&crowd);
        tcp_proxy_cut(world->proxy, TCP_PROXY_CUT_NEVER, "", 0);
        crowd_close(&crowd, CROWD);
    }
}

static void
a_connection_that_is_lost_between_handlers_costs_only_time(void **state)
{
    static const enum tcp_proxy_cut cuts[] = {TCP_PROXY_CUT_BEFORE,
                                              TCP_PROXY_CUT_AFTER};
    static const char *const texts[] = {"BEGIN ISOLATION", "idem_handler"};
    static struct crowd crowd;
    struct postgres_world *world = *state;

    for (unsigned i = 0; i < 4; i++) {
        crowd_open(&crowd, world);
        for (unsigned j = 0; j < CROWD; j++)
            crowd.calls[j].handler = pay;
        tcp_proxy_cut(world->proxy, cuts[i % 2], texts[i / 2], 2);
        crowd_run(&crowd);
        tcp_proxy_cut(world->proxy, TCP_PROXY_CUT_NEVER, "", 0);
        for (unsigned j = 0; j < CROWD; j++) {
            struct joint_call *call = &crowd.calls[j];

            /* the one whose statement was lost has failed as alone */
            if (call->call.ticket.answer.status == IDEM_UNAVAILABLE) {
                call->call.ticket.verdict = IDEM_VERDICT_CONFLICT;
                assert_int_equal(effects(call), 0);
            }
        }
        crowd_close(&crowd, CROWD);
    }
}

/* Fault 3: a key that is recorded, one that another server has under way. */
static void
a_key_that_is_known_leaves_the_group(void **state)
{
    static struct crowd crowd;
    struct postgres_world *world = *state;
    struct idem_store *other = world_store(world);
    struct suite elsewhere = world->suite;
    struct suite_call busy;
    struct joint_call *done = &crowd.calls[3], *held = &crowd.calls[7];

    elsewhere.store = other;
    crowd_open(&crowd, world);
    assert_int_equal(
        suite_claim_once(&elsewhere, done->call.key, IDEM_MODE_TRANSACTION, 1),
        IDEM_VERDICT_MINE);
    call_open(&busy, &elsewhere, held->call.key, IDEM_MODE_TRANSACTION, 1);
    assert_int_equal(call_claim(&busy), IDEM_VERDICT_MINE);
    assert_int_equal(call_effect(&busy, 1), IDEM_OK);
    crowd_run(&crowd);
    assert_int_equal(done->call.ticket.verdict, IDEM_VERDICT_DONE);
    assert_int_equal(held->call.ticket.verdict, IDEM_VERDICT_RUNNING);
    assert_int_equal(done->runs + held->runs, 0);
    assert_int_equal(call_complete(&busy, IDEM_OK, "done"), IDEM_VERDICT_MINE);
    assert_int_equal(joint_end(held), IDEM_VERDICT_DONE);
    assert_int_equal(effects(done), 0);
    crowd_close(&crowd, 3);
    call_close(&busy);
    idem_store_free(other);
}

/* The neighbours are over before the lock is free. */
static void
a_call_that_waits_for_a_lock_leaves(void **state)
{
    static struct crowd crowd;
    struct postgres_world *world = *state;
    struct suite_call holder;
    struct joint_call *held = &crowd.calls[CROWD / 2];

    postgres_sql(world->postgres, "CREATE TABLE shelf (n BIGINT); "
                                  "INSERT INTO shelf VALUES (0)");
    world_call(&holder, world);
    assert_int_equal(call_claim(&holder), IDEM_VERDICT_MINE);
    assert_int_equal(idem_sql(holder.ticket.tx, NULL, NULL,
                              "UPDATE shelf SET n = n + 1", IDEM_NO_VALUES),
                     IDEM_OK);
    crowd_open(&crowd, world);
    held->handler = want_the_shelf;
    crowd_run(&crowd);
    assert_true(is_open(held));
    assert_int_equal(effects(held), 0);
    assert_int_equal(call_complete(&holder, IDEM_OK, "done"),
                     IDEM_VERDICT_MINE);
    crowd_close(&crowd, CROWD);
    assert_int_equal(postgres_sql(world->postgres, "SELECT n FROM shelf"), 2);
    call_close(&holder);
}

/* Beside the handlers' savepoints: the others begin again alone. */
static void
a_look_at_a_watermark_that_fails_costs_only_time(void **state)
{
    static struct crowd crowd;
    struct postgres_world *world = *state;

    crowd_open(&crowd, world);
    crowd.calls[CROWD / 2].handler = NULL;
    postgres_sql(world->postgres, "ALTER TABLE idem_session RENAME TO away");
    crowd_run(&crowd);
    postgres_sql(world->postgres, "ALTER TABLE away RENAME TO idem_session");
    assert_int_equal(effects(&crowd.calls[CROWD / 2]), 0);
    crowd_close(&crowd, CROWD / 2);
}

/* A handler's setting is its own. */
static void
what_one_sets_is_not_met_by_the_next(void **state)
{
    static struct crowd crowd;
    struct postgres_world *world = *state;

    crowd_open(&crowd, world);
    for (unsigned i = 0; i < CROWD; i += 8)
        crowd.calls[i].handler = change_the_path;
    crowd_run(&crowd);
    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(crowd.calls[i].call.ticket.verdict, IDEM_VERDICT_MINE);
    crowd_close(&crowd, CROWD);
}

/* A deadline counts also while others have their turn. */
static void
one_whose_turn_comes_too_late_does_not_run(void **state)
{
    static struct crowd crowd;
    struct postgres_world *world = *state;
    struct joint_call *late = &crowd.calls[CROWD - 1];
    const struct idem_clock *clock = idem_clock_system();
    struct joint_call *first = &crowd.calls[0];

    crowd_open(&crowd, world);
    first->handler = wait_at_the_gate;
    late->call.ticket.deadline_ns = clock->monotonic_ns(clock) + 300000000;
    for (unsigned i = 0; i < CROWD; i++)
        joint_start(&crowd.calls[i]);
    gate_await(&gate);
    while (clock->monotonic_ns(clock) < late->call.ticket.deadline_ns)
        continue;
    gate_open(&gate);
    for (unsigned i = 0; i < CROWD; i++)
        (void)joint_await(&crowd.calls[i]);
    assert_true(late->runs == 0 ||
                late->call.ticket.verdict == IDEM_VERDICT_MINE);
    if (late->runs == 0) {
        assert_int_equal(late->call.ticket.verdict, IDEM_VERDICT_FAILED);
        assert_int_equal(late->call.ticket.error.status,
                         IDEM_DEADLINE_EXCEEDED);
    }
    crowd_close(&crowd, CROWD - 1);
}

/* Fault 3, I1: each key on both, in groups. */
static void
of_two_servers_with_the_same_keys_one_has_each_effect(void **state)
{
    static struct crowd here, there;
    struct postgres_world *world = *state;
    struct suite elsewhere = world->suite;

    elsewhere.store = world_store(world);
    crowd_open(&here, world);
    there.world = world;
    for (unsigned i = 0; i < CROWD; i++) {
        struct joint_call *twin = &there.calls[i];

        joint_open(twin, world);
        call_close(&twin->call);
        call_open(&twin->call, &elsewhere, here.calls[i].call.key,
                  IDEM_MODE_TRANSACTION, 1);
        twin->call.ticket.group = CROWD;
    }
    for (unsigned i = 0; i < CROWD; i++) {
        joint_start(&here.calls[i]);
        joint_start(&there.calls[CROWD - 1 - i]);
    }
    for (unsigned i = 0; i < CROWD; i++) {
        (void)joint_await(&here.calls[i]);
        (void)joint_await(&there.calls[i]);
    }
    crowd_close(&here, CROWD);
    crowd_close(&there, CROWD);
    idem_store_free(elsewhere.store);
}

#ifdef IDEM_FAULTS

/* I1 at each point of a group that the process lives through. */
static void
a_fault_at_any_point_leaves_one_effect(void **state)
{
    static const char *const points[] = {
        "postgres.claim.before", "postgres.begin.after",
        "postgres.commit.before", "postgres.commit.after"};
    static struct crowd crowd;
    struct postgres_world *world = *state;

    for (unsigned i = 0; i < sizeof points / sizeof *points; i++) {
        char plan[64];

        snprintf(plan, sizeof plan, "%s:20:error", points[i]);
        crowd_open(&crowd, world);
        fault_set(plan);
        crowd_run(&crowd);
        fault_set(NULL);
        crowd_close(&crowd, CROWD);
    }
}

#endif

/* Argument "pooled": through PgBouncer, which stands before the proxy. */
int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_a_group_share_a_commit),
        cmocka_unit_test(one_that_fails_does_not_touch_its_neighbours),
        cmocka_unit_test(a_no_of_a_group_is_recorded_and_a_release_is_not),
        cmocka_unit_test(one_that_ended_badly_is_counted),
        cmocka_unit_test(a_commit_that_fails_sends_each_back_alone),
        cmocka_unit_test(a_commit_whose_answer_is_lost_never_runs_twice),
        cmocka_unit_test(
            a_connection_that_is_lost_between_handlers_costs_only_time),
        cmocka_unit_test(a_key_that_is_known_leaves_the_group),
        cmocka_unit_test(a_call_that_waits_for_a_lock_leaves),
        cmocka_unit_test(a_look_at_a_watermark_that_fails_costs_only_time),
        cmocka_unit_test(what_one_sets_is_not_met_by_the_next),
        cmocka_unit_test(one_whose_turn_comes_too_late_does_not_run),
        cmocka_unit_test(of_two_servers_with_the_same_keys_one_has_each_effect),
#ifdef IDEM_FAULTS
        cmocka_unit_test(a_fault_at_any_point_leaves_one_effect),
#endif
    };

    pooled = argc > 1 && strcmp(argv[1], "pooled") == 0;
    return cmocka_run_group_tests_name("joint", tests, joint_set_up,
                                       joint_tear_down);
}
