#include "once_stage.h"
#include "tcp_proxy.h"

#include <idem/call.h>
#include <idem/policy.h>
#include <idem/reason.h>
#include <idem/standard.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Attempts beside one another and attempts with a time of their own, over real
 * connections, to a server that keeps records: one effect whatever happens. */

#define HEDGE                                                                  \
    "{\"methodConfig\": [{\"name\": [{}], \"hedgingPolicy\": {"                \
    "\"maxAttempts\": 3, \"hedgingDelay\": \"0.02s\","                         \
    " \"nonFatalStatusCodes\": [\"UNAVAILABLE\"]}}]}"
#define TIMED                                                                  \
    "{\"methodConfig\": [{\"name\": [{}], \"attemptTimeout\": \"0.1s\","       \
    " \"retryPolicy\": {\"maxAttempts\": 5, \"initialBackoff\": \"0.01s\","    \
    " \"maxBackoff\": \"0.01s\", \"backoffMultiplier\": 1,"                    \
    " \"retryableStatusCodes\": [\"UNAVAILABLE\"]}}]}"

static struct idem_channel *
open_channel(const char *target, const char *json)
{
    const struct idem_policy_options policy = {.config_json = json,
                                               .ignore_environment = true};
    const struct idem_channel_options options = {
        .policy = &policy, .balancer = IDEM_BALANCER_ROUND_ROBIN};
    struct idem_channel *channel;
    struct idem_error err;

    if (idem_client_open(&channel, target, &options, &err) != IDEM_OK)
        fail_msg("%s", err.message);
    return channel;
}

static unsigned
port_of(const char *address)
{
    return (unsigned)atoi(strrchr(address, ':') + 1);
}

static enum idem_status
add(struct idem_channel *channel, const char *key, int64_t amount,
    struct idem_outcome *outcome)
{
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    const struct idem_call_options options = {.key = key, .timeout_ms = 20000};

    request.amount = amount;
    return effects_add(channel, &request, NULL, &options, outcome);
}

/* Fault 88: one of two addresses answers nothing any more: each call is
 * answered by the other, and takes effect once. */
static void
a_stalled_address_costs_a_delay_and_no_second_effect(void **state)
{
    struct stage *stage = *state;
    const char *server = idem_server_address(stage->servers[0], 0);
    struct tcp_proxy *proxy = tcp_proxy_start(port_of(server));
    char target[160], key[24];
    struct idem_channel *channel;
    struct idem_outcome outcome;

    snprintf(target, sizeof target, "list://tcp://127.0.0.1:%u,%s",
             tcp_proxy_port(proxy), server);
    channel = open_channel(target, HEDGE);
    assert_int_equal(add(channel, "warm-1", 1, &outcome), IDEM_OK);
    assert_int_equal(add(channel, "warm-2", 1, &outcome), IDEM_OK);
    tcp_proxy_hold(proxy, 1);
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof key, "hedge-%d", i);
        assert_int_equal(add(channel, key, 1, &outcome), IDEM_OK);
        assert_true(outcome.effect == IDEM_EFFECT_COMMITTED ||
                    outcome.effect == IDEM_EFFECT_REPLAYED);
    }
    tcp_proxy_hold(proxy, 0);
    assert_int_equal(stage_effects(stage), 22);
    idem_channel_close(channel);
    tcp_proxy_free(proxy);
}

/* All hedges at the same server: they wait for the first one and get its
 * answer. */
static void
hedges_of_a_slow_call_are_one_effect(void **state)
{
    struct stage *stage = *state;
    struct idem_channel *channel =
        open_channel(idem_server_address(stage->servers[0], 0), HEDGE);
    struct idem_outcome outcome;

    for (int i = 0; i < 5; i++) {
        char key[24];

        snprintf(key, sizeof key, "slow-%d", i);
        assert_int_equal(add(channel, key, 1, &outcome), IDEM_OK);
    }
    assert_int_equal(stage_effects(stage), 5);
    assert_int_equal(effects_runs(&stage->effects), 5);
    idem_channel_close(channel);
}

struct letting_go {
    pthread_t thread;
    struct stage *stage;
};

