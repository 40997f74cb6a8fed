/* Compressed messages between ends that know how, and with ends that do not: a
 * peer by hand on either side. */
#include "echo_world.h"

#include "codec.h"
#include "compression_cases.h"
#include "effects.h"
#include "loopback.h"
#include "wire_client.h"

#include <idem/message.h>
#include <idem/reason.h>
#include <idem/sqlite.h>
#include <idem/standard.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BODY 5000
#define LIMIT 20000

static const struct idem_compression zstd = {.codec = IDEM_CODEC_ZSTD};
static const struct idem_compression zlib = {.codec = IDEM_CODEC_ZLIB};

/* --- Ours on both sides --- */

static void
both_directions_carry_compressed_messages(void **state)
{
    static const struct idem_compression *const pairs[][2] = {
        {&zstd, &zstd}, {&zlib, &zstd}, {&zstd, &zlib}};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        const struct echo_options options = {.server.compression = *pairs[i][0],
                                             .channel.compression =
                                                 *pairs[i][1]};
        const struct idem_call_options plain = {.no_compression = true};
        struct echo_world world;
        struct echo_result result;

        echo_world_open(&world, &options);
        for (size_t size = 0; size < 300000; size = size * 3 + 500) {
            result = echo_world_call(&world, 7, size, NULL);
            assert_echoed(&result, 7, size);
        }
        result = echo_world_call(&world, 7, BODY, &plain);
        assert_echoed(&result, 7, BODY);
        echo_world_close(&world);
    }
}

/* --- Our server, a client by hand --- */

struct by_hand {
    struct echo_world world;
    struct wire wire;
    struct idem_arena *arena;
    uint32_t stream;
};

static void
meet_server(struct by_hand *hand, uint32_t codecs)
{
    const struct echo_options options = {
        .server = {.compression = zstd, .max_message = LIMIT}};

    memset(hand, 0, sizeof *hand);
    echo_world_open(&hand->world, &options);
    hand->arena = idem_arena_new();
    assert_non_null(hand->arena);
    wire_connect(&hand->wire, hand->world.address);
    hand->wire.codecs = codecs;
    assert_int_equal(wire_hello(&hand->wire, 0).codecs, CODECS);
}

static void
leave_server(struct by_hand *hand)
{
    wire_close(&hand->wire);
    idem_arena_free(hand->arena);
    echo_world_close(&hand->world);
}

static struct idem_bytes
pack_request(struct idem_arena *arena, size_t size)
{
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;
    struct idem_bytes packed;

    request.number = 7;
    request.body.len = size;
    request.body.data = idem_arena_zalloc(arena, size + 1);
    assert_int_equal(idem_message_pack((struct ProtobufCMessage *)&request,
                                       arena, &packed, NULL),
                     IDEM_OK);
    return packed;
}

static struct idem_bytes
squeeze(struct idem_arena *arena, const struct idem_compression *how,
        struct idem_bytes message)
{
    struct idem_bytes squeezed;

    assert_true(codec_squeeze(&squeezed, how, message, arena));
    return squeezed;
}

/* What is answered; the frame's views are good until the next call. */
static struct header_end
ask(struct by_hand *hand, uint8_t more_flags, bool plain_reply,
    struct idem_bytes payload, struct frame *answer)
{
    const struct header_open open = {.method = idem_bytes_of(ECHO_ECHO_METHOD),
                                     .plain_reply = plain_reply};
    uint8_t header[FRAME_HEADER_MAX];
    struct frame frame = {.type = FRAME_OPEN,
                          .flags =
                              FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE | more_flags,
                          .stream = ++hand->stream,
                          .header = {header, 0},
                          .payload = payload};
    struct header_end end;

    frame.header.size = header_open_write(header, sizeof header, &open, NULL);
    wire_send(&hand->wire, &frame);
    do
        assert_true(wire_next(&hand->wire, answer));
    while (answer->type != FRAME_END);
    assert_true(header_end_read(answer->header, &end));
    return end;
}

static void
a_reply_is_compressed_for_who_can_open_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < COMPRESSION_CASES; i++) {
        const struct compression_case *wanted = &compression_cases[i];
        struct by_hand hand;
        struct idem_bytes request, reply;
        struct header_end end;
        struct frame answer;

        meet_server(&hand, wanted->codecs);
        request = pack_request(hand.arena, BODY);
        end = ask(&hand, FRAME_FLAG_SQUEEZED, wanted->plain,
                  squeeze(hand.arena, i % 2 ? &zlib : &zstd, request), &answer);
        assert_int_equal(end.status, IDEM_OK);
        assert_int_equal((answer.flags & FRAME_FLAG_SQUEEZED) != 0,
                         wanted->compressed);
        if (wanted->compressed) {
            assert_true(answer.payload.size < BODY / 10);
            assert_int_equal(
                codec_open(&reply, answer.payload, LIMIT, hand.arena),
                CODEC_OPENED);
            assert_true(reply.size > BODY);
        } else {
            assert_true(answer.payload.size > BODY);
        }
        leave_server(&hand);
    }
}

