/* What becomes of a handler's answer. */
#include "once_world.h"

#include "effects.idem.h"

#include "arena.h"
#include "tx.h"

#include <idem/reason.h>

#include <string.h>

static void
run(struct trial *trial, struct world *world, const struct idem_method *method)
{
    struct trial_options options = {.method = method, .key = "k1"};

    trial_begin(trial, world, &options);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(trial, 1);
}

static void
assert_ended(struct trial *trial, enum idem_status status,
             enum idem_effect effect, bool final)
{
    trial_await(trial);
    assert_int_equal(trial->outcome.status, status);
    assert_int_equal(trial->outcome.effect, effect);
    assert_int_equal(trial->outcome.final, final);
}

/* Fault 51; B010: an outage is not the key's answer. */
static void
a_transient_error_releases_the_key(void **state)
{
    struct world *world = *state;
    struct trial trial;

    run(&trial, world, NULL);
    trial_return(&trial, IDEM_UNAVAILABLE, NULL);
    fake_store_next(&world->store, FAKE_RELEASE, IDEM_VERDICT_MINE);
    assert_ended(&trial, IDEM_UNAVAILABLE, IDEM_EFFECT_ROLLED_BACK, false);
}

static void
an_internal_error_in_a_transaction_is_rolled_back(void **state)
{
    struct world *world = *state;
    struct trial trial;

    run(&trial, world, NULL);
    trial_return(&trial, IDEM_INTERNAL, NULL);
    fake_store_next(&world->store, FAKE_RELEASE, IDEM_VERDICT_MINE);
    assert_ended(&trial, IDEM_INTERNAL, IDEM_EFFECT_ROLLED_BACK, false);
}

/* A dead letter: what ends badly whenever it runs is not run for ever. */
static void
an_internal_error_too_many_is_final(void **state)
{
    static const enum idem_status statuses[] = {IDEM_INTERNAL, IDEM_UNKNOWN};
    const struct trial_options options = {.key = "k1"};
    struct world *world = *state;

    for (int i = 0; i < 4; i++) {
        unsigned max = effects_add_method.max_executions;
        bool last = i % 2;
        struct idem_ticket *ticket;
        struct trial trial;

        trial_begin(&trial, world, &options);
        ticket = fake_store_take(&world->store, FAKE_CLAIM);
        ticket->executions = last ? max : max - 1;
        fake_store_say(ticket, IDEM_VERDICT_MINE);
        trial_await_handler(&trial, 1);
        trial_return(&trial, statuses[i / 2], NULL);
        ticket =
            fake_store_take(&world->store, last ? FAKE_COMPLETE : FAKE_RELEASE);
        assert_int_equal(ticket->counts, !last);
        fake_store_say(ticket, IDEM_VERDICT_MINE);
        assert_ended(&trial, statuses[i / 2], IDEM_EFFECT_ROLLED_BACK, last);
    }
    assert_int_equal(world_counts(world).exhausted, 2);
}

/* An outage is no defect: it may last. */
static void
an_outage_does_not_count(void **state)
{
    struct world *world = *state;
    struct idem_ticket *ticket;
    struct trial trial;

    run(&trial, world, NULL);
    trial_return(&trial, IDEM_UNAVAILABLE, NULL);
    ticket = fake_store_take(&world->store, FAKE_RELEASE);
    assert_false(ticket->counts);
    fake_store_say(ticket, IDEM_VERDICT_MINE);
    assert_ended(&trial, IDEM_UNAVAILABLE, IDEM_EFFECT_ROLLED_BACK, false);
}

static void
an_internal_error_under_a_lease_is_in_doubt(void **state)
{
    struct world *world = *state;
    struct trial trial;

    run(&trial, world, &effects_push_method);
    trial_return(&trial, IDEM_INTERNAL, NULL);
    fake_store_next(&world->store, FAKE_DOUBT, IDEM_VERDICT_MINE);
    assert_ended(&trial, IDEM_INTERNAL, IDEM_EFFECT_IN_DOUBT, false);
    assert_int_equal(world_counts(world).in_doubt, 1);
}

