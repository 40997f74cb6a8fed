/* Fault 63: a reply one byte over what its method stores, under each policy, on
 * each authority. */
#include "once_stage.h"

#include <idem/reason.h>
#include <idem/standard.h>

#include <string.h>

#define KEPT_AT_MOST 100 /* the methods' max_reply_bytes */
#define OVERHEAD 6       /* number and amount, and the body's tag and size */

/* Asks for a reply of so many bytes. */
static effects_add_request
request_for(uint32_t bytes)
{
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    request.amount = 7;
    request.reply_bytes = bytes - OVERHEAD;
    return request;
}

static struct called
call(struct stage *stage, stage_call_fn *method, const char *key,
     uint32_t bytes)
{
    effects_add_request request = request_for(bytes);

    return stage_call(stage, method, key, &request);
}

static void
a_reply_of_the_limit_is_kept(void **state)
{
    struct stage *stage = *state;
    static stage_call_fn *const methods[] = {
        effects_add_small, effects_add_digest, effects_add_rebuild};

    for (int i = 0; i < 3; i++) {
        struct called first = call(stage, methods[i], "large-1", KEPT_AT_MOST);
        struct called again = call(stage, methods[i], "large-1", KEPT_AT_MOST);

        assert_int_equal(first.status, IDEM_OK);
        assert_replay_of(&again, &first);
        assert_false(again.outcome.rebuilt);
        called_free(&first);
        called_free(&again);
    }
}

static void
fail_leaves_no_effect(void **state)
{
    struct stage *stage = *state;
    struct called called =
        call(stage, effects_add_small, "large-2", KEPT_AT_MOST + 1);

    assert_int_equal(called.status, IDEM_RESOURCE_EXHAUSTED);
    assert_string_equal(called.outcome.reason, IDEM_REPLY_TOO_LARGE);
    assert_int_equal(called.outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_int_equal(stage_effects(stage), 0);
}

/* B099: the reply is kept, and this client takes less. */
static void
a_client_that_takes_little_has_one_effect(void **state)
{
    const struct idem_channel_options little = {.max_message = 1024};
    const struct idem_call_options options = {.key = "large-8"};
    effects_add_request request = request_for(10240);
    struct stage *stage = *state;
    struct idem_channel *channel;
    struct idem_outcome outcome;
    struct idem_error err;
    struct called called;

    assert_int_equal(idem_client_open(&channel,
                                      idem_server_address(stage->servers[0], 0),
                                      &little, &err),
                     IDEM_OK);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(
            effects_add(channel, &request, NULL, &options, &outcome),
            IDEM_RESOURCE_EXHAUSTED);
        assert_string_equal(outcome.reason, IDEM_REPLY_TOO_LARGE);
        assert_int_equal(outcome.effect,
                         i ? IDEM_EFFECT_REPLAYED : IDEM_EFFECT_COMMITTED);
    }
    idem_channel_close(channel);
    called = stage_call(stage, effects_add, "large-8", &request);
    assert_int_equal(called.status, IDEM_OK);
    assert_int_equal(called.outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&called);
}

static void
assert_dropped(const struct called *called)
{
    assert_int_equal(called->status, IDEM_ALREADY_EXISTS);
    assert_string_equal(called->outcome.reason, IDEM_ANSWER_DROPPED);
    assert_int_equal(called->outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_true(called->outcome.final);
    assert_false(called->outcome.rebuilt);
}

static void
digest_tells_a_repeat_that_it_is_done(void **state)
{
    struct stage *stage = *state;
    struct called first =
        call(stage, effects_add_digest, "large-3", KEPT_AT_MOST + 1);
    struct called again =
        call(stage, effects_add_digest, "large-3", KEPT_AT_MOST + 1);

    assert_int_equal(first.status, IDEM_OK);
    assert_int_equal(first.body_size, KEPT_AT_MOST + 1 - OVERHEAD);
    assert_dropped(&again);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&first);
}

static void
assert_rebuilt(const struct called *again, const struct called *first)
{
    assert_replay_of(again, first);
    assert_true(again->outcome.rebuilt);
    assert_true(again->outcome.first_at_ms > 0);
}

static void
rebuild_makes_the_reply_again_and_says_so(void **state)
{
    struct stage *stage = *state;
    struct called first =
        call(stage, effects_add_rebuild, "large-4", KEPT_AT_MOST + 1);

    assert_int_equal(first.status, IDEM_OK);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_false(first.outcome.rebuilt);
    for (int i = 0; i < 2; i++) {
        struct called again =
            call(stage, effects_add_rebuild, "large-4", KEPT_AT_MOST + 1);

        assert_rebuilt(&again, &first);
        called_free(&again);
    }
    assert_int_equal(stage_effects(stage), 1);
    assert_int_equal(effects_runs(&stage->effects), 1);
    assert_int_equal(stage_counts(stage, 0).rebuilt, 2);
    called_free(&first);
}

static void
a_rebuild_that_fails_is_as_digest(void **state)
{
    struct stage *stage = *state;
    struct called first =
        call(stage, effects_add_rebuild, "large-5", KEPT_AT_MOST + 1);
    struct called failed, again;

    effects_fail(&stage->effects, 1, IDEM_UNAVAILABLE);
    failed = call(stage, effects_add_rebuild, "large-5", KEPT_AT_MOST + 1);
    assert_dropped(&failed);
    assert_non_null(strstr(failed.outcome.message, "told to fail"));
    again = call(stage, effects_add_rebuild, "large-5", KEPT_AT_MOST + 1);
    assert_rebuilt(&again, &first);
    called_free(&first);
    called_free(&again);
}

static void
who_waited_beside_the_first_call_gets_a_rebuilt_reply(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = request_for(KEPT_AT_MOST + 1);
    struct stage_thread *threads[2];
    struct called called[2];
    int rebuilt;

    effects_hold(&stage->effects);
    threads[0] =
        stage_start(stage, 0, effects_add_rebuild, "large-wait", &request);
    effects_await(&stage->effects, 1);
    threads[1] =
        stage_start(stage, 0, effects_add_rebuild, "large-wait", &request);
    stage_await_attached(stage, 0, 1);
    effects_open(&stage->effects);
    for (int i = 0; i < 2; i++)
        called[i] = stage_join(threads[i]);
    rebuilt = called[0].outcome.rebuilt + called[1].outcome.rebuilt;
    assert_int_equal(rebuilt, 1);
    assert_int_equal(called[0].status, IDEM_OK);
    assert_int_equal(called[1].status, IDEM_OK);
    assert_int_equal(called[0].number, called[1].number);
    assert_int_equal(effects_runs(&stage->effects), 1);
    called_free(&called[0]);
    called_free(&called[1]);
}

int
main(void)
{
#define TEST(name)                                                             \
    STAGE_TEST(stage_sqlite_inproc, name), STAGE_TEST(stage_sqlite_tcp, name), \
        STAGE_TEST(stage_both, name)
    const struct CMUnitTest tests[] = {
        TEST(a_reply_of_the_limit_is_kept),
        TEST(fail_leaves_no_effect),
        TEST(a_client_that_takes_little_has_one_effect),
        TEST(digest_tells_a_repeat_that_it_is_done),
        TEST(rebuild_makes_the_reply_again_and_says_so),
        TEST(a_rebuild_that_fails_is_as_digest),
        TEST(who_waited_beside_the_first_call_gets_a_rebuilt_reply),
    };

    return cmocka_run_group_tests(tests, stage_servers_up, stage_servers_down);
}
