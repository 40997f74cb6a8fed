#include "suite_call.h"

#include "child.h"
#include "postgres.h"

#include <idem/postgres.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two PostgreSQLs, a primary and its streaming standby, and a store that knows
 * both: who is taken for the authority, and what holds when the one falls and
 * the other is promoted. */

#define THREADS 4
#define CALLS 12 /* a thread */

struct site {
    struct suite suite; /* first: a site is a suite */
    struct suite_factory factory;
    struct postgres *primary, *standby;
    char both[160]; /* conninfo */
};

static enum idem_status
open_on(struct idem_store **store, const char *conninfo, struct idem_error *err)
{
    const struct idem_postgres_options options = {
        .conninfo = conninfo,
        .connections = 5,
        .statement_timeout_ms = 3000,
        .connect_timeout_ms = 1000,
        .maintain_every_ms = -1,
    };

    return idem_postgres_open(store, &options, err);
}

static int64_t
wall_ms(void *with)
{
    const struct idem_clock *clock = idem_clock_system();

    (void)with;
    return clock->wall_ms(clock);
}

static struct site *
site_open(const char *standby_settings)
{
    const struct postgres_options durable = {.durable = true};
    struct site *site = calloc(1, sizeof(*site));
    struct idem_error err;

    assert_non_null(site);
    site->primary = postgres_start(&durable);
    if (idem_postgres_migrate(postgres_conninfo(site->primary), NULL, &err) !=
        IDEM_OK)
        fail_msg("%s", err.message);
    postgres_sql(site->primary,
                 "CREATE TABLE effects (key TEXT, amount BIGINT)");
    site->standby = postgres_standby(site->primary, standby_settings);
    postgres_conninfo_of(site->primary, site->standby, site->both);
    site->factory = (struct suite_factory){
        .wall_ms = wall_ms, .clock = idem_clock_system(), .lease_ms = 60000};
    site->suite.factory = &site->factory;
    site->suite.minted = true;
    if (open_on(&site->suite.store, site->both, &err) != IDEM_OK)
        fail_msg("%s", err.message);
    return site;
}

static int
set_up(void **state)
{
    *state = site_open(NULL);
    return 0;
}

static int
tear_down(void **state)
{
    struct site *site = *state;

    idem_store_free(site->suite.store);
    postgres_free(site->standby);
    postgres_free(site->primary);
    free(site);
    return 0;
}

/* The primary is gone for good. */
static void
fail_over(struct site *site)
{
    postgres_kill(site->primary);
    postgres_promote(site->standby);
}

static void
open_call(struct suite_call *call, struct site *site, enum idem_mode mode)
{
    char key[IDEM_KEY_MAX + 1];

    suite_key(&site->suite, key);
    call_open(call, &site->suite, key, mode, 1);
}

static bool
is_settled(void *with)
{
    enum idem_verdict verdict = call_claim(with);

    return verdict != IDEM_VERDICT_FAILED && verdict != IDEM_VERDICT_RUNNING;
}

/* As a server and its client do: until it is the caller's, or a final word. */
static enum idem_verdict
claim(struct suite_call *call)
{
    if (!child_wait_until(is_settled, call, 60000))
        fail_msg("no claim in time: %s", call->ticket.error.message);
    return call->ticket.verdict;
}

static void
pay(struct suite_call *call)
{
    bool transaction = call->ticket.mode == IDEM_MODE_TRANSACTION;

    while (claim(call) == IDEM_VERDICT_MINE) {
        if (transaction && call_effect(call, 1) != IDEM_OK)
            (void)call_release(call);
        else if (call_complete(call, IDEM_OK, "paid") == IDEM_VERDICT_MINE)
            return;
    }
    assert_int_equal(call->ticket.verdict, IDEM_VERDICT_DONE);
    assert_text(call->ticket.answer.reply, "paid");
}

static int64_t
effects(const struct postgres *postgres, const char *key)
{
    return postgres_sql(postgres,
                        "SELECT count(*) FROM effects WHERE key = '%s'", key);
}

/* --- Who is the authority --- */

static void
a_standby_alone_is_refused_at_start(void **state)
{
    struct site *site = *state;
    struct idem_store *store = NULL;
    struct idem_error err;

    assert_true(postgres_wait(site->standby, 60000, "SELECT 1"));
    assert_int_equal(open_on(&store, postgres_conninfo(site->standby), &err),
                     IDEM_FAILED_PRECONDITION);
    assert_non_null(strstr(err.message, "standby"));
    assert_non_null(strstr(err.message, "primary"));
    assert_null(store);
}

