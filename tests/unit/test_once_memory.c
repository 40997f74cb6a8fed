/* Repeats that this process answers by itself: what it saw the authority
 * record, and only while that is still so (semantics.md 4.5). */
#include "once_world.h"

#include "effects.idem.h"

#include <idem/reason.h>

#include <string.h>

#define EPOCH "7:1:1"

static const struct trial_options first = {.key = "k1", .amount = 7};
static const struct trial_options repeat = {
    .key = "k1", .amount = 7, .attempt = 2};

static int
setup(void **state)
{
    int result = world_setup(state);
    struct world *world = *state;

    fake_store_set_epoch(&world->store, EPOCH);
    return result;
}

/* The key is run and recorded with the reply "seven". */
static void
run(struct world *world, const struct trial_options *options)
{
    struct trial trial;

    trial_begin(&trial, world, options);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&trial, 1);
    trial_return(&trial, IDEM_OK, "seven");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
    trial_await(&trial);
    assert_int_equal(trial.outcome.status, IDEM_OK);
}

/* The store is not asked and the answer is that of run. */
static void
assert_remembered(struct world *world, const struct trial_options *options)
{
    uint64_t claims = world_counts(world).claims;
    struct trial trial;

    trial_begin(&trial, world, options);
    trial_await(&trial);
    assert_int_equal(trial.outcome.status, IDEM_OK);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_true(trial.outcome.final);
    assert_int_equal(trial.reply_size, 5);
    assert_memory_equal(trial.reply, "seven", 5);
    assert_int_equal(trial.begun, 0);
    assert_int_equal(world_counts(world).claims, claims);
}

/* The store is asked, and says that it does not know the key's answer. */
static void
assert_asked(struct world *world, const struct trial_options *options)
{
    struct trial trial;

    trial_begin(&trial, world, options);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_EXPIRED);
    trial_await(&trial);
    assert_string_equal(trial.outcome.reason, IDEM_KEY_EXPIRED);
}

/* As above; the store has its answer. */
static void
replay_from_store(struct world *world, const struct trial_options *options)
{
    struct trial trial;
    struct idem_ticket *ticket;

    trial_begin(&trial, world, options);
    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    ticket->answer = (struct idem_answer){.status = IDEM_OK,
                                          .reply = idem_bytes_of("seven"),
                                          .first_at_ms = world->clock.wall_ms};
    fake_store_say(ticket, IDEM_VERDICT_DONE);
    trial_await(&trial);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_REPLAYED);
}

static void
a_repeat_of_a_recorded_call_asks_nobody(void **state)
{
    struct world *world = *state;

    run(world, &first);
    assert_remembered(world, &repeat);
    assert_remembered(world, &repeat);
    assert_int_equal(world_counts(world).remembered, 2);
    assert_int_equal(world_counts(world).replayed, 2);
    assert_int_equal(world_counts(world).memory_entries, 1);
    assert_true(world_counts(world).memory_bytes > 0);
}

static void
a_replay_of_the_store_is_remembered(void **state)
{
    struct world *world = *state;

    replay_from_store(world, &first);
    assert_remembered(world, &repeat);
}

static void
a_final_error_is_remembered(void **state)
{
    struct world *world = *state;
    struct trial trial;

    trial_begin(&trial, world, &first);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&trial, 1);
    trial_return(&trial, IDEM_FAILED_PRECONDITION, NULL);
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
    trial_await(&trial);
    trial_begin(&trial, world, &repeat);
    trial_await(&trial);
    assert_int_equal(trial.outcome.status, IDEM_FAILED_PRECONDITION);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_REPLAYED);
}

/* What is not final may become something else. */
static void
a_released_key_is_not_remembered(void **state)
{
    struct world *world = *state;
    struct trial trial;

    trial_begin(&trial, world, &first);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&trial, 1);
    trial_return(&trial, IDEM_UNAVAILABLE, NULL);
    fake_store_next(&world->store, FAKE_RELEASE, IDEM_VERDICT_MINE);
    trial_await(&trial);
    assert_asked(world, &repeat);
}

static void
an_abandoned_key_is_refused_without_asking(void **state)
{
    struct world *world = *state;
    struct trial trial;

    trial_begin(&trial, world, &first);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_ABANDONED);
    trial_await(&trial);
    trial_begin(&trial, world, &repeat);
    trial_await(&trial);
    assert_int_equal(trial.outcome.status, IDEM_FAILED_PRECONDITION);
    assert_string_equal(trial.outcome.reason, IDEM_KEY_ABANDONED);
    assert_true(trial.outcome.final);
    assert_int_equal(world_counts(world).claims, 1);
}

/* ask_redis says it of memory, too. */
static void
first_attempts_ask_where_the_method_says_so(void **state)
{
    struct world *world = *state;
    struct trial_options options = {
        .key = "k2", .amount = 7, .method = &effects_add_always_method};

    run(world, &first);
    assert_asked(world, &first);
    run(world, &options);
    assert_remembered(world, &options);
}

static void
a_method_that_wants_none_has_none(void **state)
{
    struct world *world = *state;
    struct trial_options options = {
        .key = "k1", .amount = 7, .method = &effects_add_never_method};

    run(world, &options);
    options.attempt = 2;
    assert_asked(world, &options);
    assert_int_equal(world_counts(world).memory_entries, 0);
}

