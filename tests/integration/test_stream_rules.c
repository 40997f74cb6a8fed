/* What peers of the wire may not do in a stream, by hand: each breach is told
 * to the peer by its name, and hurts only its stream. docs/wire.md, 9. */
#include "flow_world.h"

#include "loopback.h"
#include "wire_client.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WINDOW 1000

static struct flow_world world;
static struct wire wire;

static int
up(void **state)
{
    const struct flow_options options = {
        .server = {.stream_window = WINDOW, .max_message = 4000}};

    (void)state;
    flow_world_open(&world, &options);
    wire_connect(&wire, world.address);
    wire.stream_window = WINDOW;
    assert_int_equal(wire_hello(&wire, 0).stream_window, WINDOW);
    return 0;
}

static int
down(void **state)
{
    (void)state;
    wire_close(&wire);
    flow_world_close(&world);
    return 0;
}

/* --- As a client --- */

static void
open_stream(uint32_t stream, const char *method, uint32_t streams)
{
    const struct header_open open = {.method = idem_bytes_of(method),
                                     .streams = streams};

    wire_open_stream(&wire, stream, &open, (struct idem_bytes){0});
}

static void
send_message(uint32_t stream, uint8_t flags, size_t size)
{
    static const uint8_t zeros[8192];
    /* Field 2, bytes: a note. */
    uint8_t note[8192] = {0x12, (uint8_t)(0x80 | ((size - 3) & 0x7f)),
                          (uint8_t)((size - 3) >> 7)};
    struct frame frame = {.type = FRAME_MESSAGE,
                          .flags = flags,
                          .stream = stream,
                          .payload = {size >= 3 ? note : zeros, size}};

    wire_send(&wire, &frame);
}

static void
assert_told(uint32_t stream, enum idem_status status, const char *words)
{
    struct header_end end = wire_end(&wire, stream);
    char message[256];

    snprintf(message, sizeof message, "%.*s", (int)end.message.size,
             (const char *)end.message.data);
    if (end.status != status || !strstr(message, words))
        fail_msg("%s: %s, not %s", idem_status_name(end.status), message,
                 words);
}

static void
a_message_past_the_credit_ends_its_stream(void **state)
{
    (void)state;
    open_stream(1, FLOW_SUM_METHOD, IDEM_STREAMS_CLIENT);
    open_stream(2, FLOW_CHAT_METHOD, IDEM_STREAMS_BOTH);
    flow_world_await(&world, &world.ran, 2);
    /* Chat's own messages find no reader: it stops reading too. */
    for (unsigned i = 0; i < 64; i++)
        send_message(2, FRAME_FLAG_MESSAGE, 400);
    assert_told(2, IDEM_INTERNAL, "of stream 2 is past its credit");
    flow_world_await(&world, &world.given_up, 1);
    send_message(1, FRAME_FLAG_LAST, 0);
    assert_int_equal(wire_end(&wire, 1).status, IDEM_OK);
}

static void
a_message_after_the_end_of_its_side_is_told(void **state)
{
    struct frame frame;

    (void)state;
    open_stream(1, FLOW_CHAT_METHOD, IDEM_STREAMS_BOTH);
    /* Its answer uses up our credit: the handler cannot answer the next. */
    send_message(1, FRAME_FLAG_MESSAGE, 960);
    wire_await(&wire, FRAME_MESSAGE, &frame);
    send_message(1, FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE, 900);
    send_message(1, FRAME_FLAG_MESSAGE, 900);
    assert_told(1, IDEM_INTERNAL, "message 3 of stream 1 is after the end");
}

static void
a_message_that_says_nothing_is_told(void **state)
{
    (void)state;
    open_stream(1, FLOW_CHAT_METHOD, IDEM_STREAMS_BOTH);
    send_message(1, 0, 0);
    assert_told(1, IDEM_INTERNAL, "says nothing");
}

static void
a_message_that_is_not_of_its_type_ends_the_stream(void **state)
{
    const uint8_t broken[] = {0x12, 0x7f, 0};
    const struct frame frame = {.type = FRAME_MESSAGE,
                                .flags = FRAME_FLAG_MESSAGE,
                                .stream = 1,
                                .payload = {broken, sizeof broken}};

    (void)state;
    open_stream(1, FLOW_SUM_METHOD, IDEM_STREAMS_CLIENT);
    wire_send(&wire, &frame);
    assert_told(1, IDEM_INVALID_ARGUMENT, "Note");
}

/* rpc 87: a later message of a stream. */
static void
a_message_over_the_limit_is_skipped_and_told(void **state)
{
    (void)state;
    open_stream(1, FLOW_SUM_METHOD, IDEM_STREAMS_CLIENT);
    send_message(1, FRAME_FLAG_MESSAGE, 100);
    send_message(1, FRAME_FLAG_MESSAGE, 4001);
    assert_told(1, IDEM_RESOURCE_EXHAUSTED, "message 2 of the stream is 4001");
    wire_ping(&wire);
}

