#include "echo_world.h"

#include "chaos_io.h"

#include <idem/reason.h>

#include <idem/call.h>
#include <sched.h>
#include <string.h>

/* What a caller is told when things go wrong: status, effect, and when. */

static const struct idem_call_options patient = {.wait_for_ready = true,
                                                 .timeout_ms = 15000};

/* --- What a caller may give --- */

static void
a_key_or_metadata_that_breaks_the_rules_never_leaves(void **state)
{
    struct echo_world world;
    struct echo_result result;
    char longest[257] = {0};
    struct idem_call_metadata metadata = {"Upper", {NULL, 0}};
    struct idem_call_options options = {.key = ""};

    (void)state;
    memset(longest, 'k', 256);
    echo_world_open(&world, NULL);
    result = echo_world_call(&world, 1, 1, &options);
    assert_ended(&result, IDEM_INVALID_ARGUMENT, IDEM_EFFECT_NOT_SENT);
    assert_string_equal(result.outcome.reason, IDEM_KEY_EMPTY);
    options.key = longest;
    result = echo_world_call(&world, 1, 1, &options);
    assert_string_equal(result.outcome.reason, IDEM_KEY_TOO_LONG);
    options.key = "a b";
    result = echo_world_call(&world, 1, 1, &options);
    assert_string_equal(result.outcome.reason, IDEM_KEY_CHARSET);
    options =
        (struct idem_call_options){.metadata = &metadata, .n_metadata = 1};
    result = echo_world_call(&world, 1, 1, &options);
    assert_ended(&result, IDEM_INTERNAL, IDEM_EFFECT_NOT_SENT);
    metadata = (struct idem_call_metadata){"idem-fence", idem_bytes_of("7")};
    result = echo_world_call(&world, 1, 1, &options);
    assert_ended(&result, IDEM_INTERNAL, IDEM_EFFECT_NOT_SENT);
    assert_string_equal(result.outcome.message,
                        "metadata \"idem-fence\": names that begin with idem- "
                        "are reserved");
    assert_int_equal(atomic_load(&world.ran), 0);
    echo_world_close(&world);
}

static void
a_wrong_target_or_option_is_named(void **state)
{
    const struct idem_channel_options negative = {.timeout_ms = -1};
    struct idem_channel *channel = NULL;
    struct idem_error err;

    (void)state;
    assert_int_equal(idem_channel_new(&channel, "carrier://pigeon", NULL, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "carrier"));
    assert_int_equal(idem_channel_new(&channel, "127.0.0.1:1", NULL, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_int_equal(
        idem_channel_new(&channel, "tcp://127.0.0.1:1", &negative, &err),
        IDEM_INVALID_ARGUMENT);
    assert_null(channel);
}

/* Who says how long the longest pause is says no longer first one. */
static void
one_of_two_pauses_may_be_left_out(void **state)
{
    static const struct idem_channel_options rows[] = {
        {.connect_backoff_max_ms = 50},
        {.connect_backoff_ms = 20000},
    };
    struct idem_channel *channel;
    struct idem_error err;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (idem_channel_new(&channel, "tcp://127.0.0.1:1", &rows[i], &err) !=
            IDEM_OK)
            fail_msg("%s", err.message);
        idem_channel_close(channel);
    }
}

#define EVER INT64_MAX
#define OUTLIER_EVER                                                           \
    {                                                                          \
        .interval_ms = EVER, .ejection_ms = EVER, .max_ejection_ms = EVER      \
    }

/* For ever is a time like any other. */
static void
an_option_may_say_for_ever(void **state)
{
    static const char *const targets[] = {"tcp://127.0.0.1:1",
                                          "list://127.0.0.1:1,127.0.0.1:2",
                                          "dns://localhost:1"};
    const struct idem_channel_options never = {.timeout_ms = EVER,
                                               .connect_backoff_ms = EVER,
                                               .connect_backoff_max_ms = EVER,
                                               .resolve_ms = EVER,
                                               .keepalive_ms = EVER,
                                               .keepalive_timeout_ms = EVER,
                                               .outlier = OUTLIER_EVER};
    struct echo_options options = {.channel = never};
    struct echo_world world;
    struct echo_result result;
    struct idem_channel *channel;
    struct idem_error err;

    (void)state;
    options.server = (struct idem_server_options){.hello_timeout_ms = EVER,
                                                  .idle_timeout_ms = EVER,
                                                  .max_age_ms = EVER,
                                                  .age_grace_ms = EVER,
                                                  .stall_timeout_ms = EVER};
    echo_world_open(&world, &options);
    result = echo_world_call(&world, 1, 1, NULL);
    assert_echoed(&result, 1, 1);
    echo_world_close(&world);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        assert_int_equal(idem_channel_new(&channel, targets[i], &never, &err),
                         IDEM_OK);
        assert_int_equal(echo_echo(channel,
                                   &(echo_echo_request)ECHO_ECHO_REQUEST_INIT,
                                   NULL, NULL, NULL),
                         IDEM_UNAVAILABLE);
        assert_int_equal(idem_channel_wait_ready(channel, INT64_MIN, &err),
                         IDEM_DEADLINE_EXCEEDED);
        idem_channel_close(channel);
    }
}

