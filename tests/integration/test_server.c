/* What a server takes: addresses, services, calls, as many as it says. */
#include "server_story.h"

#include "fake_clock.h"
#include "server.h"

#include <idem/call.h>

#include <stdio.h>
#include <string.h>

static const struct header_open echo_with_id = {
    .method = {(const uint8_t *)ECHO_ECHO_METHOD, sizeof ECHO_ECHO_METHOD - 1},
    .method_id = 1,
};

/* --- Addresses --- */

static void
an_address_in_use_is_named(void **state)
{
    struct echo_world world;
    struct idem_error err;
    struct idem_server *second = NULL;

    (void)state;
    echo_world_open(&world, NULL);
    assert_int_equal(idem_server_new(&second, NULL, &err), IDEM_OK);
    assert_int_equal(idem_server_listen(second, world.address, &err),
                     IDEM_UNAVAILABLE);
    assert_non_null(strstr(err.message, world.address));
    assert_non_null(strstr(err.message, "in use"));
    assert_int_equal(idem_server_listen(second, "gopher://x", &err),
                     IDEM_INVALID_ARGUMENT);
    idem_server_free(second);
    echo_world_close(&world);
}

static void
a_server_listens_on_many_addresses(void **state)
{
    struct echo_options options = {.not_started = true};
    struct echo_world world;
    struct idem_error err;
    char name[64];

    (void)state;
    echo_world_open(&world, &options);
    snprintf(name, sizeof name, "inproc://many-%p", (void *)&world);
    assert_int_equal(idem_server_listen(world.server, name, &err), IDEM_OK);
    assert_int_equal(idem_server_start(world.server, &err), IDEM_OK);
    snprintf(name, sizeof name, "abstract://many-%p", (void *)&world);
    assert_int_equal(idem_server_listen(world.server, name, &err), IDEM_OK);
    assert_null(idem_server_address(world.server, 3));
    for (unsigned i = 0; i < 3; i++) {
        idem_channel_close(world.channel);
        snprintf(world.address, sizeof world.address, "%s",
                 idem_server_address(world.server, i));
        world.channel = echo_world_channel(&world);
        assert_works(&world);
    }
    assert_int_equal(idem_server_start(world.server, &err),
                     IDEM_FAILED_PRECONDITION);
    echo_world_close(&world);
}

static void
the_validate_interceptor_is_in_every_chain(void **state)
{
    struct echo_world world;

    (void)state;
    echo_world_open(&world, NULL);
    assert_string_equal(idem_server_chain(world.server), "validate");
    assert_string_equal(idem_channel_chain(world.channel), "");
    echo_world_close(&world);
}

/* An effect without once is refused before anything runs. */
static enum idem_status
never(const void *handlers, struct idem_context *context,
      const struct ProtobufCMessage *request, struct ProtobufCMessage *reply)
{
    (void)handlers;
    (void)context;
    (void)request;
    (void)reply;
    return IDEM_INTERNAL;
}

static void
a_method_with_an_effect_needs_once(void **state)
{
    const struct idem_method method = {
        .name = "pay.Pay/Charge",
        .invoke = never,
        .mode = IDEM_MODE_LEASED,
    };
    const struct idem_service service = {"pay.Pay", &method, 1, {NULL, 0}};
    struct idem_server *server = NULL;
    struct idem_error err;

    (void)state;
    assert_int_equal(idem_server_new(&server, NULL, &err), IDEM_OK);
    assert_int_equal(idem_server_register(server, &service, "", 0, NULL, &err),
                     IDEM_FAILED_PRECONDITION);
    assert_non_null(strstr(err.message, "pay.Pay/Charge"));
    idem_server_free(server);
}

static void
a_service_is_registered_once_and_before_start(void **state)
{
    const struct echo_handlers none = {0};
    struct echo_options options = {.not_started = true};
    struct echo_world world;
    struct idem_error err;

    (void)state;
    echo_world_open(&world, &options);
    assert_int_equal(echo_register(world.server, &none, NULL, &err),
                     IDEM_ALREADY_EXISTS);
    assert_int_equal(idem_server_start(world.server, &err), IDEM_OK);
    assert_int_equal(echo_register(world.server, &none, NULL, &err),
                     IDEM_FAILED_PRECONDITION);
    echo_world_close(&world);
}

/* --- Calls that are turned away --- */

