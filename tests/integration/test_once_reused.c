/* Fault 45: the same key with another request, where the first one is not
 * simply done: abandoned, or at work on another server. Nothing runs. What is
 * done, in flight and released on one server is in test_once_calls.c. */
#include "once_stage.h"

#include <idem/reason.h>
#include <idem/resolve.h>

/* Called on each server, twice: neither a repeat nor Redis changes the word. */
static void
assert_told(struct stage *stage, stage_call_fn *call, const char *key,
            int64_t amount, const struct idem_outcome *told)
{
    effects_add_request request = stage_request(amount);

    for (unsigned i = 0; i < 2 * stage->n; i++) {
        struct called called =
            stage_join(stage_start(stage, i % stage->n, call, key, &request));

        assert_int_equal(called.status, told->status);
        assert_string_equal(called.outcome.reason, told->reason);
        assert_int_equal(called.outcome.effect, told->effect);
        assert_null(called.body);
    }
}

static void
assert_reused(struct stage *stage, stage_call_fn *call, const char *key,
              int64_t amount)
{
    assert_told(stage, call, key, amount,
                &(struct idem_outcome){.status = IDEM_INVALID_ARGUMENT,
                                       .reason = IDEM_KEY_REUSED,
                                       .effect = IDEM_EFFECT_REFUSED});
}

static void
assert_abandoned(struct stage *stage, stage_call_fn *call, const char *key,
                 int64_t amount, enum idem_effect effect)
{
    assert_told(stage, call, key, amount,
                &(struct idem_outcome){.status = IDEM_FAILED_PRECONDITION,
                                       .reason = IDEM_KEY_ABANDONED,
                                       .effect = effect});
}

static void
abandon(struct stage *stage, const struct idem_method *method, const char *key)
{
    struct idem_resolution resolution;
    struct idem_error err;

    assert_int_equal(
        idem_abandon(stage->channels[0], method, key, 0, &resolution, &err),
        IDEM_OK);
    assert_int_equal(resolution.state, IDEM_RESOLVED_ABANDONED);
    idem_resolution_fini(&resolution);
}

/* Who abandons has the key alone, so that there is no request to compare with:
 * each is told that it never runs. */
static void
a_key_abandoned_unseen_refuses_every_request(void **state)
{
    struct stage *stage = *state;
    stage_call_fn *const calls[] = {effects_add, effects_add_always,
                                    effects_push, effects_push_always};
    const struct idem_method *const methods[] = {
        &effects_add_method, &effects_add_always_method, &effects_push_method,
        &effects_push_always_method};

    for (int i = 0; i < 4; i++) {
        abandon(stage, methods[i], "reused-1");
        assert_abandoned(stage, calls[i], "reused-1", 7, IDEM_EFFECT_REFUSED);
        assert_abandoned(stage, calls[i], "reused-1", 8, IDEM_EFFECT_REFUSED);
    }
    assert_int_equal(effects_runs(&stage->effects), 0);
}

/* The request of the call that was released is known, and comes before the
 * state (semantics.md 3.4). It may have acted (decision 68). */
static void
a_key_abandoned_after_a_release_knows_its_request(void **state)
{
    struct stage *stage = *state;
    stage_call_fn *const calls[] = {effects_push, effects_push_always};
    const struct idem_method *const methods[] = {&effects_push_method,
                                                 &effects_push_always_method};

    for (int i = 0; i < 2; i++) {
        effects_add_request request = stage_request(7);
        struct called first;

        effects_fail(&stage->effects, 1, IDEM_RESOURCE_EXHAUSTED);
        first = stage_call(stage, calls[i], "reused-2", &request);
        assert_int_equal(first.status, IDEM_RESOURCE_EXHAUSTED);
        abandon(stage, methods[i], "reused-2");
        assert_reused(stage, calls[i], "reused-2", 8);
        assert_abandoned(stage, calls[i], "reused-2", 7, IDEM_EFFECT_IN_DOUBT);
        assert_reused(stage, calls[i], "reused-2", 8);
    }
    assert_int_equal(effects_runs(&stage->effects), 2);
}

/* A released transaction has left nothing, its request neither. */
static void
a_transaction_abandoned_after_a_release_refuses_every_request(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct called first;

    effects_fail(&stage->effects, 1, IDEM_RESOURCE_EXHAUSTED);
    first = stage_call(stage, effects_add, "reused-3", &request);
    assert_int_equal(first.status, IDEM_RESOURCE_EXHAUSTED);
    abandon(stage, &effects_add_method, "reused-3");
    assert_abandoned(stage, effects_add, "reused-3", 8, IDEM_EFFECT_REFUSED);
    assert_abandoned(stage, effects_add, "reused-3", 7, IDEM_EFFECT_REFUSED);
    assert_int_equal(stage_effects(stage), 0);
}

