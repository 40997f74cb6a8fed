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

    postgres_sql(world->postgres, "ALTER DATABASE test SET "
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
        cmocka_unit_test(a_winner_that_the_snapshot_does_not_see_is_replayed),
        cmocka_unit_test(a_hot_row_counts_each_key_once),
        cmocka_unit_test(the_databases_own_default_does_not_count),
        cmocka_unit_test(an_isolation_that_is_none_is_told_at_open),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