/* Hold the handler until a duplicate waits beside it: the first attempt's time
 * was over. */
static void *
let_go(void *with)
{
    struct letting_go *self = with;

    effects_await(&self->stage->effects, 1);
    stage_await_attached(self->stage, 0, 1);
    effects_open(&self->stage->effects);
    return NULL;
}

/* rpc 13, B032: the first attempt's time is over, the server goes on with it,
 * the next one gets its answer. */
static void
an_attempt_whose_time_is_over_is_asked_for_again(void **state)
{
    struct stage *stage = *state;
    struct idem_channel *channel =
        open_channel(idem_server_address(stage->servers[0], 0), TIMED);
    struct letting_go letting_go = {.stage = stage};
    struct idem_outcome outcome;

    effects_hold(&stage->effects);
    pthread_create(&letting_go.thread, NULL, let_go, &letting_go);
    assert_int_equal(add(channel, "timed", 1, &outcome), IDEM_OK);
    pthread_join(letting_go.thread, NULL);
    assert_true(outcome.attempts >= 2);
    assert_int_equal(effects_runs(&stage->effects), 1);
    assert_int_equal(stage_effects(stage), 1);
    idem_channel_close(channel);
}

/* rpc 14: and when nobody answers in all of them, the caller is told so. */
static void
when_no_attempt_is_answered_it_is_in_doubt_and_can_be_resumed(void **state)
{
    struct stage *stage = *state;
    struct idem_channel *channel =
        open_channel(idem_server_address(stage->servers[0], 0), TIMED);
    struct idem_outcome outcome;

    effects_hold(&stage->effects);
    assert_int_equal(add(channel, "doubt", 1, &outcome),
                     IDEM_DEADLINE_EXCEEDED);
    assert_int_equal(outcome.effect, IDEM_EFFECT_IN_DOUBT);
    assert_int_equal(outcome.stop, IDEM_STOP_ATTEMPTS);
    assert_string_equal(outcome.reason, IDEM_ATTEMPT_TIMEOUT);
    assert_int_equal(outcome.attempts, 5);
    effects_open(&stage->effects);
    assert_int_equal(add(channel, "doubt", 1, &outcome), IDEM_OK);
    assert_int_equal(effects_runs(&stage->effects), 1);
    assert_int_equal(stage_effects(stage), 1);
    idem_channel_close(channel);
}

static enum idem_step
say_never(struct idem_interceptor *self, struct idem_call *call)
{
    (void)self;
    idem_call_fail(call, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED, NULL, "no");
    call->outcome.retry_after_ms = IDEM_RETRY_NEVER;
    return IDEM_ANSWER;
}

static void
free_nay_sayer(struct idem_interceptor *self)
{
    free(self);
}

/* rpc 7, over the wire. */
static void
a_server_that_says_never_is_asked_once(void **state)
{
    static const struct idem_interceptor_ops ops = {
        .name = "never",
        .band = IDEM_BAND_LIMIT,
        .request = say_never,
        .free = free_nay_sayer,
    };
    struct stage *stage = *state;
    struct idem_interceptor *nay_sayer = calloc(1, sizeof *nay_sayer);
    struct idem_outcome outcome;

    assert_non_null(nay_sayer);
    nay_sayer->ops = &ops;
    stage_rebuild(stage, nay_sayer, NULL);
    assert_int_equal(add(stage->channels[0], "never", 1, &outcome),
                     IDEM_UNAVAILABLE);
    assert_int_equal(outcome.stop, IDEM_STOP_PUSHBACK);
    assert_int_equal(outcome.attempts, 1);
    assert_int_equal(outcome.retry_after_ms, IDEM_RETRY_NEVER);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, stage_sqlite_tcp, stage_down)
        TEST(a_stalled_address_costs_a_delay_and_no_second_effect),
        TEST(hedges_of_a_slow_call_are_one_effect),
        TEST(an_attempt_whose_time_is_over_is_asked_for_again),
        TEST(a_server_that_says_never_is_asked_once),
        TEST(when_no_attempt_is_answered_it_is_in_doubt_and_can_be_resumed),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