/* Each is refused with its name, and the connection is as good as before. */
static void
a_bad_request_is_refused_and_hurts_nobody(void **state)
{
    struct by_hand hand;
    struct idem_bytes good, bomb, lie, garbage;
    struct header_end end;
    struct frame answer;

    (void)state;
    meet_server(&hand, CODECS);
    good = squeeze(hand.arena, &zstd, pack_request(hand.arena, BODY));
    bomb = squeeze(hand.arena, &zstd, pack_request(hand.arena, LIMIT + 1));
    lie = (struct idem_bytes){idem_arena_copy(hand.arena, bomb), bomb.size};
    ((uint8_t *)(uintptr_t)lie.data)[2] = 0;
    garbage = idem_bytes_of("\2\10\0\0\0 this is no frame of zstd");
    garbage.size = 30;
    garbage.data = (const uint8_t *)"\2\10\0\0\0 this is no frame of zstd";

    end = ask(&hand, FRAME_FLAG_SQUEEZED, false, bomb, &answer);
    assert_int_equal(end.status, IDEM_RESOURCE_EXHAUSTED);
    assert_true(
        idem_bytes_equal(end.reason, idem_bytes_of(IDEM_REQUEST_TOO_LARGE)));
    assert_int_equal(end.effect, IDEM_EFFECT_REFUSED);
    end = ask(&hand, FRAME_FLAG_SQUEEZED, false, lie, &answer);
    assert_int_equal(end.status, IDEM_INVALID_ARGUMENT);
    assert_true(
        idem_bytes_equal(end.reason, idem_bytes_of(IDEM_BAD_COMPRESSION)));
    end = ask(&hand, FRAME_FLAG_SQUEEZED, false, garbage, &answer);
    assert_int_equal(end.status, IDEM_INVALID_ARGUMENT);
    end = ask(&hand, FRAME_FLAG_SQUEEZED, false,
              (struct idem_bytes){good.data, good.size - 1}, &answer);
    assert_int_equal(end.status, IDEM_INVALID_ARGUMENT);
    end = ask(&hand, FRAME_FLAG_SQUEEZED, false,
              (struct idem_bytes){good.data, 0}, &answer);
    assert_int_equal(end.status, IDEM_INVALID_ARGUMENT);
    assert_int_equal(hand.world.ran, 0);
    end = ask(&hand, FRAME_FLAG_SQUEEZED, false, good, &answer);
    assert_int_equal(end.status, IDEM_OK);
    leave_server(&hand);
}

/* --- Our channel, a server by hand --- */

struct strange {
    int listener;
    struct wire wire;
    struct idem_channel *channel;
    pthread_t thread;
    struct idem_call_options options;
    struct idem_outcome outcome;
};

static void *
call(void *with)
{
    struct strange *strange = with;
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    request.body.len = BODY;
    request.body.data = calloc(1, BODY);
    echo_echo(strange->channel, &request, NULL, &strange->options,
              &strange->outcome);
    free(request.body.data);
    return NULL;
}

/* Its first call has come; *open is what it says. */
static void
meet_channel(struct strange *strange, uint32_t codecs, bool no_compression,
             struct frame *open)
{
    const struct idem_channel_options options = {.compression = zstd,
                                                 .max_message = LIMIT};
    struct idem_error err;
    char target[64];
    unsigned port;

    memset(strange, 0, sizeof *strange);
    strange->options.wait_for_ready = true;
    strange->options.no_compression = no_compression;
    strange->listener = loopback_listen(&port);
    snprintf(target, sizeof target, "tcp://127.0.0.1:%u", port);
    assert_int_equal(
        idem_channel_new(&strange->channel, target, &options, &err), IDEM_OK);
    pthread_create(&strange->thread, NULL, call, strange);
    wire_accept(&strange->wire, strange->listener);
    strange->wire.codecs = codecs;
    assert_int_equal(wire_hello(&strange->wire, 0).codecs, CODECS);
    do
        assert_true(wire_next(&strange->wire, open));
    while (open->type != FRAME_OPEN);
}

static void
answer(struct strange *strange, uint32_t stream, uint8_t more_flags,
       struct idem_bytes payload)
{
    const struct header_end end = {.status = IDEM_OK,
                                   .effect = IDEM_EFFECT_COMMITTED};
    uint8_t header[FRAME_HEADER_MAX];
    struct frame frame = {.type = FRAME_END,
                          .flags =
                              FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE | more_flags,
                          .stream = stream,
                          .header = {header, 0},
                          .payload = payload};

    frame.header.size = header_end_write(header, sizeof header, &end, NULL);
    wire_send(&strange->wire, &frame);
    pthread_join(strange->thread, NULL);
}

static void
leave_channel(struct strange *strange)
{
    wire_close(&strange->wire);
    idem_channel_close(strange->channel);
    close(strange->listener);
}

