/* transaction: STATEMENT from a stub to the authority and back. */
#include "shared_stories.h"

#include "fault.h"

stage_call_fn *const shared_call = effects_add_stated;

static struct called
add_stated(struct stage *stage, const char *key, int64_t amount)
{
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    request.amount = amount;
    return stage_call(stage, effects_add_stated, key, &request);
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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        SHARED_STORIES,
        SHARED_EACH(a_repeat_is_answered_out_of_memory),
        SHARED_EACH(a_no_of_either_half_is_final_and_has_no_effect),
#ifdef IDEM_FAULTS
        cmocka_unit_test_setup_teardown(
            a_commit_that_fails_is_told_as_rolled_back, stage_sqlite_tcp,
            stage_down),
#endif
    };

    return cmocka_run_group_tests(tests, stage_servers_up, stage_servers_down);
}