static void
a_call_cannot_both_wait_and_fail_at_once(void **state)
{
    const struct idem_call_options both = {.wait_for_ready = true,
                                           .fail_fast = true};
    struct echo_world world;
    struct echo_result result;

    (void)state;
    echo_world_open(&world, NULL);
    result = echo_world_call(&world, 1, 1, &both);
    assert_ended(&result, IDEM_INVALID_ARGUMENT, IDEM_EFFECT_NOT_SENT);
    assert_string_equal(result.outcome.message,
                        "wait_for_ready and fail_fast are both set");
    echo_world_close(&world);
}

/* --- Deadlines and cancelling --- */

/* On a busy machine the deadline may be over before the call is there. */
static void
a_deadline_ends_a_call_that_may_have_taken_effect(void **state)
{
    struct idem_call_options soon = {.timeout_ms = 25};
    struct echo_world world;
    struct echo_result result;

    (void)state;
    echo_world_open(&world, NULL);
    echo_world_call(&world, 1, 1, NULL);
    do {
        assert_true((soon.timeout_ms *= 2) < 10000);
        echo_world_start(&world, world.channel, echo_block_async, 1, 1, &soon,
                         &result);
        echo_world_await(&world);
        assert_int_equal(result.status, IDEM_DEADLINE_EXCEEDED);
        assert_int_equal(result.told, 1);
        echo_result_fini(&result);
    } while (result.outcome.effect != IDEM_EFFECT_IN_DOUBT);
    echo_world_close(&world);
}

/* Some are armed at once, some by a round of channel_arming.c. */
static void
calls_that_fly_for_long_end_each_at_its_own_deadline(void **state)
{
    static const int64_t timeouts_ms[] = {20, 120, 250, 400};
    const struct idem_clock *clock = idem_clock_system();
    int64_t begun_ns = clock->monotonic_ns(clock);
    struct echo_world world;
    struct echo_result results[4];

    (void)state;
    echo_world_open(&world, NULL);
    echo_world_call(&world, 1, 1, NULL);
    for (unsigned i = 0; i < 4; i++) {
        const struct idem_call_options options = {.timeout_ms = timeouts_ms[i]};

        echo_world_start(&world, world.channel, echo_block_async, i + 1, 1,
                         &options, &results[i]);
    }
    echo_world_await(&world);
    assert_true(clock->monotonic_ns(clock) - begun_ns >= 400 * 1000000);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(results[i].status, IDEM_DEADLINE_EXCEEDED);
        assert_int_equal(results[i].told, 1);
        echo_result_fini(&results[i]);
    }
    echo_world_close(&world);
}

/* rpc 63. */
static void
a_deadline_that_is_over_sends_nothing(void **state)
{
    const struct idem_call_options past = {.timeout_ms = -1};
    struct echo_world world;
    struct echo_result result;

    (void)state;
    echo_world_open(&world, NULL);
    result = echo_world_call(&world, 1, 1, &past);
    assert_ended(&result, IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_NOT_SENT);
    assert_int_equal(atomic_load(&world.ran), 0);
    echo_world_close(&world);
}

