#include "suite_call.h"

#include <pthread.h>

#define THREADS 8
#define ROUNDS 25

/* Many at once. Threads only operate; the test's thread judges. */

struct runner {
    pthread_t thread;
    pthread_barrier_t *line;
    struct suite_call call;
    suite_op_fn *op;
};

static void *
run(void *with)
{
    struct runner *runner = with;

    pthread_barrier_wait(runner->line);
    call_start(&runner->call, runner->op);
    return NULL;
}

static void
run_together(struct runner *runners, unsigned n)
{
    pthread_barrier_t line;

    pthread_barrier_init(&line, NULL, n);
    for (unsigned i = 0; i < n; i++) {
        runners[i].line = &line;
        assert_int_equal(
            pthread_create(&runners[i].thread, NULL, run, &runners[i]), 0);
    }
    for (unsigned i = 0; i < n; i++)
        pthread_join(runners[i].thread, NULL);
    for (unsigned i = 0; i < n; i++)
        (void)call_await(&runners[i].call);
    pthread_barrier_destroy(&line);
}

/* Everybody claims one key; how many may run? */
static void
claim_together(struct suite *suite, enum idem_mode mode)
{
    struct runner runners[THREADS];
    char key[IDEM_KEY_MAX + 1];
    unsigned winners = 0;

    suite_key(suite, key);
    for (unsigned i = 0; i < THREADS; i++) {
        call_open(&runners[i].call, suite, key, mode, 1);
        runners[i].call.ticket.repeat = i % 2;
        runners[i].op = suite->store->ops->claim;
    }
    run_together(runners, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        if (runners[i].call.ticket.verdict == IDEM_VERDICT_MINE) {
            winners++;
            assert_int_equal(call_complete(&runners[i].call, IDEM_OK, "w"),
                             IDEM_VERDICT_MINE);
        } else {
            assert_int_equal(runners[i].call.ticket.verdict,
                             IDEM_VERDICT_RUNNING);
        }
    }
    assert_int_equal(winners, 1);
    for (unsigned i = 0; i < THREADS; i++)
        call_close(&runners[i].call);
}

/* Fault 3. */
static void
of_many_claims_at_once_one_runs(void **state)
{
    for (int i = 0; i < ROUNDS; i++) {
        claim_together(*state, IDEM_MODE_LEASED);
        claim_together(*state, IDEM_MODE_TRANSACTION);
    }
}

/* Fault 74, scaled. */
static void
of_a_claim_and_an_abandon_one_wins(void **state)
{
    struct suite *suite = *state;

    for (int i = 0; i < ROUNDS * 2; i++) {
        struct runner runners[2];
        struct idem_ticket *claim = &runners[0].call.ticket;
        struct idem_ticket *abandon = &runners[1].call.ticket;
        char key[IDEM_KEY_MAX + 1];

        suite_key(suite, key);
        for (int j = 0; j < 2; j++)
            call_open(&runners[j].call, suite, key,
                      i % 2 ? IDEM_MODE_LEASED : IDEM_MODE_TRANSACTION, 1);
        runners[0].op = suite->store->ops->claim;
        runners[1].op = suite->store->ops->abandon;
        run_together(runners, 2);
        if (claim->verdict == IDEM_VERDICT_MINE) {
            assert_int_equal(abandon->verdict, IDEM_VERDICT_RUNNING);
            assert_int_equal(call_release(&runners[0].call), IDEM_VERDICT_MINE);
        } else if (claim->verdict == IDEM_VERDICT_ABANDONED) {
            assert_int_equal(abandon->verdict, IDEM_VERDICT_ABANDONED);
        } else { /* both met the other at work: nobody ran, nothing lost */
            assert_int_equal(claim->verdict, IDEM_VERDICT_RUNNING);
            assert_int_equal(abandon->verdict, IDEM_VERDICT_ABANDONED);
        }
        call_close(&runners[0].call);
        call_close(&runners[1].call);
    }
}

/* Different keys side by side, whole lives, both modes. */
static void
many_keys_at_once_each_take_effect_once(void **state)
{
    struct suite *suite = *state;

    for (int round = 0; round < 3; round++) {
        struct runner runners[THREADS];

        for (unsigned i = 0; i < THREADS; i++) {
            char key[IDEM_KEY_MAX + 1];

            suite_key(suite, key);
            call_open(&runners[i].call, suite, key, IDEM_MODE_LEASED, 1);
            runners[i].op = suite->store->ops->claim;
        }
        run_together(runners, THREADS);
        for (unsigned i = 0; i < THREADS; i++) {
            assert_int_equal(runners[i].call.ticket.verdict, IDEM_VERDICT_MINE);
            runners[i].call.ticket.answer.reply = idem_bytes_of("r");
            runners[i].op = suite->store->ops->complete;
        }
        run_together(runners, THREADS);
        for (unsigned i = 0; i < THREADS; i++) {
            assert_int_equal(runners[i].call.ticket.verdict, IDEM_VERDICT_MINE);
            assert_int_equal(call_look(&runners[i].call), IDEM_VERDICT_DONE);
            call_close(&runners[i].call);
        }
    }
}

int
suite_run_races(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_many_claims_at_once_one_runs),
        cmocka_unit_test(of_a_claim_and_an_abandon_one_wins),
        cmocka_unit_test(many_keys_at_once_each_take_effect_once),
    };

    return cmocka_run_group_tests_name("races", tests, suite_set_up,
                                       suite_tear_down);
}
