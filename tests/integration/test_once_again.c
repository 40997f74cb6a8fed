/* Calls that are asked for again, by the library or by the caller: their answer
 * was lost, they were given up, their server was stopped, or somebody sends
 * them another way. One effect, and the answer of the first. */
#include "once_stage.h"
#include "tcp_proxy.h"

#include "child.h"

#include <idem/call.h>
#include <idem/policy.h>
#include <idem/standard.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MS 20000

static unsigned
port_of(const char *address)
{
    return (unsigned)atoi(strrchr(address, ':') + 1);
}

/* --- The answer is lost --- */

static bool
the_effect_is_there(void *with)
{
    return stage_effects(with) == 1;
}

/* A channel in the place of the stage's own, which is returned. */
static struct idem_channel *
swap_channel(struct stage *stage, const char *target,
             const struct idem_policy_options *policy)
{
    const struct idem_channel_options options = {.policy = policy};
    struct idem_channel *own = stage->channels[0];
    struct idem_error err;

    if (idem_client_open(&stage->channels[0], target, &options, &err))
        fail_msg("%s", err.message);
    return own;
}

/* rpc 99: the reply goes into a black hole after the commit, the connection
 * ends, and the client's own repeat gets the bytes that are stored. */
static void
a_reply_that_is_lost_is_got_by_the_next_attempt(void **state)
{
    struct stage *stage = *state;
    struct tcp_proxy *proxy =
        tcp_proxy_start(port_of(idem_server_address(stage->servers[0], 0)));
    struct idem_channel *own, *through;
    char target[64];
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct stage_thread *thread;
    struct called called, again;

    snprintf(target, sizeof target, "tcp://127.0.0.1:%u",
             tcp_proxy_port(proxy));
    own = swap_channel(stage, target, NULL);
    through = stage->channels[0];
    request.amount = 7;
    request.reply_bytes = 300;
    effects_hold(&stage->effects);
    thread = stage_start(stage, 0, effects_add, "lost", &request);
    effects_await(&stage->effects, 1);
    tcp_proxy_hold(proxy, 1);
    effects_open(&stage->effects);
    stage->channels[0] = own;
    assert_true(child_wait_until(the_effect_is_there, stage, PATIENCE_MS));
    tcp_proxy_break(proxy);
    tcp_proxy_hold(proxy, 0);

    called = stage_join(thread);
    again = stage_call(stage, effects_add, "lost", &request);
    assert_true(called.outcome.attempts >= 2);
    assert_int_equal(called.body_size, 300);
    for (unsigned i = 0; i < 300; i++)
        assert_int_equal(called.body[i], i & 0xff);
    assert_replay_of(&called, &again);
    assert_int_equal(effects_runs(&stage->effects), 1);
    called_free(&called);
    called_free(&again);
    idem_channel_close(through);
    tcp_proxy_free(proxy);
}

/* B096: nothing below the retry policy repeats a request, however slow its
 * handler is. */
static void
a_slow_handler_is_begun_once(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct called keyed, unkeyed;

    request.note = "slow";
    request.hold_ms = 250;
    unkeyed = stage_call(stage, effects_note, NULL, &request);
    assert_int_equal(unkeyed.status, IDEM_OK);
    assert_int_equal(unkeyed.outcome.attempts, 1);
    keyed = stage_call(stage, effects_add, "slow", &request);
    assert_int_equal(keyed.status, IDEM_OK);
    assert_int_equal(keyed.outcome.attempts, 1);
    assert_int_equal(effects_runs(&stage->effects), 2);
    assert_int_equal(effects_pushes(stage->push_log, "slow"), 1);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&keyed);
    called_free(&unkeyed);
}

/* --- Callbacks --- */

struct told {
    pthread_mutex_t lock;
    pthread_cond_t over;
    unsigned times;
    struct idem_outcome outcome;
    int64_t number;
};

static void
tell(struct idem_call *call, const effects_add_reply *reply,
     const struct idem_outcome *outcome)
{
    struct told *told = idem_call_user(call);

    pthread_mutex_lock(&told->lock);
    told->times++;
    told->outcome = *outcome;
    if (reply)
        told->number = reply->number;
    pthread_cond_signal(&told->over);
    pthread_mutex_unlock(&told->lock);
}

static struct idem_call *
start(struct stage *stage, const char *key, int64_t amount, struct told *told)
{
    const struct idem_call_options options = {.key = key, .user = told};
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    *told = (struct told){.times = 0};
    pthread_mutex_init(&told->lock, NULL);
    pthread_cond_init(&told->over, NULL);
    request.amount = amount;
    return effects_add_async(stage->channels[0], &request, &options, tell);
}

static void
await_told(struct idem_call *call, struct told *told)
{
    pthread_mutex_lock(&told->lock);
    while (told->times == 0)
        pthread_cond_wait(&told->over, &told->lock);
    pthread_mutex_unlock(&told->lock);
    pthread_cond_destroy(&told->over);
    pthread_mutex_destroy(&told->lock);
    idem_call_release(call);
}

/* rpc 75: to give a call up is a wish; its effect stands, and the same key gets
 * its answer. */