static void
a_transient_error_under_a_lease_may_have_had_an_effect(void **state)
{
    struct world *world = *state;
    struct trial trial;

    run(&trial, world, &effects_push_method);
    trial_return(&trial, IDEM_UNAVAILABLE, NULL);
    fake_store_next(&world->store, FAKE_RELEASE, IDEM_VERDICT_MINE);
    assert_ended(&trial, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT, false);
}

/* Faults 53, 71; B047: refused behind once, before the handler. */
static void
a_call_whose_handler_was_not_begun_is_released(void **state)
{
    struct world *world = *state;
    struct trial trial;

    run(&trial, world, NULL);
    trial_refuse(&trial);
    fake_store_next(&world->store, FAKE_RELEASE, IDEM_VERDICT_MINE);
    assert_ended(&trial, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED, false);
}

static void
a_rival_that_recorded_first_is_what_the_caller_gets(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct idem_ticket *ticket;

    run(&trial, world, NULL);
    trial_return(&trial, IDEM_OK, "mine");
    ticket = fake_store_take(&world->store, FAKE_COMPLETE);
    ticket->answer = (struct idem_answer){.reply = idem_bytes_of("theirs")};
    fake_store_say(ticket, IDEM_VERDICT_DONE);
    assert_ended(&trial, IDEM_OK, IDEM_EFFECT_REPLAYED, true);
    assert_memory_equal(trial.reply, "theirs", 6);
}

/* Fault 23. */
static void
a_conflict_at_commit_runs_the_handler_again(void **state)
{
    struct world *world = *state;
    struct trial trial;

    run(&trial, world, NULL);
    trial_return(&trial, IDEM_OK, "one");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_CONFLICT);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&trial, 2);
    trial_return(&trial, IDEM_OK, "two");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
    assert_ended(&trial, IDEM_OK, IDEM_EFFECT_COMMITTED, true);
    assert_memory_equal(trial.reply, "two", 3);
}

/* Fault 23, in the handler: whatever it makes of the failed statement. */
static void
a_conflict_in_the_handler_runs_it_again(void **state)
{
    struct world *world = *state;
    struct trial_options options = {.key = "k1"};
    struct trial trial;
    struct idem_ticket *ticket;
    struct idem_tx tx = {.failed = IDEM_ABORTED}, fresh = {.failed = IDEM_OK};

    trial_begin(&trial, world, &options);
    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    ticket->tx = &tx;
    fake_store_say(ticket, IDEM_VERDICT_MINE);
    trial_await_handler(&trial, 1);
    assert_ptr_equal(idem_context_tx(&trial.context, NULL), &tx);
    trial_return(&trial, IDEM_INTERNAL, NULL);
    fake_store_next(&world->store, FAKE_RELEASE, IDEM_VERDICT_MINE);
    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    ticket->tx = &fresh;
    fake_store_say(ticket, IDEM_VERDICT_MINE);
    trial_await_handler(&trial, 2);
    assert_ptr_equal(idem_context_tx(&trial.context, NULL), &fresh);
    trial_return(&trial, IDEM_OK, "two");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
    assert_ended(&trial, IDEM_OK, IDEM_EFFECT_COMMITTED, true);
}

/* Fault 23: each execution has a fresh arena (semantics.md 4.4). */
static void
memory_is_flat_over_conflicts(void **state)
{
    enum { REPEATS = 40 };
    struct world *world = *state;
    struct idem_once_options many = {.max_repeats = REPEATS};
    struct trial trial;
    size_t of_call = 0, of_repeat = 0;

    world_use(world, &many);
    run(&trial, world, NULL);
    for (unsigned i = 1; i <= REPEATS; i++) {
        (void)idem_context_alloc(&trial.context, (size_t)1 << 20);
        trial_return(&trial, IDEM_OK, "reply");
        fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_CONFLICT);
        fake_clock_advance_ms(&world->clock, 1000);
        fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
        trial_await_handler(&trial, i + 1);
        assert_ptr_not_equal(idem_context_arena(&trial.context),
                             trial.call.base.arena);
        if (i == 1) {
            of_call = arena_size(trial.call.base.arena);
            of_repeat = arena_size(idem_context_arena(&trial.context));
        }
        assert_int_equal(arena_size(trial.call.base.arena), of_call);
        assert_int_equal(arena_size(idem_context_arena(&trial.context)),
                         of_repeat);
    }
    trial_return(&trial, IDEM_OK, "last");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
    assert_ended(&trial, IDEM_OK, IDEM_EFFECT_COMMITTED, true);
    assert_memory_equal(trial.reply, "last", 4);
}

