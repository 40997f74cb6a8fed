/* Where each value of a policy comes from: .proto < file < environment < call
 * option, value by value; what follows from it, and what explain says. */
#include "script_world.h"

#include <idem/reason.h>
#include <idem/retry.h>
#include <idem/server.h>

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY(members) "{\"methodConfig\": [{\"name\": [{}], " members "}]}"
#define FAILS .status = IDEM_UNAVAILABLE, .effect = IDEM_EFFECT_ROLLED_BACK

static const struct script silent = {.never = true};
static const struct script fails = {FAILS};
static const struct script good = {.status = IDEM_OK,
                                   .effect = IDEM_EFFECT_COMMITTED};

/* --- attemptTimeout --- */

#define SHORT "\"attemptTimeout\": \"0.02s\""
#define LONG "\"attemptTimeout\": \"60s\""

static void
the_highest_layer_that_has_an_attempt_timeout_ends_attempts(void **state)
{
    static const struct {
        const char *file, *environment;
        int64_t option_ms;
        const char *explained;
    } rows[] = {
        {ENTRY(SHORT), NULL, 0,
         "attempt timeout  at most 20 ms  (file, "
         "methodConfig[0].attemptTimeout)"},
        {ENTRY(LONG), ENTRY(SHORT), 0,
         "attempt timeout  at most 20 ms  (environment, "
         "methodConfig[0].attemptTimeout)"},
        {ENTRY(LONG), ENTRY(LONG), 20,
         "attempt timeout  at most 60000 ms  (environment"},
        {NULL, NULL, 20, "attempt timeout  none  (.proto)"},
    };
    const struct idem_method method = script_method(true);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct idem_call_options options = {
            .timeout_ms = 30000, .attempt_timeout_ms = rows[i].option_ms};
        struct script_world world;
        struct idem_outcome outcome;

        script_world_open(&world, &silent, rows[i].file, rows[i].environment);
        script_assert_explains(&world, &method, rows[i].explained);
        assert_int_equal(script_call(&world, &method, &options, &outcome),
                         IDEM_DEADLINE_EXCEEDED);
        assert_string_equal(outcome.reason, IDEM_ATTEMPT_TIMEOUT);
        assert_int_equal(outcome.stop, IDEM_STOP_ATTEMPTS);
        assert_int_equal(atomic_load(&world.sends), 2);
        script_world_close(&world);
    }
}

static void
an_attempt_timeout_of_what_might_be_done_twice_is_refused(void **state)
{
    const struct idem_call_options options = {.attempt_timeout_ms = 20};
    const struct idem_call_options negative = {.attempt_timeout_ms = -1};
    const struct idem_method method = script_method(false);
    struct script_world world;
    struct idem_outcome outcome;

    (void)state;
    script_world_open(&world, &good, NULL, NULL);
    assert_int_equal(script_call(&world, &method, &options, &outcome),
                     IDEM_INVALID_ARGUMENT);
    assert_string_equal(outcome.message,
                        "attempt_timeout_ms: echo.v1.Echo/Echo has neither a "
                        "key nor a declared idempotence: it might take effect "
                        "twice");
    assert_int_equal(outcome.effect, IDEM_EFFECT_NOT_SENT);
    assert_int_equal(script_call(&world, &method, &negative, &outcome),
                     IDEM_INVALID_ARGUMENT);
    assert_string_equal(outcome.message, "attempt_timeout_ms is negative");
    assert_int_equal(atomic_load(&world.sends), 0);
    script_world_close(&world);
}

/* Without a policy in the chain the option does the same. */
static void
an_attempt_timeout_needs_no_config(void **state)
{
    const struct idem_call_options options = {
        .key = "k", .timeout_ms = 30000, .attempt_timeout_ms = 20};
    const struct idem_method method = script_method(true);
    struct script_world world;
    struct idem_outcome outcome;
    struct idem_error err;

    (void)state;
    script_world_open_bare(&world, &silent);
    script_must(idem_channel_add(world.channel, idem_retry_new(), &err), &err);
    assert_int_equal(script_call(&world, &method, &options, &outcome),
                     IDEM_DEADLINE_EXCEEDED);
    assert_string_equal(outcome.reason, IDEM_ATTEMPT_TIMEOUT);
    assert_int_equal(atomic_load(&world.sends), 2);
    script_world_close(&world);
}

