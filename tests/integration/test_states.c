#include "places_world.h"

#include "tempdir.h"

#include <idem/channel.h>
#include <idem/reason.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a channel stands, and what its calls do then. */

static const struct idem_channel_options quick = {
    .balancer = IDEM_BALANCER_ROUND_ROBIN,
    .connect_backoff_ms = 1,
    .connect_backoff_max_ms = 10,
};

/* A minute between attempts to connect. */
static const struct idem_channel_options slow = {
    .balancer = IDEM_BALANCER_ROUND_ROBIN,
    .connect_backoff_ms = 60000,
    .connect_backoff_max_ms = 60000,
};

static void
write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void
a_channel_is_ready_while_one_of_its_servers_is_there(void **state)
{
    struct places_world world;
    struct idem_error err;

    (void)state;
    places_world_open(&world, 3, &quick);
    assert_int_equal(idem_channel_state(world.channel), IDEM_CHANNEL_READY);
    site_stop(&world.place[0]);
    site_stop(&world.place[1]);
    places_await_ready(&world, 1);
    assert_int_equal(idem_channel_state(world.channel), IDEM_CHANNEL_READY);
    site_stop(&world.place[2]);
    places_await_ready(&world, 0);
    site_start(&world.place[1]);
    assert_int_equal(idem_channel_wait_ready(world.channel, 20000, &err),
                     IDEM_OK);
    places_world_close(&world);
}

/* gRFC A62: not CONNECTING again at each attempt. */
static void
failure_holds_until_a_server_is_there(void **state)
{
    struct idem_channel *channel;
    struct idem_error err;

    (void)state;
    assert_int_equal(idem_channel_new(&channel,
                                      "list://127.0.0.1:1,127.0.0.1:2", &quick,
                                      &err),
                     IDEM_OK);
    assert_int_equal(idem_channel_wait_ready(channel, 100, &err),
                     IDEM_DEADLINE_EXCEEDED);
    assert_non_null(strstr(err.message, "TRANSIENT_FAILURE"));
    assert_non_null(strstr(err.message, "tcp://127.0.0.1:"));
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(idem_channel_state(channel),
                         IDEM_CHANNEL_TRANSIENT_FAILURE);
    idem_channel_close(channel);
}

/* rpc 73: at once, and it says where it tried. */
static void
calls_fail_at_once_when_all_servers_are_away(void **state)
{
    struct places_world world;
    struct idem_outcome outcome;

    (void)state;
    places_world_open(&world, 2, &slow);
    site_stop(&world.place[0]);
    site_stop(&world.place[1]);
    places_await_ready(&world, 0);
    assert_int_equal(places_echo(&world, NULL, &outcome), IDEM_UNAVAILABLE);
    assert_int_equal(outcome.effect, IDEM_EFFECT_NOT_SENT);
    assert_string_equal(outcome.reason, IDEM_NOT_CONNECTED);
    assert_non_null(strstr(outcome.message, "tcp://127.0.0.1:"));
    places_world_close(&world);
}

/* Of one that waits: at its deadline, also that of an attempt of it. */
static void
a_patient_call_says_what_it_has_waited_for(void **state)
{
    static const struct idem_call_options patient[] = {
        {.wait_for_ready = true, .timeout_ms = 50},
        {.wait_for_ready = true,
         .timeout_ms = 50,
         .attempt_timeout_ms = 30,
         .key = "k"},
        {.wait_for_ready = true,
         .timeout_ms = 50,
         .attempt_timeout_ms = 500,
         .key = "k"},
    };
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;
    struct places_world world;
    struct idem_outcome outcome;

    (void)state;
    places_world_open(&world, 1, &slow);
    site_stop(&world.place[0]);
    places_await_ready(&world, 0);
    for (unsigned i = 0; i < sizeof patient / sizeof *patient; i++) {
        assert_int_equal(
            echo_echo(world.channel, &request, NULL, &patient[i], &outcome),
            IDEM_DEADLINE_EXCEEDED);
        assert_int_equal(outcome.effect, IDEM_EFFECT_NOT_SENT);
        if (!strstr(outcome.message, " is over; ") ||
            !strstr(outcome.message, "is TRANSIENT_FAILURE: cannot connect: "
                                     "tcp://127.0.0.1:"))
            fail_msg("%u: %s", i, outcome.message);
    }
    places_world_close(&world);
}