static void
conflicts_without_end_are_given_up(void **state)
{
    struct world *world = *state;
    struct idem_once_options two = {.max_repeats = 2};
    struct trial trial;

    world_use(world, &two);
    run(&trial, world, NULL);
    trial_return(&trial, IDEM_OK, "one");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_CONFLICT);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&trial, 2);
    trial_return(&trial, IDEM_OK, "two");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_CONFLICT);
    fake_clock_advance_ms(&world->clock, 100);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&trial, 3);
    trial_return(&trial, IDEM_OK, "three");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_CONFLICT);
    assert_ended(&trial, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK, false);
}

/* Fault 15: a lost commit is asked about by a claim, which waits for it. */
static void
a_lost_commit_that_stands_is_replayed(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct idem_ticket *ticket;

    run(&trial, world, NULL);
    trial_return(&trial, IDEM_OK, "one");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_UNKNOWN);
    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    ticket->answer = (struct idem_answer){.reply = idem_bytes_of("one")};
    fake_store_say(ticket, IDEM_VERDICT_DONE);
    assert_ended(&trial, IDEM_OK, IDEM_EFFECT_REPLAYED, true);
    assert_int_equal(trial.begun, 1);
}

static void
a_lost_commit_that_does_not_stand_runs_again(void **state)
{
    struct world *world = *state;
    struct trial trial;

    run(&trial, world, NULL);
    trial_return(&trial, IDEM_OK, "one");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_UNKNOWN);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&trial, 2);
    trial_return(&trial, IDEM_OK, "two");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
    assert_ended(&trial, IDEM_OK, IDEM_EFFECT_COMMITTED, true);
}

static void
a_lost_commit_that_nobody_can_tell_of_is_in_doubt(void **state)
{
    struct world *world = *state;
    struct trial trial;

    run(&trial, world, NULL);
    trial_return(&trial, IDEM_OK, "one");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_UNKNOWN);
    fake_store_fail(&world->store, FAKE_CLAIM, IDEM_UNAVAILABLE);
    assert_ended(&trial, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT, false);
}

/* Faults 19, 22. */
static void
a_transaction_that_cannot_complete_changed_nothing(void **state)
{
    struct world *world = *state;
    struct trial trial;

    run(&trial, world, NULL);
    trial_return(&trial, IDEM_OK, "one");
    fake_store_fail(&world->store, FAKE_COMPLETE, IDEM_INTERNAL);
    assert_ended(&trial, IDEM_INTERNAL, IDEM_EFFECT_ROLLED_BACK, false);
}

static void
a_handler_that_committed_by_itself_is_in_doubt(void **state)
{
    struct world *world = *state;
    struct trial trial;

    run(&trial, world, NULL);
    trial_return(&trial, IDEM_OK, "one");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_DOUBT);
    assert_ended(&trial, IDEM_ABORTED, IDEM_EFFECT_IN_DOUBT, false);
    assert_string_equal(trial.outcome.reason, IDEM_KEY_IN_DOUBT);
}

/* Fault 63. */
#define LONG_REPLY                                                             \
    "a reply of more than one hundred bytes, which is what the method says "   \
    "that it stores at most: it goes on and on"

static void
a_reply_that_is_too_large_is_rolled_back(void **state)
{
    struct world *world = *state;
    struct trial trial;

    run(&trial, world, &effects_add_small_method);
    trial_return(&trial, IDEM_OK, LONG_REPLY);
    fake_store_next(&world->store, FAKE_RELEASE, IDEM_VERDICT_MINE);
    assert_ended(&trial, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_ROLLED_BACK,
                 false);
    assert_string_equal(trial.outcome.reason, IDEM_REPLY_TOO_LARGE);
}

/* The endpoint's word when the handler's reply is over what the server sends:
 * the effect stands, so the key is not given back to be run again. */
