/* Handlers of mode LEASED that keep their context: one answer, whoever asks. */
#include "later_world.h"

#include <idem/reason.h>
#include <idem/step.h>

#include <stdlib.h>
#include <string.h>

#define CALLS 200

static const struct idem_call_options keyed = {.key = "order-1",
                                               .timeout_ms = 30000};

static void
a_leased_call_is_answered_once_and_its_repeats_from_the_record(void **state)
{
    struct later_world world;
    struct later_result first, joined, repeat;

    (void)state;
    later_world_open(&world, NULL);
    later_begin(&world, later_act_async, 7, &keyed, &first);
    struct kept *kept = later_take(&world);

    assert_int_equal(idem_context_fence(kept->context), 1);
    later_begin(&world, later_act_async, 7, &keyed, &joined);
    later_answer_it(kept, IDEM_OK);
    later_await_ended(&world, 2);
    later_begin(&world, later_act_async, 7, &keyed, &repeat);
    later_await_ended(&world, 3);
    later_assert_ended(&first, IDEM_OK, IDEM_EFFECT_COMMITTED);
    later_assert_ended(&joined, IDEM_OK, IDEM_EFFECT_REPLAYED);
    later_assert_ended(&repeat, IDEM_OK, IDEM_EFFECT_REPLAYED);
    assert_int_equal(repeat.number, 7);
    later_world_close(&world);
}

/* Its caller has gone, its lease is renewed, its answer is recorded. */
static void
a_leased_call_outlives_its_caller_and_its_first_lease(void **state)
{
    const struct idem_call_options brief = {.key = "order-1",
                                            .timeout_ms = 400};
    struct later_world world;
    struct later_result first, repeat;
    struct kept *kept;

    (void)state;
    later_world_open(&world, NULL);
    later_begin(&world, later_act_async, 7, &brief, &first);
    kept = later_take(&world);
    later_await_ended(&world, 1); /* four leases */
    later_assert_ended(&first, IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_IN_DOUBT);
    assert_true(idem_context_owned(kept->context));
    later_answer_it(kept, IDEM_OK);
    later_begin(&world, later_act_async, 7, &keyed, &repeat);
    later_await_ended(&world, 2);
    later_assert_ended(&repeat, IDEM_OK, IDEM_EFFECT_REPLAYED);
    later_world_close(&world);
}

static void
note_as_child(struct later_world *world, struct kept *kept, char key[256])
{
    const struct idem_call_options options = {.parent = kept->context,
                                              .step = "note"};
    later_question question = LATER_QUESTION_INIT;
    later_answer *answer = NULL;

    assert_int_equal(
        later_note(world->channel, &question, &answer, &options, NULL),
        IDEM_OK);
    snprintf(key, 256, "%s", answer->key);
    later_answer_free(answer);
}

/* From any thread, as long as it is not completed. */
static void
calls_are_made_as_its_children_after_the_handler_has_returned(void **state)
{
    struct later_world world;
    struct later_result result;
    struct kept *kept;
    char first[256], again[256];

    (void)state;
    later_world_open(&world, NULL);
    later_begin(&world, later_act_async, 7, &keyed, &result);
    kept = later_take(&world);
    note_as_child(&world, kept, first);
    later_answer_it(kept, IDEM_UNAVAILABLE); /* released: it runs again */
    kept = later_take(&world);
    note_as_child(&world, kept, again);
    later_answer_it(kept, IDEM_OK);
    later_await_ended(&world, 1);
    later_assert_ended(&result, IDEM_OK, IDEM_EFFECT_COMMITTED);
    assert_string_not_equal(first, "");
    assert_string_equal(first, again);
    assert_int_equal(atomic_load(&world.notes), 1);
    later_world_close(&world);
}

static void
pass_on(struct idem_call *child, const later_answer *answer,
        const struct idem_outcome *outcome)
{
    struct kept *kept = idem_call_user(child);

    if (answer)
        kept->answer->key =
            idem_context_printf(kept->context, "%s", answer->key);
    later_answer_it(kept, outcome->status);
}

static bool
ask_another(struct kept *kept)
{
    const struct idem_call_options options = {.user = kept};
    later_question question = LATER_QUESTION_INIT;

    question.number = kept->question->number;
    idem_call_release(
        later_note_async(kept->world->channel, &question, &options, pass_on));
    return true;
}

