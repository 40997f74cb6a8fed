/* Compressed messages of streams: between our ends, and with a peer by hand on
 * either side. docs/wire.md, 2 and 9. */
#include "flow_world.h"

#include "codec.h"
#include "compression_cases.h"
#include "loopback.h"
#include "wire_client.h"

#include <idem/message.h>
#include <idem/policy.h>
#include <idem/reason.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BODY 5000
#define LIMIT 20000
#define WINDOW 4000

static const struct idem_compression zstd = {.codec = IDEM_CODEC_ZSTD};
static const struct idem_compression zlib = {.codec = IDEM_CODEC_ZLIB};

static struct flow_world world;

/* --- Ours on both sides --- */

static void
chat_and_sum(void)
{
    struct flow_chat_stream *chat = flow_chat_open(world.channel, NULL);
    struct flow_sum_stream *sum = flow_sum_open(world.channel, NULL);
    flow_sum_reply *reply = NULL;
    uint64_t n = 0;

    for (size_t size = 0; size < 600000; size = size * 3 + 500) {
        assert_int_equal(flow_chat_write(chat, flow_note_of(++n, size)),
                         IDEM_OK);
        assert_note(flow_chat_next(chat), n, size);
        assert_int_equal(flow_sum_write(sum, flow_note_of(n, size)), IDEM_OK);
    }
    assert_int_equal(flow_chat_finish(chat, NULL), IDEM_OK);
    assert_int_equal(flow_sum_finish(sum, &reply, NULL), IDEM_OK);
    assert_int_equal(reply->sum, n * (n + 1) / 2);
    flow_sum_reply_free(reply);
}

static void
both_directions_carry_compressed_messages(void **state)
{
    static const struct idem_compression *const pairs[][2] = {
        {&zstd, &zstd}, {&zlib, &zstd}, {&zstd, &zlib}};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        const struct flow_options options = {.server.compression = *pairs[i][0],
                                             .channel.compression =
                                                 *pairs[i][1]};

        flow_world_open(&world, &options);
        chat_and_sum();
        flow_world_close(&world);
    }
}

/* What a hook sees of a message, whatever goes over the wire. */
static size_t seen_out, seen_in;

static enum idem_status
see_message(struct idem_interceptor *self, struct idem_call *call,
            struct idem_stream_message *message, struct idem_error *err)
{
    (void)self;
    (void)call;
    (void)err;
    if (message->sent)
        seen_out += message->bytes.size;
    else
        seen_in += message->bytes.size;
    return IDEM_OK;
}

static void
no_free(struct idem_interceptor *self)
{
    (void)self;
}

static const struct idem_interceptor_ops seeing_ops = {
    .name = "seeing",
    .band = IDEM_BAND_OBSERVE,
    .message = see_message,
    .free = no_free,
};

static void
hooks_see_messages_as_they_are(void **state)
{
    struct idem_interceptor seeing = {.ops = &seeing_ops};
    const struct flow_options options = {.server.compression = zstd,
                                         .channel.compression = zstd,
                                         .on_channel = &seeing};
    struct flow_chat_stream *stream;

    (void)state;
    seen_out = seen_in = 0;
    flow_world_open(&world, &options);
    stream = flow_chat_open(world.channel, NULL);
    assert_int_equal(flow_chat_write(stream, flow_note_of(1, BODY)), IDEM_OK);
    assert_note(flow_chat_next(stream), 1, BODY);
    assert_int_equal(flow_chat_finish(stream, NULL), IDEM_OK);
    assert_true(seen_out > BODY);
    assert_int_equal(seen_in, seen_out);
    flow_world_close(&world);
}

static void
what_was_written_compressed_is_written_again(void **state)
{
    static const struct idem_policy_options policy = {.ignore_environment =
                                                          true};
    const struct flow_options options = {
        .retries = true, .channel = {.policy = &policy, .compression = zstd}};
    struct flow_sum_stream *stream;
    flow_sum_reply *reply = NULL;
    struct idem_outcome outcome;

    (void)state;
    flow_world_open(&world, &options);
    atomic_store(&world.refuse, 3);
    world.after = 2;
    stream = flow_sum_open(world.channel, NULL);
    assert_int_equal(flow_sum_write(stream, flow_note_of(1, BODY)), IDEM_OK);
    assert_int_equal(flow_sum_write(stream, flow_note_of(2, BODY)), IDEM_OK);
    flow_world_await(&world, &world.ended, 2);
    assert_int_equal(flow_sum_write(stream, flow_note_of(3, BODY)), IDEM_OK);
    assert_int_equal(flow_sum_finish(stream, &reply, &outcome), IDEM_OK);
    assert_int_equal(reply->sum, 6);
    assert_int_equal(outcome.attempts, 4);
    flow_sum_reply_free(reply);
    flow_world_close(&world);
}