/* --- retryBudget and retryThrottling: a channel's, so no call's --- */

#define POOR "{\"retryBudget\": {\"ratio\": 0.001, \"floor\": 0}}"
#define RICH "{\"retryBudget\": {\"ratio\": 1, \"window\": \"5s\"}}"
#define SHUT "{\"retryThrottling\": {\"maxTokens\": 1, \"tokenRatio\": 0.5}}"
#define OPEN "{\"retryThrottling\": {\"maxTokens\": 100, \"tokenRatio\": 1}}"

static void
the_highest_layer_that_has_a_budget_or_a_throttle_stops_repeats(void **state)
{
    static const struct {
        const char *file, *environment;
        enum idem_stop stop;
        const char *explained;
    } rows[] = {
        {POOR, NULL, IDEM_STOP_BUDGET,
         "budget           0.001 repeats a call, or 0, in each 10000 ms  "
         "(file, retryBudget)"},
        {POOR, RICH, IDEM_STOP_ATTEMPTS,
         "budget           1 repeats a call, or 10, in each 5000 ms  "
         "(environment, retryBudget)"},
        {RICH, POOR, IDEM_STOP_BUDGET, "(environment, retryBudget)"},
        {NULL, NULL, IDEM_STOP_ATTEMPTS,
         "budget           any number of repeats  (no config says one)"},
        {SHUT, NULL, IDEM_STOP_THROTTLED,
         "throttle         1 tokens, a success gives 0.5  (file, "
         "retryThrottling)"},
        {SHUT, OPEN, IDEM_STOP_ATTEMPTS,
         "throttle         100 tokens, a success gives 1  (environment, "
         "retryThrottling)"},
        {NULL, NULL, IDEM_STOP_ATTEMPTS,
         "throttle         none  (no config says one)"},
    };
    const struct idem_method method = script_method(true);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct script_world world;
        struct idem_outcome outcome;

        script_world_open(&world, &fails, rows[i].file, rows[i].environment);
        script_assert_explains(&world, &method, rows[i].explained);
        (void)script_call(&world, &method, NULL, &outcome);
        assert_int_equal(outcome.stop, rows[i].stop);
        script_world_close(&world);
    }
}

/* --- key --- */

static void
the_highest_layer_says_whose_the_key_is(void **state)
{
    static const struct {
        const char *file, *environment, *option;
        enum idem_status status;
        const char *explained;
    } rows[] = {
        {NULL, NULL, NULL, IDEM_OK,
         "key              the caller's, or minted  (.proto)"},
        {ENTRY("\"key\": \"CALLERS\""), NULL, NULL, IDEM_INVALID_ARGUMENT,
         "key              the caller's, or the call is refused  (file, "
         "methodConfig[0].key)"},
        {ENTRY("\"key\": \"CALLERS\""), NULL, "order-1", IDEM_OK,
         "(file, methodConfig[0].key)"},
        {ENTRY("\"key\": \"CALLERS\""), ENTRY("\"key\": \"MINTED\""), NULL,
         IDEM_OK,
         "key              the caller's, or minted  (environment, "
         "methodConfig[0].key)"},
    };
    const struct idem_method method = script_method(true);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct idem_call_options options = {.key = rows[i].option};
        struct script_world world;
        struct idem_outcome outcome;

        script_world_open(&world, &good, rows[i].file, rows[i].environment);
        script_assert_explains(&world, &method, rows[i].explained);
        assert_int_equal(script_call(&world, &method, &options, &outcome),
                         rows[i].status);
        if (rows[i].status != IDEM_OK)
            assert_string_equal(outcome.reason, IDEM_KEY_MISSING);
        else if (rows[i].option)
            assert_string_equal(outcome.key, rows[i].option);
        else
            assert_memory_equal(outcome.key, "idk_", 4);
        script_world_close(&world);
    }
}

/* --- maxRetryBytes, overRetryBytes --- */

