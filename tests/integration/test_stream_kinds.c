/* What the tests of other frameworks assert of streams of all kinds, in both
 * styles of handlers. The numbers are those of docs/cases-rpc.md. */
#include "flow_world.h"

#include "loopback.h"
#include "wire_client.h"

#include <idem/reason.h>
#include <idem/stream.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KINDS 6

static const struct idem_method *const kinds[KINDS] = {
    &flow_count_method,       &flow_sum_method,       &flow_chat_method,
    &flow_count_async_method, &flow_sum_async_method, &flow_chat_async_method,
};

static struct flow_world world;

static int
up(void **state)
{
    (void)state;
    flow_world_open(&world, NULL);
    return 0;
}

static int
down(void **state)
{
    (void)state;
    flow_world_close(&world);
    return 0;
}

/* Count is asked for no notes, and to end so. */
static struct idem_stream *
open_kind(const struct idem_method *method, enum idem_status status,
          const struct idem_call_options *options)
{
    flow_count_request request = FLOW_COUNT_REQUEST_INIT;
    bool asks = !(method->streams & IDEM_STREAMS_CLIENT);

    request.status = status;
    return idem_stream_open(
        world.channel, method,
        asks ? (const struct ProtobufCMessage *)&request : NULL, options);
}

/* rpc 79. */
static void
each_kind_sees_the_time_that_is_left(void **state)
{
    const struct idem_call_options options = {.timeout_ms = 30000};
    struct idem_outcome outcome;

    (void)state;
    for (unsigned i = 0; i < KINDS; i++) {
        struct idem_stream *stream = open_kind(kinds[i], IDEM_OK, &options);

        assert_int_equal(idem_stream_finish(stream, NULL, &outcome), IDEM_OK);
        assert_in_range(atomic_load(&world.remaining_ms), 1, 30000);
        atomic_store(&world.remaining_ms, 0);
    }
    assert_int_equal(atomic_load(&world.ran), KINDS);
}

static void
assert_left(const struct idem_metadata *trailers)
{
    const struct idem_metadata_entry *at = trailers->first;
    const char *const values[] = {"so", "then"};

    for (unsigned i = 0; i < 2; i++, at = at->next) {
        assert_non_null(at);
        assert_true(idem_bytes_equal(at->name, idem_bytes_of("left")));
        assert_true(idem_bytes_equal(at->value, idem_bytes_of(values[i])));
    }
    assert_null(at);
}

static void
end_with(const struct idem_method *method, enum idem_status status)
{
    struct idem_metadata trailers;
    const struct idem_call_options options = {.trailers = &trailers};
    struct idem_stream *stream = open_kind(method, status, &options);
    struct idem_outcome outcome;

    assert_int_equal(idem_stream_finish(stream, NULL, &outcome), status);
    assert_left(&trailers);
    idem_trailers_free(&trailers);
}

/* rpc 86: beside OK and beside an error. */
static void
trailers_of_one_name_keep_their_order_at_each_end(void **state)
{
    (void)state;
    for (unsigned i = 0; i < KINDS; i++)
        end_with(kinds[i], IDEM_OK);
    end_with(&flow_count_method, IDEM_NOT_FOUND);
    end_with(&flow_count_async_method, IDEM_NOT_FOUND);
    atomic_store(&world.refuse, 2);
    end_with(&flow_sum_method, IDEM_ABORTED);
    end_with(&flow_chat_method, IDEM_ABORTED);
}