/* --- Notes by hand --- */

static struct idem_arena *arena;

static struct idem_bytes
pack(uint64_t number, size_t size)
{
    struct idem_bytes packed;

    assert_int_equal(idem_message_pack((const struct ProtobufCMessage *)
                                           flow_note_of(number, size),
                                       arena, &packed, NULL),
                     IDEM_OK);
    return packed;
}

static struct idem_bytes
squeeze(const struct idem_compression *how, struct idem_bytes message)
{
    struct idem_bytes squeezed;

    assert_true(codec_squeeze(&squeezed, how, message, arena));
    return squeezed;
}

static void
send_message(struct wire *wire, uint8_t more_flags, struct idem_bytes payload)
{
    wire_send(wire, &(struct frame){.type = FRAME_MESSAGE,
                                    .flags = FRAME_FLAG_MESSAGE | more_flags,
                                    .stream = 1,
                                    .payload = payload});
}

/* The message of that frame, however it travels, is what pack made. */
static void
assert_carries(const struct frame *frame, bool squeezed, struct idem_bytes note)
{
    struct idem_bytes message = frame->payload;

    assert_int_equal((frame->flags & FRAME_FLAG_SQUEEZED) != 0, squeezed);
    if (squeezed)
        assert_int_equal(codec_open(&message, frame->payload, LIMIT, arena),
                         CODEC_OPENED);
    assert_true(idem_bytes_equal(message, note));
}

/* --- Our server, a client by hand --- */

static struct wire wire;

static void
open_stream(const char *method, uint32_t streams, bool plain_reply,
            struct idem_bytes request)
{
    const struct header_open open = {.method = idem_bytes_of(method),
                                     .streams = streams,
                                     .plain_reply = plain_reply};

    wire_open_stream(&wire, 1, &open, request);
}

static void
meet_server(uint32_t codecs, uint32_t window)
{
    const struct flow_options options = {.server = {.compression = zstd,
                                                    .max_message = LIMIT,
                                                    .stream_window = WINDOW}};

    flow_world_open(&world, &options);
    arena = idem_arena_new();
    assert_non_null(arena);
    wire_connect(&wire, world.address);
    wire.codecs = codecs;
    wire.stream_window = window;
    assert_int_equal(wire_hello(&wire, 0).codecs, CODECS);
}

static void
leave_server(void)
{
    wire_close(&wire);
    idem_arena_free(arena);
    flow_world_close(&world);
}

static void
a_handler_compresses_for_who_can_open_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < COMPRESSION_CASES; i++) {
        const struct compression_case *wanted = &compression_cases[i];
        struct idem_bytes note, small;
        struct frame frame;

        meet_server(wanted->codecs, 1 << 20);
        note = pack(7, BODY);
        small = pack(8, 100); /* under the threshold */
        open_stream(FLOW_CHAT_METHOD, IDEM_STREAMS_BOTH, wanted->plain,
                    (struct idem_bytes){0});
        send_message(&wire, FRAME_FLAG_SQUEEZED,
                     squeeze(i % 2 ? &zlib : &zstd, note));
        wire_await(&wire, FRAME_MESSAGE, &frame);
        assert_carries(&frame, wanted->compressed, note);
        send_message(&wire, FRAME_FLAG_LAST, small);
        wire_await(&wire, FRAME_MESSAGE, &frame);
        assert_carries(&frame, false, small);
        assert_int_equal(wire_end(&wire, 1).status, IDEM_OK);
        leave_server();
    }
}

