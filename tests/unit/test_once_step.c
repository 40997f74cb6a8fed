/* LEASED calls that mark their steps. */
#include "once_world.h"

#include "effects.idem.h"

#include <idem/step.h>

#include <string.h>

/* A call whose handler is begun, and the step that it marks on a thread of its
 * own, as a worker does. */
struct stepping {
    struct trial trial;
    struct world *world;
    enum idem_status status;
    struct idem_error err;
    pthread_t thread;
};

static void
begin(struct stepping *stepping, struct world *world,
      const struct idem_method *method, int64_t timeout_ms)
{
    const struct trial_options options = {
        .method = method, .key = "k1", .timeout_ms = timeout_ms};
    struct idem_ticket *ticket;

    stepping->world = world;
    trial_begin(&stepping->trial, world, &options);
    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    assert_int_equal(ticket->steps, method->steps);
    ticket->token = 41;
    fake_store_say(ticket, IDEM_VERDICT_MINE);
    trial_await_handler(&stepping->trial, 1);
}

static void *
mark(void *with)
{
    struct stepping *stepping = with;

    stepping->status =
        idem_step(&stepping->trial.context, "push", &stepping->err);
    return NULL;
}

static struct idem_ticket *
step(struct stepping *stepping)
{
    struct idem_ticket *ticket;

    pthread_create(&stepping->thread, NULL, mark, stepping);
    ticket = fake_store_take(&stepping->world->store, FAKE_MARK);
    assert_int_equal(ticket->token, 41);
    assert_string_equal(ticket->step, "push");
    return ticket;
}

/* What idem_step says when the store says so. */
static enum idem_status
step_to(struct stepping *stepping, enum idem_verdict verdict)
{
    fake_store_say(step(stepping), verdict);
    pthread_join(stepping->thread, NULL);
    return stepping->status;
}

static void
end(struct stepping *stepping, enum idem_status status, enum fake_op op,
    enum idem_effect effect)
{
    trial_return(&stepping->trial, status, "x");
    fake_store_next(&stepping->world->store, op, IDEM_VERDICT_MINE);
    trial_await(&stepping->trial);
    assert_int_equal(stepping->trial.outcome.status, status);
    assert_int_equal(stepping->trial.outcome.effect, effect);
}

static void
a_step_that_is_marked_is_ok(void **state)
{
    struct stepping stepping;

    begin(&stepping, *state, &effects_push_step_method, 0);
    assert_int_equal(step_to(&stepping, IDEM_VERDICT_MINE), IDEM_OK);
    end(&stepping, IDEM_OK, FAKE_COMPLETE, IDEM_EFFECT_COMMITTED);
}

static void
a_handler_that_fails_after_its_mark_is_in_doubt(void **state)
{
    struct stepping stepping;

    begin(&stepping, *state, &effects_push_step_method, 0);
    assert_int_equal(step_to(&stepping, IDEM_VERDICT_MINE), IDEM_OK);
    end(&stepping, IDEM_INTERNAL, FAKE_DOUBT, IDEM_EFFECT_IN_DOUBT);
}

/* It knows that it has done nothing. */
static void
a_handler_that_fails_before_its_mark_is_rolled_back(void **state)
{
    static const enum idem_status statuses[] = {IDEM_UNAVAILABLE,
                                                IDEM_INTERNAL};

    for (int i = 0; i < 2; i++) {
        struct stepping stepping;

        begin(&stepping, *state, &effects_push_step_method, 0);
        end(&stepping, statuses[i], FAKE_RELEASE, IDEM_EFFECT_ROLLED_BACK);
    }
}

static void
a_lost_lease_forbids_the_step(void **state)
{
    struct stepping stepping;

    begin(&stepping, *state, &effects_push_step_method, 0);
    assert_int_equal(step_to(&stepping, IDEM_VERDICT_FENCED), IDEM_ABORTED);
    assert_false(idem_context_owned(&stepping.trial.context));
    end(&stepping, IDEM_ABORTED, FAKE_RELEASE, IDEM_EFFECT_ROLLED_BACK);
}

static void
a_store_that_is_away_forbids_the_step(void **state)
{
    struct stepping stepping;

    begin(&stepping, *state, &effects_push_step_method, 0);
    assert_int_equal(step_to(&stepping, IDEM_VERDICT_FAILED), IDEM_UNAVAILABLE);
    assert_true(idem_context_owned(&stepping.trial.context));
    end(&stepping, IDEM_UNAVAILABLE, FAKE_RELEASE, IDEM_EFFECT_ROLLED_BACK);
}

/* The store may answer when nobody waits any more. */
static void
a_step_waits_no_longer_than_the_deadline(void **state)
{
    struct world *world = *state;
    struct stepping stepping;
    struct idem_ticket *ticket;

    begin(&stepping, world, &effects_push_step_method, 100);
    ticket = step(&stepping);
    fake_clock_advance_ms(&world->clock, 101);
    pthread_join(stepping.thread, NULL);
    assert_int_equal(stepping.status, IDEM_UNAVAILABLE);
    trial_return(&stepping.trial, IDEM_UNAVAILABLE, NULL);
    fake_store_next(&world->store, FAKE_RELEASE, IDEM_VERDICT_MINE);
    trial_await(&stepping.trial);
    fake_store_say(ticket, IDEM_VERDICT_MINE);
}

static void
a_method_without_steps_has_none(void **state)
{
    struct stepping stepping;

    begin(&stepping, *state, &effects_push_method, 0);
    mark(&stepping);
    assert_int_equal(stepping.status, IDEM_FAILED_PRECONDITION);
    end(&stepping, IDEM_OK, FAKE_COMPLETE, IDEM_EFFECT_COMMITTED);
    begin(&stepping, *state, &effects_add_method, 0);
    mark(&stepping);
    assert_int_equal(stepping.status, IDEM_FAILED_PRECONDITION);
    end(&stepping, IDEM_OK, FAKE_COMPLETE, IDEM_EFFECT_COMMITTED);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_step_that_is_marked_is_ok),
        TEST(a_handler_that_fails_after_its_mark_is_in_doubt),
        TEST(a_handler_that_fails_before_its_mark_is_rolled_back),
        TEST(a_lost_lease_forbids_the_step),
        TEST(a_store_that_is_away_forbids_the_step),
        TEST(a_step_waits_no_longer_than_the_deadline),
        TEST(a_method_without_steps_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
