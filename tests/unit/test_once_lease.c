/* LEASED calls: renewals, lost leases, records that are written late. */
#include "once_world.h"

#include "effects.idem.h"

#include <idem/reason.h>

#define LEASE_MS 900 /* effects.proto */

static void
run(struct trial *trial, struct world *world)
{
    struct trial_options options = {.method = &effects_push_method,
                                    .key = "k1"};
    struct idem_ticket *ticket;

    trial_begin(trial, world, &options);
    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    assert_int_equal(ticket->lease_ms, LEASE_MS);
    ticket->token = 41;
    fake_store_say(ticket, IDEM_VERDICT_MINE);
    trial_await_handler(trial, 1);
}

static void
the_handler_knows_its_fence(void **state)
{
    struct world *world = *state;
    struct trial trial;

    run(&trial, world);
    assert_int_equal(idem_context_fence(&trial.context), 41);
    assert_true(idem_context_owned(&trial.context));
    trial_return(&trial, IDEM_OK, "x");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
    trial_await(&trial);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_COMMITTED);
}

/* Fault 27. */
static void
a_lease_is_renewed_while_the_handler_runs(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct idem_ticket *ticket;

    run(&trial, world);
    for (int i = 0; i < 6; i++) {
        fake_clock_advance_ms(&world->clock, LEASE_MS / 3);
        ticket = fake_store_take(&world->store, FAKE_RENEW);
        assert_int_equal(ticket->token, 41);
        assert_int_equal(ticket->lease_ms, LEASE_MS);
        fake_store_say(ticket, IDEM_VERDICT_MINE);
    }
    assert_true(idem_context_owned(&trial.context));
    trial_return(&trial, IDEM_OK, "x");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
    trial_await(&trial);
    fake_clock_advance_ms(&world->clock, LEASE_MS);
    assert_true(fake_store_quiet(&world->store));
}

static void
renewals_end_with_the_longest_execution(void **state)
{
    struct world *world = *state;
    struct trial trial;

    run(&trial, world);
    fake_clock_advance_ms(&world->clock,
                          effects_push_method.max_execution_ms + LEASE_MS);
    trial_return(&trial, IDEM_OK, "x");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
    trial_await(&trial);
    assert_int_equal(fake_store_asked(&world->store, FAKE_RENEW), 0);
}

/* A renewal may be under way when its call ends. */
static void
a_renewal_that_answers_after_its_call_is_harmless(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct idem_ticket *renewal;

    run(&trial, world);
    fake_clock_advance_ms(&world->clock, LEASE_MS / 3);
    renewal = fake_store_take(&world->store, FAKE_RENEW);
    trial_return(&trial, IDEM_OK, "x");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
    trial_await(&trial);
    fake_store_say(renewal, IDEM_VERDICT_FENCED);
}

/* Faults 29, 30: the result is thrown away, the record is what counts. */
static void
a_lost_lease_is_told_and_the_record_is_answered(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct idem_ticket *ticket;

    run(&trial, world);
    fake_clock_advance_ms(&world->clock, LEASE_MS / 3);
    fake_store_next(&world->store, FAKE_RENEW, IDEM_VERDICT_FENCED);
    assert_false(idem_context_owned(&trial.context));
    trial_return(&trial, IDEM_UNAVAILABLE, NULL);
    fake_store_next(&world->store, FAKE_RELEASE, IDEM_VERDICT_FENCED);
    ticket = fake_store_take(&world->store, FAKE_LOOK);
    ticket->answer = (struct idem_answer){.reply = idem_bytes_of("theirs")};
    fake_store_say(ticket, IDEM_VERDICT_DONE);
    trial_await(&trial);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_memory_equal(trial.reply, "theirs", 6);
    assert_int_equal(world_counts(world).fenced, 1);
}

static void
a_zombie_waits_for_the_execution_that_took_over(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct idem_ticket *ticket;

    run(&trial, world);
    trial_return(&trial, IDEM_OK, "mine");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_FENCED);
    fake_store_next(&world->store, FAKE_LOOK, IDEM_VERDICT_RUNNING);
    fake_clock_advance_ms(&world->clock, 250);
    ticket = fake_store_take(&world->store, FAKE_LOOK);
    ticket->answer = (struct idem_answer){.reply = idem_bytes_of("theirs")};
    fake_store_say(ticket, IDEM_VERDICT_DONE);
    trial_await(&trial);
    assert_int_equal(trial.begun, 1);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_REPLAYED);
}

/* Fault 43. */
static void
a_record_that_cannot_be_written_is_written_late(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct idem_ticket *ticket;

    run(&trial, world);
    trial_return(&trial, IDEM_OK, "paid");
    fake_store_fail(&world->store, FAKE_COMPLETE, IDEM_UNAVAILABLE);
    trial_await(&trial);
    assert_int_equal(trial.outcome.status, IDEM_UNAVAILABLE);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_IN_DOUBT);
    assert_false(trial.outcome.final);
    fake_clock_advance_ms(&world->clock, 1000);
    fake_store_fail(&world->store, FAKE_COMPLETE, IDEM_UNAVAILABLE);
    fake_clock_advance_ms(&world->clock, 1000);
    ticket = fake_store_take(&world->store, FAKE_COMPLETE);
    assert_int_equal(ticket->token, 41);
    assert_memory_equal(ticket->answer.reply.data, "paid", 4);
    fake_store_say(ticket, IDEM_VERDICT_MINE);
    fake_clock_advance_ms(&world->clock, 10000);
    assert_true(fake_store_quiet(&world->store));
}

static void
a_stop_ends_what_is_to_be_written_late(void **state)
{
    struct world *world = *state;
    struct trial trial;

    run(&trial, world);
    trial_return(&trial, IDEM_OK, "paid");
    fake_store_fail(&world->store, FAKE_COMPLETE, IDEM_UNAVAILABLE);
    trial_await(&trial);
    chain_stop(&world->chain);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_handler_knows_its_fence),
        TEST(a_lease_is_renewed_while_the_handler_runs),
        TEST(renewals_end_with_the_longest_execution),
        TEST(a_renewal_that_answers_after_its_call_is_harmless),
        TEST(a_lost_lease_is_told_and_the_record_is_answered),
        TEST(a_zombie_waits_for_the_execution_that_took_over),
        TEST(a_record_that_cannot_be_written_is_written_late),
        TEST(a_stop_ends_what_is_to_be_written_late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