/* So a window holds more of them. */
static void
credit_counts_what_goes_over_the_wire(void **state)
{
    flow_count_request request = FLOW_COUNT_REQUEST_INIT;
    struct idem_bytes packed;
    int64_t credit = 3000;
    unsigned came = 0;
    struct frame frame;

    (void)state;
    meet_server(CODECS, 3000);
    request.count = 1000;
    request.size = BODY;
    assert_int_equal(idem_message_pack((struct ProtobufCMessage *)&request,
                                       arena, &packed, NULL),
                     IDEM_OK);
    open_stream(FLOW_COUNT_METHOD, IDEM_STREAMS_SERVER, false, packed);
    for (; credit > 0; came++) {
        wire_await(&wire, FRAME_MESSAGE, &frame);
        assert_carries(&frame, true, pack(came + 1, BODY));
        credit -= (int64_t)frame.payload.size + 64;
    }
    assert_true(came > 1); /* uncompressed, the first takes it all */
    /* Nothing more comes before there is credit again. */
    wire_send(&wire, &(struct frame){.type = FRAME_PING});
    do {
        assert_true(wire_next(&wire, &frame));
        assert_int_not_equal(frame.type, FRAME_MESSAGE);
    } while (frame.type != FRAME_PONG);
    wire_window(&wire, 1, (uint32_t)(1 - credit));
    wire_await(&wire, FRAME_MESSAGE, &frame);
    assert_carries(&frame, true, pack(came + 1, BODY));
    leave_server();
}

/* rpc 87, B089: what waits for a slow reader is as small as it came, and no
 * more than its credit. */
static void
messages_of_a_slow_reader_wait_as_they_came(void **state)
{
    struct idem_bytes squeezed;
    struct header_end end;

    (void)state;
    meet_server(CODECS, 64); /* the first note back takes it: Chat reads no
                              * further */
    squeezed = squeeze(&zstd, pack(1, LIMIT - 100));
    open_stream(FLOW_CHAT_METHOD, IDEM_STREAMS_BOTH, false,
                (struct idem_bytes){0});
    for (unsigned i = 0; i < 3 + 2 * WINDOW / 64; i++)
        send_message(&wire, FRAME_FLAG_SQUEEZED, squeezed);
    end = wire_end(&wire, 1);
    assert_int_equal(end.status, IDEM_INTERNAL);
    assert_non_null(
        memmem(end.message.data, end.message.size, "is past its credit", 18));
    leave_server();
}

struct broken {
    const char *bytes; /* NULL: a bomb */
    size_t size;
    enum idem_status request, reply; /* whoever it comes to */
    const char *words;
};

static const struct broken broken_ones[] = {
    {"\2\10\0\0\0garbage", 12, IDEM_INVALID_ARGUMENT, IDEM_INTERNAL,
     "cannot be made of its 12 compressed bytes"},
    {"\2\10", 2, IDEM_INVALID_ARGUMENT, IDEM_INTERNAL,
     "cannot be made of its 2 compressed bytes"},
    {"\3\10\0\0\0garbage", 12, IDEM_INVALID_ARGUMENT, IDEM_INTERNAL,
     "cannot be made of its 12 compressed bytes"},
    {"", 0, IDEM_INVALID_ARGUMENT, IDEM_INTERNAL,
     "cannot be made of its 0 compressed bytes"},
    {NULL, 0, IDEM_RESOURCE_EXHAUSTED, IDEM_RESOURCE_EXHAUSTED,
     "message 2 of the stream is 200"},
};

#define N_BROKEN (sizeof broken_ones / sizeof *broken_ones)

static struct idem_bytes
bytes_of(const struct broken *broken)
{
    if (!broken->bytes)
        return squeeze(&zstd, pack(2, LIMIT + 1));
    return (struct idem_bytes){(const uint8_t *)broken->bytes, broken->size};
}

