#include "postgres_world.h"

#include "child.h"
#include "tx.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* A database that is away, silent or new, and owners that are frozen or dead:
 * nobody waits beyond the call's time, nothing happens twice. */

#define NS_PER_MS INT64_C(1000000)
#define THREADS 6
#define CALLS 25 /* a thread */
#define LONG_CALLS 100

static int64_t
now_ns(void)
{
    const struct idem_clock *clock = idem_clock_system();

    return clock->monotonic_ns(clock);
}

static int64_t
effects(struct postgres_world *world, const char *key)
{
    return postgres_sql(world->postgres,
                        "SELECT count(*) FROM effects WHERE key = '%s'", key);
}

static void
assert_no_key_twice(struct postgres_world *world)
{
    assert_int_equal(
        postgres_sql(world->postgres,
                     "SELECT count(*) FROM (SELECT key FROM effects GROUP BY "
                     "key HAVING count(*) > 1) AS twice"),
        0);
}

/* Fault 42. */
static void
a_database_that_is_away_refuses_at_once_and_comes_back(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call;

    world_call(&call, world);
    postgres_stop(world->postgres);
    for (int i = 0; i < 5; i++) {
        call.ticket.deadline_ns = now_ns() + 20000 * NS_PER_MS;
        assert_int_equal(call_claim(&call), IDEM_VERDICT_FAILED);
        assert_int_equal(call.ticket.error.status, IDEM_UNAVAILABLE);
        assert_string_equal(call.ticket.error.reason, "STORE_AWAY");
        assert_true(now_ns() < call.ticket.deadline_ns);
    }
    postgres_restart(world->postgres);
    call.ticket.deadline_ns = INT64_MAX;
    world_pay(&call);
    assert_int_equal(effects(world, call.key), 1);
    call_close(&call);
}

static void
a_store_opens_while_the_database_is_away(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call;
    struct idem_error err;
    struct idem_tx *tx;

    world_call(&call, world);
    postgres_stop(world->postgres);
    world_reopen(world);
    tx = world->suite.store->ops->begin_read(
        world->suite.store, call.ticket.arena, INT64_MAX, &err);
    assert_null(tx);
    assert_int_equal(err.status, IDEM_UNAVAILABLE);
    postgres_restart(world->postgres);
    world_pay(&call);
    call_close(&call);
}

static void
note_alarm(void *with, const char *what)
{
    char *noted = with;

    snprintf(noted, 256, "%s", what);
}

/* It goes on, and would answer UNAVAILABLE for ever. */
static void
a_database_that_there_is_not_is_told_at_open(void **state)
{
    struct postgres_world *world = *state;
    char conninfo[256], what[256] = "";
    const struct idem_postgres_options options = {.conninfo = conninfo,
                                                  .connections =
                                                      POSTGRES_FEW_CONNECTIONS,
                                                  .alarm = note_alarm,
                                                  .alarm_with = what};
    struct idem_store *store;

    snprintf(conninfo, sizeof conninfo, "%s dbname=nowhere",
             postgres_conninfo(world->postgres));
    assert_int_equal(idem_postgres_open(&store, &options, NULL), IDEM_OK);
    assert_non_null(strstr(what, "database \"nowhere\" does not exist"));
    assert_non_null(strstr(what, "calls are refused until it answers"));
    assert_int_equal(idem_postgres_alarms(store), 1);
    idem_store_free(store);
}

/* The claim is written, its answer lost, and the database out of reach: the
 * handler never began, so that the next claim may, also under HOLD. */
static void
a_claim_that_was_lost_is_known_again(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call;
    char sql[400];

    world_call(&call, world);
    call.ticket.mode = IDEM_MODE_LEASED;
    call.ticket.after_crash = IDEM_AFTER_CRASH_HOLD;
    tcp_proxy_cut(world->proxy, TCP_PROXY_CUT_ANSWER, "shop.v1.Shop/Buy", 1);
    tcp_proxy_refuse(world->proxy, 1);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_FAILED);
    tcp_proxy_refuse(world->proxy, 0);
    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM idem_record WHERE key_text = '%s'",
             call.key);
    assert_true(postgres_wait(world->postgres, 20000, sql));
    suite_pass_lease(&world->suite);
    assert_int_equal(world_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call.ticket.executions, 1);
    assert_int_equal(call_complete(&call, IDEM_OK, "x"), IDEM_VERDICT_MINE);
    call_close(&call);
}