static void
a_reply_that_cannot_be_sent_under_a_lease_is_the_record(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct idem_error err;
    struct idem_ticket *ticket;

    run(&trial, world, &effects_push_method);
    (void)idem_fail_reason(&err, IDEM_RESOURCE_EXHAUSTED, IDEM_REPLY_TOO_LARGE,
                           "the reply is too large");
    (void)idem_context_fail_with(&trial.context, &err);
    trial_return(&trial, IDEM_RESOURCE_EXHAUSTED, NULL);
    ticket = fake_store_take(&world->store, FAKE_COMPLETE);
    assert_int_equal(ticket->answer.status, IDEM_RESOURCE_EXHAUSTED);
    fake_store_say(ticket, IDEM_VERDICT_MINE);
    assert_ended(&trial, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_IN_DOUBT, true);
}

static void
a_reply_that_is_too_large_may_be_recorded_by_its_hash(void **state)
{
    struct world *world = *state;
    struct trial first, second;
    struct trial_options options = {.method = &effects_add_digest_method,
                                    .key = "k1"};
    struct idem_ticket *ticket;
    char message[IDEM_MESSAGE_MAX];

    run(&first, world, &effects_add_digest_method);
    trial_return(&first, IDEM_OK, LONG_REPLY);
    ticket = fake_store_take(&world->store, FAKE_COMPLETE);
    assert_int_equal(ticket->answer.status, IDEM_OK);
    assert_int_equal(ticket->answer.reply.size, 0);
    memcpy(message, ticket->answer.message.data, ticket->answer.message.size);
    message[ticket->answer.message.size] = '\0';
    fake_store_say(ticket, IDEM_VERDICT_MINE);
    assert_ended(&first, IDEM_OK, IDEM_EFFECT_COMMITTED, true);
    assert_int_equal(first.reply_size, strlen(LONG_REPLY));

    trial_begin(&second, world, &options);
    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    ticket->answer = (struct idem_answer){
        .reason = idem_bytes_of(IDEM_ANSWER_DROPPED),
        .message = idem_bytes_of(message),
    };
    fake_store_say(ticket, IDEM_VERDICT_DONE);
    assert_ended(&second, IDEM_ALREADY_EXISTS, IDEM_EFFECT_REPLAYED, true);
    assert_non_null(strstr(second.outcome.message, "SHA-256"));
}

/* Fault 70: what was done is written down although the caller has gone. */
static void
a_caller_that_gave_up_does_not_keep_the_record_from_being_written(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct trial_options options = {.key = "k1", .timeout_ms = 50};

    trial_begin(&trial, world, &options);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&trial, 1);
    fake_clock_advance_ms(&world->clock, 100);
    trial_return(&trial, IDEM_OK, "late");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
    assert_ended(&trial, IDEM_OK, IDEM_EFFECT_COMMITTED, true);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_transient_error_releases_the_key),
        TEST(an_internal_error_in_a_transaction_is_rolled_back),
        TEST(an_internal_error_too_many_is_final),
        TEST(an_outage_does_not_count),
        TEST(an_internal_error_under_a_lease_is_in_doubt),
        TEST(a_transient_error_under_a_lease_may_have_had_an_effect),
        TEST(a_call_whose_handler_was_not_begun_is_released),
        TEST(a_rival_that_recorded_first_is_what_the_caller_gets),
        TEST(a_conflict_at_commit_runs_the_handler_again),
        TEST(a_conflict_in_the_handler_runs_it_again),
        TEST(memory_is_flat_over_conflicts),
        TEST(conflicts_without_end_are_given_up),
        TEST(a_lost_commit_that_stands_is_replayed),
        TEST(a_lost_commit_that_does_not_stand_runs_again),
        TEST(a_lost_commit_that_nobody_can_tell_of_is_in_doubt),
        TEST(a_transaction_that_cannot_complete_changed_nothing),
        TEST(a_handler_that_committed_by_itself_is_in_doubt),
        TEST(a_reply_that_is_too_large_is_rolled_back),
        TEST(a_reply_that_cannot_be_sent_under_a_lease_is_the_record),
        TEST(a_reply_that_is_too_large_may_be_recorded_by_its_hash),
        TEST(a_caller_that_gave_up_does_not_keep_the_record_from_being_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