/* Fault 45. */
static void
another_request_is_refused_and_told_when_the_key_was_used(void **state)
{
    struct world *world = *state;
    struct trial_options other = {.key = "k1", .amount = 8, .attempt = 2};
    struct trial trial;

    run(world, &first);
    trial_begin(&trial, world, &other);
    trial_await(&trial);
    assert_int_equal(trial.outcome.status, IDEM_INVALID_ARGUMENT);
    assert_string_equal(trial.outcome.reason, IDEM_KEY_REUSED);
    assert_non_null(strstr(trial.outcome.message, "2023-11-14T22:13:20"));
    assert_int_equal(trial.reply_size, 0);
    assert_int_equal(world_counts(world).claims, 2);
}

/* semantics.md 3.4: another runtime or version may have written it. */
static void
the_same_request_in_other_bytes_is_shown_the_answer(void **state)
{
    struct world *world = *state;
    struct trial_options other = repeat;

    other.bytes = "seven, as another runtime writes it";
    run(world, &first);
    assert_remembered(world, &other);
    assert_remembered(world, &repeat);
}

/* Fault 62, I6. */
static void
another_tenant_or_method_is_not_shown_the_answer(void **state)
{
    struct world *world = *state;
    struct trial_options tenant = repeat, method = repeat;

    tenant.tenant = "somebody else";
    method.method = &effects_add_or_busy_method;
    run(world, &first);
    assert_asked(world, &tenant);
    assert_asked(world, &method);
}

/* Fault 41: a standby was promoted. */
static void
another_epoch_of_the_store_is_asked(void **state)
{
    struct world *world = *state;

    run(world, &first);
    fake_store_set_epoch(&world->store, "7:2:1");
    assert_asked(world, &repeat);
}

static void
a_store_that_is_away_has_no_epoch(void **state)
{
    struct world *world = *state;

    run(world, &first);
    fake_store_set_epoch(&world->store, "");
    assert_asked(world, &repeat);
}

/* Nobody tells a process that does not ask. */
static void
an_answer_is_shown_for_five_seconds_after_the_store_was_heard(void **state)
{
    struct world *world = *state;

    run(world, &first);
    fake_clock_advance_ms(&world->clock, 5000);
    assert_remembered(world, &repeat);
    fake_clock_advance_ms(&world->clock, 1);
    replay_from_store(world, &repeat);
    fake_clock_advance_ms(&world->clock, 5000);
    assert_remembered(world, &repeat);
}

/* It is not heard by failing. */
static void
a_store_that_fails_is_not_heard(void **state)
{
    struct world *world = *state;
    struct trial_options other = {.key = "k2", .amount = 7};
    struct trial trial;

    run(world, &first);
    fake_clock_advance_ms(&world->clock, 4000);
    trial_begin(&trial, world, &other);
    fake_store_fail(&world->store, FAKE_CLAIM, IDEM_UNAVAILABLE);
    trial_await(&trial);
    fake_clock_advance_ms(&world->clock, 1001);
    assert_asked(world, &repeat);
}

/* An answer of before the fail-over is not one of after it. */
static void
an_answer_whose_epoch_ended_meanwhile_is_not_remembered(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct idem_ticket *ticket;

    trial_begin(&trial, world, &first);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&trial, 1);
    trial_return(&trial, IDEM_OK, "seven");
    ticket = fake_store_take(&world->store, FAKE_COMPLETE);
    fake_store_set_epoch(&world->store, "7:2:1");
    fake_store_say(ticket, IDEM_VERDICT_MINE);
    trial_await(&trial);
    assert_asked(world, &repeat);
}

static void
a_key_whose_window_is_over_is_not_remembered(void **state)
{
    struct world *world = *state;

    run(world, &first);
    fake_clock_step_wall_ms(&world->clock, 86400000);
    assert_asked(world, &repeat);
}

static void
there_is_none_where_none_is_wanted(void **state)
{
    struct world *world = *state;
    const struct idem_once_options options = {.no_memory = true};

    world_use(world, &options);
    fake_store_set_epoch(&world->store, EPOCH);
    run(world, &first);
    assert_asked(world, &repeat);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, world_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_repeat_of_a_recorded_call_asks_nobody),
        TEST(a_replay_of_the_store_is_remembered),
        TEST(a_final_error_is_remembered),
        TEST(a_released_key_is_not_remembered),
        TEST(an_abandoned_key_is_refused_without_asking),
        TEST(first_attempts_ask_where_the_method_says_so),
        TEST(a_method_that_wants_none_has_none),
        TEST(another_request_is_refused_and_told_when_the_key_was_used),
        TEST(the_same_request_in_other_bytes_is_shown_the_answer),
        TEST(another_tenant_or_method_is_not_shown_the_answer),
        TEST(another_epoch_of_the_store_is_asked),
        TEST(a_store_that_is_away_has_no_epoch),
        TEST(an_answer_is_shown_for_five_seconds_after_the_store_was_heard),
        TEST(a_store_that_fails_is_not_heard),
        TEST(an_answer_whose_epoch_ended_meanwhile_is_not_remembered),
        TEST(a_key_whose_window_is_over_is_not_remembered),
        TEST(there_is_none_where_none_is_wanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
