/* Calls that a channel numbers: what is answered is forgotten and refused
 * (faults 66 to 69), on each authority. */
#include "once_stage.h"

#include <idem/reason.h>

#include <string.h>

#define CALLS 200

static struct called
call(struct stage *stage, stage_call_fn *method, const char *key)
{
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    request.amount = 7;
    return stage_call(stage, method, key, &request);
}

/* begun: how often a late call of the first one begins its handler's first
 * half, which is in front of the store. */
static void
forget(struct stage *stage, stage_call_fn *const methods[2], unsigned begun)
{
    struct called first = call(stage, methods[0], NULL), late;
    int64_t rows;
    unsigned runs;

    assert_int_equal(first.status, IDEM_OK);
    assert_memory_equal(first.outcome.key, "ids_", 4);
    late = call(stage, methods[0], first.outcome.key);
    assert_replay_of(&late, &first);
    called_free(&late);
    for (int i = 0; i < CALLS; i++) {
        struct called called = call(stage, methods[i % 2], NULL);

        assert_int_equal(called.status, IDEM_OK);
        assert_int_equal(called.outcome.effect, IDEM_EFFECT_COMMITTED);
        called_free(&called);
    }
    rows = stage_effects(stage);
    runs = effects_runs(&stage->effects);
    late = call(stage, methods[0], first.outcome.key);
    assert_int_equal(late.status, IDEM_FAILED_PRECONDITION);
    assert_string_equal(late.outcome.reason, IDEM_KEY_STALE);
    assert_int_equal(late.outcome.effect, IDEM_EFFECT_REFUSED);
    assert_true(late.outcome.final);
    assert_int_equal(stage_effects(stage), rows);
    assert_int_equal(effects_runs(&stage->effects), runs + begun);
    called_free(&first);
}

static void
answers_that_were_received_are_forgotten(void **state)
{
    static stage_call_fn *const methods[] = {effects_add_numbered,
                                             effects_push_numbered};

    forget(*state, methods, 0);
}

static void
so_are_those_of_statements(void **state)
{
    static stage_call_fn *const methods[] = {effects_add_stated_numbered,
                                             effects_add_numbered};

    forget(*state, methods, 1);
}

/* Its number stays, and is not acknowledged over its head. */
static void
a_call_without_an_answer_keeps_its_number(void **state)
{
    struct stage *stage = *state;
    struct called failed, again;

    effects_fail(&stage->effects, 1, IDEM_RESOURCE_EXHAUSTED);
    failed = call(stage, effects_add_numbered, NULL);
    assert_int_equal(failed.status, IDEM_RESOURCE_EXHAUSTED);
    assert_false(failed.outcome.final);
    for (int i = 0; i < 40; i++) {
        struct called called = call(stage, effects_add_numbered, NULL);

        assert_int_equal(called.status, IDEM_OK);
        called_free(&called);
    }
    again = call(stage, effects_add_numbered, failed.outcome.key);
    assert_int_equal(again.status, IDEM_OK);
    assert_int_equal(again.outcome.effect, IDEM_EFFECT_COMMITTED);
    called_free(&again);
}

int
main(void)
{
#define TEST(name)                                                             \
    STAGE_TEST(stage_sqlite_inproc, name), STAGE_TEST(stage_sqlite_tcp, name), \
        STAGE_TEST(stage_both, name)
    const struct CMUnitTest tests[] = {
        TEST(answers_that_were_received_are_forgotten),
        TEST(so_are_those_of_statements),
        TEST(a_call_without_an_answer_keeps_its_number),
    };

    return cmocka_run_group_tests(tests, stage_servers_up, stage_servers_down);
}