/* The standby stands first in the list. */
static void
the_primary_is_found_behind_a_standby(void **state)
{
    struct site *site = *state;
    struct idem_store *first = site->suite.store;
    struct suite_call call;
    char both[160];

    postgres_conninfo_of(site->standby, site->primary, both);
    assert_int_equal(open_on(&site->suite.store, both, NULL), IDEM_OK);
    open_call(&call, site, IDEM_MODE_TRANSACTION);
    pay(&call);
    assert_int_equal(effects(site->primary, call.key), 1);
    call_close(&call);
    idem_store_free(site->suite.store);
    site->suite.store = first;
}

/* B124's second half: it cannot record, so nothing is begun. */
static void
a_read_only_database_is_refused_at_start(void **state)
{
    struct site *site = *state;
    struct idem_store *store = NULL;
    struct idem_error err;

    postgres_sql(
        site->primary,
        "ALTER DATABASE postgres SET default_transaction_read_only = on");
    assert_int_equal(open_on(&store, postgres_conninfo(site->primary), &err),
                     IDEM_FAILED_PRECONDITION);
    assert_non_null(strstr(err.message, "read-only"));
}

/* --- A commit that no standby has confirmed --- */

/* The wait is cancelled: the commit stands here, and perhaps nowhere else. */
static void
cancel_waiters(struct site *site)
{
    assert_true(postgres_wait(site->primary, 20000,
                              "SELECT count(pg_cancel_backend(pid)) FROM "
                              "pg_stat_activity WHERE wait_event = 'SyncRep'"));
}

static void
a_commit_that_no_standby_confirms_is_not_told_as_done(void **state)
{
    struct site *site = *state;
    struct suite_call call;

    postgres_await_standby(site->primary);
    open_call(&call, site, IDEM_MODE_TRANSACTION);
    assert_int_equal(claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_effect(&call, 1), IDEM_OK);
    postgres_freeze(site->standby);
    call.ticket.answer = (struct idem_answer){.reply = idem_bytes_of("paid")};
    call_start(&call, site->suite.store->ops->complete);
    cancel_waiters(site);
    assert_int_equal(call_await(&call), IDEM_VERDICT_UNKNOWN);
    assert_int_equal(effects(site->primary, call.key), 1);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_FAILED);
    assert_int_equal(call.ticket.error.status, IDEM_UNAVAILABLE);
    postgres_thaw(site->standby);
    assert_int_equal(claim(&call), IDEM_VERDICT_DONE);
    assert_int_equal(effects(site->primary, call.key), 1);
    call_close(&call);
}

/* What it wrote stands, so it must not be told as failed. */
static void
statements_that_no_standby_confirms_are_unknown(void **state)
{
    struct site *site = *state;
    struct suite_call before, call;

    postgres_await_standby(site->primary);
    open_call(&before, site, IDEM_MODE_TRANSACTION); /* the day is known */
    call_add_effect(&before, 1);
    assert_int_equal(call_run(&before), IDEM_VERDICT_MINE);
    call_close(&before);

    open_call(&call, site, IDEM_MODE_TRANSACTION);
    call_add_effect(&call, 1);
    postgres_freeze(site->standby);
    call_start(&call, site->suite.store->ops->run);
    cancel_waiters(site);
    assert_int_equal(call_await(&call), IDEM_VERDICT_UNKNOWN);
    assert_int_equal(effects(site->primary, call.key), 1);
    postgres_thaw(site->standby);
    assert_int_equal(claim(&call), IDEM_VERDICT_DONE);
    assert_int_equal(effects(site->primary, call.key), 1);
    call_close(&call);
}

static void
a_lease_that_no_standby_confirms_is_not_held(void **state)
{
    struct site *site = *state;
    struct suite_call call;

    postgres_await_standby(site->primary);
    postgres_freeze(site->standby);
    open_call(&call, site, IDEM_MODE_LEASED);
    call_start(&call, site->suite.store->ops->claim);
    cancel_waiters(site);
    assert_int_equal(call_await(&call), IDEM_VERDICT_FAILED);
    postgres_thaw(site->standby);
    assert_true(claim(&call) == IDEM_VERDICT_MINE);
    assert_int_equal(call.ticket.executions, 1);
    assert_int_equal(call_complete(&call, IDEM_OK, "paid"), IDEM_VERDICT_MINE);
    call_close(&call);
}

/* --- Failover --- */

