#include "seed.h"

#include "frame.h"
#include "header.h"
#include "header_wire.h"
#include "plain.h"

#include <idem/message.h>

#include "echo.idem.h"

/* --- Headers and frames --- */

static void
add_frame(struct seed *seed, enum frame_type type, uint8_t flags,
          uint32_t stream, struct idem_bytes header, struct idem_bytes payload)
{
    const struct frame frame = {.type = (uint8_t)type,
                                .flags = flags,
                                .stream = stream,
                                .header = header,
                                .payload = payload};
    uint8_t head[FRAME_HEAD];

    frame_head_write(head, &frame);
    seed_add(seed, head, sizeof head);
    seed_add(seed, header.data, header.size);
    seed_add(seed, payload.data, payload.size);
}

static struct idem_bytes
open_header(uint8_t *bytes, const char *method, struct idem_arena *arena)
{
    const struct idem_metadata metadata = seed_two_entries(arena);
    const struct header_open open = {
        .method = idem_bytes_of(method),
        .method_id = 1,
        .has_timeout = true,
        .timeout_us = 5000000,
        .key = idem_bytes_of("order-17"),
        .attempt = 2,
        .ack_below = 9,
    };

    return (struct idem_bytes){
        bytes, header_open_write(bytes, FRAME_HEADER_MAX, &open, &metadata)};
}

static struct idem_bytes
end_header(uint8_t *bytes, struct idem_arena *arena)
{
    const struct idem_metadata trailers = seed_two_entries(arena);
    const struct header_end end = {
        .status = IDEM_FAILED_PRECONDITION,
        .effect = IDEM_EFFECT_ROLLED_BACK,
        .final = true,
        .message = idem_bytes_of("no money"),
        .reason = idem_bytes_of("BALANCE"),
        .first_at_ms = 1700000000000,
        .has_retry_after = true,
        .retry_after_ms = 250,
        .server_time_ms = 1700000000001,
        .rebuilt = true,
        .executions = 2,
    };

    return (struct idem_bytes){
        bytes, header_end_write(bytes, FRAME_HEADER_MAX, &end, &trailers)};
}

static struct idem_bytes
settings_header(uint8_t *bytes)
{
    const struct header_settings settings = {
        1, 4194304, 1000, 1700000000000, idem_bytes_of("server-1"), 262144, 6};

    return (struct idem_bytes){
        bytes, header_settings_write(bytes, FRAME_HEADER_MAX, &settings)};
}

static struct idem_bytes
goaway_header(uint8_t *bytes)
{
    const struct header_goaway goaway = {77, idem_bytes_of("drain")};

    return (struct idem_bytes){
        bytes, header_goaway_write(bytes, FRAME_HEADER_MAX, &goaway)};
}

static void
save_header(const char *name, uint8_t how, struct idem_bytes header)
{
    struct seed seed = seed_begin(how);

    seed_add(&seed, header.data, header.size);
    seed_save(&seed, "header", name);
}

static void
seed_headers(struct idem_arena *arena)
{
    uint8_t bytes[FRAME_HEADER_MAX];

    save_header("open", 0, open_header(bytes, "echo.v1.Echo/Echo", arena));
    save_header("end", 1, end_header(bytes, arena));
    save_header("settings", 2, settings_header(bytes));
    save_header("goaway", 3, goaway_header(bytes));
}

/* One frame of each kind, as a peer may send them. */
static void
add_frames(struct seed *seed, struct idem_bytes message,
           struct idem_arena *arena)
{
    const uint8_t both = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE;
    const struct idem_bytes none = {NULL, 0};
    const char *methods[] = {"echo.v1.Echo/Echo", "echo.v1.Echo/EchoInline",
                             "echo.v1.Echo/Fail"};
    uint8_t header[FRAME_HEADER_MAX];

