/* Many calls of one key at once, in one process and beside another one. */
#include "once_world.h"

#include "effects.idem.h"

#include <idem/reason.h>

#include <stdlib.h>

#define MANY 50
#define VERY_MANY 2000

static void
begin(struct trial *trial, struct world *world, const char *key)
{
    struct trial_options options = {.key = key, .amount = 7};

    trial_begin(trial, world, &options);
}

static void
lead(struct trial *first, struct world *world)
{
    begin(first, world, "k1");
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(first, 1);
}

static void
complete(struct trial *first, struct world *world, const char *reply)
{
    trial_return(first, IDEM_OK, reply);
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
}

/* Fault 2, B001: two operations of the store for fifty calls. */
static void
duplicates_in_flight_get_the_first_ones_answer(void **state)
{
    struct world *world = *state;
    struct trial first, others[MANY];

    lead(&first, world);
    for (int i = 0; i < MANY; i++)
        begin(&others[i], world, "k1");
    assert_int_equal(world_counts(world).attached, MANY);
    complete(&first, world, "seven");
    trial_await(&first);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    for (int i = 0; i < MANY; i++) {
        trial_await(&others[i]);
        assert_int_equal(others[i].outcome.status, IDEM_OK);
        assert_int_equal(others[i].outcome.effect, IDEM_EFFECT_REPLAYED);
        assert_true(others[i].outcome.final);
        assert_memory_equal(others[i].reply, "seven", 5);
        assert_int_equal(others[i].begun, 0);
    }
    assert_int_equal(world_counts(world).claims, 2);
    assert_int_equal(world_counts(world).executed, 1);
    assert_int_equal(world_counts(world).replayed, MANY);
}

/* design.md 3: a waiting call holds memory, never a thread. */
static void
an_unrelated_call_passes_thousands_that_wait(void **state)
{
    struct world *world = *state;
    struct trial first, unrelated;
    struct trial *others = calloc(VERY_MANY, sizeof(*others));

    assert_non_null(others);
    lead(&first, world);
    for (int i = 0; i < VERY_MANY; i++)
        begin(&others[i], world, "k1");
    begin(&unrelated, world, "k2");
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&unrelated, 1);
    complete(&unrelated, world, "x");
    trial_await(&unrelated);
    complete(&first, world, "seven");
    trial_await(&first);
    for (int i = 0; i < VERY_MANY; i++)
        trial_await(&others[i]);
    free(others);
}

/* Fault 45, B004: in flight. */
static void
another_request_under_the_key_in_flight_is_refused_at_once(void **state)
{
    struct world *world = *state;
    struct trial first, other;
    struct trial_options options = {.key = "k1", .amount = 900};

    lead(&first, world);
    trial_begin(&other, world, &options);
    trial_await(&other);
    assert_int_equal(other.outcome.status, IDEM_INVALID_ARGUMENT);
    assert_string_equal(other.outcome.reason, IDEM_KEY_REUSED);
    complete(&first, world, "seven");
    trial_await(&first);
}

/* Whose the key is only the store knows: the first to ask may be the wrong one,
 * and the right one is neither refused nor shown its answer. */
static void
another_request_waits_until_the_store_has_spoken(void **state)
{
    struct world *world = *state;
    struct trial wrong, right;
    struct trial_options options = {.key = "k1", .amount = 8};
    struct idem_ticket *ticket;

    trial_begin(&wrong, world, &options);
    options.amount = 7;
    trial_begin(&right, world, &options);
    assert_int_equal(world_counts(world).attached, 1);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_REUSED);
    trial_await(&wrong);
    assert_string_equal(wrong.outcome.reason, IDEM_KEY_REUSED);

    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    ticket->answer = (struct idem_answer){.status = IDEM_OK,
                                          .reply = idem_bytes_of("seven")};
    fake_store_say(ticket, IDEM_VERDICT_DONE);
    trial_await(&right);
    assert_int_equal(right.outcome.status, IDEM_OK);
    assert_memory_equal(right.reply, "seven", 5);
}

static void
another_request_that_waits_gets_nobodys_answer(void **state)
{
    struct world *world = *state;
    struct trial first, same, other;
    struct trial_options options = {.key = "k1", .amount = 7};

    trial_begin(&first, world, &options);
    trial_begin(&same, world, &options);
    options.amount = 8;
    trial_begin(&other, world, &options);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&first, 1);
    complete(&first, world, "seven");
    trial_await(&first);
    trial_await(&same);
    assert_int_equal(same.outcome.effect, IDEM_EFFECT_REPLAYED);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_REUSED);
    trial_await(&other);
    assert_string_equal(other.outcome.reason, IDEM_KEY_REUSED);
    assert_int_equal(other.reply_size, 0);
}