static void
a_patient_call_says_that_the_channel_was_full(void **state)
{
    const struct idem_call_options patient = {.wait_for_ready = true,
                                              .timeout_ms = 50};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;
    struct idem_channel_options options = quick;
    struct places_world world;
    struct idem_outcome outcome, told;

    (void)state;
    options.max_in_flight = 1;
    places_world_open(&world, 1, &options);
    idem_call_release(places_block(&world, &told, NULL));
    places_await_inside(&world, 0, 1);
    assert_int_equal(
        echo_echo(world.channel, &request, NULL, &patient, &outcome),
        IDEM_DEADLINE_EXCEEDED);
    assert_non_null(
        strstr(outcome.message, "the deadline is over; 1 calls are in flight"));
    places_open_gate(&world);
    places_world_close(&world);
}

/* rpc 95, 98: the running call ends as it would, new ones go elsewhere. */
static void
a_server_that_drains_gets_no_new_calls_and_loses_none(void **state)
{
    struct places_world world;
    struct idem_outcome told[2] = {{0}}, outcome;

    (void)state;
    places_world_open(&world, 2, &quick);
    for (unsigned i = 0; i < 2; i++)
        idem_call_release(places_block(&world, &told[i], NULL));
    places_await_inside(&world, 0, 1);
    places_await_inside(&world, 1, 1);
    idem_server_drain(world.place[0].server);
    places_await_ready(&world, 1);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(places_echo(&world, NULL, &outcome), IDEM_OK);
    assert_string_equal(places_ran(&world), "0 10");
    places_open_gate(&world);
    site_stop(&world.place[0]);
    places_await_inside(&world, 1, 0);
    site_stop(&world.place[1]);
    places_world_close(&world);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(told[i].status, IDEM_OK);
}

/* gRFC A32: one over the limit costs its caller nothing but the answer. */
static void
calls_over_the_limit_in_flight_fail_at_once_or_wait(void **state)
{
    const struct idem_call_options patient = {.wait_for_ready = true};
    struct idem_channel_options options = quick;
    struct places_world world;
    struct idem_outcome outcome, told[2], waited = {.attempts = 99};
    struct idem_call *call;

    (void)state;
    options.max_in_flight = 2;
    places_world_open(&world, 2, &options);
    for (unsigned i = 0; i < 2; i++)
        idem_call_release(places_block(&world, &told[i], NULL));
    for (unsigned i = 0; i < 2; i++)
        places_await_inside(&world, i, 1);
    assert_int_equal(places_echo(&world, NULL, &outcome),
                     IDEM_RESOURCE_EXHAUSTED);
    assert_int_equal(outcome.effect, IDEM_EFFECT_NOT_SENT);
    assert_string_equal(outcome.reason, IDEM_TOO_MANY_IN_FLIGHT);
    call = places_block(&world, &waited, &patient);
    assert_int_equal(waited.attempts, 99);
    places_open_gate(&world);
    for (unsigned i = 0; i < 2; i++)
        places_await_inside(&world, i, 0);
    idem_call_release(call);
    while (places_echo(&world, NULL, &outcome) != IDEM_OK)
        assert_string_equal(outcome.reason, IDEM_TOO_MANY_IN_FLIGHT);
    while (places_flying(&world) > 0) /* the one that waited is on its way */
        assert_int_equal(places_echo(&world, NULL, &outcome), IDEM_OK);
    places_world_close(&world);
    assert_int_equal(waited.status, IDEM_OK);
}

/* A cancelled call gives its place to one that waits: no END comes. */
static void
a_call_that_waits_gets_the_place_of_one_that_is_cancelled(void **state)
{
    const struct idem_call_options patient = {.wait_for_ready = true};
    struct idem_channel_options options = quick;
    struct places_world world;
    struct idem_outcome told, waited;
    struct idem_call *first, *second;

    (void)state;
    options.max_in_flight = 1;
    places_world_open(&world, 1, &options);
    first = places_block(&world, &told, NULL);
    places_await_inside(&world, 0, 1);
    second = places_block(&world, &waited, &patient);
    idem_call_cancel(first);
    places_await_inside(&world, 0, 2);
    idem_call_release(first);
    idem_call_release(second);
    places_world_close(&world);
}

/* The list changes: its calls go to the new server, those of the old one end
 * as they would. */