static void
who_gave_up_gets_the_answer_when_he_asks_again(void **state)
{
    struct stage *stage = *state;
    struct called again;
    struct told told;
    struct idem_call *call;

    effects_hold(&stage->effects);
    call = start(stage, "given-up", 7, &told);
    effects_await(&stage->effects, 1);
    idem_call_cancel(call);
    await_told(call, &told);
    assert_int_equal(told.outcome.status, IDEM_CANCELLED);
    assert_int_equal(told.outcome.effect, IDEM_EFFECT_IN_DOUBT);
    assert_string_equal(told.outcome.key, "given-up");

    effects_open(&stage->effects);
    again = stage_add(stage, "given-up", 7);
    assert_int_equal(again.status, IDEM_OK);
    assert_int_equal(again.outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_int_equal(effects_runs(&stage->effects), 1);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&again);
}

/* B117: each way to send is the same call. */
static void
one_key_is_one_call_whichever_way_it_is_sent(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct called first, blocking, threaded;
    struct told told;

    request.amount = 7;
    first = stage_add(stage, "ways", 7);
    assert_int_equal(first.status, IDEM_OK);
    for (unsigned i = 0; i < 2; i++) {
        blocking = stage_add(stage, "ways", 7);
        assert_replay_of(&blocking, &first);
        await_told(start(stage, "ways", 7, &told), &told);
        assert_int_equal(told.outcome.status, IDEM_OK);
        assert_int_equal(told.outcome.effect, IDEM_EFFECT_REPLAYED);
        assert_int_equal(told.number, first.number);
        threaded =
            stage_join(stage_start(stage, 0, effects_add, "ways", &request));
        assert_replay_of(&threaded, &first);
        called_free(&blocking);
        called_free(&threaded);
    }
    assert_int_equal(effects_runs(&stage->effects), 1);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&first);
}

/* B044: 100 calls whose first attempts fail are each told once, and well. */
static void
callbacks_of_repeated_calls_run_once(void **state)
{
    enum { CALLS = 100 };
    static struct told told[CALLS];
    struct idem_call *calls[CALLS];
    struct stage *stage = *state;
    unsigned repeated = 0;

    effects_fail(&stage->effects, CALLS, IDEM_UNAVAILABLE);
    for (unsigned i = 0; i < CALLS; i++) {
        char key[16];

        snprintf(key, sizeof key, "fails-%u", i);
        calls[i] = start(stage, key, 1, &told[i]);
    }
    for (unsigned i = 0; i < CALLS; i++)
        await_told(calls[i], &told[i]);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_int_equal(told[i].times, 1);
        assert_int_equal(told[i].outcome.status, IDEM_OK);
        repeated += told[i].outcome.attempts > 1;
    }
    assert_true(repeated > 0);
    assert_int_equal(effects_runs(&stage->effects), 2 * CALLS);
    assert_int_equal(stage_effects(stage), CALLS);
}

/* --- The server is stopped --- */

/* rpc 97: stop does not wait for the handler for ever, the caller is told that
 * it does not know, and the server that comes next has one effect. */
static void
a_hard_stop_leaves_one_effect(void **state)
{
    static const struct idem_policy_options once_only = {.no_retries = true};
    struct stage *stage = *state;
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct stage_thread *thread;
    struct called cut, again;

    stage->drain_ms = 20;
    stage_rebuild(stage, NULL, NULL);
    idem_channel_close(swap_channel(
        stage, idem_server_address(stage->servers[0], 0), &once_only));
    request.amount = 7;
    effects_hold(&stage->effects);
    thread = stage_start(stage, 0, effects_add, "stopped", &request);
    effects_await(&stage->effects, 1);
    idem_server_stop(stage->servers[0]);
    cut = stage_join(thread);
    assert_int_equal(cut.status, IDEM_UNAVAILABLE);
    assert_int_equal(cut.outcome.effect, IDEM_EFFECT_IN_DOUBT);
    effects_open(&stage->effects);
    stage_rebuild(stage, NULL, NULL);

    again = stage_call(stage, effects_add, "stopped", &request);
    assert_int_equal(again.status, IDEM_OK);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&cut);
    called_free(&again);
}

/* --- The handler is wrong --- */

/* B088: what cannot be packed is no reply: nothing is recorded, the repeat does
 * not meet it, and the server goes on. */
static void
a_reply_that_cannot_be_packed_is_not_recorded(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct called good;

    request.reply_bytes = UINT32_MAX;
    for (unsigned i = 1; i <= 2; i++) {
        struct called bad = stage_call(stage, effects_add, "null", &request);

        assert_int_equal(bad.status, IDEM_INTERNAL);
        assert_int_equal(bad.outcome.effect, IDEM_EFFECT_ROLLED_BACK);
        assert_false(bad.outcome.final);
        assert_non_null(strstr(bad.outcome.message, "body"));
        assert_int_equal(effects_runs(&stage->effects), i);
        called_free(&bad);
    }
    good = stage_add(stage, "good", 1);
    assert_int_equal(good.status, IDEM_OK);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&good);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, stage_sqlite_tcp, stage_down)
        TEST(a_reply_that_is_lost_is_got_by_the_next_attempt),
        TEST(a_slow_handler_is_begun_once),
        TEST(who_gave_up_gets_the_answer_when_he_asks_again),
        TEST(one_key_is_one_call_whichever_way_it_is_sent),
        TEST(callbacks_of_repeated_calls_run_once),
        TEST(a_hard_stop_leaves_one_effect),
        TEST(a_reply_that_cannot_be_packed_is_not_recorded),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