/* rpc 75. */
static void
cancelling_reaches_the_handler(void **state)
{
    struct echo_world world;
    struct echo_result result;

    (void)state;
    echo_world_open(&world, NULL);
    echo_world_start(&world, world.channel, echo_block_async, 1, 1, NULL,
                     &result);
    echo_world_await_inside(&world, 1);
    idem_call_cancel(result.call);
    idem_call_cancel(result.call);
    echo_world_await(&world);
    assert_ended(&result, IDEM_CANCELLED, IDEM_EFFECT_IN_DOUBT);
    while (atomic_load(&world.gave_up) < 1)
        sched_yield();
    idem_call_cancel(result.call); /* when it is over already */
    assert_int_equal(result.told, 1);
    echo_result_fini(&result);
    echo_world_close(&world);
}

static void
a_call_cancelled_before_it_is_sent_has_no_effect(void **state)
{
    struct echo_options options = {.channel_io = NULL};
    struct chaos_io chaos;
    struct chaos_script script = chaos_peace();
    struct echo_world world;
    struct echo_result result;

    (void)state;
    chaos_init(&chaos, &io_socket);
    script.refuse = true;
    chaos_set(&chaos, &script);
    options.channel_io = &chaos.io;
    echo_world_open(&world, &options);
    echo_world_start(&world, world.channel, echo_echo_async, 1, 1, &patient,
                     &result);
    idem_call_cancel(result.call);
    echo_world_await(&world);
    assert_ended(&result, IDEM_CANCELLED, IDEM_EFFECT_NOT_SENT);
    echo_result_fini(&result);
    echo_world_close(&world);
    assert_int_equal(atomic_load(&world.ran), 0);
    chaos_fini(&chaos);
}

/* --- The server is away, from an address that nobody else takes --- */

/* rpc 73. */
static void
a_call_fails_at_once_while_the_server_is_away(void **state)
{
    const struct idem_channel_options slow = {.connect_backoff_ms = 60000,
                                              .connect_backoff_max_ms = 60000};
    struct echo_options options = {.transport = ECHO_IPC, .channel = slow};
    struct echo_world world;
    struct echo_result result;

    (void)state;
    echo_world_open(&world, &options);
    result = echo_world_call(&world, 1, 1, NULL);
    assert_echoed(&result, 1, 1);
    idem_server_free(world.server);
    world.server = NULL;
    for (unsigned i = 0; i < 3; i++) {
        result = echo_world_call(&world, 1, 1, NULL);
        assert_ended(&result, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT);
        assert_non_null(strstr(result.outcome.message, world.address));
    }
    echo_world_close(&world);
}

static void
a_patient_call_waits_for_the_server(void **state)
{
    const struct idem_channel_options quick = {.connect_backoff_ms = 1,
                                               .connect_backoff_max_ms = 5};
    struct echo_options options = {.transport = ECHO_IPC, .channel = quick};
    struct echo_world world;
    struct echo_result result;

    (void)state;
    echo_world_open(&world, &options);
    result = echo_world_call(&world, 1, 1, NULL);
    idem_server_free(world.server);
    world.server = NULL;
    result = echo_world_call(&world, 1, 1, NULL);
    assert_ended(&result, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT);
    echo_world_start(&world, world.channel, echo_echo_async, 1, 1, &patient,
                     &result);
    world.server = echo_world_server(&world);
    echo_world_await(&world);
    assert_echoed(&result, 1, 1);
    assert_int_equal(result.outcome.attempts, 1);
    echo_result_fini(&result);
    echo_world_close(&world);
}

/* rpc 31: it waits for its turn at a server that takes one call at a time, and
 * that drains meanwhile: the call goes to the next one, as a first attempt. */
static void
a_call_in_the_queue_of_a_server_that_ends_goes_to_the_next_one(void **state)
{
    struct echo_options options = {
        .transport = ECHO_IPC,
        .server = {.max_streams = 1},
        .channel = {.connect_backoff_ms = 1, .connect_backoff_max_ms = 5}};
    struct echo_world world;
    struct echo_result first, second;

    (void)state;
    echo_world_open(&world, &options);
    echo_world_start(&world, world.channel, echo_block_async, 1, 1, NULL,
                     &first);
    echo_world_await_inside(&world, 1);
    echo_world_start(&world, world.channel, echo_echo_async, 2, 1, &patient,
                     &second);
    idem_server_drain(world.server);
    echo_world_open_gate(&world);
    idem_server_free(world.server);
    assert_int_equal(atomic_load(&world.ran), 1);
    world.server = echo_world_server(&world);
    echo_world_await(&world);
    assert_ended(&first, IDEM_OK, IDEM_EFFECT_COMMITTED);
    assert_echoed(&second, 2, 1);
    assert_int_equal(second.attempt, 1);
    assert_int_equal(second.outcome.attempts, 1);
    echo_result_fini(&first);
    echo_result_fini(&second);
    echo_world_close(&world);
}