/* rpc 73: at once, or not before its deadline, and it says why. */
static void
without_a_server_a_stream_fails_at_once_or_waits(void **state)
{
    const struct idem_channel_options slow = {.connect_backoff_ms = 60000,
                                              .connect_backoff_max_ms = 60000};
    const struct idem_call_options patient = {.wait_for_ready = true,
                                              .timeout_ms = 50};
    struct idem_outcome outcome;
    struct idem_error err;

    (void)state;
    idem_channel_close(world.channel);
    assert_int_equal(
        idem_channel_new(&world.channel, world.address, &slow, &err), IDEM_OK);
    assert_int_equal(idem_channel_wait_ready(world.channel, 20000, &err),
                     IDEM_OK);
    idem_server_free(world.server);
    world.server = NULL;
    for (unsigned i = 0; i < KINDS; i++) {
        struct idem_stream *stream = open_kind(kinds[i], IDEM_OK, NULL);

        assert_int_equal(idem_stream_finish(stream, NULL, &outcome),
                         IDEM_UNAVAILABLE);
        assert_int_equal(outcome.effect, IDEM_EFFECT_NOT_SENT);
        assert_string_equal(outcome.reason, IDEM_NOT_CONNECTED);
        stream = open_kind(kinds[i], IDEM_OK, &patient);
        assert_int_equal(idem_stream_finish(stream, NULL, &outcome),
                         IDEM_DEADLINE_EXCEEDED);
        assert_int_equal(outcome.effect, IDEM_EFFECT_NOT_SENT);
        assert_non_null(strstr(outcome.message, "cannot connect: "));
    }
    assert_int_equal(atomic_load(&world.ran), 0);
}

/* rpc 75: in each kind the handler is told. */
static void
giving_up_reaches_each_kinds_handler(void **state)
{
    struct idem_outcome outcome;

    (void)state;
    for (unsigned i = 0; i < KINDS; i++) {
        flow_count_request request = FLOW_COUNT_REQUEST_INIT;
        struct idem_stream *stream;

        request.count = 1000000; /* more than there is credit for */
        request.size = 1000;
        stream =
            idem_stream_open(world.channel, kinds[i],
                             kinds[i]->streams & IDEM_STREAMS_CLIENT
                                 ? NULL
                                 : (const struct ProtobufCMessage *)&request,
                             NULL);
        flow_world_await(&world, &world.ran, i + 1);
        idem_stream_cancel(stream);
        assert_int_equal(idem_stream_finish(stream, NULL, &outcome),
                         IDEM_CANCELLED);
        flow_world_await(&world, &world.given_up, i + 1);
    }
}

/* rpc 74: the peer gives no credit, and is there. */
static void
who_waits_for_credit_waits_no_longer_than_the_deadline(void **state)
{
    const struct idem_call_options brief = {.timeout_ms = 50,
                                            .wait_for_ready = true};
    struct flow_chat_stream *stream;
    struct idem_channel *channel;
    struct idem_outcome outcome;
    struct idem_error err;
    struct frame frame;
    char address[64];
    struct wire wire;
    unsigned port;
    int listener = loopback_listen(&port);

    (void)state;
    snprintf(address, sizeof address, "tcp://127.0.0.1:%u", port);
    assert_int_equal(idem_channel_new(&channel, address, NULL, &err), IDEM_OK);
    wire_accept(&wire, listener);
    wire.stream_window = 100;
    (void)wire_hello(&wire, 0);
    assert_int_equal(idem_channel_wait_ready(channel, 20000, &err), IDEM_OK);
    stream = flow_chat_open(channel, &brief);
    assert_int_equal(flow_chat_write(stream, flow_note_of(1, 100)), IDEM_OK);
    assert_int_equal(flow_chat_write(stream, flow_note_of(2, 1)),
                     IDEM_DEADLINE_EXCEEDED);
    assert_int_equal(flow_chat_finish(stream, &outcome),
                     IDEM_DEADLINE_EXCEEDED);
    assert_int_equal(outcome.effect, IDEM_EFFECT_IN_DOUBT);
    wire_await(&wire, FRAME_DETACH, &frame); /* the peer is told */
    idem_channel_close(channel);
    wire_close(&wire);
    close(listener);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_kind_sees_the_time_that_is_left),
        TEST(trailers_of_one_name_keep_their_order_at_each_end),
        TEST(without_a_server_a_stream_fails_at_once_or_waits),
        TEST(giving_up_reaches_each_kinds_handler),
        TEST(who_waits_for_credit_waits_no_longer_than_the_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