/* Fault 45: … by whoever asks what the lost one asked, and by nobody else. */
static void
a_claim_that_was_lost_is_not_given_to_another_request(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call, other;
    char sql[400];

    world_call(&call, world);
    call_open(&other, &world->suite, call.key, IDEM_MODE_LEASED, 2);
    call.ticket.mode = IDEM_MODE_LEASED;
    call.ticket.after_crash = IDEM_AFTER_CRASH_HOLD;
    tcp_proxy_cut(world->proxy, TCP_PROXY_CUT_ANSWER, "shop.v1.Shop/Buy", 1);
    tcp_proxy_refuse(world->proxy, 1);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_FAILED);
    tcp_proxy_refuse(world->proxy, 0);
    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM idem_record WHERE key_text = '%s'",
             call.key);
    assert_true(postgres_wait(world->postgres, 20000, sql));
    assert_int_equal(world_claim(&other), IDEM_VERDICT_REUSED);
    assert_int_equal(world_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_complete(&call, IDEM_OK, "x"), IDEM_VERDICT_MINE);
    call_close(&call);
    call_close(&other);
}

/* B082: everything hangs, nobody closes a socket. */
static void
a_frozen_database_holds_nobody_beyond_the_deadline(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call calls[8];

    for (int i = 0; i < 8; i++)
        world_call(&calls[i], world);
    postgres_freeze(world->postgres);
    for (int i = 0; i < 8; i++) {
        calls[i].ticket.deadline_ns = now_ns() + 300 * NS_PER_MS;
        call_start(&calls[i], world->suite.store->ops->claim);
    }
    for (int i = 0; i < 8; i++)
        assert_int_equal(call_await(&calls[i]), IDEM_VERDICT_FAILED);
    postgres_thaw(world->postgres);
    for (int i = 0; i < 8; i++) {
        calls[i].ticket.deadline_ns = INT64_MAX;
        world_pay(&calls[i]);
        assert_int_equal(effects(world, calls[i].key), 1);
        call_close(&calls[i]);
    }
}

/* B082, when it is the handler's statement that hangs. */
static void
a_statement_that_hangs_ends_with_the_call(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call;

    world_call(&call, world);
    call.ticket.deadline_ns = now_ns() + 2000 * NS_PER_MS;
    if (world_claim(&call) == IDEM_VERDICT_MINE) {
        assert_int_equal(idem_sql(call.ticket.tx, NULL, NULL,
                                  "SELECT pg_sleep(60)", IDEM_NO_VALUES),
                         IDEM_DEADLINE_EXCEEDED);
        assert_int_equal(call_complete(&call, IDEM_OK, "paid"),
                         IDEM_VERDICT_FAILED);
    }
    call.ticket.deadline_ns = INT64_MAX;
    world_pay(&call);
    assert_int_equal(effects(world, call.key), 1);
    call_close(&call);
}

static void
a_claim_that_finds_no_connection_free_ends_at_its_deadline(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call holders[2], late, leased;

    for (int i = 0; i < 2; i++) { /* the third is for short work */
        world_call(&holders[i], world);
        assert_int_equal(world_claim(&holders[i]), IDEM_VERDICT_MINE);
    }
    world_call(&late, world);
    late.ticket.deadline_ns = now_ns() + 100 * NS_PER_MS;
    assert_int_equal(call_claim(&late), IDEM_VERDICT_FAILED);
    assert_int_equal(late.ticket.error.status, IDEM_DEADLINE_EXCEEDED);
    world_call(&leased, world);
    leased.ticket.mode = IDEM_MODE_LEASED;
    assert_int_equal(call_claim(&leased), IDEM_VERDICT_MINE);
    assert_int_equal(call_complete(&leased, IDEM_OK, "x"), IDEM_VERDICT_MINE);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(call_release(&holders[i]), IDEM_VERDICT_MINE);
        call_close(&holders[i]);
    }
    call_close(&late);
    call_close(&leased);
}