static void
a_message_of_a_stream_that_never_was_ends_the_connection(void **state)
{
    struct header_goaway goaway;
    struct frame frame;

    (void)state;
    open_stream(1, FLOW_SUM_METHOD, IDEM_STREAMS_CLIENT);
    send_message(9, FRAME_FLAG_MESSAGE, 10);
    wire_await(&wire, FRAME_GOAWAY, &frame);
    assert_true(header_goaway_read(frame.header, &goaway));
    assert_true(idem_bytes_equal(
        goaway.reason,
        idem_bytes_of("MESSAGE of stream 9, which was never opened")));
    wire_await_close(&wire);
}

static void
a_message_of_a_stream_that_is_over_is_not_one(void **state)
{
    (void)state;
    open_stream(1, FLOW_SUM_METHOD, IDEM_STREAMS_CLIENT);
    send_message(1, FRAME_FLAG_LAST, 0);
    assert_int_equal(wire_end(&wire, 1).status, IDEM_OK);
    send_message(1, FRAME_FLAG_MESSAGE, 10);
    wire_window(&wire, 1, 10);
    wire_ping(&wire);
}

static void
credit_over_31_bits_is_told(void **state)
{
    (void)state;
    open_stream(1, FLOW_CHAT_METHOD, IDEM_STREAMS_BOTH);
    wire_window(&wire, 1, INT32_MAX);
    assert_told(1, IDEM_INTERNAL, "the WINDOWs of stream 1");
}

static void
a_method_is_called_as_what_it_is(void **state)
{
    const struct header_open unary = {.method =
                                          idem_bytes_of(FLOW_COUNT_METHOD)};

    (void)state;
    wire_open(&wire, 1, &unary, (struct idem_bytes){0});
    assert_told(1, IDEM_UNIMPLEMENTED,
                "is a server stream, and the client calls it as a unary call");
    open_stream(2, FLOW_SAY_METHOD, IDEM_STREAMS_BOTH);
    assert_told(2, IDEM_UNIMPLEMENTED, "as a bidirectional stream");
    open_stream(3, FLOW_SUM_METHOD, IDEM_STREAMS_SERVER);
    assert_told(3, IDEM_UNIMPLEMENTED, "is a client stream");
    assert_int_equal(atomic_load(&world.ran), 0);
}

static void
a_client_that_knows_no_streams_is_told(void **state)
{
    (void)state;
    wire_close(&wire);
    wire_connect(&wire, world.address);
    (void)wire_hello(&wire, 0);
    open_stream(1, FLOW_COUNT_METHOD, IDEM_STREAMS_SERVER);
    assert_told(1, IDEM_UNIMPLEMENTED, "SETTINGS know no streams");
}

/* --- As a server --- */

struct fake_server {
    int listener;
    struct idem_channel *channel;
    struct wire wire;
    char address[64];
};

static void
fake_up(struct fake_server *fake)
{
    struct idem_error err;
    unsigned port;

    fake->listener = loopback_listen(&port);
    assert_true(fake->listener >= 0);
    snprintf(fake->address, sizeof fake->address, "tcp://127.0.0.1:%u", port);
    assert_int_equal(
        idem_channel_new(&fake->channel, fake->address, NULL, &err), IDEM_OK);
    wire_accept(&fake->wire, fake->listener);
}

static void
fake_down(struct fake_server *fake)
{
    idem_channel_close(fake->channel);
    wire_close(&fake->wire);
    close(fake->listener);
}

static void
end_sum(struct flow_sum_stream *stream, const flow_sum_reply *reply,
        const struct idem_outcome *outcome)
{
    struct flow_world *of = flow_sum_user(stream);

    assert_null(reply);
    assert_int_equal(outcome->status, IDEM_INTERNAL);
    pthread_mutex_lock(&of->lock);
    atomic_fetch_add(&of->ended, 1);
    pthread_cond_broadcast(&of->change);
    pthread_mutex_unlock(&of->lock);
}

static void
a_server_that_knows_no_streams_is_not_asked(void **state)
{
    struct fake_server fake;
    struct flow_chat_stream *stream;
    struct idem_outcome outcome;

    (void)state;
    fake_up(&fake);
    (void)wire_hello(&fake.wire, 0);
    stream = flow_chat_open(fake.channel, NULL);
    assert_int_equal(flow_chat_write(stream, flow_note_of(1, 1)),
                     IDEM_UNIMPLEMENTED);
    assert_int_equal(flow_chat_finish(stream, &outcome), IDEM_UNIMPLEMENTED);
    assert_int_equal(outcome.effect, IDEM_EFFECT_NOT_SENT);
    assert_non_null(strstr(outcome.message, "knows none"));
    fake_down(&fake);
}