static void
a_call_that_cannot_be_is_refused_and_the_connection_stays(void **state)
{
    static uint8_t garbage[] = {0xFF, 0xFF};
    struct idem_bytes nothing = {garbage, 0};
    struct header_open open = open_of("echo.v1.Echo/Nothing");
    struct frame broken = {
        .type = FRAME_OPEN, .flags = 3, .stream = 3, .header = {garbage, 2}};
    struct frame unfinished = {.type = FRAME_OPEN, .flags = 0, .stream = 30};
    struct echo_world world;
    struct wire wire;

    (void)state;
    echo_world_open(&world, NULL);
    wire_connect(&wire, world.address);
    wire_hello(&wire, 0);
    wire_open(&wire, 1, &open, nothing);
    assert_refused(wire_end(&wire, 1), IDEM_UNIMPLEMENTED);
    wire_send(&wire, &broken);
    assert_refused(wire_end(&wire, 3), IDEM_INTERNAL);
    open = (struct header_open){.method_id = 7}; /* was never told */
    wire_open(&wire, 4, &open, nothing);
    assert_refused(wire_end(&wire, 4), IDEM_UNIMPLEMENTED);
    open = open_of(ECHO_ECHO_METHOD);
    open.has_timeout = true; /* rpc 70: of nothing */
    wire_open(&wire, 5, &open, nothing);
    assert_refused(wire_end(&wire, 5), IDEM_DEADLINE_EXCEEDED);
    open = open_of(ECHO_ECHO_METHOD);
    open.key = idem_bytes_of("a key");
    wire_open(&wire, 6, &open, nothing);
    assert_refused(wire_end(&wire, 6), IDEM_INVALID_ARGUMENT);
    open = open_of(ECHO_ECHO_METHOD);
    wire_open(&wire, 7, &open, (struct idem_bytes){garbage, 2});
    assert_refused(wire_end(&wire, 7), IDEM_INVALID_ARGUMENT);
    wire_send(&wire, &unfinished);
    assert_refused(wire_end(&wire, 30), IDEM_UNIMPLEMENTED);
    assert_int_equal(atomic_load(&world.ran), 0);
    wire_open(&wire, 31, &open, nothing);
    assert_int_equal(wire_end(&wire, 31).status, IDEM_OK);
    wire_close(&wire);
    echo_world_close(&world);
}

/* B100, for a client that does not look at SETTINGS. */
static void
a_request_over_the_limit_is_refused_and_skipped(void **state)
{
    static uint8_t big[200000];
    struct echo_options options = {.server = {.max_message = 65536}};
    struct header_open open = open_of(ECHO_ECHO_METHOD);
    struct echo_world world;
    struct wire wire;

    (void)state;
    echo_world_open(&world, &options);
    wire_connect(&wire, world.address);
    assert_int_equal(wire_hello(&wire, 0).max_message, 65536);
    wire_open(&wire, 1, &open, (struct idem_bytes){big, sizeof big});
    assert_refused(wire_end(&wire, 1), IDEM_RESOURCE_EXHAUSTED);
    wire_open(&wire, 2, &open, (struct idem_bytes){big, 0});
    assert_int_equal(wire_end(&wire, 2).status, IDEM_OK);
    wire_close(&wire);
    echo_world_close(&world);
}

static void
a_method_is_called_by_its_number_once_it_was_told(void **state)
{
    struct header_open open = {.method_id = 1};
    struct idem_bytes nothing = {(const uint8_t *)"", 0};
    struct echo_world world;
    struct wire wire;

    (void)state;
    echo_world_open(&world, NULL);
    wire_connect(&wire, world.address);
    wire_hello(&wire, 0);
    wire_open(&wire, 1, &echo_with_id, nothing);
    wire_open(&wire, 2, &open, nothing);
    for (unsigned i = 0; i < 2; i++) /* in any order */
        assert_int_equal(wire_end(&wire, 0).status, IDEM_OK);
    wire_close(&wire);
    echo_world_close(&world);
}

static void
calls_on_one_connection_are_bounded(void **state)
{
    struct echo_options options = {.server = {.max_streams = 2}};
    struct header_open open = open_of(ECHO_BLOCK_METHOD);
    struct idem_bytes nothing = {(const uint8_t *)"", 0};
    struct echo_world world;
    struct wire wire;

    (void)state;
    echo_world_open(&world, &options);
    wire_connect(&wire, world.address);
    assert_int_equal(wire_hello(&wire, 0).max_streams, 2);
    for (unsigned i = 1; i <= 3; i++)
        wire_open(&wire, i, &open, nothing);
    assert_refused(wire_end(&wire, 3), IDEM_RESOURCE_EXHAUSTED);
    echo_world_open_gate(&world);
    wire_close(&wire);
    echo_world_close(&world);
}

/* rpc 31: our channel waits for its turn and says nothing of it. */
static void
a_channel_keeps_to_the_servers_number_of_calls(void **state)
{
    enum { CALLS = 20 };
    static struct echo_result results[CALLS];
    struct echo_options options = {.server = {.max_streams = 2}};
    struct echo_world world;

    (void)state;
    echo_world_open(&world, &options);
    for (unsigned i = 0; i < CALLS; i++)
        echo_world_start(&world, world.channel,
                         i < 2 ? echo_block_async : echo_echo_async, i, 1, NULL,
                         &results[i]);
    echo_world_await_inside(&world, 2);
    assert_int_equal(atomic_load(&world.ran), 2);
    echo_world_open_gate(&world);
    echo_world_await(&world);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_ended(&results[i], IDEM_OK, IDEM_EFFECT_COMMITTED);
        echo_result_fini(&results[i]);
    }
    echo_world_close(&world);
}