static void
a_server_that_the_file_names_no_more_ends_its_calls(void **state)
{
    struct places_world world;
    struct idem_channel *listed;
    struct idem_outcome told = {.attempts = 99}, outcome;
    struct idem_error err = {0};
    struct tempdir dir;
    char path[200], target[220];

    (void)state;
    tempdir_open(&dir);
    snprintf(target, sizeof target, "file://%s",
             tempdir_file(&dir, "servers", path, sizeof path));
    places_world_open(&world, 2, &quick);
    write_file(path, world.place[0].address);
    listed = world.channel;
    assert_int_equal(idem_channel_new(&world.channel, target, &quick, &err),
                     IDEM_OK);
    places_await_ready(&world, 1);
    idem_call_release(places_block(&world, &told, NULL));
    places_await_inside(&world, 0, 1);
    write_file(path, world.place[1].address);
    do
        assert_int_equal(places_echo(&world, NULL, &outcome), IDEM_OK);
    while (atomic_load(&world.place[1].ran) == 0);
    places_open_gate(&world);
    places_await_inside(&world, 0, 0);
    idem_channel_close(listed);
    site_stop(&world.place[0]);
    site_stop(&world.place[1]);
    places_world_close(&world);
    tempdir_close(&dir);
    assert_int_equal(told.status, IDEM_OK);
}

static void
a_channel_can_be_read_by_people(void **state)
{
    struct places_world world;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    assert_non_null(out);
    places_world_open(&world, 2, &slow);
    site_stop(&world.place[1]);
    places_await_ready(&world, 1);
    idem_channel_describe(world.channel, out);
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "list://tcp://"));
    assert_non_null(strstr(text, " READY, round_robin\n"));
    assert_non_null(strstr(text, " READY, 0 in flight\n"));
    free(text);
    places_world_close(&world);
}

static void
assert_wrong(const char *target, const char *names)
{
    struct idem_channel *channel = NULL;
    struct idem_error err = {0};

    assert_int_equal(idem_channel_new(&channel, target, NULL, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_null(channel);
    if (!strstr(err.message, names))
        print_error("%s: %s\n", target, err.message);
    assert_non_null(strstr(err.message, names));
}

static void
a_wrong_target_is_named_with_its_rule(void **state)
{
    char long_one[400] = "tcp://";

    (void)state;
    memset(long_one + 6, 'a', sizeof long_one - 7);
    assert_wrong(NULL, "want scheme://place");
    assert_wrong("", "want scheme://place");
    assert_wrong("localhost:1", "want scheme://place");
    assert_wrong("carrier://pigeon", "carrier");
    assert_wrong("list://", "address 1: \"\" is no address");
    assert_wrong("list://127.0.0.1:1,,127.0.0.1:2", "address 2");
    assert_wrong("list://127.0.0.1:1,pigeon://x", "address 2: no transport");
    assert_wrong(long_one, "at most 255");
}

static void
a_wrong_balancer_is_named(void **state)
{
    const struct idem_channel_options options = {.balancer =
                                                     (enum idem_balancer)17};
    struct idem_channel *channel = NULL;
    struct idem_error err = {0};

    (void)state;
    assert_int_equal(
        idem_channel_new(&channel, "tcp://127.0.0.1:1", &options, &err),
        IDEM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "there is no balancer 17");
}

/* The same address twice is one server. */
static void
a_list_that_repeats_an_address_has_it_once(void **state)
{
    struct places_world world;
    struct idem_channel *channel = NULL, *first;
    struct idem_error err;
    char target[sizeof world.target + 64];

    (void)state;
    places_world_open(&world, 1, &quick);
    snprintf(target, sizeof target, "%s,%.63s", world.target,
             world.place[0].address + strlen("tcp://"));
    assert_int_equal(idem_channel_new(&channel, target, &quick, &err), IDEM_OK);
    first = world.channel;
    world.channel = channel;
    places_await_ready(&world, 1);
    idem_channel_close(first);
    places_world_close(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_channel_is_ready_while_one_of_its_servers_is_there),
        cmocka_unit_test(failure_holds_until_a_server_is_there),
        cmocka_unit_test(calls_fail_at_once_when_all_servers_are_away),
        cmocka_unit_test(a_patient_call_says_what_it_has_waited_for),
        cmocka_unit_test(a_patient_call_says_that_the_channel_was_full),
        cmocka_unit_test(a_server_that_drains_gets_no_new_calls_and_loses_none),
        cmocka_unit_test(calls_over_the_limit_in_flight_fail_at_once_or_wait),
        cmocka_unit_test(
            a_call_that_waits_gets_the_place_of_one_that_is_cancelled),
        cmocka_unit_test(a_server_that_the_file_names_no_more_ends_its_calls),
        cmocka_unit_test(a_channel_can_be_read_by_people),
        cmocka_unit_test(a_wrong_target_is_named_with_its_rule),
        cmocka_unit_test(a_wrong_balancer_is_named),
        cmocka_unit_test(a_list_that_repeats_an_address_has_it_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