static void
a_request_is_compressed_for_who_can_open_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < COMPRESSION_CASES; i++) {
        const struct compression_case *wanted = &compression_cases[i];
        struct strange strange;
        struct header_open header;
        struct frame open;

        meet_channel(&strange, wanted->codecs, wanted->plain, &open);
        assert_true(header_open_read(open.header, &header));
        assert_int_equal(header.plain_reply, wanted->plain);
        assert_int_equal((open.flags & FRAME_FLAG_SQUEEZED) != 0,
                         wanted->compressed);
        assert_int_equal(open.payload.size < BODY, wanted->compressed);
        answer(&strange, open.stream, 0, idem_bytes_of(""));
        assert_int_equal(strange.outcome.status, IDEM_OK);
        leave_channel(&strange);
    }
}

/* The work was done, whatever came of its reply. */
static void
a_bad_reply_keeps_its_effect_and_is_named(void **state)
{
    static const struct {
        const char *payload;
        size_t size;
        enum idem_status status;
        const char *reason;
    } cases[] = {
        {"\2\10\0\0\0garbage", 12, IDEM_INTERNAL, IDEM_BAD_COMPRESSION},
        {"\2\10", 2, IDEM_INTERNAL, IDEM_BAD_COMPRESSION},
        {"\3\10\0\0\0garbage", 12, IDEM_INTERNAL, IDEM_BAD_COMPRESSION},
        {"\1\0\0\0\1bomb", 9, IDEM_RESOURCE_EXHAUSTED, IDEM_REPLY_TOO_LARGE},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strange strange;
        struct frame open;

        meet_channel(&strange, CODECS, false, &open);
        answer(&strange, open.stream, FRAME_FLAG_SQUEEZED,
               (struct idem_bytes){(const uint8_t *)cases[i].payload,
                                   cases[i].size});
        assert_int_equal(strange.outcome.status, cases[i].status);
        assert_string_equal(strange.outcome.reason, cases[i].reason);
        assert_int_equal(strange.outcome.effect, IDEM_EFFECT_COMMITTED);
        leave_channel(&strange);
    }
}

/* --- Records --- */

static struct idem_outcome
add(struct idem_server *server, const struct idem_compression *how,
    const char *note, int64_t *number)
{
    const struct idem_channel_options options = {.compression = *how};
    const struct idem_call_options once = {.key = "k"};
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    effects_add_reply *reply = NULL;
    struct idem_channel *channel;
    struct idem_outcome outcome;
    struct idem_error err;

    assert_int_equal(idem_client_open(&channel, idem_server_address(server, 0),
                                      &options, &err),
                     IDEM_OK);
    request.note = note;
    request.reply_bytes = BODY;
    effects_add(channel, &request, &reply, &once, &outcome);
    if (reply)
        *number = reply->number;
    effects_add_reply_free(reply);
    idem_channel_close(channel);
    return outcome;
}

static void
a_call_that_is_repeated_another_way_is_the_same_call(void **state)
{
    static const struct idem_compression none = {.codec = IDEM_CODEC_NONE};
    const struct idem_server_options options = {.compression = zlib};
    const struct idem_compression *const again[] = {&zlib, &none, &zstd};
    char path[128], note[BODY + 1];
    struct tempdir dir;
    struct idem_sqlite_options books = {.schema = EFFECTS_SCHEMA};
    struct effects effects;
    struct idem_store *store;
    struct idem_server *server;
    struct idem_outcome outcome;
    struct idem_error err;
    int64_t first = 0, number = 0;

    (void)state;
    tempdir_open(&dir);
    books.path = tempdir_file(&dir, "books", path, sizeof path);
    effects_init(&effects, NULL);
    memset(note, 'x', BODY);
    note[BODY] = 0;
    assert_int_equal(idem_sqlite_open(&store, &books, &err), IDEM_OK);
    assert_int_equal(idem_server_open(&server, store, &options, NULL, &err),
                     IDEM_OK);
    assert_int_equal(
        effects_register(server, &effects_handlers, &effects, &err), IDEM_OK);
    assert_int_equal(idem_server_listen(server, "tcp://127.0.0.1:0", &err),
                     IDEM_OK);
    assert_int_equal(idem_server_start(server, &err), IDEM_OK);

    outcome = add(server, &zstd, note, &first);
    assert_int_equal(outcome.effect, IDEM_EFFECT_COMMITTED);
    for (unsigned i = 0; i < 3; i++) {
        outcome = add(server, again[i], note, &number);
        assert_int_equal(outcome.effect, IDEM_EFFECT_REPLAYED);
        assert_int_equal(number, first);
    }
    note[BODY - 1] = 'y';
    outcome = add(server, &zstd, note, &number);
    assert_string_equal(outcome.reason, IDEM_KEY_REUSED);
    idem_server_free(server);
    effects_fini(&effects);
    tempdir_close(&dir);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_directions_carry_compressed_messages),
        cmocka_unit_test(a_reply_is_compressed_for_who_can_open_it),
        cmocka_unit_test(a_bad_request_is_refused_and_hurts_nobody),
        cmocka_unit_test(a_request_is_compressed_for_who_can_open_it),
        cmocka_unit_test(a_bad_reply_keeps_its_effect_and_is_named),
        cmocka_unit_test(a_call_that_is_repeated_another_way_is_the_same_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
