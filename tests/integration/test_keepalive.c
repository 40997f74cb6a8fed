#include "echo_world.h"

#include "channel_inside.h"
#include "chaos_io.h"
#include "fake_clock.h"

#include <sched.h>
#include <string.h>

/* Servers that are there and say nothing. The channel's time is the test's. */

#define ASKS_MS 10000    /* after so long of quiet */
#define LISTENS_MS 20000 /* for so long */

struct patient {
    struct fake_clock clock;
    struct echo_world world;
};

static void
open_patient(struct patient *patient, const struct io *io)
{
    struct echo_options options = {
        .channel_io = io,
        .channel = {.clock = &patient->clock.clock,
                    .keepalive_ms = ASKS_MS,
                    .keepalive_timeout_ms = LISTENS_MS}};

    fake_clock_init(&patient->clock);
    echo_world_open(&patient->world, &options);
}

static void
close_patient(struct patient *patient)
{
    echo_world_close(&patient->world);
    fake_clock_fini(&patient->clock);
}

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

static bool
has_asked(struct idem_channel *channel)
{
    bool asked;

    pthread_mutex_lock(&channel->lock);
    asked = channel->links->asked;
    pthread_mutex_unlock(&channel->lock);
    return asked;
}

/* A call that its server does not answer. */
static void
start_slow(struct patient *patient, struct echo_result *result)
{
    const struct idem_call_options options = {.timeout_ms = INT64_MAX};
    struct echo_world *world = &patient->world;

    echo_world_start(world, world->channel, echo_block_async, 1, 1, &options,
                     result);
}

/* Not the deadline: the connection is found dead. */
static void
a_silent_server_ends_its_calls_in_doubt(void **state)
{
    struct chaos_io chaos;
    struct chaos_script script = chaos_peace();
    struct patient patient;
    struct echo_result result;

    (void)state;
    chaos_init(&chaos, &io_socket);
    open_patient(&patient, &chaos.io);
    result = echo_world_call(&patient.world, 1, 1, NULL);
    assert_echoed(&result, 1, 1);
    script.deaf = true;
    chaos_set(&chaos, &script);
    start_slow(&patient, &result);
    fake_clock_advance_ms(&patient.clock, ASKS_MS);
    while (!has_asked(patient.world.channel))
        sched_yield();
    fake_clock_advance_ms(&patient.clock, LISTENS_MS);
    echo_world_await(&patient.world);
    assert_ended(&result, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    assert_non_null(
        strstr(result.outcome.message, "no answer to a PING in 20000 ms"));
    echo_result_fini(&result);
    close_patient(&patient);
    chaos_fini(&chaos);
}

static void
a_slow_handler_is_not_a_silent_server(void **state)
{
    struct patient patient;
    struct echo_result result;
    uint64_t before;

    (void)state;
    open_patient(&patient, NULL);
    start_slow(&patient, &result);
    echo_world_await_inside(&patient.world, 1);
    before = heard(patient.world.channel);
    for (unsigned pongs = 1; pongs <= 3; pongs++) {
        fake_clock_advance_ms(&patient.clock,
                              pongs == 1 ? ASKS_MS : LISTENS_MS);
        while (heard(patient.world.channel) < before + pongs)
            sched_yield();
    }
    echo_world_open_gate(&patient.world);
    echo_world_await(&patient.world);
    assert_ended(&result, IDEM_OK, IDEM_EFFECT_COMMITTED);
    echo_result_fini(&result);
    close_patient(&patient);
}

static void
nobody_asks_while_no_call_flies(void **state)
{
    struct patient patient;
    struct echo_result result;
    uint64_t before;

    (void)state;
    open_patient(&patient, NULL);
    for (unsigned i = 0; i < 3; i++) {
        result = echo_world_call(&patient.world, i, 1, NULL);
        assert_echoed(&result, i, 1);
        before = heard(patient.world.channel);
        fake_clock_advance_ms(&patient.clock, ASKS_MS);
        while (ticks(patient.world.channel))
            sched_yield();
        assert_false(has_asked(patient.world.channel));
        assert_int_equal(heard(patient.world.channel), before);
    }
    close_patient(&patient);
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