/* B008: no time left is not the same as no end. */
static void
a_claim_at_its_deadline_leaves_no_lease_without_an_end(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call calls[9];

    for (int i = 0; i < 9; i++) {
        world_call(&calls[i], world);
        calls[i].ticket.mode = IDEM_MODE_LEASED;
        calls[i].ticket.deadline_ns = now_ns() + i % 3 * NS_PER_MS;
        (void)call_claim(&calls[i]);
    }
    assert_int_equal(
        postgres_sql(world->postgres,
                     "SELECT count(*) FROM idem_record WHERE state = "
                     "'RUNNING' AND (lease_until IS NULL OR lease_until > "
                     "clock_timestamp() + %lld * interval '1 ms')",
                     (long long)calls[0].ticket.lease_ms),
        0);
    suite_pass_lease(&world->suite);
    for (int i = 0; i < 9; i++) {
        calls[i].ticket.deadline_ns = INT64_MAX;
        assert_int_equal(world_claim(&calls[i]), IDEM_VERDICT_MINE);
        assert_int_equal(call_complete(&calls[i], IDEM_OK, "x"),
                         IDEM_VERDICT_MINE);
        call_close(&calls[i]);
    }
}

/* Fault 25: a zombie's transaction is ended by the database, and its commit
 * fails when it wakes. */
static void
a_frozen_owner_loses_its_transaction(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call zombie, next;

    world->options.idle_in_transaction_ms = 2000; /* the effect fits in */
    world_reopen(world);
    world_call(&zombie, world);
    call_open(&next, &world->suite, zombie.key, IDEM_MODE_TRANSACTION, 1);
    assert_int_equal(world_claim(&zombie), IDEM_VERDICT_MINE);
    assert_int_equal(call_effect(&zombie, 1), IDEM_OK);
    world_pay(&next);
    assert_int_equal(call_complete(&zombie, IDEM_OK, "zombie"),
                     IDEM_VERDICT_FAILED);
    assert_int_equal(call_claim(&zombie), IDEM_VERDICT_DONE);
    assert_text(zombie.ticket.answer.reply, "paid");
    assert_int_equal(effects(world, zombie.key), 1);
    call_close(&zombie);
    call_close(&next);
    world->options.idle_in_transaction_ms = 0;
    world_reopen(world);
}

/* This program as a child: a claim, and a statement that would take a minute.
 * It ends by a kill. */
static int
hang(const char *conninfo, const char *key)
{
    const struct idem_postgres_options options = {.conninfo = conninfo,
                                                  .maintain_every_ms = -1};
    struct suite_factory factory = {.clock = idem_clock_system()};
    struct suite suite = {.factory = &factory};
    struct suite_call call;

    if (idem_postgres_open(&suite.store, &options, NULL) != IDEM_OK)
        return 1;
    call_open(&call, &suite, key, IDEM_MODE_TRANSACTION, 1);
    if (world_claim(&call) == IDEM_VERDICT_MINE)
        (void)!idem_sql(call.ticket.tx, NULL, NULL, "SELECT pg_sleep(60)",
                        IDEM_NO_VALUES);
    return 1;
}

/* Fault 26: free after client_connection_check_interval, not after the
 * statement. Fault 13: nothing of it is left. */
static void
a_key_of_a_killed_owner_is_free_before_its_statement_ends(void **state)
{
    struct postgres_world *world = *state;
    const struct child_options options = {0};
    struct suite_call call;
    int64_t start_ns;
    pid_t child;

    world_call(&call, world);
    child = child_start(
        &options, (const char *const[]){child_same_program(), "--hang",
                                        postgres_conninfo(world->postgres),
                                        call.key, NULL});
    assert_true(postgres_wait(world->postgres, 20000,
                              "SELECT count(*) FROM pg_stat_activity WHERE "
                              "query = 'SELECT pg_sleep(60)'"));
    child_stop(child, SIGKILL);
    start_ns = now_ns();
    world_pay(&call);
    assert_true(now_ns() - start_ns < 30000 * NS_PER_MS);
    assert_int_equal(effects(world, call.key), 1);
    call_close(&call);
}

static int64_t goal; /* effects, when all payers are through */
static int calls = CALLS;

