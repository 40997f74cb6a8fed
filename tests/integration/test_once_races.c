/* Two servers, one key, and the worst moment: other requests, other methods, an
 * abandon, a database that ends; numbers of a session in no order. Whoever
 * wins, there is one effect, and all are told the same. */
#include "once_stage.h"

#include "child.h"
#include "postgres.h"

#include <idem/key.h>
#include <idem/reason.h>
#include <idem/resolve.h>
#include <idem/session.h>

#include <stdio.h>

#define ROUNDS 20
#define NUMBERS 6
#define WINDOW_MS 3600000

static int64_t
effects_of(struct stage *stage, const char *key)
{
    return postgres_sql(stage_postgres(),
                        "SELECT count(*) FROM effects WHERE key = '%s'", key) +
           effects_pushes(stage->push_log, key);
}

/* One of them is done, and the other one is another request. */
static void
assert_one_won(struct stage *stage, const char *key, struct called *called)
{
    unsigned winner = called[0].status == IDEM_OK ? 0 : 1;

    assert_int_equal(called[winner].status, IDEM_OK);
    assert_int_equal(called[winner].outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(called[!winner].status, IDEM_INVALID_ARGUMENT);
    assert_string_equal(called[!winner].outcome.reason, IDEM_KEY_REUSED);
    assert_int_equal(effects_of(stage, key), 1);
}

static void
race(struct stage *stage, stage_call_fn *const calls[2], const char *key,
     const effects_add_request requests[2])
{
    struct stage_thread *threads[2];
    struct called called[2], again;

    for (unsigned i = 0; i < 2; i++)
        threads[i] = stage_start(stage, i, calls[i], key, &requests[i]);
    for (unsigned i = 0; i < 2; i++)
        called[i] = stage_join(threads[i]);
    assert_one_won(stage, key, called);
    for (unsigned i = 0; i < 4; i++) { /* each request at each server */
        again = stage_join(
            stage_start(stage, i / 2, calls[i % 2], key, &requests[i % 2]));
        if (called[i % 2].status == IDEM_OK)
            assert_replay_of(&again, &called[i % 2]);
        else
            assert_string_equal(again.outcome.reason, IDEM_KEY_REUSED);
        called_free(&again);
    }
    for (unsigned i = 0; i < 2; i++)
        called_free(&called[i]);
}

/* Fault 45, at the same moment. */
static void
of_two_requests_at_once_one_is_done(void **state)
{
    static stage_call_fn *const methods[] = {effects_add, effects_add_grouped,
                                             effects_add_stated, effects_push};
    const effects_add_request requests[] = {stage_request(7), stage_request(8)};
    struct stage *stage = *state;
    char key[32];

    for (unsigned i = 0; i < ROUNDS; i++) {
        stage_call_fn *const both[] = {methods[i % 4], methods[i % 4]};

        snprintf(key, sizeof key, "requests-%u", i);
        race(stage, both, key, requests);
    }
}

/* Fault 62: one key space, of a method that has its claim in a transaction and
 * of one that commits it first. */
static void
of_two_methods_of_a_group_at_once_one_is_done(void **state)
{
    static stage_call_fn *const calls[][2] = {
        {effects_add_in_group, effects_push_in_group},
        {effects_push_in_group, effects_add_in_group},
    };
    const effects_add_request requests[] = {stage_request(7), stage_request(7)};
    struct stage *stage = *state;
    char key[32];

    for (unsigned i = 0; i < ROUNDS; i++) {
        snprintf(key, sizeof key, "methods-%u", i);
        race(stage, calls[i % 2], key, requests);
    }
}

/* Fault 74, over the wire: who abandons is told what holds for good. */
static void
of_a_call_and_an_abandon_one_wins(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    unsigned abandoned = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct idem_resolution resolution;
        struct stage_thread *thread;
        struct idem_error err;
        struct called called;
        char key[32];

        snprintf(key, sizeof key, "abandoned-%u", i);
        thread = stage_start(stage, 0, effects_add, key, &request);
        assert_int_equal(idem_abandon(stage->channels[1], &effects_add_method,
                                      key, 0, &resolution, &err),
                         IDEM_OK);
        called = stage_join(thread);
        if (resolution.state == IDEM_RESOLVED_ABANDONED) {
            abandoned++;
            assert_string_equal(called.outcome.reason, IDEM_KEY_ABANDONED);
            assert_int_equal(effects_of(stage, key), 0);
        } else {
            if (called.status != IDEM_OK)
                fail_msg("%s behind an abandon that said %d: %s",
                         idem_status_name(called.status), resolution.state,
                         called.outcome.message);
            assert_int_equal(effects_of(stage, key), 1);
        }
        called_free(&called);
        idem_resolution_fini(&resolution);
    }
    print_message("%u of %d abandoned\n", abandoned, ROUNDS);
}

