/* A stream whose messages take effect once each, as it is opened: no number is
 * left out, whatever its client says. */
#include "once_world.h"

#include "effects.idem.h"

#include <idem/key.h>
#include <idem/reason.h>

struct opening {
    struct trial trial;
    struct idem_method method;
    char key[IDEM_KEY_MAX + 1];
};

static void
begin_under(struct opening *opening, struct world *world, const char *key,
            uint64_t ack_below)
{
    const struct trial_options options = {
        .method = &opening->method, .key = key, .ack_below = ack_below};

    opening->method = effects_add_numbered_method;
    opening->method.streams = IDEM_STREAMS_CLIENT;
    opening->method.each = &effects_add_numbered_method;
    trial_begin(&opening->trial, world, &options);
}

static void
begin(struct opening *opening, struct world *world, int64_t first,
      uint64_t ack_below)
{
    char session[IDEM_SESSION_MAX];

    idem_session_mint(session, &world->clock.clock, 0, 60000);
    idem_key_of_session(opening->key, session, first);
    begin_under(opening, world, opening->key, ack_below);
}

/* The look at the message before it. */
static struct idem_ticket *
take_look(struct opening *opening, int64_t number)
{
    struct idem_ticket *look =
        fake_store_take(&opening->trial.world->store, FAKE_LOOK);

    assert_int_equal(look->id.key.sequence, number);
    assert_int_equal(look->fingerprint.version, 0);
    return look;
}

/* Its messages come by themselves: nothing is claimed or recorded for it. */
static void
assert_let_through(struct opening *opening)
{
    struct world *world = opening->trial.world;

    trial_await_handler(&opening->trial, 1);
    trial_return(&opening->trial, IDEM_OK, "x");
    assert_int_equal(trial_await(&opening->trial)->status, IDEM_OK);
    assert_int_equal(fake_store_asked(&world->store, FAKE_CLAIM), 0);
    assert_int_equal(fake_store_asked(&world->store, FAKE_COMPLETE), 0);
}

static void
assert_refused(struct opening *opening, enum idem_status status,
               const char *reason)
{
    const struct idem_outcome *outcome = trial_await(&opening->trial);

    assert_int_equal(outcome->status, status);
    assert_string_equal(outcome->reason, reason);
    assert_int_equal(outcome->effect, IDEM_EFFECT_REFUSED);
    assert_int_equal(opening->trial.begun, 0);
}

static void
the_first_of_a_session_asks_nobody(void **state)
{
    struct opening opening;

    begin(&opening, *state, 1, 1);
    assert_let_through(&opening);
}

static void
a_later_one_follows_what_took_effect(void **state)
{
    struct world *world = *state;
    struct opening opening;

    begin(&opening, world, 8, 8);
    fake_store_say(take_look(&opening, 7), IDEM_VERDICT_DONE);
    assert_let_through(&opening);
}

static void
or_what_was_acknowledged(void **state)
{
    struct world *world = *state;
    struct opening opening;

    begin(&opening, world, 8, 0);
    fake_store_say(take_look(&opening, 7), IDEM_VERDICT_ABSENT);
    fake_store_next(&world->store, FAKE_WATERMARK, IDEM_VERDICT_EXPIRED);
    assert_let_through(&opening);
}

static void
a_number_that_is_left_out_is_refused(void **state)
{
    static const enum idem_verdict verdicts[] = {IDEM_VERDICT_ABANDONED,
                                                 IDEM_VERDICT_DOUBT};
    struct world *world = *state;
    struct opening openings[3];

    begin(&openings[2], world, 8, 0);
    fake_store_say(take_look(&openings[2], 7), IDEM_VERDICT_ABSENT);
    fake_store_next(&world->store, FAKE_WATERMARK, IDEM_VERDICT_MINE);
    assert_refused(&openings[2], IDEM_FAILED_PRECONDITION, IDEM_KEY_GAP);
    for (unsigned i = 0; i < 2; i++) {
        begin(&openings[i], world, 8, 0);
        fake_store_say(take_look(&openings[i], 7), verdicts[i]);
        assert_refused(&openings[i], IDEM_FAILED_PRECONDITION, IDEM_KEY_GAP);
    }
}

static void
nothing_follows_an_error_that_is_recorded(void **state)
{
    struct opening opening;
    struct idem_ticket *look;

    begin(&opening, *state, 8, 0);
    look = take_look(&opening, 7);
    look->answer.status = IDEM_NOT_FOUND;
    fake_store_say(look, IDEM_VERDICT_DONE);
    assert_refused(&opening, IDEM_FAILED_PRECONDITION, IDEM_KEY_GAP);
}

static void
one_that_still_runs_is_not_overtaken(void **state)
{
    struct opening opening;

    begin(&opening, *state, 8, 0);
    fake_store_say(take_look(&opening, 7), IDEM_VERDICT_RUNNING);
    assert_refused(&opening, IDEM_ABORTED, IDEM_KEY_RUNNING);
}

static void
a_store_that_is_away_refuses(void **state)
{
    struct world *world = *state;
    struct opening openings[2];

    begin(&openings[0], world, 8, 0);
    fake_store_fail(&world->store, FAKE_LOOK, IDEM_UNAVAILABLE);
    assert_refused(&openings[0], IDEM_UNAVAILABLE, IDEM_STORE_AWAY);
    begin(&openings[1], world, 8, 0);
    fake_store_say(take_look(&openings[1], 7), IDEM_VERDICT_ABSENT);
    fake_store_fail(&world->store, FAKE_WATERMARK, IDEM_UNAVAILABLE);
    assert_refused(&openings[1], IDEM_UNAVAILABLE, IDEM_STORE_AWAY);
}

static void
an_acknowledgement_above_the_first_number_is_refused(void **state)
{
    struct opening opening;

    begin(&opening, *state, 8, 9);
    assert_refused(&opening, IDEM_INVALID_ARGUMENT, IDEM_KEY_GAP);
}

static void
a_key_that_is_no_sessions_is_refused(void **state)
{
    struct opening openings[3];

    begin_under(&openings[0], *state, NULL, 0);
    assert_refused(&openings[0], IDEM_INVALID_ARGUMENT, IDEM_KEY_MISSING);
    begin_under(&openings[1], *state, "order-1", 0);
    assert_refused(&openings[1], IDEM_INVALID_ARGUMENT, IDEM_KEY_FORMAT);
    begin_under(&openings[2], *state, "ids_1_00000000", 0);
    assert_refused(&openings[2], IDEM_INVALID_ARGUMENT, IDEM_KEY_FORMAT);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_first_of_a_session_asks_nobody),
        TEST(a_later_one_follows_what_took_effect),
        TEST(or_what_was_acknowledged),
        TEST(a_number_that_is_left_out_is_refused),
        TEST(nothing_follows_an_error_that_is_recorded),
        TEST(one_that_still_runs_is_not_overtaken),
        TEST(a_store_that_is_away_refuses),
        TEST(an_acknowledgement_above_the_first_number_is_refused),
        TEST(a_key_that_is_no_sessions_is_refused),
    };

    return cmocka_run_group_tests_name("once: stream", tests, NULL, NULL);
}