/* In flight on another server, LEASED: the claim is there to be read. */
static void
a_lease_elsewhere_refuses_another_request_at_once(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct stage_thread *thread;
    struct called first;

    effects_hold(&stage->effects);
    thread = stage_start(stage, 0, effects_push, "reused-4", &request);
    effects_await(&stage->effects, 1);
    assert_reused(stage, effects_push, "reused-4", 8);
    effects_open(&stage->effects);
    first = stage_join(thread);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(effects_runs(&stage->effects), 1);
    called_free(&first);
}

/* In flight on another server, TRANSACTION: nothing can be read before the
 * commit, so the other one waits for it. */
static void
a_transaction_elsewhere_refuses_another_request_in_the_end(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7), another = stage_request(8);
    struct stage_thread *here, *there;
    struct called first, other;

    effects_hold(&stage->effects);
    here = stage_start(stage, 0, effects_add, "reused-5", &request);
    effects_await(&stage->effects, 1);
    there = stage_start(stage, 1, effects_add, "reused-5", &another);
    stage_await_claims(stage, 1, 2);
    effects_open(&stage->effects);
    first = stage_join(here);
    other = stage_join(there);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(other.status, IDEM_INVALID_ARGUMENT);
    assert_string_equal(other.outcome.reason, IDEM_KEY_REUSED);
    assert_int_equal(effects_runs(&stage->effects), 1);
    called_free(&first);
}

/* Fault 62. Methods with one key space: a request to another method is another
 * request, though it has the same bytes (options.proto, key_group). */
static void
a_key_of_a_group_is_of_the_method_that_used_it(void **state)
{
    static stage_call_fn *const calls[][2] = {
        {effects_add_in_group, effects_push_in_group},
        {effects_push_in_group, effects_add_in_group},
    };
    static const char *const keys[] = {"reused-6", "reused-7"};
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);

    for (int i = 0; i < 2; i++) {
        struct called first = stage_call(stage, calls[i][0], keys[i], &request);
        struct called again;

        assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
        assert_reused(stage, calls[i][1], keys[i], 7);
        again = stage_call(stage, calls[i][0], keys[i], &request);
        assert_replay_of(&again, &first);
        called_free(&first);
        called_free(&again);
    }
    assert_int_equal(effects_runs(&stage->effects), 2);
}

/* … also while the first one runs, which nobody else's answer waits for. */
static void
a_key_of_a_group_is_of_the_method_that_uses_it(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct stage_thread *thread;
    struct called first, other;

    effects_hold(&stage->effects);
    thread = stage_start(stage, 0, effects_add_in_group, "reused-8", &request);
    effects_await(&stage->effects, 1);
    other = stage_call(stage, effects_push_in_group, "reused-8", &request);
    assert_int_equal(other.status, IDEM_INVALID_ARGUMENT);
    assert_string_equal(other.outcome.reason, IDEM_KEY_REUSED);
    effects_open(&stage->effects);
    first = stage_join(thread);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(effects_runs(&stage->effects), 1);
    called_free(&first);
}

/* A channel numbers the calls of all its methods in one key space. */
static void
a_number_of_a_session_is_of_the_method_that_used_it(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct called first =
        stage_call(stage, effects_add_numbered, NULL, &request);

    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_reused(stage, effects_push_numbered, first.outcome.key, 7);
    assert_int_equal(effects_runs(&stage->effects), 1);
    called_free(&first);
}

int
main(void)
{
#define TEST(name)                                                             \
    STAGE_TEST(stage_sqlite_tcp, name), STAGE_TEST(stage_both, name)
    const struct CMUnitTest tests[] = {
        TEST(a_key_abandoned_unseen_refuses_every_request),
        TEST(a_key_abandoned_after_a_release_knows_its_request),
        TEST(a_transaction_abandoned_after_a_release_refuses_every_request),
        STAGE_TEST(stage_both,
                   a_lease_elsewhere_refuses_another_request_at_once),
        STAGE_TEST(stage_both,
                   a_transaction_elsewhere_refuses_another_request_in_the_end),
        TEST(a_key_of_a_group_is_of_the_method_that_used_it),
        TEST(a_key_of_a_group_is_of_the_method_that_uses_it),
        TEST(a_number_of_a_session_is_of_the_method_that_used_it),
    };

    return cmocka_run_group_tests(tests, stage_servers_up, stage_servers_down);
}