struct payer {
    struct postgres_world *world;
    pthread_t thread;
    struct suite_call calls[LONG_CALLS];
};

static void *
pay_all(void *with)
{
    struct payer *payer = with;

    for (int i = 0; i < calls; i++)
        world_pay(&payer->calls[i]);
    return NULL;
}

static void
pay_under(struct postgres_world *world,
          void (*disturb)(struct postgres_world *world))
{
    static struct payer payers[THREADS];

    goal = postgres_sql(world->postgres, "SELECT count(*) FROM effects") +
           THREADS * calls;
    for (int i = 0; i < THREADS; i++) {
        payers[i].world = world;
        for (int j = 0; j < calls; j++)
            world_call(&payers[i].calls[j], world);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&payers[i].thread, NULL, pay_all, &payers[i]), 0);
    disturb(world);
    for (int i = 0; i < THREADS; i++)
        pthread_join(payers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < calls; j++) {
            assert_int_equal(effects(world, payers[i].calls[j].key), 1);
            call_close(&payers[i].calls[j]);
        }
    assert_no_key_twice(world);
}

/* Until the load has gone on by so many, or is through. */
static void
wait_for_more(struct postgres_world *world, int64_t more)
{
    char sql[128];
    int64_t paid =
        postgres_sql(world->postgres, "SELECT count(*) FROM effects");

    if (paid + more > goal)
        more = goal - paid;
    snprintf(sql, sizeof(sql), "SELECT (count(*) >= %lld)::int FROM effects",
             (long long)(paid + more));
    assert_true(postgres_wait(world->postgres, 60000, sql));
}

/* Three times; in the long run twelve. */
static void
crash_again_and_again(struct postgres_world *world)
{
    for (int i = 0; i < 3 * calls / CALLS; i++) {
        wait_for_more(world, 20);
        postgres_restart(world->postgres); /* -m immediate */
    }
}

/* Fault 17, I1, I10. */
static void
a_database_that_crashes_under_load_doubles_and_loses_nothing(void **state)
{
    pay_under(*state, crash_again_and_again);
}

static void
terminate_backends(struct postgres_world *world)
{
    for (int i = 0; i < 15; i++) {
        wait_for_more(world, 5);
        postgres_sql(world->postgres,
                     "SELECT count(pg_terminate_backend(pid)) FROM "
                     "pg_stat_activity WHERE application_name = 'idem' AND "
                     "random() < 0.5");
    }
}

/* Faults 18, B081. */
static void
terminated_backends_double_and_lose_nothing(void **state)
{
    pay_under(*state, terminate_backends);
}

static int
set_up(void **state)
{
    *state = world_open(true);
    return 0;
}

/* Argument "long": 600 keys under crashes (fault 17). */
int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_database_that_is_away_refuses_at_once_and_comes_back),
        cmocka_unit_test(a_store_opens_while_the_database_is_away),
        cmocka_unit_test(a_database_that_there_is_not_is_told_at_open),
        cmocka_unit_test(a_claim_that_was_lost_is_known_again),
        cmocka_unit_test(a_claim_that_was_lost_is_not_given_to_another_request),
        cmocka_unit_test(a_frozen_database_holds_nobody_beyond_the_deadline),
        cmocka_unit_test(a_statement_that_hangs_ends_with_the_call),
        cmocka_unit_test(
            a_claim_that_finds_no_connection_free_ends_at_its_deadline),
        cmocka_unit_test(
            a_claim_at_its_deadline_leaves_no_lease_without_an_end),
        cmocka_unit_test(a_frozen_owner_loses_its_transaction),
        cmocka_unit_test(
            a_database_that_crashes_under_load_doubles_and_loses_nothing),
        cmocka_unit_test(terminated_backends_double_and_lose_nothing),
        cmocka_unit_test(
            a_key_of_a_killed_owner_is_free_before_its_statement_ends),
    };

    if (argc == 4 && strcmp(argv[1], "--hang") == 0)
        return hang(argv[2], argv[3]);
    if (argc > 1 && strcmp(argv[1], "long") == 0)
        calls = LONG_CALLS;
    return cmocka_run_group_tests(tests, set_up, world_down);
}
