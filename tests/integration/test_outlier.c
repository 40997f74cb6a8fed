#include "places_world.h"

#include "channel_inside.h"

#include <sched.h>

/* Addresses that are set aside because their servers fail. */

static const struct idem_channel_options base = {
    .balancer = IDEM_BALANCER_ROUND_ROBIN,
    .connect_backoff_ms = 1,
    .connect_backoff_max_ms = 10,
    .outlier = {.in_a_row = 3, .ejection_ms = 60000, .interval_ms = 60000},
};

static unsigned
ejected(struct places_world *world)
{
    struct idem_channel *channel = world->channel;
    unsigned n = 0;

    pthread_mutex_lock(&channel->lock);
    for (const struct address *at = channel->addresses; at; at = at->next)
        n += at->outlier.ejected;
    pthread_mutex_unlock(&channel->lock);
    return n;
}

static void
failures_in_a_row_set_a_server_aside(void **state)
{
    struct places_world world;
    struct idem_outcome outcome;

    (void)state;
    places_world_open(&world, 3, &base);
    atomic_store(&world.place[1].refuses, true);
    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(places_echo(&world, NULL, &outcome), IDEM_OK);
    assert_int_equal(atomic_load(&world.place[1].refused), 3);
    assert_int_equal(ejected(&world), 1);
    places_world_close(&world);
}

static void
a_server_is_back_when_its_time_is_over(void **state)
{
    struct idem_channel_options options = base;
    struct places_world world;
    struct idem_outcome outcome;

    (void)state;
    options.outlier.ejection_ms = 1;
    options.outlier.interval_ms = 1;
    places_world_open(&world, 2, &options);
    atomic_store(&world.place[1].refuses, true);
    while (ejected(&world) == 0)
        assert_int_equal(places_echo(&world, NULL, &outcome), IDEM_OK);
    atomic_store(&world.place[1].refuses, false);
    while (atomic_load(&world.place[1].ran) == 0)
        assert_int_equal(places_echo(&world, NULL, &outcome), IDEM_OK);
    places_world_close(&world);
}

/* In a row they never are: every second call is answered. */
static void
a_share_of_failures_sets_a_server_aside(void **state)
{
    struct idem_channel_options options = base;
    struct places_world world;
    struct idem_outcome outcome;

    (void)state;
    options.outlier = (struct idem_outlier_options){
        .in_a_row = 1000,
        .failure_percent = 30,
        .min_calls = 4,
        .min_addresses = 2,
        .ejection_ms = 60000,
        .interval_ms = 20,
    };
    places_world_open(&world, 2, &options);
    while (ejected(&world) == 0) {
        bool refuses = atomic_load(&world.place[1].refuses);

        atomic_store(&world.place[1].refuses, !refuses);
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(places_echo(&world, NULL, &outcome), IDEM_OK);
    }
    assert_int_equal(ejected(&world), 1);
    places_world_close(&world);
}

static void
the_last_server_is_never_set_aside(void **state)
{
    struct idem_channel_options options = base;
    struct places_world world;
    struct idem_outcome outcome;

    (void)state;
    options.outlier.in_a_row = 1;
    options.outlier.max_ejected_percent = 100;
    places_world_open(&world, 2, &options);
    atomic_store(&world.place[0].refuses, true);
    atomic_store(&world.place[1].refuses, true);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(places_echo(&world, NULL, &outcome), IDEM_UNAVAILABLE);
    assert_int_equal(ejected(&world), 1);
    places_world_close(&world);
}

static void
what_handlers_answer_does_not_count(void **state)
{
    struct places_world world;
    struct idem_outcome outcome;
    echo_fail_request request = ECHO_FAIL_REQUEST_INIT;

    (void)state;
    places_world_open(&world, 2, &base);
    request.status = IDEM_UNAVAILABLE;
    request.message = "mine";
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(
            echo_fail(world.channel, &request, NULL, NULL, &outcome),
            IDEM_UNAVAILABLE);
    assert_int_equal(outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_int_equal(ejected(&world), 0);
    places_world_close(&world);
}

static void
answers_that_come_too_late_count(void **state)
{
    const struct idem_call_options brief = {.timeout_ms = 20};
    struct places_world world;
    struct idem_outcome outcome;
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    (void)state;
    places_world_open(&world, 2, &base);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(
            echo_block(world.channel, &request, NULL, &brief, &outcome),
            IDEM_DEADLINE_EXCEEDED);
    assert_int_equal(ejected(&world), 1);
    places_world_close(&world);
}

static void
a_wrong_option_is_named(void **state)
{
    struct idem_channel_options options = {.outlier = {.failure_percent = 101}};
    struct idem_channel *channel = NULL;
    struct idem_error err = {0};

    (void)state;
    assert_int_equal(
        idem_channel_new(&channel, "tcp://127.0.0.1:1", &options, &err),
        IDEM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "outlier: a percentage is over 100");
    options.outlier = (struct idem_outlier_options){.interval_ms = -1};
    assert_int_equal(
        idem_channel_new(&channel, "tcp://127.0.0.1:1", &options, &err),
        IDEM_INVALID_ARGUMENT);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_in_a_row_set_a_server_aside),
        cmocka_unit_test(a_server_is_back_when_its_time_is_over),
        cmocka_unit_test(a_share_of_failures_sets_a_server_aside),
        cmocka_unit_test(the_last_server_is_never_set_aside),
        cmocka_unit_test(what_handlers_answer_does_not_count),
        cmocka_unit_test(answers_that_come_too_late_count),
        cmocka_unit_test(a_wrong_option_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