static void
a_method_that_rejects_answers_busy_at_once(void **state)
{
    struct world *world = *state;
    struct trial first, other;
    struct trial_options options = {.method = &effects_add_or_busy_method,
                                    .key = "k1"};

    trial_begin(&first, world, &options);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&first, 1);
    trial_begin(&other, world, &options);
    trial_await(&other);
    assert_int_equal(other.outcome.status, IDEM_ABORTED);
    assert_string_equal(other.outcome.reason, IDEM_KEY_RUNNING);
    assert_int_equal(other.outcome.effect, IDEM_EFFECT_IN_DOUBT);
    assert_true(other.outcome.retry_after_ms > 0);
    complete(&first, world, "seven");
    trial_await(&first);
}

/* semantics.md 3.4, ATTACH_ONLY. */
static void
a_method_that_only_attaches_waits_here_and_is_busy_elsewhere(void **state)
{
    struct world *world = *state;
    struct idem_method method = effects_add_method;
    struct trial_options options = {.method = &method, .key = "k1"};
    struct trial first, here, elsewhere;

    method.in_flight = IDEM_IN_FLIGHT_ATTACH_ONLY;
    trial_begin(&first, world, &options);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&first, 1);
    trial_begin(&here, world, &options);
    assert_int_equal(world_counts(world).attached, 1);
    complete(&first, world, "seven");
    trial_await(&first);
    trial_await(&here);
    assert_int_equal(here.outcome.effect, IDEM_EFFECT_REPLAYED);

    options.key = "k2";
    trial_begin(&elsewhere, world, &options);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_RUNNING);
    trial_await(&elsewhere);
    assert_int_equal(elsewhere.outcome.status, IDEM_ABORTED);
    assert_string_equal(elsewhere.outcome.reason, IDEM_KEY_RUNNING);
    assert_int_equal(elsewhere.outcome.effect, IDEM_EFFECT_IN_DOUBT);
}

/* When the first one leaves without an answer, the next one asks. */
static void
the_next_in_line_runs_when_the_first_was_released(void **state)
{
    struct world *world = *state;
    struct trial first, second, third;

    lead(&first, world);
    begin(&second, world, "k1");
    begin(&third, world, "k1");
    trial_return(&first, IDEM_UNAVAILABLE, NULL);
    fake_store_next(&world->store, FAKE_RELEASE, IDEM_VERDICT_MINE);
    trial_await(&first);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&second, 1);
    assert_false(trial_is_finished(&third));
    complete(&second, world, "seven");
    trial_await(&second);
    trial_await(&third);
    assert_int_equal(second.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(third.outcome.effect, IDEM_EFFECT_REPLAYED);
}

/* What the first one left behind is not known while the store is away. */
static void
the_next_in_line_is_in_doubt_when_it_cannot_ask(void **state)
{
    struct world *world = *state;
    struct trial first, second;

    lead(&first, world);
    begin(&second, world, "k1");
    trial_return(&first, IDEM_OK, "seven");
    fake_store_fail(&world->store, FAKE_COMPLETE, IDEM_UNAVAILABLE);
    trial_await(&first);
    fake_store_fail(&world->store, FAKE_CLAIM, IDEM_UNAVAILABLE);
    trial_await(&second);
    assert_int_equal(second.outcome.status, IDEM_UNAVAILABLE);
    assert_int_equal(second.outcome.effect, IDEM_EFFECT_IN_DOUBT);
}

static void
a_duplicate_waits_no_longer_than_its_deadline(void **state)
{
    struct world *world = *state;
    struct trial first, other;
    struct trial_options options = {.key = "k1", .amount = 7, .timeout_ms = 50};

    lead(&first, world);
    trial_begin(&other, world, &options);
    fake_clock_advance_ms(&world->clock, 60);
    trial_await(&other);
    assert_int_equal(other.outcome.status, IDEM_DEADLINE_EXCEEDED);
    assert_int_equal(other.outcome.effect, IDEM_EFFECT_IN_DOUBT);
    complete(&first, world, "seven");
    trial_await(&first);
}

static void
a_duplicate_that_is_cancelled_leaves_the_line(void **state)
{
    struct world *world = *state;
    struct trial first, other;

    lead(&first, world);
    begin(&other, world, "k1");
    call_ref(&other.call);
    call_interrupt(&other.call, IDEM_CANCELLED);
    call_unref(&other.call);
    trial_await(&other);
    assert_int_equal(other.outcome.status, IDEM_CANCELLED);
    assert_int_equal(other.outcome.effect, IDEM_EFFECT_IN_DOUBT);
    complete(&first, world, "seven");
    trial_await(&first);
}