static void
values_of_two_layers_hold_beside_one_another(void **state)
{
    const struct idem_method method = script_method(true);
    struct script_world world;
    struct idem_outcome outcome;

    (void)state;
    script_world_open(&world, &fails, ENTRY("\"maxRetryBytes\": 50"), NULL);
    script_assert_explains(&world, &method,
                           "sent again       up to 50 bytes, over them refused "
                           " (file, methodConfig[0].maxRetryBytes)");
    assert_int_equal(script_call(&world, &method, NULL, &outcome),
                     IDEM_RESOURCE_EXHAUSTED);
    assert_string_equal(outcome.reason, IDEM_REQUEST_TOO_LARGE);
    script_world_close(&world);

    script_world_open(&world, &fails, ENTRY("\"maxRetryBytes\": 50"),
                      ENTRY("\"overRetryBytes\": \"SEND_ONCE\""));
    script_assert_explains(&world, &method,
                           "sent again       up to 50 bytes, over them once");
    (void)script_call(&world, &method, NULL, &outcome);
    assert_int_equal(outcome.stop, IDEM_STOP_BUFFER);
    assert_int_equal(atomic_load(&world.sends), 1);
    script_world_close(&world);
}

/* --- timeout --- */

/* The earliest of all layers, the parent's deadline included (that is
 * test_children's). */
static void
the_shortest_timeout_is_the_calls(void **state)
{
    static const struct {
        const char *file, *environment;
        int64_t option_ms, left_ms;
        const char *explained;
    } rows[] = {
        {ENTRY("\"timeout\": \"40s\""), NULL, 60000, 40000,
         "timeout          at most 40000 ms  (file, methodConfig[0].timeout)"},
        {ENTRY("\"timeout\": \"40s\""), NULL, 20000, 20000, "at most 40000 ms"},
        {ENTRY("\"timeout\": \"40s\""), ENTRY("\"timeout\": \"30s\""), 60000,
         30000,
         "timeout          at most 30000 ms  (environment, "
         "methodConfig[0].timeout)"},
        {ENTRY("\"timeout\": \"30s\""), ENTRY("\"timeout\": \"50s\""), 60000,
         50000, "timeout          at most 50000 ms  (environment"},
        {NULL, NULL, 60000, 60000,
         "timeout          the call's, else the channel's  (.proto)"},
        {ENTRY("\"timeout\": \"40s\""), NULL, 0, 10000, "at most 40000 ms"},
    };
    const struct idem_method method = script_method(true);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct idem_call_options options = {.timeout_ms =
                                                      rows[i].option_ms};
        struct script_world world;

        script_world_open(&world, &good, rows[i].file, rows[i].environment);
        script_assert_explains(&world, &method, rows[i].explained);
        assert_int_equal(script_call(&world, &method, &options, NULL), IDEM_OK);
        assert_in_range(atomic_load(&world.deadline_ms), rows[i].left_ms - 5000,
                        rows[i].left_ms);
        script_world_close(&world);
    }
}

/* --- waitForReady --- */

/* Over a real transport to nobody: who waits does so until its deadline. */
static void
the_highest_layer_says_whether_a_call_waits_for_a_connection(void **state)
{
    static const struct {
        const char *file, *environment;
        bool wait_for_ready, fail_fast, waits;
        const char *explained;
    } rows[] = {
        {NULL, NULL, false, false, false, "as the call says  (.proto)"},
        {NULL, NULL, true, false, true, "as the call says  (.proto)"},
        {ENTRY("\"waitForReady\": true"), NULL, false, false, true,
         "wait for ready   yes  (file, methodConfig[0].waitForReady)"},
        {ENTRY("\"waitForReady\": true"), NULL, false, true, false,
         "yes  (file, methodConfig[0].waitForReady)"},
        {ENTRY("\"waitForReady\": true"), ENTRY("\"waitForReady\": false"),
         false, false, false,
         "as the call says  (environment, methodConfig[0].waitForReady)"},
        {ENTRY("\"waitForReady\": false"), ENTRY("\"waitForReady\": true"),
         false, false, true,
         "yes  (environment, methodConfig[0].waitForReady)"},
        {ENTRY("\"waitForReady\": false"), NULL, true, false, true,
         "as the call says  (file, methodConfig[0].waitForReady)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct idem_policy_options policy = {.config_json = rows[i].file,
                                             .ignore_environment =
                                                 !rows[i].environment};
        const struct idem_channel_options channel = {.policy = &policy};
        const struct idem_call_options options = {
            .timeout_ms = 200,
            .wait_for_ready = rows[i].wait_for_ready,
            .fail_fast = rows[i].fail_fast};
        echo_echo_request request = ECHO_ECHO_REQUEST_INIT;
        struct script_world world;
        struct idem_outcome outcome;
        struct idem_error err;

        if (rows[i].environment)
            setenv("IDEM_SERVICE_CONFIG", rows[i].environment, 1);
        script_must(idem_client_open(&world.channel, "ipc:///nowhere/nobody",
                                     &channel, &err),
                    &err);
        unsetenv("IDEM_SERVICE_CONFIG");
        script_assert_explains(&world, &echo_echo_method, rows[i].explained);
        (void)echo_echo(world.channel, &request, NULL, &options, &outcome);
        assert_int_equal(outcome.status, rows[i].waits ? IDEM_DEADLINE_EXCEEDED
                                                       : IDEM_UNAVAILABLE);
        assert_int_equal(outcome.effect, IDEM_EFFECT_NOT_SENT);
        script_world_close(&world);
    }
}