/* --- PostgreSQL ends --- */

struct asked {
    struct stage *stage;
    stage_call_fn *call;
    const char *key;
    effects_add_request request;
    struct called called;
};

static bool
is_known(void *with)
{
    struct asked *asked = with;

    asked->called = stage_join(
        stage_start(asked->stage, 1, asked->call, asked->key, &asked->request));
    called_free(&asked->called);
    return asked->called.outcome.final;
}

/* Faults 17 and 43: between claim and completion. The transactions are gone and
 * run again; what was pushed was pushed, and its record is written late. */
static void
a_database_that_ends_between_claim_and_completion_doubles_nothing(void **state)
{
    static stage_call_fn *const calls[] = {effects_add, effects_add_grouped,
                                           effects_push};
    static const char *const keys[] = {"ends-0", "ends-1", "ends-2"};
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct stage_thread *threads[3];

    effects_hold(&stage->effects);
    for (unsigned i = 0; i < 3; i++)
        threads[i] = stage_start(stage, 0, calls[i], keys[i], &request);
    effects_await(&stage->effects, 3);
    postgres_crash(stage_postgres());
    postgres_restart(stage_postgres());
    effects_open(&stage->effects);
    for (unsigned i = 0; i < 3; i++) {
        struct called called = stage_join(threads[i]);

        if (called.status == IDEM_OK)
            assert_int_equal(effects_of(stage, keys[i]), 1);
        called_free(&called);
    }
    for (unsigned i = 0; i < 3; i++) {
        struct asked asked = {stage, calls[i], keys[i], request, {0}};

        assert_true(child_wait_until(is_known, &asked, 60000));
        assert_int_equal(asked.called.status, IDEM_OK);
        assert_int_equal(effects_of(stage, keys[i]), 1);
    }
}

/* --- Sessions --- */

/* Fault 66: what is left out comes later, and is nothing else's. */
static void
numbers_with_gaps_are_each_once(void **state)
{
    static const int order[NUMBERS] = {5, 1, 3, 6, 2, 4};
    struct stage *stage = *state;
    char session[IDEM_SESSION_MAX], key[IDEM_KEY_MAX + 1];

    idem_session_mint(session, idem_clock_system(), 0, WINDOW_MS);
    for (int i = 0; i < 2 * NUMBERS; i++) {
        effects_add_request request = stage_request(order[i % NUMBERS]);
        struct called called;

        idem_key_of_session(key, session, order[i % NUMBERS]);
        called = stage_join(stage_start(stage, (unsigned)i % 2,
                                        effects_add_numbered, key, &request));
        assert_int_equal(called.status, IDEM_OK);
        assert_int_equal(called.amount, order[i % NUMBERS]);
        assert_int_equal(called.outcome.effect, i < NUMBERS
                                                    ? IDEM_EFFECT_COMMITTED
                                                    : IDEM_EFFECT_REPLAYED);
        assert_int_equal(effects_of(stage, key), 1);
        called_free(&called);
    }
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_both, stage_down)
    const struct CMUnitTest tests[] = {
        TEST(of_two_requests_at_once_one_is_done),
        TEST(of_two_methods_of_a_group_at_once_one_is_done),
        TEST(of_a_call_and_an_abandon_one_wins),
        TEST(a_database_that_ends_between_claim_and_completion_doubles_nothing),
        TEST(numbers_with_gaps_are_each_once),
    };

    return cmocka_run_group_tests(tests, stage_servers_up, stage_servers_down);
}
