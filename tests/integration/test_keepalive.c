#include "echo_world.h"

#include "channel_inside.h"
#include "chaos_io.h"

#include <sched.h>
#include <string.h>

/* Servers that are there and say nothing. */

static const struct idem_channel_options often = {.keepalive_ms = 1000,
                                                  .keepalive_timeout_ms = 1000};

static uint64_t
heard(struct idem_channel *channel)
{
    uint64_t n;

    pthread_mutex_lock(&channel->lock);
    n = connection_heard(channel->links->connection);
    pthread_mutex_unlock(&channel->lock);
    return n;
}

static bool
ticks(struct idem_channel *channel)
{
    bool ticking;

    pthread_mutex_lock(&channel->lock);
    ticking = channel->links->ticking;
    pthread_mutex_unlock(&channel->lock);
    return ticking;
}

/* Not the deadline, ten seconds later: the connection is found dead. */
static void
a_silent_server_ends_its_calls_in_doubt(void **state)
{
    struct chaos_io chaos;
    struct chaos_script script = chaos_peace();
    struct echo_options options = {.channel_io = &chaos.io,
                                   .channel = {.keepalive_ms = 10,
                                               .keepalive_timeout_ms = 30,
                                               .connect_backoff_ms = 1}};
    struct echo_world world;
    struct echo_result result;

    (void)state;
    chaos_init(&chaos, &io_socket);
    echo_world_open(&world, &options);
    result = echo_world_call(&world, 1, 1, NULL);
    assert_echoed(&result, 1, 1);
    script.deaf = true;
    chaos_set(&chaos, &script);
    echo_world_start(&world, world.channel, echo_block_async, 1, 1, NULL,
                     &result);
    echo_world_await(&world);
    assert_ended(&result, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    assert_non_null(
        strstr(result.outcome.message, "no answer to a PING in 30 ms"));
    echo_result_fini(&result);
    echo_world_close(&world);
    chaos_fini(&chaos);
}

static void
a_slow_handler_is_not_a_silent_server(void **state)
{
    struct echo_options options = {.channel = often};
    struct echo_world world;
    struct echo_result result;
    uint64_t before;

    (void)state;
    echo_world_open(&world, &options);
    echo_world_start(&world, world.channel, echo_block_async, 1, 1, NULL,
                     &result);
    echo_world_await_inside(&world, 1);
    before = heard(world.channel);
    while (heard(world.channel) < before + 2)
        sched_yield(); /* two PONGs */
    echo_world_open_gate(&world);
    echo_world_await(&world);
    assert_ended(&result, IDEM_OK, IDEM_EFFECT_COMMITTED);
    echo_result_fini(&result);
    echo_world_close(&world);
}

static void
nobody_asks_while_no_call_flies(void **state)
{
    const struct idem_channel_options brief = {.keepalive_ms = 5,
                                               .keepalive_timeout_ms = 5};
    struct echo_options options = {.channel = brief};
    struct echo_world world;
    struct echo_result result;

    (void)state;
    echo_world_open(&world, &options);
    for (unsigned i = 0; i < 3; i++) {
        result = echo_world_call(&world, i, 1, NULL);
        assert_echoed(&result, i, 1);
        while (ticks(world.channel))
            sched_yield();
    }
    echo_world_close(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silent_server_ends_its_calls_in_doubt),
        cmocka_unit_test(a_slow_handler_is_not_a_silent_server),
        cmocka_unit_test(nobody_asks_while_no_call_flies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
