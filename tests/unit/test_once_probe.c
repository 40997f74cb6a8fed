/* LEASED calls whose probe is asked before their handler. */
#include "once_world.h"

#include "effects.idem.h"

#include <idem/context.h>
#include <idem/reason.h>

#include <string.h>

/* A call that got its key to find out about it. */
static void
lend(struct trial *trial, struct world *world)
{
    const struct trial_options options = {.method = &effects_push_probe_method,
                                          .key = "k1"};
    struct idem_ticket *ticket;

    trial_begin(trial, world, &options);
    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    assert_int_equal(ticket->after_crash, IDEM_AFTER_CRASH_PROBE);
    ticket->token = 42;
    ticket->probe = true;
    fake_store_say(ticket, IDEM_VERDICT_MINE);
    trial_await_handler(trial, 1);
}

static void
say_complete(struct world *world, enum idem_status status)
{
    struct idem_ticket *ticket = fake_store_take(&world->store, FAKE_COMPLETE);

    assert_int_equal(ticket->token, 42);
    assert_int_equal(ticket->answer.status, status);
    ticket->answer.first_at_ms = 99;
    fake_store_say(ticket, IDEM_VERDICT_MINE);
}

static void
what_the_probe_found_is_recorded_and_replayed(void **state)
{
    struct world *world = *state;
    struct trial trial;

    lend(&trial, world);
    trial_probe(&trial, IDEM_PROBED_DONE, "paid");
    say_complete(world, IDEM_OK);
    trial_await(&trial);
    assert_int_equal(trial.outcome.status, IDEM_OK);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_int_equal(trial.outcome.first_at_ms, 99);
    assert_true(trial.outcome.final);
    assert_memory_equal(trial.reply, "paid", 4);
    assert_int_equal(world_counts(world).probed, 1);
    assert_int_equal(world_counts(world).executed, 0);
}

static void
a_final_error_that_the_probe_found_is_recorded(void **state)
{
    struct world *world = *state;
    struct trial trial;

    lend(&trial, world);
    (void)idem_context_fail(&trial.context, IDEM_FAILED_PRECONDITION, "no");
    trial_probe(&trial, IDEM_PROBED_DONE, NULL);
    say_complete(world, IDEM_FAILED_PRECONDITION);
    trial_await(&trial);
    assert_int_equal(trial.outcome.status, IDEM_FAILED_PRECONDITION);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_true(trial.outcome.final);
}

static void
not_done_runs_the_handler_under_the_same_claim(void **state)
{
    struct world *world = *state;
    struct trial trial;

    lend(&trial, world);
    assert_int_equal(idem_context_fence(&trial.context), 42);
    trial_probe(&trial, IDEM_PROBED_NOT_DONE, NULL);
    trial_return(&trial, IDEM_OK, "now");
    say_complete(world, IDEM_OK);
    trial_await(&trial);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(world_counts(world).executed, 1);
}

static void
assert_in_doubt(struct world *world, struct trial *trial)
{
    fake_store_next(&world->store, FAKE_DOUBT, IDEM_VERDICT_MINE);
    trial_await(trial);
    assert_int_equal(trial->outcome.effect, IDEM_EFFECT_IN_DOUBT);
    assert_false(trial->outcome.final);
    assert_int_equal(fake_store_asked(&world->store, FAKE_RELEASE), 0);
}

static void
unknown_is_in_doubt(void **state)
{
    struct world *world = *state;
    struct trial trial;

    lend(&trial, world);
    (void)idem_context_fail(&trial.context, IDEM_UNAVAILABLE, "bank away");
    trial_probe(&trial, IDEM_PROBED_UNKNOWN, NULL);
    assert_in_doubt(world, &trial);
    assert_int_equal(trial.outcome.status, IDEM_ABORTED);
    assert_string_equal(trial.outcome.reason, IDEM_KEY_IN_DOUBT);
    assert_non_null(strstr(trial.outcome.message, "bank away"));
}

static void
done_with_an_error_that_is_not_recorded_is_in_doubt(void **state)
{
    struct world *world = *state;
    struct trial trial;

    lend(&trial, world);
    (void)idem_context_fail(&trial.context, IDEM_UNAVAILABLE, "odd");
    trial_probe(&trial, IDEM_PROBED_DONE, NULL);
    assert_in_doubt(world, &trial);
}

/* Not released: it was begun before, by somebody else. */
static void
a_probe_that_is_not_begun_leaves_the_key_in_doubt(void **state)
{
    struct world *world = *state;
    struct trial trial;

    lend(&trial, world);
    trial_refuse(&trial);
    assert_in_doubt(world, &trial);
    assert_int_equal(trial.outcome.status, IDEM_RESOURCE_EXHAUSTED);
}

/* Whoever has the key now says what became of it. */
static void
a_probe_that_lost_its_lease_is_not_believed(void **state)
{
    struct world *world = *state;
    struct trial trial;

    lend(&trial, world);
    trial_probe(&trial, IDEM_PROBED_DONE, "mine");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_FENCED);
    fake_store_next(&world->store, FAKE_LOOK, IDEM_VERDICT_DOUBT);
    trial_await(&trial);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_IN_DOUBT);
    assert_int_equal(world_counts(world).fenced, 1);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_the_probe_found_is_recorded_and_replayed),
        TEST(a_final_error_that_the_probe_found_is_recorded),
        TEST(not_done_runs_the_handler_under_the_same_claim),
        TEST(unknown_is_in_doubt),
        TEST(done_with_an_error_that_is_not_recorded_is_in_doubt),
        TEST(a_probe_that_is_not_begun_leaves_the_key_in_doubt),
        TEST(a_probe_that_lost_its_lease_is_not_believed),
    };

    return cmocka_run_group_tests_name("once: probe", tests, NULL, NULL);
}
