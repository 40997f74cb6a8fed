#include "echo_world.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Channels and servers that end while calls are under way, many times over
 * (B106, B108; 2,000 rounds there, scaled down here). Every call is told, once,
 * and nothing hangs or leaks. */

enum { IN_FLIGHT = 16 };

static unsigned
rounds(void)
{
    const char *text = getenv("IDEM_ROUNDS");

    return text ? (unsigned)strtoul(text, NULL, 10) : 30;
}

static const struct echo_options tcp = {
    .transport = ECHO_TCP,
    .server = {.drain_ms = 5, .workers = 2},
    .channel = {.connect_backoff_ms = 1, .connect_backoff_max_ms = 2},
};
static const struct echo_options ipc = {
    .transport = ECHO_IPC,
    .server = {.drain_ms = 5, .workers = 2},
    .channel = {.connect_backoff_ms = 1, .connect_backoff_max_ms = 2},
};
static const struct echo_options inproc = {
    .transport = ECHO_INPROC,
    .server = {.drain_ms = 5, .workers = 2},
    .channel = {.connect_backoff_ms = 1, .connect_backoff_max_ms = 2},
};

/* Some at the gate, some in the queue, some short. */
static void
start_some(struct echo_world *world, struct echo_result *results, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        echo_world_start(world, world->channel,
                         i % 4 == 0   ? echo_block_async
                         : i % 4 == 1 ? echo_echo_inline_async
                                      : echo_echo_async,
                         i, i % 5 == 0 ? 40000 : 10, NULL, &results[i]);
}

static void
assert_all_told_once(struct echo_result *results, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(results[i].told, 1);
        assert_true(results[i].status == IDEM_OK ||
                    results[i].status == IDEM_CANCELLED ||
                    results[i].status == IDEM_UNAVAILABLE);
        echo_result_fini(&results[i]);
    }
}

static void
a_channel_may_be_closed_with_calls_in_flight(void **state)
{
    static struct echo_result results[IN_FLIGHT];
    struct echo_world world;

    echo_world_open(&world, *state);
    for (unsigned round = rounds(); round > 0; round--) {
        start_some(&world, results, IN_FLIGHT);
        if (round % 3 == 0)
            echo_world_await_inside(&world, 1);
        idem_channel_close(world.channel);
        assert_all_told_once(results, IN_FLIGHT);
        world.channel = echo_world_channel(&world);
    }
    echo_world_close(&world);
}

static void
a_server_may_be_stopped_with_calls_in_flight(void **state)
{
    static struct echo_result results[IN_FLIGHT];
    struct echo_world world;

    echo_world_open(&world, *state);
    for (unsigned round = rounds(); round > 0; round--) {
        start_some(&world, results, IN_FLIGHT);
        if (round % 2)
            idem_server_stop(world.server);
        echo_world_open_gate(&world);
        idem_server_free(world.server);
        echo_world_await(&world);
        assert_all_told_once(results, IN_FLIGHT);
        world.gate = false;
        world.server = echo_world_server(&world);
    }
    echo_world_close(&world);
}

static void *
stop(void *server)
{
    idem_server_stop(server);
    return NULL;
}

/* The end of a connection and the end of its server are both at its calls. */
static void
a_connection_may_be_lost_while_its_server_stops(void **state)
{
    static struct echo_result results[IN_FLIGHT];
    struct echo_world world;
    pthread_t thread;

    echo_world_open(&world, *state);
    for (unsigned round = rounds(); round > 0; round--) {
        start_some(&world, results, IN_FLIGHT);
        echo_world_await_inside(&world, 1);
        pthread_create(&thread, NULL, stop, world.server);
        for (unsigned i = round % 8; i > 0; i--)
            sched_yield();
        idem_channel_close(world.channel);
        echo_world_open_gate(&world);
        pthread_join(thread, NULL);
        assert_all_told_once(results, IN_FLIGHT);
        idem_server_free(world.server);
        world.gate = false;
        world.server = echo_world_server(&world);
        world.channel = echo_world_channel(&world);
    }
    echo_world_close(&world);
}

/* A thread that waits in a call while another closes the channel under it. */
static void *
call_and_wait(void *argument)
{
    struct echo_world *world = argument;
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;
    struct idem_outcome outcome;

    echo_block(world->channel, &request, NULL, NULL, &outcome);
    assert_int_equal(outcome.status, IDEM_CANCELLED);
    return NULL;
}

static void
closing_wakes_a_thread_that_waits_in_a_call(void **state)
{
    struct echo_world world;
    pthread_t thread;

    echo_world_open(&world, *state);
    for (unsigned round = 0; round < rounds() / 3 + 1; round++) {
        pthread_create(&thread, NULL, call_and_wait, &world);
        echo_world_await_inside(&world, 1);
        idem_channel_close(world.channel);
        pthread_join(thread, NULL);
        echo_world_open_gate(&world);
        world.channel = echo_world_channel(&world);
        pthread_mutex_lock(&world.lock);
        while (world.inside > 0)
            pthread_cond_wait(&world.change, &world.lock);
        world.gate = false;
        pthread_mutex_unlock(&world.lock);
    }
    echo_world_close(&world);
}

