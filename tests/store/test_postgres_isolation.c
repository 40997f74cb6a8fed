#include "postgres_world.h"

#include <pthread.h>

/* Handlers at REPEATABLE READ and SERIALIZABLE: a conflict is told as one, the
 * handler is run again, and in the end there is one answer (B071, B077). */

#define THREADS 3
#define CALLS 8 /* a thread */

static const enum idem_isolation isolations[] = {
    IDEM_READ_COMMITTED, IDEM_REPEATABLE_READ, IDEM_SERIALIZABLE};

static int64_t
effects(struct postgres_world *world, const char *key)
{
    return postgres_sql(world->postgres,
                        "SELECT count(*) FROM effects WHERE key = '%s'", key);
}

/* B071: the winner commits after the loser's snapshot, past the lock, which a
 * connection that does not know it stands for. */
static void
a_winner_that_the_snapshot_does_not_see_is_replayed(void **state)
{
    struct postgres_world *world = *state;

    for (int i = 0; i < 3; i++) {
        struct suite_call winner, loser;

        world->options.isolation = isolations[i];
        world_reopen(world);
        world_call(&winner, world);
        call_open(&loser, &world->suite, winner.key, IDEM_MODE_TRANSACTION, 1);
        assert_int_equal(world_claim(&loser), IDEM_VERDICT_MINE);
        assert_int_equal(call_effect(&loser, 1), IDEM_OK);
        winner.ticket.mode = IDEM_MODE_LEASED; /* takes no lock */
        assert_int_equal(call_claim(&winner), IDEM_VERDICT_MINE);
        assert_int_equal(call_complete(&winner, IDEM_OK, "winner"),
                         IDEM_VERDICT_MINE);
        if (call_complete(&loser, IDEM_OK, "loser") != IDEM_VERDICT_DONE) {
            assert_int_equal(loser.ticket.verdict, IDEM_VERDICT_CONFLICT);
            assert_int_equal(call_claim(&loser), IDEM_VERDICT_DONE);
        }
        assert_text(loser.ticket.answer.reply, "winner");
        assert_int_equal(effects(world, loser.key), 0);
        call_close(&winner);
        call_close(&loser);
    }
}

struct counter {
    pthread_t thread;
    struct suite_call calls[CALLS];
    unsigned conflicts;
};

/* One hot row; as the framework does it: again after each conflict. */
static void *
count_up(void *with)
{
    struct counter *counter = with;

    for (int i = 0; i < CALLS; i++) {
        struct suite_call *call = &counter->calls[i];

        while (world_claim(call) == IDEM_VERDICT_MINE) {
            (void)!idem_sql(call->ticket.tx, NULL, NULL,
                            "UPDATE hot SET n = n + 1", IDEM_NO_VALUES);
            if (call_complete(call, IDEM_OK, "up") == IDEM_VERDICT_MINE)
                break;
            assert_int_equal(call->ticket.verdict, IDEM_VERDICT_CONFLICT);
            counter->conflicts++;
        }
    }
    return NULL;
}

/* B077. */
static void
a_hot_row_counts_each_key_once(void **state)
{
    static struct counter counters[THREADS];
    struct postgres_world *world = *state;
    unsigned conflicts = 0;

    world->options.isolation = IDEM_SERIALIZABLE;
    world->options.connections = THREADS + 1;
    world_reopen(world);
    postgres_sql(world->postgres,
                 "CREATE TABLE hot (n INT); INSERT INTO hot VALUES (0)");
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < CALLS; j++)
            world_call(&counters[i].calls[j], world);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&counters[i].thread, NULL, count_up, &counters[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(counters[i].thread, NULL);
        conflicts += counters[i].conflicts;
    }
    print_message("%u conflicts\n", conflicts);
    assert_int_equal(postgres_sql(world->postgres, "SELECT n FROM hot"),
                     THREADS * CALLS);
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < CALLS; j++) {
            assert_int_equal(call_claim(&counters[i].calls[j]),
                             IDEM_VERDICT_DONE);
            call_close(&counters[i].calls[j]);
        }
}