    for (uint32_t i = 0; i < 3; i++)
        add_frame(seed, FRAME_OPEN, both, i + 1,
                  open_header(header, methods[i], arena), message);
    add_frame(seed, FRAME_MESSAGE, both, 1, none, message);
    add_frame(seed, FRAME_END, FRAME_FLAG_LAST, 1, end_header(header, arena),
              none);
    add_frame(seed, FRAME_WINDOW, 0, 1, none, none);
    add_frame(seed, FRAME_CANCEL, 0, 2, none, none);
    add_frame(seed, FRAME_DETACH, 0, 3, none, none);
    add_frame(seed, FRAME_PING, 0, 0, none, idem_bytes_of("12345678"));
    add_frame(seed, FRAME_PONG, 0, 0, none, idem_bytes_of("12345678"));
    add_frame(seed, FRAME_GOAWAY, 0, 0, goaway_header(header), none);
}

static struct idem_bytes
echo_request(struct idem_arena *arena)
{
    static uint8_t body[] = "hello";
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;
    struct idem_bytes bytes;

    request.number = 42;
    request.body.data = body;
    request.body.len = sizeof body;
    IDEM_ASSERT(idem_message_pack(&request.base, arena, &bytes, NULL) ==
                IDEM_OK);
    return bytes;
}

static void
save_each_frame(struct idem_bytes message, struct idem_arena *arena)
{
    const uint8_t both = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE;
    uint8_t header[FRAME_HEADER_MAX];
    struct seed seed = {.size = 0};

    add_frame(&seed, FRAME_OPEN, both, 1,
              open_header(header, "echo.v1.Echo/Echo", arena), message);
    seed_save(&seed, "server", "open");
    add_frame(&seed, FRAME_CANCEL, 0, 1, (struct idem_bytes){NULL, 0},
              (struct idem_bytes){NULL, 0});
    seed_save(&seed, "server", "open_cancel");
    seed.size = 0;
    add_frame(&seed, FRAME_PING, 0, 0, (struct idem_bytes){NULL, 0},
              idem_bytes_of("12345678"));
    seed_save(&seed, "server", "ping");
}

static struct idem_bytes
stream_header(uint8_t *bytes, const char *method, uint32_t streams)
{
    const struct header_open open = {.method = idem_bytes_of(method),
                                     .streams = streams};

    return (struct idem_bytes){
        bytes, header_open_write(bytes, FRAME_HEADER_MAX, &open, NULL)};
}

/* A stream of each kind, as a client may speak it, and one that breaks rules.
 */
static void
save_streams(struct idem_bytes message)
{
    const uint8_t both = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE;
    const struct idem_bytes none = {NULL, 0};
    const struct header_window window = {.credit = 1000, .watermark = 70};
    uint8_t header[FRAME_HEADER_MAX], credit[32];
    struct idem_bytes more = {
        credit, header_window_write(credit, sizeof credit, &window)};
    struct seed seed = {.size = 0};

    add_frame(&seed, FRAME_OPEN, 0, 1,
              stream_header(header, "flow.v1.Flow/ChatAsync", 3), none);
    add_frame(&seed, FRAME_MESSAGE, FRAME_FLAG_MESSAGE, 1, none, message);
    add_frame(&seed, FRAME_WINDOW, 0, 1, more, none);
    add_frame(&seed, FRAME_MESSAGE, FRAME_FLAG_LAST, 1, none, none);
    seed_save(&seed, "server", "stream_chat");
    add_frame(&seed, FRAME_MESSAGE, FRAME_FLAG_MESSAGE, 1, none, message);
    add_frame(&seed, FRAME_MESSAGE, 0, 1, none, none);
    add_frame(&seed, FRAME_WINDOW, 0, 9, more, none);
    seed_save(&seed, "server", "stream_broken");
    seed.size = 0;
    add_frame(&seed, FRAME_OPEN, 0, 1,
              stream_header(header, "flow.v1.Flow/SumAsync", 1), none);
    for (unsigned i = 0; i < 3; i++)
        add_frame(&seed, FRAME_MESSAGE, FRAME_FLAG_MESSAGE, 1, none, message);
    add_frame(&seed, FRAME_MESSAGE, both, 1, none, message);
    seed_save(&seed, "server", "stream_sum");
    seed.size = 0;
    add_frame(&seed, FRAME_OPEN, both, 1,
              stream_header(header, "flow.v1.Flow/Count", 2),
              idem_bytes_of("\x08\x14"));
    add_frame(&seed, FRAME_WINDOW, 0, 1, more, none);
    add_frame(&seed, FRAME_CANCEL, 0, 1, none, none);
    seed_save(&seed, "server", "stream_count");
}

