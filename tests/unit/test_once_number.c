/* Calls whose keys are numbers of a session. */
#include "once_world.h"

#include "effects.idem.h"

#include <idem/key.h>
#include <idem/reason.h>

struct numbered_call {
    struct trial trial;
    char key[IDEM_KEY_MAX + 1];
};

static void
begin(struct numbered_call *call, struct world *world,
      const struct idem_method *method, int64_t sequence, uint64_t ack_below)
{
    const struct trial_options options = {
        .method = method, .key = call->key, .ack_below = ack_below};
    char session[IDEM_SESSION_MAX];

    idem_session_mint(session, &world->clock.clock, 0, 60000);
    idem_key_of_session(call->key, session, sequence);
    trial_begin(&call->trial, world, &options);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
}

static void
end(struct numbered_call *call)
{
    struct world *world = call->trial.world;

    trial_await_handler(&call->trial, 1);
    trial_return(&call->trial, IDEM_OK, "x");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
    trial_await(&call->trial);
    assert_int_equal(call->trial.outcome.effect, IDEM_EFFECT_COMMITTED);
}

static void
a_number_is_looked_at_between_claim_and_handler(void **state)
{
    const struct idem_method *methods[] = {&effects_add_numbered_method,
                                           &effects_push_numbered_method};
    struct world *world = *state;

    for (int i = 0; i < 2; i++) {
        struct numbered_call call;

        begin(&call, world, methods[i], 5, 3);
        assert_int_equal(call.trial.begun, 0);
        fake_store_next(&world->store, FAKE_WATERMARK, IDEM_VERDICT_MINE);
        end(&call);
    }
    assert_int_equal(fake_store_asked(&world->store, FAKE_ACKNOWLEDGE), 0);
}

/* Fault 67. */
static void
a_number_that_was_acknowledged_never_runs(void **state)
{
    struct world *world = *state;
    struct numbered_call call;

    begin(&call, world, &effects_push_numbered_method, 5, 0);
    fake_store_next(&world->store, FAKE_WATERMARK, IDEM_VERDICT_EXPIRED);
    fake_store_next(&world->store, FAKE_RELEASE, IDEM_VERDICT_MINE);
    trial_await(&call.trial);
    assert_int_equal(call.trial.begun, 0);
    assert_int_equal(call.trial.outcome.status, IDEM_FAILED_PRECONDITION);
    assert_int_equal(call.trial.outcome.effect, IDEM_EFFECT_REFUSED);
    assert_string_equal(call.trial.outcome.reason, IDEM_KEY_STALE);
    assert_true(call.trial.outcome.final);
}

static void
a_number_that_cannot_be_looked_at_does_not_run(void **state)
{
    struct world *world = *state;
    struct numbered_call call;

    begin(&call, world, &effects_push_numbered_method, 5, 0);
    fake_store_fail(&world->store, FAKE_WATERMARK, IDEM_UNAVAILABLE);
    fake_store_next(&world->store, FAKE_RELEASE, IDEM_VERDICT_MINE);
    trial_await(&call.trial);
    assert_int_equal(call.trial.begun, 0);
    assert_int_equal(call.trial.outcome.status, IDEM_UNAVAILABLE);
    assert_int_equal(call.trial.outcome.effect, IDEM_EFFECT_REFUSED);
    assert_false(call.trial.outcome.final);
}

/* Every sixteenth; the call does not wait for it. */
static void
a_word_of_the_client_is_handed_on(void **state)
{
    struct world *world = *state;
    struct idem_ticket *word;
    struct numbered_call call;

    begin(&call, world, &effects_push_numbered_method, 32, 30);
    fake_store_next(&world->store, FAKE_WATERMARK, IDEM_VERDICT_MINE);
    word = fake_store_take(&world->store, FAKE_ACKNOWLEDGE);
    assert_int_equal(word->ack_below, 30);
    assert_int_equal(word->id.key.sequence, 32);
    end(&call);
    fake_store_say(word, IDEM_VERDICT_MINE);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_number_is_looked_at_between_claim_and_handler),
        TEST(a_number_that_was_acknowledged_never_runs),
        TEST(a_number_that_cannot_be_looked_at_does_not_run),
        TEST(a_word_of_the_client_is_handed_on),
    };

    return cmocka_run_group_tests_name("once: number", tests, NULL, NULL);
}