/* What the database sets for all is not what the store works under. */
static void
the_databases_own_default_does_not_count(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call call;
    struct idem_rows *rows;

    postgres_sql(world->postgres, "ALTER DATABASE postgres SET "
                                  "default_transaction_isolation = "
                                  "'serializable'");
    world->options.isolation = IDEM_READ_COMMITTED;
    world_reopen(world);
    world_call(&call, world);
    assert_int_equal(world_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(idem_sql(call.ticket.tx, &rows, NULL,
                              "SHOW transaction_isolation", IDEM_NO_VALUES),
                     IDEM_OK);
    assert_string_equal(idem_rows_text(rows, 0, 0), "read committed");
    assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
    call_close(&call);
}

static void
an_isolation_that_is_none_is_told_at_open(void **state)
{
    const struct idem_postgres_options options = {.isolation =
                                                      (enum idem_isolation)3};
    struct idem_store *store = NULL;
    struct idem_error err;

    (void)state;
    assert_int_equal(idem_postgres_open(&store, &options, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "isolation 3: there are 0 to 2");
}

/* --- Numbers of sessions (faults 66, 67; decision 60) --- */

static void
mint_session(struct postgres_world *world, char session[IDEM_SESSION_MAX])
{
    const struct suite_factory *factory = world->suite.factory;
    const struct idem_clock *system = idem_clock_system();

    idem_session_mint(session, system,
                      factory->wall_ms(factory->with) - system->wall_ms(system),
                      86400000);
}

static void
number_call(struct suite_call *call, struct postgres_world *world,
            const char *session, int64_t sequence, enum idem_mode mode)
{
    char key[IDEM_KEY_MAX + 1];

    idem_key_of_session(key, session, sequence);
    call_open(call, &world->suite, key, mode, 1);
    call->ticket.id.scope = IDEM_SESSION_SCOPE;
    call_identify(call);
}

/* The client has the answers of all numbers below. */
static void
acknowledge(struct postgres_world *world, const char *session, int64_t below)
{
    struct suite_call call;

    number_call(&call, world, session, below, IDEM_MODE_LEASED);
    call.ticket.ack_below = (uint64_t)below;
    assert_int_equal(call_do(&call, world->suite.store->ops->acknowledge),
                     IDEM_VERDICT_MINE);
    call_close(&call);
}

static int64_t
records(struct postgres_world *world, const char *key)
{
    return postgres_sql(world->postgres,
                        "SELECT count(*) FROM idem_record WHERE key_text = "
                        "'%s'",
                        key);
}

/* Past its lock a rival does the number, is acknowledged and forgotten while
 * the handler runs: nothing is there any more that the record would meet. */
static void
a_number_that_was_forgotten_meanwhile_is_not_committed(void **state)
{
    static const enum idem_status says[] = {IDEM_OK, IDEM_NOT_FOUND};
    struct postgres_world *world = *state;

    world->options.isolation = IDEM_READ_COMMITTED;
    world_reopen(world);
    for (int i = 0; i < 2; i++) {
        struct suite_call late, rival;
        char session[IDEM_SESSION_MAX];

        mint_session(world, session);
        number_call(&late, world, session, 1, IDEM_MODE_TRANSACTION);
        number_call(&rival, world, session, 1, IDEM_MODE_TRANSACTION);
        assert_int_equal(world_claim(&late), IDEM_VERDICT_MINE);
        assert_int_equal(call_do(&late, world->suite.store->ops->watermark),
                         IDEM_VERDICT_MINE);
        assert_int_equal(call_effect(&late, 1), IDEM_OK);
        call_add_effect(&rival, 1);
        assert_int_equal(call_run(&rival), IDEM_VERDICT_MINE);
        acknowledge(world, session, 2);
        assert_int_equal(records(world, late.key), 0);
        assert_int_equal(call_complete(&late, says[i], "late"),
                         IDEM_VERDICT_CONFLICT);
        assert_int_equal(effects(world, late.key), 1);
        assert_int_equal(records(world, late.key), 0);
        assert_int_equal(world_claim(&late), IDEM_VERDICT_MINE);
        assert_int_equal(call_do(&late, world->suite.store->ops->watermark),
                         IDEM_VERDICT_EXPIRED);
        assert_int_equal(call_release(&late), IDEM_VERDICT_MINE);
        call_close(&late);
        call_close(&rival);
    }
}

static enum idem_verdict
run_number(struct postgres_world *world, const char *session, bool first)
{
    struct suite_call call;
    enum idem_verdict verdict;

    number_call(&call, world, session, 1, IDEM_MODE_TRANSACTION);
    call_add_effect(&call, 1);
    if (first)
        idem_statements_reply_first(&call.statements);
    verdict = call_run(&call);
    if (verdict != IDEM_VERDICT_MINE)
        assert_int_equal(effects(world, call.key), 1);
    call_close(&call);
    return verdict;
}

static void
a_number_of_statements_runs_once_at_each_isolation(void **state)
{
    struct postgres_world *world = *state;

    for (int i = 0; i < 6; i++) {
        char session[IDEM_SESSION_MAX];

        world->options.isolation = isolations[i / 2];
        world_reopen(world);
        mint_session(world, session);
        assert_int_equal(run_number(world, session, i % 2), IDEM_VERDICT_MINE);
        assert_int_equal(run_number(world, session, i % 2), IDEM_VERDICT_DONE);
        acknowledge(world, session, 2);
        assert_int_equal(run_number(world, session, i % 2),
                         IDEM_VERDICT_EXPIRED);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_winner_that_the_snapshot_does_not_see_is_replayed),
        cmocka_unit_test(a_hot_row_counts_each_key_once),
        cmocka_unit_test(the_databases_own_default_does_not_count),
        cmocka_unit_test(
            a_number_that_was_forgotten_meanwhile_is_not_committed),
        cmocka_unit_test(a_number_of_statements_runs_once_at_each_isolation),
        cmocka_unit_test(an_isolation_that_is_none_is_told_at_open),
    };

    return cmocka_run_group_tests(tests, world_up, world_down);
}
