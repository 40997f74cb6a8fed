/* Methods with a group from a stub to the authority and back: on sqlite each
 * call has a transaction of its own. */
#include "shared_stories.h"

#include <stdio.h>

#define MANY 50

stage_call_fn *const shared_call = effects_add_grouped;

/* B041: what is told as final is recorded, and nothing is left of it. */
static void
a_no_is_final_and_has_no_effect(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct called first, again;

    request.fail_with = IDEM_NOT_FOUND;
    first = stage_call(stage, effects_add_grouped, "grouped-4", &request);
    again = stage_call(stage, effects_add_grouped, "grouped-4", &request);
    assert_int_equal(first.status, IDEM_NOT_FOUND);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_true(first.outcome.final);
    assert_replay_of(&again, &first);
    assert_int_equal(stage_effects(stage), 0);
}

/* Every third one says no, in the midst of the others. */
static void
those_that_fail_do_not_touch_their_neighbours(void **state)
{
    struct stage *stage = *state;
    effects_add_request requests[MANY];
    struct stage_thread *threads[MANY];
    char keys[MANY][24];

    for (int i = 0; i < MANY; i++) {
        requests[i] = (effects_add_request)EFFECTS_ADD_REQUEST_INIT;
        requests[i].amount = i;
        requests[i].fail_with = i % 3 == 0 ? IDEM_FAILED_PRECONDITION : IDEM_OK;
        snprintf(keys[i], sizeof(keys[i]), "grouped-9-%d", i);
        threads[i] =
            stage_start(stage, 0, effects_add_grouped, keys[i], &requests[i]);
    }
    for (int i = 0; i < MANY; i++) {
        struct called called = stage_join(threads[i]);

        assert_int_equal(called.status, requests[i].fail_with);
        called_free(&called);
    }
    assert_int_equal(stage_effects(stage), MANY - (MANY + 2) / 3);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        SHARED_STORIES,
        SHARED_EACH(a_no_is_final_and_has_no_effect),
        SHARED_EACH(those_that_fail_do_not_touch_their_neighbours),
    };

    return cmocka_run_group_tests(tests, stage_servers_up, stage_servers_down);
}