static void
seed_frames(struct idem_arena *arena)
{
    uint8_t preface[FRAME_PREFACE], header[FRAME_HEADER_MAX];
    struct idem_bytes message = echo_request(arena);
    struct seed seed = seed_begin(6);
    struct seed after_hello = {.size = 0};

    frame_preface_write(preface);
    seed_add(&seed, preface, sizeof preface);
    add_frame(&seed, FRAME_SETTINGS, 0, 0, settings_header(header),
              (struct idem_bytes){NULL, 0});
    seed_save(&seed, "frame", "hello");
    add_frames(&seed, message, arena);
    seed_save(&seed, "frame", "each_kind");
    add_frames(&after_hello, message, arena);
    seed_save(&after_hello, "server", "each_kind");
    save_each_frame(message, arena);
    save_streams((struct idem_bytes){(const uint8_t *)"\x08\x07", 2});
}

/* --- Steps on streams --- */

/* Two bytes a step (fuzz_steps.c): what, with which stream in its upper five
 * bits, and how. */
#define STEP(what, stream, how) (char)((what) | (stream) << 3), (char)(how)
#define MORE(how) STEP(0, 0, how) /* a stream is opened; of a server GOAWAY */
#define SAY(stream, how) STEP(1, stream, how)
#define CREDIT(stream, how) STEP(4, stream, how)
#define LAST(stream) STEP(5, stream, 1)
#define LEAVE(stream, how) STEP(6, stream, how) /* CANCEL; of a server END */
#define OPEN_ALL MORE(0), MORE(0), MORE(0), MORE(0), MORE(0), MORE(0)

static void
save_steps(const char *target, const char *name, const char *steps, size_t size)
{
    struct seed seed = {.size = 0};

    seed_add(&seed, steps, size);
    seed_save(&seed, target, name);
}

