/* How a server ends: calls end, or are cut, and nothing hangs. */
#include "server_story.h"

#include "fake_clock.h"
#include "server.h"

#include <idem/call.h>

/* --- The end --- */

/* rpc 95, 98. */
static void
drain_lets_calls_end_and_takes_no_new_ones(void **state)
{
    const struct idem_channel_options slow = {.connect_backoff_ms = 60000,
                                              .connect_backoff_max_ms = 60000};
    struct echo_options options = {.channel = slow};
    struct header_open open = open_of(ECHO_ECHO_METHOD);
    struct echo_world world;
    struct echo_result first, second;
    struct wire wire;
    struct frame frame;

    (void)state;
    echo_world_open(&world, &options);
    wire_connect(&wire, world.address);
    wire_hello(&wire, 0);
    echo_world_start(&world, world.channel, echo_block_async, 1, 1, NULL,
                     &first);
    echo_world_await_inside(&world, 1);
    idem_server_drain(world.server);
    idem_server_drain(world.server);
    assert_true(wire_next(&wire, &frame));
    assert_int_equal(frame.type, FRAME_GOAWAY);
    wire_open(&wire, 1, &open, (struct idem_bytes){(const uint8_t *)"", 0});
    assert_refused(wire_end(&wire, 1), IDEM_UNAVAILABLE);
    wire_close(&wire);
    second = echo_world_call(&world, 2, 1, NULL);
    assert_int_equal(second.status, IDEM_UNAVAILABLE);
    assert_true(second.outcome.effect <= IDEM_EFFECT_REFUSED);
    echo_world_open_gate(&world);
    echo_world_await(&world);
    assert_ended(&first, IDEM_OK, IDEM_EFFECT_COMMITTED);
    assert_int_equal(atomic_load(&world.gave_up), 0); /* it was not told to */
    echo_result_fini(&first);
    idem_server_stop(world.server);
    echo_world_close(&world);
}

/* rpc 97, B106: the handler is stuck, stop is not. */
static void
stop_cuts_calls_that_do_not_end(void **state)
{
    struct echo_options options = {.server = {.drain_ms = 20}};
    struct echo_world world;
    struct echo_result first;

    (void)state;
    echo_world_open(&world, &options);
    echo_world_start(&world, world.channel, echo_block_async, 1, 1, NULL,
                     &first);
    echo_world_await_inside(&world, 1);
    idem_server_stop(world.server);
    echo_world_await(&world);
    assert_ended(&first, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    echo_result_fini(&first);
    idem_server_stop(world.server);
    echo_world_close(&world);
}

static void
a_call_that_waits_for_a_worker_is_refused_by_stop(void **state)
{
    struct echo_options options = {.server = {.drain_ms = 20, .workers = 1}};
    struct echo_world world;
    struct echo_result first, second;

    (void)state;
    echo_world_open(&world, &options);
    echo_world_start(&world, world.channel, echo_block_async, 1, 1, NULL,
                     &first);
    echo_world_await_inside(&world, 1);
    echo_world_start(&world, world.channel, echo_echo_async, 2, 1, NULL,
                     &second);
    idem_server_stop(world.server);
    echo_world_await(&world);
    assert_ended(&second, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED);
    echo_result_fini(&first);
    echo_result_fini(&second);
    echo_world_close(&world);
    assert_int_equal(atomic_load(&world.ran), 1);
}

static void *
stop(void *server)
{
    idem_server_stop(server);
    return NULL;
}

static void
stop_may_be_called_by_many_at_once(void **state)
{
    struct echo_world world;
    pthread_t threads[4];

    (void)state;
    echo_world_open(&world, NULL);
    assert_works(&world);
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, stop, world.server);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    echo_world_close(&world);
}

static void
a_server_that_never_started_can_be_freed(void **state)
{
    struct echo_options options = {.not_started = true};
    struct echo_world world;

    (void)state;
    echo_world_open(&world, &options);
    echo_world_close(&world);
}

#define TEST(name) cmocka_unit_test(name)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(drain_lets_calls_end_and_takes_no_new_ones),
        TEST(stop_cuts_calls_that_do_not_end),
        TEST(a_call_that_waits_for_a_worker_is_refused_by_stop),
        TEST(stop_may_be_called_by_many_at_once),
        TEST(a_server_that_never_started_can_be_freed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
