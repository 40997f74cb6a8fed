#include "echo_world.h"

#include <string.h>

/* Calls over each transport, from stub to handler and back. */

static const struct echo_options tcp = {.transport = ECHO_TCP};
static const struct echo_options ipc = {.transport = ECHO_IPC};
static const struct echo_options inproc = {.transport = ECHO_INPROC};

static const struct echo_options *
options_of(void **state)
{
    return *state;
}

static void
a_call_is_answered(void **state)
{
    struct echo_world world;
    struct echo_result result;

    echo_world_open(&world, options_of(state));
    result = echo_world_call(&world, 7, 64, NULL);
    assert_echoed(&result, 7, 64);
    assert_int_equal(result.outcome.attempts, 1);
    assert_string_equal(result.outcome.key, "");
    result = echo_world_call(&world, 8, 0, NULL);
    assert_echoed(&result, 8, 0);
    assert_int_equal(atomic_load(&world.ran), 2);
    echo_world_close(&world);
}

static void
sixty_four_calls_fly_at_once(void **state)
{
    enum { CALLS = 64 };
    static struct echo_result results[CALLS];
    struct echo_world world;

    echo_world_open(&world, options_of(state));
    for (unsigned i = 0; i < CALLS; i++)
        echo_world_start(&world, world.channel,
                         i % 2 ? echo_echo_async : echo_echo_inline_async, i,
                         i * 100, NULL, &results[i]);
    echo_world_await(&world);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_echoed(&results[i], i, i * 100);
        assert_int_equal(results[i].told, 1);
        echo_result_fini(&results[i]);
    }
    echo_world_close(&world);
}

static void
big_messages_go_both_ways_beside_small_ones(void **state)
{
    static const size_t sizes[] = {10,     16384,  65536 - 30, 65536,
                                   100000, 999999, 4000000,    1};
    enum { CALLS = sizeof sizes / sizeof *sizes };
    static struct echo_result results[CALLS];
    struct echo_world world;

    echo_world_open(&world, options_of(state));
    for (unsigned i = 0; i < CALLS; i++)
        echo_world_start(&world, world.channel, echo_echo_async, i, sizes[i],
                         NULL, &results[i]);
    echo_world_await(&world);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_echoed(&results[i], i, sizes[i]);
        echo_result_fini(&results[i]);
    }
    echo_world_close(&world);
}

/* rpc 79, 83, 86 */
static void
the_handler_sees_key_attempt_deadline_and_metadata(void **state)
{
    const struct idem_call_metadata metadata[] = {
        {"trace", {(const uint8_t *)"t-1", 3}},
        {"trace", {(const uint8_t *)"t-2", 3}},
        {"blob-bin", {(const uint8_t *)"\x01\x02", 2}},
    };
    const struct idem_call_options options = {
        .timeout_ms = 5000,
        .key = "order-17",
        .metadata = metadata,
        .n_metadata = 3,
    };
    struct echo_world world;
    struct echo_result result;

    echo_world_open(&world, options_of(state));
    result = echo_world_call(&world, 1, 3, &options);
    assert_echoed(&result, 1, 3);
    assert_string_equal(result.key, "order-17");
    assert_string_equal(result.outcome.key, "order-17");
    assert_string_equal(result.metadata,
                        "trace=t-1;trace=t-2;blob-bin=\x01\x02;");
    assert_int_equal(result.attempt, 1);
    assert_in_range(result.remaining_ms, 1, 5000);
    echo_world_close(&world);
}

/* rpc 78 */
static void
a_handler_that_fails_says_why(void **state)
{
    struct echo_world world;
    struct idem_outcome outcome;
    echo_fail_request request = ECHO_FAIL_REQUEST_INIT;

    echo_world_open(&world, options_of(state));
    for (unsigned status = 1; status <= 16; status++) {
        request.status = status;
        request.message = "no account 7";
        assert_int_equal(
            echo_fail(world.channel, &request, NULL, NULL, &outcome), status);
        assert_int_equal(outcome.status, status);
        assert_int_equal(outcome.effect, IDEM_EFFECT_ROLLED_BACK);
        assert_string_equal(outcome.message, "no account 7");
        assert_false(outcome.final);
        assert_int_equal(outcome.retry_after_ms, -1);
    }
    echo_world_close(&world);
}

/* B103. */
struct caller {
    pthread_t thread;
    struct echo_world *world;
    unsigned first;
};

static void *
call_a_hundred_times(void *argument)
{
    struct caller *caller = argument;

    for (unsigned i = 0; i < 100; i++) {
        struct echo_result result =
            echo_world_call(caller->world, caller->first + i, i, NULL);

        assert_echoed(&result, caller->first + i, i);
    }
    return NULL;
}

static void
eight_threads_share_a_channel(void **state)
{
    struct echo_world world;
    struct caller callers[8];

    echo_world_open(&world, options_of(state));
    for (unsigned i = 0; i < 8; i++) {
        callers[i].world = &world;
        callers[i].first = i * 100;
        pthread_create(&callers[i].thread, NULL, call_a_hundred_times,
                       &callers[i]);
    }
    for (unsigned i = 0; i < 8; i++)
        pthread_join(callers[i].thread, NULL);
    assert_int_equal(atomic_load(&world.ran), 800);
    echo_world_close(&world);
}

#define OVER(transport, test)                                                  \
    {                                                                          \
#test ", " #transport, test, NULL, NULL, (void *)(uintptr_t)&transport \
    }
#define OVER_ALL(test) OVER(tcp, test), OVER(ipc, test), OVER(inproc, test)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_ALL(a_call_is_answered),
        OVER_ALL(sixty_four_calls_fly_at_once),
        OVER_ALL(big_messages_go_both_ways_beside_small_ones),
        OVER_ALL(the_handler_sees_key_attempt_deadline_and_metadata),
        OVER_ALL(a_handler_that_fails_says_why),
        OVER_ALL(eight_threads_share_a_channel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