static void
seed_steps(void)
{
    static const char talk[] = {
        OPEN_ALL,    SAY(1, 0), SAY(2, 0),    SAY(2, 4),    SAY(4, 0),
        SAY(5, 128), SAY(5, 2), CREDIT(0, 8), CREDIT(2, 9), CREDIT(3, 40),
        LAST(1),     LAST(2),   LAST(4),      LAST(5)};
    static const char leave[] = {
        OPEN_ALL,    SAY(2, 1 | 8), 8,           7,         SAY(5, 0),
        LEAVE(0, 1), LEAVE(2, 0),   LEAVE(5, 1), SAY(5, 0), MORE(4)};
    static const char breach[] = {OPEN_ALL,    STEP(5, 2, 0),  SAY(0, 0),
                                  LAST(1),     SAY(1, 0),      SAY(2, 252),
                                  SAY(2, 252), CREDIT(5, 159), CREDIT(31, 1)};
    static const char answers[] = {
        1,           SAY(0, 0),     SAY(0, 2),    CREDIT(1, 9),
        SAY(2, 128), CREDIT(2, 20), LEAVE(0, 48), LEAVE(1, 48),
        LEAVE(2, 61)};
    static const char drained[] = {0,         SAY(0, 0),   MORE(2),
                                   SAY(2, 2), SAY(2, 252), LEAVE(1, 48)};
    static const char broken[] = {
        1, STEP(5, 0, 0), SAY(1, 0),      SAY(2, 3 | 8), 2,
        7, LAST(2),       CREDIT(2, 159), SAY(31, 0)};

    static const char numbered[] = {
        MORE(0),   MORE(0), SAY(0, 0), SAY(0, 4),    SAY(1, 0), SAY(1, 20),
        SAY(0, 8), LAST(0), MORE(64),  SAY(2, 8),    LAST(2),   SAY(1, 32),
        SAY(1, 0), LAST(1), MORE(64),  CREDIT(1, 9), MORE(0),   LAST(4)};
    static const char lies[] = {
        MORE(16),      MORE(80), SAY(0, 4), SAY(0, 240), MORE(0),   MORE(0),
        SAY(2, 1 | 8), 8,        1,         LAST(2),     MORE(128), LAST(4),
        LEAVE(3, 1),   MORE(3),  MORE(12),  SAY(3, 0),   LAST(3)};
    /* Behind each step with a stream a mark or a watermark. */
    static const char whole[] = {
        1,  SAY(1, 0),    0, SAY(1, 4),     0, CREDIT(0, 1), 3, SAY(2, 0),
        48, SAY(2, 8),    0, CREDIT(1, 30), 0, SAY(1, 128),  0, CREDIT(0, 30),
        6,  SAY(1, 0),    0, SAY(1, 0),     0, SAY(1, 0),    0, LEAVE(0, 48),
        6,  LEAVE(1, 48), 6, LEAVE(2, 48),  0};
    static const char again[] = {
        1, SAY(1, 0),    0, SAY(2, 0),    64, CREDIT(0, 0), 2, LEAVE(0, 30),
        3, LEAVE(1, 30), 0, LEAVE(2, 30), 0};
    static const char above[] = {1, CREDIT(0, 9), 9, SAY(1, 0),    0,
                                 0, MORE(1),      8, LEAVE(1, 48), 9};

    save_steps("numbered_client", "whole", whole, sizeof whole);
    save_steps("numbered_client", "again", again, sizeof again);
    save_steps("numbered_client", "above", above, sizeof above);
    save_steps("numbered", "numbered", numbered, sizeof numbered);
    save_steps("numbered", "lies", lies, sizeof lies);
    save_steps("stream", "talk", talk, sizeof talk);
    save_steps("stream", "leave", leave, sizeof leave);
    save_steps("stream", "breach", breach, sizeof breach);
    save_steps("stream_client", "answers", answers, sizeof answers);
    save_steps("stream_client", "drained", drained, sizeof drained);
    save_steps("stream_client", "broken", broken, sizeof broken);
}

/* A plain nng client's message: a route of one word or two, a call. */
static void
add_plain(struct seed *seed, bool local, unsigned words, struct idem_bytes open,
          struct idem_bytes message)
{
    static const uint8_t route[] = {0, 0, 0, 7, 0x80, 0, 0, 1};
    uint8_t body[2048], head[PLAIN_HEAD_MAX] = {1};
    size_t from = sizeof route - (size_t)words * 4, size;
    struct header_writer writer = {body, body + sizeof body};

    header_put_bytes(&writer, 1, open);
    header_put_bytes(&writer, 2, message);
    size = sizeof route - from + (size_t)(writer.at - body);
    head[local + 6] = (uint8_t)(size >> 8);
    head[local + 7] = (uint8_t)size;
    seed_add(seed, head, plain_head_size(local));
    seed_add(seed, route + from, sizeof route - from);
    seed_add(seed, body, (size_t)(writer.at - body));
}

static void
seed_plain(struct idem_arena *arena)
{
    const struct idem_bytes nothing = {(const uint8_t *)"", 0};
    static uint8_t bytes[FRAME_HEADER_MAX];
    struct idem_bytes open = open_header(bytes, "echo.v1.Echo/Echo", arena);

    for (unsigned local = 0; local < 2; local++) {
        struct seed seed = seed_begin((uint8_t)(local | 6));

        add_plain(&seed, local, 1, open, echo_request(arena));
        add_plain(&seed, local, 2, open, nothing);
        add_plain(&seed, local, 1, nothing, nothing);
        seed_save(&seed, "plain", local ? "ipc" : "tcp");
    }
}

void
seed_wire(struct idem_arena *arena)
{
    seed_headers(arena);
    seed_frames(arena);
    seed_plain(arena);
    seed_steps();
}