static void
a_full_queue_refuses_before_anything_runs(void **state)
{
    struct echo_options options = {.server = {.workers = 1, .max_queued = 1}};
    struct echo_world world;
    struct echo_result first, second, third;

    (void)state;
    echo_world_open(&world, &options);
    echo_world_start(&world, world.channel, echo_block_async, 1, 1, NULL,
                     &first);
    echo_world_await_inside(&world, 1);
    echo_world_start(&world, world.channel, echo_echo_async, 2, 1, NULL,
                     &second);
    third = echo_world_call(&world, 3, 1, NULL);
    assert_ended(&third, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED);
    echo_world_open_gate(&world);
    echo_world_await(&world);
    assert_echoed(&second, 2, 1);
    echo_result_fini(&first);
    echo_result_fini(&second);
    echo_world_close(&world);
}

/* rpc 69, B047, fault 71: one worker, whose queue is longer than their
 * patience. */
static void
a_call_whose_deadline_passed_in_the_queue_is_never_started(void **state)
{
    enum { CALLS = 20 };
    struct fake_clock clock;
    struct echo_options options = {
        .server = {.workers = 1, .clock = &clock.clock}};
    struct header_open open = open_of(ECHO_BLOCK_METHOD);
    struct idem_bytes nothing = {(const uint8_t *)"", 0};
    struct echo_world world;
    struct wire wire;

    (void)state;
    fake_clock_init(&clock);
    echo_world_open(&world, &options);
    wire_connect(&wire, world.address);
    wire_hello(&wire, 0);
    wire_open(&wire, 1, &open, nothing);
    echo_world_await_inside(&world, 1);
    open = open_of(ECHO_ECHO_METHOD);
    open.has_timeout = true;
    open.timeout_us = 200000;
    for (uint32_t i = 2; i < 2 + CALLS; i++)
        wire_open(&wire, i, &open, nothing);
    wire_ping(&wire);
    fake_clock_advance_ms(&clock, 201);
    for (uint32_t i = 2; i < 2 + CALLS; i++)
        assert_refused(wire_end(&wire, 0), IDEM_DEADLINE_EXCEEDED);
    echo_world_open_gate(&world);
    assert_int_equal(wire_end(&wire, 1).status, IDEM_OK);
    assert_int_equal(atomic_load(&world.ran), 1);
    wire_close(&wire);
    echo_world_close(&world);
    fake_clock_fini(&clock);
}

/* A peer that does not read: the server stops reading from it, too. */
static void
a_slow_reader_takes_no_memory_and_stops_nobody(void **state)
{
    enum { CALLS = 400 };
    static uint8_t message[] = {0x08, 0x80, 0x80, 0x04}; /* size 65536 */
    struct header_open open = open_of(ECHO_GROW_METHOD);
    struct echo_world world;
    struct wire wire;

    (void)state;
    echo_world_open(&world, NULL);
    wire_connect(&wire, world.address);
    wire_hello(&wire, 0);
    for (uint32_t i = 1; i <= CALLS; i++)
        wire_open(&wire, i, &open,
                  (struct idem_bytes){message, sizeof message});
    assert_works(&world);
    for (unsigned i = 1; i <= CALLS; i++) {
        struct frame frame;

        assert_true(wire_next(&wire, &frame));
        assert_int_equal(frame.type, FRAME_END);
        assert_int_equal(frame.payload.size, 65536 + 4);
    }
    wire_close(&wire);
    echo_world_close(&world);
}

#define TEST(name) cmocka_unit_test(name)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_address_in_use_is_named),
        TEST(a_server_listens_on_many_addresses),
        TEST(the_validate_interceptor_is_in_every_chain),
        TEST(a_method_with_an_effect_needs_once),
        TEST(a_service_is_registered_once_and_before_start),
        TEST(a_call_that_cannot_be_is_refused_and_the_connection_stays),
        TEST(a_request_over_the_limit_is_refused_and_skipped),
        TEST(a_method_is_called_by_its_number_once_it_was_told),
        TEST(calls_on_one_connection_are_bounded),
        TEST(a_channel_keeps_to_the_servers_number_of_calls),
        TEST(a_full_queue_refuses_before_anything_runs),
        TEST(a_call_whose_deadline_passed_in_the_queue_is_never_started),
        TEST(a_slow_reader_takes_no_memory_and_stops_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