static enum idem_status
answer(struct idem_context *context, const echo_echo_request *request,
       echo_echo_reply *reply)
{
    (void)context;
    reply->number = request->number;
    return IDEM_OK;
}

struct ending {
    sem_t come;
    enum idem_status status;
};

static void
note_ending(struct idem_call *call, const echo_echo_reply *reply,
            const struct idem_outcome *outcome)
{
    struct ending *ending = idem_call_user(call);

    (void)reply;
    ending->status = outcome->status;
    sem_post(&ending->come);
}

/* … and goes out when there is one. */
static void
a_call_that_waits_by_a_config_goes_out_when_a_server_is_there(void **state)
{
    static const struct echo_handlers handlers = {.echo = answer};
    struct idem_policy_options policy = {.config_json =
                                             ENTRY("\"waitForReady\": true"),
                                         .ignore_environment = true};
    const struct idem_channel_options patient = {.policy = &policy,
                                                 .connect_backoff_ms = 1,
                                                 .connect_backoff_max_ms = 5};
    struct ending ending = {.status = IDEM_UNKNOWN};
    const struct idem_call_options options = {.timeout_ms = 30000,
                                              .user = &ending};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;
    struct idem_channel *channel;
    struct idem_server *server;
    struct idem_call *call;
    struct idem_error err;

    (void)state;
    assert_int_equal(sem_init(&ending.come, 0, 0), 0);
    script_must(
        idem_client_open(&channel, "inproc://comes-later", &patient, &err),
        &err);
    while (idem_channel_state(channel) != IDEM_CHANNEL_TRANSIENT_FAILURE)
        assert_int_not_equal(idem_channel_wait_ready(channel, 1, &err),
                             IDEM_OK);
    call = echo_echo_async(channel, &request, &options, note_ending);
    script_must(idem_server_open(&server, NULL, NULL, NULL, &err), &err);
    script_must(echo_register(server, &handlers, NULL, &err), &err);
    script_must(idem_server_listen(server, "inproc://comes-later", &err), &err);
    script_must(idem_server_start(server, &err), &err);
    assert_int_equal(echo_echo(channel, &request, NULL, &options, NULL),
                     IDEM_OK);
    while (sem_wait(&ending.come) != 0)
        assert_int_equal(errno, EINTR);
    idem_call_release(call);
    idem_channel_close(channel);
    idem_server_free(server);
    sem_destroy(&ending.come);
    assert_int_equal(ending.status, IDEM_OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            the_highest_layer_that_has_an_attempt_timeout_ends_attempts),
        cmocka_unit_test(
            an_attempt_timeout_of_what_might_be_done_twice_is_refused),
        cmocka_unit_test(an_attempt_timeout_needs_no_config),
        cmocka_unit_test(
            the_highest_layer_that_has_a_budget_or_a_throttle_stops_repeats),
        cmocka_unit_test(the_highest_layer_says_whose_the_key_is),
        cmocka_unit_test(values_of_two_layers_hold_beside_one_another),
        cmocka_unit_test(the_shortest_timeout_is_the_calls),
        cmocka_unit_test(
            the_highest_layer_says_whether_a_call_waits_for_a_connection),
        cmocka_unit_test(
            a_call_that_waits_by_a_config_goes_out_when_a_server_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