/* rpc 87: each is named, and the connection is as good as before. */
static void
a_bad_message_ends_its_stream(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_BROKEN; i++) {
        const struct broken *broken = &broken_ones[i];
        struct header_end end;

        meet_server(CODECS, 1 << 20);
        open_stream(FLOW_SUM_METHOD, IDEM_STREAMS_CLIENT, false,
                    (struct idem_bytes){0});
        send_message(&wire, FRAME_FLAG_SQUEEZED, squeeze(&zstd, pack(1, BODY)));
        send_message(&wire, FRAME_FLAG_SQUEEZED, bytes_of(broken));
        end = wire_end(&wire, 1);
        assert_int_equal(end.status, broken->request);
        assert_non_null(memmem(end.message.data, end.message.size,
                               broken->words, strlen(broken->words)));
        assert_true(idem_bytes_equal(
            end.reason, idem_bytes_of(broken->bytes ? IDEM_BAD_COMPRESSION
                                                    : IDEM_REQUEST_TOO_LARGE)));
        wire_ping(&wire);
        leave_server();
    }
}

/* --- Our channel, a server by hand --- */

static struct idem_channel *channel;
static int listener;

static void
meet_channel(uint32_t codecs)
{
    const struct idem_channel_options options = {.compression = zstd,
                                                 .max_message = LIMIT};
    struct idem_error err;
    char target[64];
    unsigned port;

    listener = loopback_listen(&port);
    arena = idem_arena_new();
    assert_non_null(arena);
    snprintf(target, sizeof target, "tcp://127.0.0.1:%u", port);
    assert_int_equal(idem_channel_new(&channel, target, &options, &err),
                     IDEM_OK);
    wire_accept(&wire, listener);
    wire.codecs = codecs;
    wire.stream_window = 1 << 20;
    assert_int_equal(wire_hello(&wire, 0).codecs, CODECS);
}

static void
leave_channel(void)
{
    idem_channel_close(channel);
    wire_close(&wire);
    idem_arena_free(arena);
    close(listener);
}

static void
a_writer_compresses_for_who_can_open_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < COMPRESSION_CASES; i++) {
        const struct compression_case *wanted = &compression_cases[i];
        const struct idem_call_options options = {
            .no_compression = wanted->plain, .wait_for_ready = true};
        struct flow_chat_stream *stream;
        struct frame frame;

        meet_channel(wanted->codecs);
        stream = flow_chat_open(channel, &options);
        /* The first one before anything is known of the server. */
        for (unsigned n = 1; n <= 3; n++) {
            assert_int_equal(flow_chat_write(stream, flow_note_of(n, BODY)),
                             IDEM_OK);
            wire_await(&wire, FRAME_MESSAGE, &frame);
            assert_carries(&frame, wanted->compressed, pack(n, BODY));
        }
        flow_chat_cancel(stream);
        assert_int_equal(flow_chat_finish(stream, NULL), IDEM_CANCELLED);
        leave_channel();
    }
}

static void
a_bad_message_fails_its_stream_by_name(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_BROKEN; i++) {
        const struct idem_call_options options = {.wait_for_ready = true};
        const struct broken *broken = &broken_ones[i];
        struct flow_chat_stream *stream;
        struct idem_outcome outcome;
        struct frame frame;

        meet_channel(CODECS);
        stream = flow_chat_open(channel, &options);
        wire_await(&wire, FRAME_OPEN, &frame);
        send_message(&wire, FRAME_FLAG_SQUEEZED, squeeze(&zlib, pack(1, BODY)));
        assert_note(flow_chat_next(stream), 1, BODY);
        send_message(&wire, FRAME_FLAG_SQUEEZED, bytes_of(broken));
        assert_null(flow_chat_next(stream));
        wire_await(&wire, FRAME_CANCEL, &frame);
        assert_int_equal(flow_chat_finish(stream, &outcome), broken->reply);
        assert_non_null(strstr(outcome.message, broken->words));
        assert_string_equal(outcome.reason, broken->bytes
                                                ? IDEM_BAD_COMPRESSION
                                                : IDEM_REPLY_TOO_LARGE);
        leave_channel();
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_directions_carry_compressed_messages),
        cmocka_unit_test(hooks_see_messages_as_they_are),
        cmocka_unit_test(what_was_written_compressed_is_written_again),
        cmocka_unit_test(a_handler_compresses_for_who_can_open_it),
        cmocka_unit_test(credit_counts_what_goes_over_the_wire),
        cmocka_unit_test(messages_of_a_slow_reader_wait_as_they_came),
        cmocka_unit_test(a_bad_message_ends_its_stream),
        cmocka_unit_test(a_writer_compresses_for_who_can_open_it),
        cmocka_unit_test(a_bad_message_fails_its_stream_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