/* I10: what was told as done is there, and is replayed by the new primary. */
static void
what_was_done_is_replayed_by_the_new_primary(void **state)
{
    struct site *site = *state;
    struct suite_call paid, leased, open, next;
    char before[IDEM_EPOCH_MAX], after[IDEM_EPOCH_MAX];

    postgres_await_standby(site->primary);
    open_call(&paid, site, IDEM_MODE_TRANSACTION);
    open_call(&leased, site, IDEM_MODE_LEASED);
    open_call(&open, site, IDEM_MODE_TRANSACTION);
    open_call(&next, site, IDEM_MODE_TRANSACTION);
    pay(&paid);
    pay(&leased);
    assert_int_equal(claim(&open), IDEM_VERDICT_MINE);
    assert_int_equal(call_effect(&open, 1), IDEM_OK);
    site->suite.store->ops->epoch(site->suite.store, before);
    fail_over(site);
    assert_int_equal(call_complete(&open, IDEM_OK, "paid") == IDEM_VERDICT_MINE,
                     0);
    assert_int_equal(claim(&paid), IDEM_VERDICT_DONE);
    assert_text(paid.ticket.answer.reply, "paid");
    assert_int_equal(claim(&leased), IDEM_VERDICT_DONE);
    pay(&open);
    pay(&next);
    site->suite.store->ops->epoch(site->suite.store, after);
    assert_string_not_equal(before, after); /* fault 41: the timeline */
    assert_int_equal(effects(site->standby, paid.key), 1);
    assert_int_equal(effects(site->standby, open.key), 1);
    call_close(&paid);
    call_close(&leased);
    call_close(&open);
    call_close(&next);
}

struct payer {
    pthread_t thread;
    struct suite_call calls[CALLS];
};

static void *
pay_all(void *with)
{
    struct payer *payer = with;

    for (int i = 0; i < CALLS; i++)
        pay(&payer->calls[i]);
    return NULL;
}

/* I1, I10: commits whose answers are lost with the primary are there or not,
 * and are asked about. */
static void
a_failover_under_load_doubles_and_loses_nothing(void **state)
{
    static struct payer payers[THREADS];
    struct site *site = *state;

    postgres_await_standby(site->primary);
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < CALLS; j++)
            open_call(&payers[i].calls[j], site,
                      j % 3 == 0 ? IDEM_MODE_LEASED : IDEM_MODE_TRANSACTION);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&payers[i].thread, NULL, pay_all, &payers[i]);
    assert_true(postgres_wait(site->primary, 60000,
                              "SELECT (count(*) > 8)::int FROM effects"));
    fail_over(site);
    for (int i = 0; i < THREADS; i++)
        pthread_join(payers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < CALLS; j++) {
            assert_int_equal(effects(site->standby, payers[i].calls[j].key),
                             j % 3 == 0 ? 0 : 1);
            call_close(&payers[i].calls[j]);
        }
}

/* --- A database that is starting up --- */

static int
set_up_starting(void **state)
{
    *state = site_open("hot_standby = off");
    return 0;
}

/* 57P03, for as long as it takes. */
static void
a_database_that_starts_up_is_waited_for(void **state)
{
    struct site *site = *state;
    struct suite_call call;

    open_call(&call, site, IDEM_MODE_TRANSACTION);
    postgres_kill(site->primary);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(call_claim(&call), IDEM_VERDICT_FAILED);
        assert_int_equal(call.ticket.error.status, IDEM_UNAVAILABLE);
    }
    idem_store_free(site->suite.store);
    assert_int_equal(
        open_on(&site->suite.store, postgres_conninfo(site->standby), NULL),
        IDEM_OK);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_FAILED);
    assert_int_equal(call.ticket.error.status, IDEM_UNAVAILABLE);
    postgres_promote(site->standby);
    pay(&call);
    assert_int_equal(effects(site->standby, call.key), 1);
    call_close(&call);
}

#define HERE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        HERE(a_standby_alone_is_refused_at_start),
        HERE(the_primary_is_found_behind_a_standby),
        HERE(a_read_only_database_is_refused_at_start),
        HERE(a_commit_that_no_standby_confirms_is_not_told_as_done),
        HERE(statements_that_no_standby_confirms_are_unknown),
        HERE(a_lease_that_no_standby_confirms_is_not_held),
        HERE(what_was_done_is_replayed_by_the_new_primary),
        HERE(a_failover_under_load_doubles_and_loses_nothing),
        cmocka_unit_test_setup_teardown(a_database_that_starts_up_is_waited_for,
                                        set_up_starting, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
