/* transaction: STATEMENT from a stub to the authority and back. */
#include "once_stage.h"

#include "fault.h"

#include <idem/reason.h>

#include <stdio.h>
#include <string.h>

#define MANY 50

static struct called
add_stated(struct stage *stage, const char *key, int64_t amount)
{
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    request.amount = amount;
    return stage_call(stage, effects_add_stated, key, &request);
}

/* Fault 1, B013. */
static void
the_same_key_three_times_is_one_effect(void **state)
{
    struct stage *stage = *state;
    struct called first = add_stated(stage, "stated-1", 7);

    assert_int_equal(first.status, IDEM_OK);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_true(first.outcome.final);
    assert_int_equal(first.number, 1);
    assert_int_equal(first.amount, 7);
    for (int i = 0; i < 2; i++) {
        struct called again = add_stated(stage, "stated-1", 7);

        assert_replay_of(&again, &first);
        called_free(&again);
    }
    assert_int_equal(stage_effects(stage), 1);
    called_free(&first);
}

/* Also by a server that does nothing else: what it was told by the authority is
 * all that it has heard of it. */
static void
a_repeat_is_answered_out_of_memory(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct called first, again;

    request.amount = 7;
    first = stage_call(stage, effects_add_stated_always, "stated-9", &request);
    again = stage_call(stage, effects_add_stated_always, "stated-9", &request);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_replay_of(&again, &first);
    assert_int_equal(stage_counts(stage, 0).remembered, 1);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&first);
    called_free(&again);
}

/* Fault 2, B001. */
static void
fifty_at_once_are_one_effect(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct stage_thread *threads[MANY];
    unsigned committed = 0;

    request.amount = 7;
    effects_hold(&stage->effects);
    for (int i = 0; i < MANY; i++)
        threads[i] =
            stage_start(stage, 0, effects_add_stated, "stated-2", &request);
    stage_await_attached(stage, 0, MANY - 1);
    effects_await(&stage->effects, 1);
    effects_open(&stage->effects);
    for (unsigned i = 0; i < MANY; i++) {
        struct called called = stage_join(threads[i]);

        assert_int_equal(called.status, IDEM_OK);
        assert_int_equal(called.number, 1);
        committed += called.outcome.effect == IDEM_EFFECT_COMMITTED;
        called_free(&called);
    }
    assert_int_equal(committed, 1);
    assert_int_equal(stage_effects(stage), 1);
}

static void
fifty_keys_at_once_are_fifty_effects(void **state)
{
    struct stage *stage = *state;
    effects_add_request requests[MANY];
    struct stage_thread *threads[MANY];
    char keys[MANY][24];

    for (int i = 0; i < MANY; i++) {
        requests[i] = (effects_add_request)EFFECTS_ADD_REQUEST_INIT;
        requests[i].amount = i;
        snprintf(keys[i], sizeof(keys[i]), "stated-8-%d", i);
        threads[i] =
            stage_start(stage, 0, effects_add_stated, keys[i], &requests[i]);
    }
    for (int i = 0; i < MANY; i++) {
        struct called called = stage_join(threads[i]);

        assert_int_equal(called.status, IDEM_OK);
        assert_int_equal(called.amount, i);
        called_free(&called);
    }
    assert_int_equal(stage_effects(stage), MANY);
}

/* B041: what is told as final is recorded, and nothing is left of it. */
static void
a_no_of_either_half_is_final_and_has_no_effect(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct called first = add_stated(stage, "stated-3", -1);
    struct called again = add_stated(stage, "stated-3", -1);

    assert_int_equal(first.status, IDEM_INVALID_ARGUMENT);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_true(first.outcome.final);
    assert_replay_of(&again, &first);
    request.fail_with = IDEM_NOT_FOUND;
    first = stage_call(stage, effects_add_stated, "stated-4", &request);
    again = stage_call(stage, effects_add_stated, "stated-4", &request);
    assert_int_equal(first.status, IDEM_NOT_FOUND);
    assert_true(first.outcome.final);
    assert_replay_of(&again, &first);
    assert_int_equal(stage_effects(stage), 0);
}

static void
an_error_that_is_not_recorded_runs_again(void **state)
{
    struct stage *stage = *state;
    struct called called;

    effects_fail(&stage->effects, 1, IDEM_ABORTED);
    called = add_stated(stage, "stated-5", 7);
    assert_int_equal(called.status, IDEM_ABORTED);
    assert_int_equal(called.outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_false(called.outcome.final);
    assert_int_equal(stage_effects(stage), 0);
    called = add_stated(stage, "stated-5", 7);
    assert_int_equal(called.status, IDEM_OK);
    assert_int_equal(called.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&called);
}

/* B018: found before the commit. */
static void
a_reply_that_is_too_large_leaves_no_effect(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct called called;

    request.reply_bytes = 2000;
    called = stage_call(stage, effects_add_stated, "stated-6", &request);
    assert_int_equal(called.status, IDEM_RESOURCE_EXHAUSTED);
    assert_string_equal(called.outcome.reason, IDEM_REPLY_TOO_LARGE);
    assert_int_equal(called.outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_int_equal(stage_effects(stage), 0);
}

static void
another_request_with_the_key_is_refused(void **state)
{
    struct stage *stage = *state;
    struct called first = add_stated(stage, "stated-7", 7);
    struct called other = add_stated(stage, "stated-7", 8);

    assert_int_equal(first.status, IDEM_OK);
    assert_int_equal(other.status, IDEM_INVALID_ARGUMENT);
    assert_string_equal(other.outcome.reason, IDEM_KEY_REUSED);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&first);
}

#ifdef IDEM_FAULTS

/* It was not turned away: its halves have run. */
static void
a_commit_that_fails_is_told_as_rolled_back(void **state)
{
    struct stage *stage = *state;
    struct called called;

    fault_set("sqlite.run.written:*:error");
    called = add_stated(stage, "stated-10", 7);
    fault_set(NULL);
    assert_int_equal(called.status, IDEM_UNAVAILABLE);
    assert_int_equal(called.outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_int_equal(stage_effects(stage), 0);
    called = add_stated(stage, "stated-10", 7);
    assert_int_equal(called.outcome.effect, IDEM_EFFECT_COMMITTED);
    called_free(&called);
}

#endif

#define EACH(test)                                                             \
    cmocka_unit_test_setup_teardown(test, stage_sqlite_tcp, stage_down),       \
        cmocka_unit_test_setup_teardown(test, stage_both, stage_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(the_same_key_three_times_is_one_effect),
        EACH(a_repeat_is_answered_out_of_memory),
        EACH(fifty_at_once_are_one_effect),
        EACH(fifty_keys_at_once_are_fifty_effects),
        EACH(a_no_of_either_half_is_final_and_has_no_effect),
        EACH(an_error_that_is_not_recorded_runs_again),
        EACH(a_reply_that_is_too_large_leaves_no_effect),
        EACH(another_request_with_the_key_is_refused),
#ifdef IDEM_FAULTS
        cmocka_unit_test_setup_teardown(
            a_commit_that_fails_is_told_as_rolled_back, stage_sqlite_tcp,
            stage_down),
#endif
    };

    return cmocka_run_group_tests(tests, stage_servers_up, stage_servers_down);
}