static void
a_patient_call_waits_no_longer_than_its_deadline(void **state)
{
    const struct idem_call_options brief = {.wait_for_ready = true,
                                            .timeout_ms = 50};
    struct echo_options options = {.transport = ECHO_IPC,
                                   .channel = {.connect_backoff_ms = 1}};
    struct echo_world world;
    struct echo_result result;

    (void)state;
    echo_world_open(&world, &options);
    idem_server_free(world.server);
    world.server = NULL;
    result = echo_world_call(&world, 1, 1, &brief);
    assert_ended(&result, IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_NOT_SENT);
    echo_world_close(&world);
}

/* --- Callbacks --- */

static void
block_inside(struct idem_call *call, const echo_echo_reply *reply,
             const struct idem_outcome *outcome)
{
    struct echo_result *result = idem_call_user(call);
    struct echo_world *world = result->world;
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    (void)reply;
    (void)outcome;
    result->status =
        echo_echo(world->channel, &request, NULL, NULL, &result->outcome);
    pthread_mutex_lock(&world->lock);
    world->ended++;
    pthread_cond_broadcast(&world->change);
    pthread_mutex_unlock(&world->lock);
}

static void
a_blocking_call_inside_a_callback_is_refused(void **state)
{
    struct echo_world world;
    struct echo_result result = {0};
    struct idem_call_options options = {.user = &result};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    (void)state;
    echo_world_open(&world, NULL);
    result.world = &world;
    world.started = 1;
    result.call =
        echo_echo_async(world.channel, &request, &options, block_inside);
    echo_world_await(&world);
    assert_ended(&result, IDEM_FAILED_PRECONDITION, IDEM_EFFECT_NOT_SENT);
    echo_result_fini(&result);
    echo_world_close(&world);
}

static void
a_handle_may_outlive_its_channel(void **state)
{
    struct echo_world world;
    struct echo_result result;

    (void)state;
    echo_world_open(&world, NULL);
    echo_world_start(&world, world.channel, echo_block_async, 1, 1, NULL,
                     &result);
    echo_world_await_inside(&world, 1);
    idem_channel_close(world.channel);
    assert_int_equal(result.told, 1);
    assert_ended(&result, IDEM_CANCELLED, IDEM_EFFECT_IN_DOUBT);
    idem_call_cancel(result.call);
    assert_ptr_equal(idem_call_user(result.call), &result);
    echo_result_fini(&result);
    world.channel = NULL;
    echo_world_close(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_or_metadata_that_breaks_the_rules_never_leaves),
        cmocka_unit_test(a_wrong_target_or_option_is_named),
        cmocka_unit_test(one_of_two_pauses_may_be_left_out),
        cmocka_unit_test(an_option_may_say_for_ever),
        cmocka_unit_test(a_call_cannot_both_wait_and_fail_at_once),
        cmocka_unit_test(a_deadline_ends_a_call_that_may_have_taken_effect),
        cmocka_unit_test(calls_that_fly_for_long_end_each_at_its_own_deadline),
        cmocka_unit_test(a_deadline_that_is_over_sends_nothing),
        cmocka_unit_test(cancelling_reaches_the_handler),
        cmocka_unit_test(a_call_cancelled_before_it_is_sent_has_no_effect),
        cmocka_unit_test(a_call_fails_at_once_while_the_server_is_away),
        cmocka_unit_test(a_patient_call_waits_for_the_server),
        cmocka_unit_test(
            a_call_in_the_queue_of_a_server_that_ends_goes_to_the_next_one),
        cmocka_unit_test(a_patient_call_waits_no_longer_than_its_deadline),
        cmocka_unit_test(a_blocking_call_inside_a_callback_is_refused),
        cmocka_unit_test(a_handle_may_outlive_its_channel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