static void
a_duplicate_waits_no_longer_than_the_cap(void **state)
{
    struct world *world = *state;
    struct idem_once_options options = {.wait_cap_ms = 100};
    struct trial first, other;

    world_use(world, &options);
    lead(&first, world);
    begin(&other, world, "k1");
    fake_clock_advance_ms(&world->clock, 110);
    trial_await(&other);
    assert_int_equal(other.outcome.status, IDEM_ABORTED);
    assert_string_equal(other.outcome.reason, IDEM_KEY_RUNNING);
    complete(&first, world, "seven");
    trial_await(&first);
}

/* Fault 3: the first one runs on another server. */
static void
a_call_of_another_server_is_waited_for_by_asking_again(void **state)
{
    struct world *world = *state;
    struct trial trial, beside;
    struct idem_ticket *ticket;

    begin(&trial, world, "k1");
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_RUNNING);
    begin(&beside, world, "k1");
    for (int i = 0; i < 3; i++) {
        fake_clock_advance_ms(&world->clock, 250);
        ticket = fake_store_take(&world->store, FAKE_CLAIM);
        assert_true(ticket->repeat);
        fake_store_say(ticket, IDEM_VERDICT_RUNNING);
    }
    fake_clock_advance_ms(&world->clock, 250);
    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    ticket->answer = (struct idem_answer){.reply = idem_bytes_of("theirs")};
    fake_store_say(ticket, IDEM_VERDICT_DONE);
    trial_await(&trial);
    trial_await(&beside);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_memory_equal(beside.reply, "theirs", 6);
}

static void
a_call_of_another_server_is_waited_for_up_to_the_cap(void **state)
{
    struct world *world = *state;
    struct idem_once_options options = {.wait_cap_ms = 100};
    struct trial trial;
    struct idem_ticket *ticket;

    world_use(world, &options);
    begin(&trial, world, "k1");
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_RUNNING);
    fake_clock_advance_ms(&world->clock, 250);
    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    ticket->wait_ms = 777;
    fake_store_say(ticket, IDEM_VERDICT_RUNNING);
    trial_await(&trial);
    assert_int_equal(trial.outcome.status, IDEM_ABORTED);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_IN_DOUBT);
    assert_int_equal(trial.outcome.retry_after_ms, 777);
    assert_false(trial.outcome.final);
    assert_int_equal(world_counts(world).busy, 1);
}

static void
a_nap_ends_with_the_deadline_and_the_next_in_line_asks(void **state)
{
    struct world *world = *state;
    struct trial trial, beside;
    struct trial_options options = {.key = "k1", .amount = 7, .timeout_ms = 2};

    trial_begin(&trial, world, &options);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_RUNNING);
    begin(&beside, world, "k1");
    fake_clock_advance_ms(&world->clock, 2);
    trial_await(&trial);
    assert_int_equal(trial.outcome.status, IDEM_DEADLINE_EXCEEDED);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_IN_DOUBT);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_EXPIRED);
    trial_await(&beside);
}

static void
a_stop_lets_those_that_wait_go(void **state)
{
    struct world *world = *state;
    struct trial first, beside, napping, behind;

    lead(&first, world);
    begin(&beside, world, "k1");
    begin(&napping, world, "k2");
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_RUNNING);
    begin(&behind, world, "k2");
    chain_stop(&world->chain);
    trial_await(&beside);
    trial_await(&napping);
    trial_await(&behind);
    assert_int_equal(beside.outcome.status, IDEM_UNAVAILABLE);
    assert_int_equal(napping.outcome.status, IDEM_UNAVAILABLE);
    assert_int_equal(behind.outcome.status, IDEM_UNAVAILABLE);
    complete(&first, world, "seven");
    trial_await(&first);
    assert_int_equal(first.outcome.status, IDEM_OK);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(duplicates_in_flight_get_the_first_ones_answer),
        TEST(an_unrelated_call_passes_thousands_that_wait),
        TEST(another_request_under_the_key_in_flight_is_refused_at_once),
        TEST(another_request_waits_until_the_store_has_spoken),
        TEST(another_request_that_waits_gets_nobodys_answer),
        TEST(a_method_that_rejects_answers_busy_at_once),
        TEST(a_method_that_only_attaches_waits_here_and_is_busy_elsewhere),
        TEST(the_next_in_line_runs_when_the_first_was_released),
        TEST(the_next_in_line_is_in_doubt_when_it_cannot_ask),
        TEST(a_duplicate_waits_no_longer_than_its_deadline),
        TEST(a_duplicate_that_is_cancelled_leaves_the_line),
        TEST(a_duplicate_waits_no_longer_than_the_cap),
        TEST(a_call_of_another_server_is_waited_for_by_asking_again),
        TEST(a_call_of_another_server_is_waited_for_up_to_the_cap),
        TEST(a_nap_ends_with_the_deadline_and_the_next_in_line_asks),
        TEST(a_stop_lets_those_that_wait_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
