#include "shared_stories.h"

#include <idem/reason.h>

#include <stdio.h>

#define MANY 50

static struct called
add(struct stage *stage, const char *key, int64_t amount)
{
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    request.amount = amount;
    return stage_call(stage, shared_call, key, &request);
}

/* Fault 1, B013. */
void
the_same_key_three_times_is_one_effect(void **state)
{
    struct stage *stage = *state;
    struct called first = add(stage, "shared-1", 7);

    assert_int_equal(first.status, IDEM_OK);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_true(first.outcome.final);
    assert_int_equal(first.number, 1);
    assert_int_equal(first.amount, 7);
    for (int i = 0; i < 2; i++) {
        struct called again = add(stage, "shared-1", 7);

        assert_replay_of(&again, &first);
        called_free(&again);
    }
    assert_int_equal(stage_effects(stage), 1);
    called_free(&first);
}

/* Fault 2, B001. */
void
fifty_at_once_are_one_effect(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct stage_thread *threads[MANY];
    unsigned committed = 0;

    request.amount = 7;
    effects_hold(&stage->effects);
    for (int i = 0; i < MANY; i++)
        threads[i] = stage_start(stage, 0, shared_call, "shared-2", &request);
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

void
fifty_keys_at_once_are_fifty_effects(void **state)
{
    struct stage *stage = *state;
    effects_add_request requests[MANY];
    struct stage_thread *threads[MANY];
    char keys[MANY][24];

    for (int i = 0; i < MANY; i++) {
        requests[i] = (effects_add_request)EFFECTS_ADD_REQUEST_INIT;
        requests[i].amount = i;
        snprintf(keys[i], sizeof(keys[i]), "shared-8-%d", i);
        threads[i] = stage_start(stage, 0, shared_call, keys[i], &requests[i]);
    }
    for (int i = 0; i < MANY; i++) {
        struct called called = stage_join(threads[i]);

        assert_int_equal(called.status, IDEM_OK);
        assert_int_equal(called.amount, i);
        called_free(&called);
    }
    assert_int_equal(stage_effects(stage), MANY);
}

void
an_error_that_is_not_recorded_runs_again(void **state)
{
    struct stage *stage = *state;
    struct called called;

    effects_fail(&stage->effects, 1, IDEM_ABORTED);
    called = add(stage, "shared-5", 7);
    assert_int_equal(called.status, IDEM_ABORTED);
    assert_int_equal(called.outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_false(called.outcome.final);
    assert_int_equal(stage_effects(stage), 0);
    called = add(stage, "shared-5", 7);
    assert_int_equal(called.status, IDEM_OK);
    assert_int_equal(called.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&called);
}

/* B018: found before the commit. */
void
a_reply_that_is_too_large_leaves_no_effect(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct called called;

    request.reply_bytes = 2000;
    called = stage_call(stage, shared_call, "shared-6", &request);
    assert_int_equal(called.status, IDEM_RESOURCE_EXHAUSTED);
    assert_string_equal(called.outcome.reason, IDEM_REPLY_TOO_LARGE);
    assert_int_equal(called.outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_int_equal(stage_effects(stage), 0);
}

void
another_request_with_the_key_is_refused(void **state)
{
    struct stage *stage = *state;
    struct called first = add(stage, "shared-7", 7);
    struct called other = add(stage, "shared-7", 8);

    assert_int_equal(first.status, IDEM_OK);
    assert_int_equal(other.status, IDEM_INVALID_ARGUMENT);
    assert_string_equal(other.outcome.reason, IDEM_KEY_REUSED);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&first);
}