/* rpc 77, here by a cancel */
static void
cancelling_races_with_the_answer(void **state)
{
    static struct echo_result results[IN_FLIGHT];
    struct echo_world world;

    echo_world_open(&world, *state);
    for (unsigned round = 0; round < rounds(); round++) {
        for (unsigned i = 0; i < IN_FLIGHT; i++)
            echo_world_start(&world, world.channel, echo_echo_async, i, 10,
                             NULL, &results[i]);
        for (unsigned i = 0; i < IN_FLIGHT; i += 1 + round % 3)
            idem_call_cancel(results[i].call);
        echo_world_await(&world);
        assert_all_told_once(results, IN_FLIGHT);
    }
    echo_world_close(&world);
}

/* Each answer starts the next call, until the test has had enough. */
struct storm {
    struct echo_world *world;
    atomic_bool over;
    atomic_uint alive, answered;
};

static void
blow(struct idem_call *call, const echo_echo_reply *reply,
     const struct idem_outcome *outcome)
{
    struct storm *storm = idem_call_user(call);
    struct idem_call_options options = {.user = storm};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    (void)reply;
    atomic_fetch_add(&storm->answered, 1);
    if (atomic_load(&storm->over) || outcome->status != IDEM_OK) {
        atomic_fetch_sub(&storm->alive, 1);
        return;
    }
    idem_call_release(
        echo_echo_async(storm->world->channel, &request, &options, blow));
}

static void
start_storm(struct storm *storm, struct echo_world *world)
{
    struct idem_call_options options = {.user = storm};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    *storm = (struct storm){.world = world, .alive = IN_FLIGHT};
    for (unsigned i = 0; i < IN_FLIGHT; i++)
        idem_call_release(
            echo_echo_async(world->channel, &request, &options, blow));
    while (atomic_load(&storm->answered) < 50)
        sched_yield();
}

static void
a_server_may_be_stopped_under_load(void **state)
{
    struct echo_world world;

    echo_world_open(&world, *state);
    for (unsigned round = 0; round < rounds() / 3 + 1; round++) {
        struct storm storm;

        start_storm(&storm, &world);
        idem_server_free(world.server);
        while (atomic_load(&storm.alive) > 0)
            sched_yield();
        world.server = echo_world_server(&world);
        idem_channel_close(world.channel);
        world.channel = echo_world_channel(&world);
    }
    echo_world_close(&world);
}

static void
a_channel_may_be_closed_under_load(void **state)
{
    struct echo_world world;

    echo_world_open(&world, *state);
    for (unsigned round = 0; round < rounds() / 3 + 1; round++) {
        struct storm storm;

        start_storm(&storm, &world);
        atomic_store(&storm.over, true);
        idem_channel_close(world.channel);
        assert_int_equal(atomic_load(&storm.alive), 0);
        world.channel = echo_world_channel(&world);
    }
    echo_world_close(&world);
}

/* B064: no program of ours dies of a peer that is gone. cmocka leaves SIGPIPE
 * alone, and so does this program. */
static void
writing_to_a_peer_that_is_gone_kills_nobody(void **state)
{
    struct sigaction now;
    struct echo_world world;
    struct echo_result result;

    sigaction(SIGPIPE, NULL, &now);
    assert_true(now.sa_handler == SIG_DFL);
    echo_world_open(&world, *state);
    for (unsigned round = 0; round < 5; round++) {
        result = echo_world_call(&world, 1, 1, NULL);
        idem_server_free(world.server);
        for (unsigned i = 0; i < 3; i++)
            result = echo_world_call(&world, 1, 1, NULL);
        world.server = echo_world_server(&world);
        idem_channel_close(world.channel);
        world.channel = echo_world_channel(&world);
    }
    result = echo_world_call(&world, 1, 1, NULL);
    assert_echoed(&result, 1, 1);
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
        OVER_ALL(a_channel_may_be_closed_with_calls_in_flight),
        OVER_ALL(a_server_may_be_stopped_with_calls_in_flight),
        OVER_ALL(a_connection_may_be_lost_while_its_server_stops),
        OVER_ALL(closing_wakes_a_thread_that_waits_in_a_call),
        OVER_ALL(cancelling_races_with_the_answer),
        OVER_ALL(a_server_may_be_stopped_under_load),
        OVER_ALL(a_channel_may_be_closed_under_load),
        OVER_ALL(writing_to_a_peer_that_is_gone_kills_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