/* What it is for: no thread waits while another service works. The callback of
 * the call that the handler makes completes the handler's own. */
static void
a_handler_answers_when_the_one_that_it_asked_has(void **state)
{
    const struct idem_server_options options = {.workers = 1};
    static struct later_result results[CALLS];
    struct later_world world;

    (void)state;
    later_world_open(&world, &options);
    world.at_once = ask_another;
    for (unsigned i = 0; i < CALLS; i++)
        later_begin(&world, i % 2 ? later_act_async : later_ask_async, i, NULL,
                    &results[i]);
    later_await_ended(&world, CALLS);
    for (unsigned i = 0; i < CALLS; i++) {
        later_assert_ended(&results[i], IDEM_OK, IDEM_EFFECT_COMMITTED);
        assert_int_equal(results[i].number, i);
        assert_memory_equal(results[i].key, "idk_", 4);
    }
    assert_int_equal(atomic_load(&world.notes), CALLS);
    later_world_close(&world);
}

/* --- An execution that ended half-way --- */

/* Its handler does not know what the other system did. */
static void
leave_half_way(struct later_world *world)
{
    struct later_result result;
    struct idem_error err;
    struct kept *kept;

    later_begin(world, later_pay_async, 7, &keyed, &result);
    kept = later_take(world);
    assert_int_equal(idem_step(kept->context, "pay", &err), IDEM_OK);
    later_answer_it(kept, IDEM_INTERNAL);
    later_await_ended(world, world->ended + 1);
    assert_int_equal(result.outcome.effect, IDEM_EFFECT_IN_DOUBT);
}

static void
a_probe_that_says_not_done_is_followed_by_the_handler(void **state)
{
    struct later_world world;
    struct later_result result;

    (void)state;
    later_world_open(&world, NULL);
    leave_half_way(&world);
    world.probed = IDEM_PROBED_NOT_DONE;
    later_begin(&world, later_pay_async, 7, &keyed, &result);
    later_answer_it(later_take(&world), IDEM_OK);
    later_await_ended(&world, 2);
    later_assert_ended(&result, IDEM_OK, IDEM_EFFECT_COMMITTED);
    assert_int_equal(atomic_load(&world.probes), 1);
    later_world_close(&world);
}

static void
a_probe_that_says_done_is_the_answer(void **state)
{
    struct later_world world;
    struct later_result result;

    (void)state;
    later_world_open(&world, NULL);
    leave_half_way(&world);
    world.probed = IDEM_PROBED_DONE;
    later_begin(&world, later_pay_async, 7, &keyed, &result);
    later_await_ended(&world, 2);
    later_assert_ended(&result, IDEM_OK, IDEM_EFFECT_REPLAYED);
    assert_int_equal(result.number, 70);
    assert_null(world.first);
    later_world_close(&world);
}

/* On a thread that may wait. */
static void
a_step_is_marked_after_the_handler_has_returned(void **state)
{
    struct later_world world;
    struct later_result result;
    struct idem_error err;
    struct kept *kept;

    (void)state;
    later_world_open(&world, NULL);
    later_begin(&world, later_pay_async, 7, &keyed, &result);
    kept = later_take(&world);
    assert_int_equal(idem_step(kept->context, "pay", &err), IDEM_OK);
    later_answer_it(kept, IDEM_OK);
    later_await_ended(&world, 1);
    later_assert_ended(&result, IDEM_OK, IDEM_EFFECT_COMMITTED);
    later_world_close(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_leased_call_is_answered_once_and_its_repeats_from_the_record),
        cmocka_unit_test(a_leased_call_outlives_its_caller_and_its_first_lease),
        cmocka_unit_test(
            calls_are_made_as_its_children_after_the_handler_has_returned),
        cmocka_unit_test(a_handler_answers_when_the_one_that_it_asked_has),
        cmocka_unit_test(a_probe_that_says_not_done_is_followed_by_the_handler),
        cmocka_unit_test(a_probe_that_says_done_is_the_answer),
        cmocka_unit_test(a_step_is_marked_after_the_handler_has_returned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