static void
a_server_that_breaks_a_rule_fails_its_stream(void **state)
{
    struct fake_server fake;
    struct frame frame;
    struct flow_chat_stream *stream;
    struct idem_outcome outcome;
    const struct frame last = {.type = FRAME_MESSAGE,
                               .flags = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE,
                               .stream = 1};

    (void)state;
    fake_up(&fake);
    fake.wire.stream_window = WINDOW;
    (void)wire_hello(&fake.wire, 0);
    stream = flow_chat_open(fake.channel, NULL);
    wire_await(&fake.wire, FRAME_OPEN, &frame);
    wire_send(&fake.wire, &last);
    wire_await(&fake.wire, FRAME_CANCEL, &frame);
    assert_null(flow_chat_next(stream));
    assert_int_equal(flow_chat_finish(stream, &outcome), IDEM_INTERNAL);
    assert_int_equal(outcome.effect, IDEM_EFFECT_IN_DOUBT);
    assert_non_null(strstr(outcome.message, "a server ends with END"));
    fake_down(&fake);
}

/* In both styles. */
static void
a_message_that_no_client_waits_for_fails_its_stream(void **state)
{
    static const struct flow_sum_callbacks callbacks = {.end = end_sum};
    const struct idem_call_options options = {.user = &world};
    const struct frame messages[] = {
        {.type = FRAME_MESSAGE, .flags = FRAME_FLAG_MESSAGE, .stream = 1},
        {.type = FRAME_MESSAGE, .flags = FRAME_FLAG_MESSAGE, .stream = 2}};
    struct fake_server fake;
    struct flow_sum_stream *stream;
    struct idem_outcome outcome;
    struct frame frame;

    (void)state;
    fake_up(&fake);
    fake.wire.stream_window = WINDOW;
    (void)wire_hello(&fake.wire, 0);
    stream = flow_sum_open(fake.channel, NULL);
    wire_await(&fake.wire, FRAME_OPEN, &frame);
    wire_send(&fake.wire, &messages[0]);
    wire_await(&fake.wire, FRAME_CANCEL, &frame);
    assert_int_equal(flow_sum_finish(stream, NULL, &outcome), IDEM_INTERNAL);
    assert_non_null(strstr(outcome.message, "of a side without any"));
    flow_sum_release(flow_sum_start(fake.channel, &options, &callbacks));
    wire_await(&fake.wire, FRAME_OPEN, &frame);
    wire_send(&fake.wire, &messages[1]);
    wire_await(&fake.wire, FRAME_CANCEL, &frame);
    flow_world_await(&world, &world.ended, 1);
    fake_down(&fake);
}

static void
a_connection_that_is_lost_ends_its_streams(void **state)
{
    struct fake_server fake;
    struct frame frame;
    struct flow_chat_stream *stream;
    struct idem_outcome outcome;
    const struct frame message = {
        .type = FRAME_MESSAGE, .flags = FRAME_FLAG_MESSAGE, .stream = 1};

    (void)state;
    fake_up(&fake);
    fake.wire.stream_window = WINDOW;
    (void)wire_hello(&fake.wire, 0);
    stream = flow_chat_open(fake.channel, NULL);
    wire_await(&fake.wire, FRAME_OPEN, &frame);
    wire_send(&fake.wire, &message);
    assert_note(flow_chat_next(stream), 0, 0);
    shutdown(fake.wire.fd, SHUT_RDWR);
    assert_null(flow_chat_next(stream));
    assert_int_equal(flow_chat_finish(stream, &outcome), IDEM_UNAVAILABLE);
    assert_int_equal(outcome.effect, IDEM_EFFECT_IN_DOUBT);
    fake_down(&fake);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_message_past_the_credit_ends_its_stream),
        TEST(a_message_after_the_end_of_its_side_is_told),
        TEST(a_message_that_says_nothing_is_told),
        TEST(a_message_that_is_not_of_its_type_ends_the_stream),
        TEST(a_message_over_the_limit_is_skipped_and_told),
        TEST(a_message_of_a_stream_that_never_was_ends_the_connection),
        TEST(a_message_of_a_stream_that_is_over_is_not_one),
        TEST(credit_over_31_bits_is_told),
        TEST(a_method_is_called_as_what_it_is),
        TEST(a_client_that_knows_no_streams_is_told),
        TEST(a_server_that_knows_no_streams_is_not_asked),
        TEST(a_server_that_breaks_a_rule_fails_its_stream),
        TEST(a_message_that_no_client_waits_for_fails_its_stream),
        TEST(a_connection_that_is_lost_ends_its_streams),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
