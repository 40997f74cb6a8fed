#include "arena.h"
#include "frame.h"
#include "header.h"
#include "header_wire.h"
#include "plain.h"
#include "shield_entry.h"
#include "trailers.h"

#include <idem/key.h>
#include <idem/message.h>
#include <idem/store.h>

#include <idem/v1/options.pb-c.h>

#include <protobuf-c/protobuf-c.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "echo.idem.h"
#include "shapes.pb-c.h"

/* Writes what the corpora of the fuzz targets begin with, made by our own
 * encoders: fuzz_seeds FOLDER. Always the same bytes. */

#define ROOM 65536

/* Bytes that grow; what begins them is what the target chooses by. */
struct seed {
    uint8_t bytes[ROOM];
    size_t size;
};

static const char *folder;

static void
add(struct seed *seed, const void *bytes, size_t size)
{
    IDEM_ASSERT(size <= ROOM - seed->size);
    if (size > 0)
        memcpy(seed->bytes + seed->size, bytes, size);
    seed->size += size;
}

static struct seed
begin(uint8_t how)
{
    struct seed seed = {.size = 0};

    add(&seed, &how, 1);
    return seed;
}

static void
save(const struct seed *seed, const char *target, const char *name)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, target);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", folder, target, name);
    file = fopen(path, "wb");
    IDEM_ASSERT(file);
    IDEM_ASSERT(fwrite(seed->bytes, 1, seed->size, file) == seed->size);
    IDEM_ASSERT(fclose(file) == 0);
}

static void
save_text(const char *target, const char *name, const char *text)
{
    struct seed seed = {.size = 0};

    add(&seed, text, strlen(text));
    save(&seed, target, name);
}

/* With a byte before it, which is how. */
static void
save_choice(const char *target, const char *name, uint8_t how, const char *text)
{
    struct seed seed = begin(how);

    add(&seed, text, strlen(text));
    save(&seed, target, name);
}

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
    add(seed, head, sizeof head);
    add(seed, header.data, header.size);
    add(seed, payload.data, payload.size);
}

static struct idem_metadata
two_entries(struct idem_arena *arena)
{
    struct idem_metadata metadata = {0};

    IDEM_ASSERT(idem_metadata_add(&metadata, arena, idem_bytes_of("trace"),
                                  idem_bytes_of("1-2"), NULL) == IDEM_OK);
    IDEM_ASSERT(idem_metadata_add(&metadata, arena, idem_bytes_of("b-bin"),
                                  idem_bytes_of("\x01\xff"), NULL) == IDEM_OK);
    return metadata;
}

static struct idem_bytes
open_header(uint8_t *bytes, const char *method, struct idem_arena *arena)
{
    const struct idem_metadata metadata = two_entries(arena);
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
    const struct idem_metadata trailers = two_entries(arena);
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
    struct seed seed = begin(how);

    add(&seed, header.data, header.size);
    save(&seed, "header", name);
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
    save(&seed, "server", "open");
    add_frame(&seed, FRAME_CANCEL, 0, 1, (struct idem_bytes){NULL, 0},
              (struct idem_bytes){NULL, 0});
    save(&seed, "server", "open_cancel");
    seed.size = 0;
    add_frame(&seed, FRAME_PING, 0, 0, (struct idem_bytes){NULL, 0},
              idem_bytes_of("12345678"));
    save(&seed, "server", "ping");
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
    const struct header_window window = {1000};
    uint8_t header[FRAME_HEADER_MAX], credit[16];
    struct idem_bytes more = {
        credit, header_window_write(credit, sizeof credit, &window)};
    struct seed seed = {.size = 0};

    add_frame(&seed, FRAME_OPEN, 0, 1,
              stream_header(header, "flow.v1.Flow/ChatAsync", 3), none);
    add_frame(&seed, FRAME_MESSAGE, FRAME_FLAG_MESSAGE, 1, none, message);
    add_frame(&seed, FRAME_WINDOW, 0, 1, more, none);
    add_frame(&seed, FRAME_MESSAGE, FRAME_FLAG_LAST, 1, none, none);
    save(&seed, "server", "stream_chat");
    add_frame(&seed, FRAME_MESSAGE, FRAME_FLAG_MESSAGE, 1, none, message);
    add_frame(&seed, FRAME_MESSAGE, 0, 1, none, none);
    add_frame(&seed, FRAME_WINDOW, 0, 9, more, none);
    save(&seed, "server", "stream_broken");
    seed.size = 0;
    add_frame(&seed, FRAME_OPEN, 0, 1,
              stream_header(header, "flow.v1.Flow/SumAsync", 1), none);
    for (unsigned i = 0; i < 3; i++)
        add_frame(&seed, FRAME_MESSAGE, FRAME_FLAG_MESSAGE, 1, none, message);
    add_frame(&seed, FRAME_MESSAGE, both, 1, none, message);
    save(&seed, "server", "stream_sum");
    seed.size = 0;
    add_frame(&seed, FRAME_OPEN, both, 1,
              stream_header(header, "flow.v1.Flow/Count", 2),
              idem_bytes_of("\x08\x14"));
    add_frame(&seed, FRAME_WINDOW, 0, 1, more, none);
    add_frame(&seed, FRAME_CANCEL, 0, 1, none, none);
    save(&seed, "server", "stream_count");
}

static void
seed_frames(struct idem_arena *arena)
{
    uint8_t preface[FRAME_PREFACE], header[FRAME_HEADER_MAX];
    struct idem_bytes message = echo_request(arena);
    struct seed seed = begin(6);
    struct seed after_hello = {.size = 0};

    frame_preface_write(preface);
    add(&seed, preface, sizeof preface);
    add_frame(&seed, FRAME_SETTINGS, 0, 0, settings_header(header),
              (struct idem_bytes){NULL, 0});
    save(&seed, "frame", "hello");
    add_frames(&seed, message, arena);
    save(&seed, "frame", "each_kind");
    add_frames(&after_hello, message, arena);
    save(&after_hello, "server", "each_kind");
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

    add(&seed, steps, size);
    save(&seed, target, name);
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

    save_steps("stream", "talk", talk, sizeof talk);
    save_steps("stream", "leave", leave, sizeof leave);
    save_steps("stream", "breach", breach, sizeof breach);
    save_steps("stream_client", "answers", answers, sizeof answers);
    save_steps("stream_client", "drained", drained, sizeof drained);
    save_steps("stream_client", "broken", broken, sizeof broken);
}

/* --- Messages --- */

static void
fill_all(Shapes__V1__All *all, Shapes__V1__Inner *inner)
{
    static const char text[] = "text", name[] = "n\xc3\xa4me";
    static uint8_t blob[] = {0, 1, 255};
    static int32_t numbers[] = {1, -1, 1 << 30};
    static const char *texts[] = {text, name};

    inner->a = -5;
    inner->name = name;
    all->i32 = -1;
    all->s64 = -1;
    all->real = 1.5F;
    all->flag = 1;
    all->color = SHAPES__V1__COLOR__BLUE;
    all->text = text;
    all->blob = (ProtobufCBinaryData){sizeof blob, blob};
    all->inner = inner;
    all->pick_case = SHAPES__V1__ALL__PICK_PICK_INNER;
    all->pick_inner = inner;
    all->n_r_i32 = 3;
    all->r_i32 = numbers;
    all->n_r_text = 2;
    all->r_text = texts;
}

static void
save_message(const char *name, uint8_t how, struct idem_bytes bytes)
{
    struct seed seed = begin(how);

    add(&seed, bytes.data, bytes.size);
    save(&seed, "message", name);
}

static void
seed_messages(struct idem_arena *arena)
{
    Shapes__V1__All all = SHAPES__V1__ALL__INIT;
    Shapes__V1__Inner inner = SHAPES__V1__INNER__INIT,
                      deep = SHAPES__V1__INNER__INIT;
    struct idem_bytes bytes;

    fill_all(&all, &inner);
    IDEM_ASSERT(idem_message_pack(&all.base, arena, &bytes, NULL) == IDEM_OK);
    save_message("all", 0, bytes);
    deep.inner = &inner;
    deep.b = 3;
    IDEM_ASSERT(idem_message_pack(&deep.base, arena, &bytes, NULL) == IDEM_OK);
    save_message("inner", 1, bytes);
    save_message("unknown", 2, bytes);
}

/* --- Options --- */

static void
save_policy(const char *name, uint8_t how, const ProtobufCMessage *policy)
{
    struct seed seed = begin(how);
    uint8_t bytes[4096];

    IDEM_ASSERT(protobuf_c_message_get_packed_size(policy) <= sizeof bytes);
    add(&seed, bytes, protobuf_c_message_pack(policy, bytes));
    save(&seed, "options", name);
}

static void
seed_options(void)
{
    static const char code[] = "ABORTED", field[] = "inner.id";
    static const char *codes[] = {code}, *fields[] = {field};
    Idem__V1__Retry retry = IDEM__V1__RETRY__INIT;
    Idem__V1__Key key = IDEM__V1__KEY__INIT;
    Idem__V1__MethodPolicy policy = IDEM__V1__METHOD_POLICY__INIT;
    Idem__V1__FieldPolicy of_field = IDEM__V1__FIELD_POLICY__INIT;
    Idem__V1__FilePolicy of_file = IDEM__V1__FILE_POLICY__INIT;

    policy.mode = IDEM__V1__METHOD_POLICY__MODE__TRANSACTION;
    save_policy("transaction", 0, &policy.base);
    key.fields = fields;
    key.n_fields = 1;
    policy.key = &key;
    save_policy("key", 0, &policy.base);
    retry.codes = codes;
    retry.n_codes = 1;
    retry.max_attempts = 3;
    policy.retry = &retry;
    policy.mode = IDEM__V1__METHOD_POLICY__MODE__LEASED;
    policy.recorded = codes;
    policy.n_recorded = 1;
    policy.lease_ms = 5000;
    save_policy("leased", 0, &policy.base);
    of_field.not_in_fingerprint = 1;
    save_policy("field", 2, &of_field.base);
    of_file.prefix = "pay";
    save_policy("file", 3, &of_file.base);
}

/* --- Redis --- */

static const uint8_t secret[] = "0123456789abcdef";

static size_t
write_entry(uint8_t *bytes, struct idem_arena *arena)
{
    const struct idem_metadata metadata = two_entries(arena);
    const struct shield_secrets secrets = {
        .list = {{.id = 1, .bytes = {secret, 16}}}, .count = 1};
    struct shield_entry entry = {.fingerprint = {.version = 1}};

    entry.answer.status = IDEM_OK;
    entry.answer.first_at_ms = 1700000000000;
    entry.answer.message = idem_bytes_of("fine");
    entry.answer.reply = idem_bytes_of("reply");
    IDEM_ASSERT(trailers_encode(&metadata, arena, &entry.answer.trailers));
    IDEM_ASSERT(shield_entry_size(&entry) <= 1024);
    shield_entry_write(&entry, &secrets, bytes);
    return shield_entry_size(&entry);
}

static void
seed_entry(struct idem_arena *arena)
{
    uint8_t bytes[1024];
    size_t size = write_entry(bytes, arena);
    struct seed seed = begin(0);

    add(&seed, bytes, size);
    save(&seed, "shield_entry", "as_it_is");
    seed = begin(1);
    add(&seed, bytes, size - SHIELD_TAG_SIZE);
    save(&seed, "shield_entry", "to_be_signed");
    seed = begin(0);
    seed.size +=
        (size_t)snprintf((char *)seed.bytes + 1, ROOM - 1, "$%zu\r\n", size);
    add(&seed, bytes, size);
    add(&seed, "\r\n+OK\r\n", 7);
    save(&seed, "redis", "entry");
}

static void
seed_redis(void)
{
    save_choice("redis", "nil", 1, "$-1\r\n+OK\r\n-ERR unknown command\r\n");
    save_choice("redis", "refusals", 0,
                "-LOADING Redis is loading\r\n-READONLY You can't write\r\n"
                "-ERR no\r\n-MOVED 3999 127.0.0.1:6381\r\n$3\r\nabc\r\n");
    save_choice("redis", "odd", 9, ":1\r\n*2\r\n$1\r\na\r\n*-1\r\n");
    save_choice("redis", "long", 200, "$2000000000\r\nabc");
    save_choice("shield_topology", "cluster", 0,
                "07c3 127.0.0.1:30004@31004 slave e7d1 0 1426238317239 4 "
                "connected\n"
                "67ed [::1]:30002@31002,name myself,master - 0 0 2 connected "
                "5461-10922 [93-<-292f] 77\n");
    save_choice("shield_topology", "sentinel", 1,
                "# Sentinel\r\nsentinel_masters:1\r\nmaster0:name=mine,"
                "status=ok,address=127.0.0.1:6379,slaves=1,sentinels=3\r\n");
    save_choice("shield_topology", "moved", 2, "MOVED 3999 127.0.0.1:6381");
    save_choice("shield_topology", "ask", 2, "ASK 3999 :6381");
    save_choice("shield_topology", "url", 3,
                "redis://user:p%40ss@127.0.0.1:6379/3");
    save_choice("shield_topology", "url_unix", 3,
                "unix://:pw@/run/redis.sock?db=2");
    save_choice("shield_topology", "url_sentinel", 3,
                "redis+sentinel://[::1]:26379,b/mine/0");
    save_choice("shield_topology", "url_cluster", 3,
                "redis+cluster://a:7000,b:7001");
}

/* --- Text --- */

static void
seed_keys(void)
{
    save_text("key", "opaque", "order-17");
    save_text("key", "minted",
              "idk_018bcfe5680070008000000000000001_86400_00000000");
    save_text("key", "session",
              "ids_018bcfe5680070008000000000000001_86400_7_00000000");
}

/* Keys of a fake time, so that their checksum is right and always the same. */
static int64_t
no_time(const struct idem_clock *clock)
{
    (void)clock;
    return 1700000000000;
}

static void
no_chance(const struct idem_clock *clock, void *bytes, size_t size)
{
    (void)clock;
    memset(bytes, 7, size);
}

static void
seed_minted_keys(void)
{
    const struct idem_clock clock = {
        .wall_ms = no_time, .monotonic_ns = no_time, .random = no_chance};
    char text[IDEM_KEY_MAX + 1], session[IDEM_SESSION_MAX];

    idem_key_mint(text, &clock, 86400000);
    save_text("key", "minted_right", text);
    idem_session_mint(session, &clock, 0, 86400000);
    idem_key_of_session(text, session, 7);
    save_text("key", "session_right", text);
}

static void
seed_targets(void)
{
    save_text("target", "tcp", "tcp://127.0.0.1:7070");
    save_text("target", "ipv6", "tcp://[::1]:7070");
    save_text("target", "ipc", "ipc:///run/pay.sock");
    save_text("target", "inproc", "inproc://pay");
    save_text("target", "list", "list://127.0.0.1:1,tcp://b:2,ipc:///c");
    save_text("target", "dns", "dns://pay.example:7070");
}

static void
seed_configs(void)
{
    save_choice(
        "config", "retry", 3,
        "{\"methodConfig\":[{\"name\":[{\"service\":\"pay.v1.Pay\",\"method\":"
        "\"Charge\"}],\"timeout\":\"1.5s\",\"attemptTimeout\":\"0.5s\","
        "\"waitForReady\":true,\"maxRequestMessageBytes\":1000,"
        "\"retryPolicy\":{\"maxAttempts\":4,\"initialBackoff\":\"0.1s\","
        "\"maxBackoff\":\"1s\",\"backoffMultiplier\":2,"
        "\"retryableStatusCodes\":[\"UNAVAILABLE\",8]}}],"
        "\"retryThrottling\":{\"maxTokens\":10,\"tokenRatio\":0.1}}");
    save_choice(
        "config", "hedging", 3,
        "{\"methodConfig\":[{\"name\":[{}],\"hedgingPolicy\":{\"maxAttempts\":"
        "3,\"hedgingDelay\":\"0.01s\",\"nonFatalStatusCodes\":[\"aborted\"]}}"
        ",{\"name\":[{\"service\":\"a\"}],\"key\":\"CALLERS\"}]}");
    save_choice(
        "config", "balancing", 3,
        "{\"loadBalancingConfig\":[{\"xds\":{}},{\"ring_hash_experimental\":"
        "{\"minRingSize\":8}}],\"loadBalancingPolicy\":\"ROUND_ROBIN\","
        "\"retryBudget\":{\"ratio\":0.2,\"floor\":3,\"window\":\"5s\"}}");
    save_choice("config", "faults", 0,
                "{\"methodConfig\":[{\"name\":[],\"retryPolicy\":{"
                "\"maxAttempts\":1},\"timeout\":\"-1s\"}],\"x\":null}");
}

/* A plain nng client's message: a route of one word or two, a call. */
static void
add_plain(struct seed *seed, bool local, unsigned words, struct idem_bytes open,
          struct idem_bytes message)
{
    static const uint8_t route[] = {0, 0, 0, 7, 0x80, 0, 0, 1};
    uint8_t body[2048], head[PLAIN_HEAD_MAX] = {1};
    size_t from = sizeof route - (size_t)words * 4, size;
    struct wire_writer writer = {body, body + sizeof body};

    header_put_bytes(&writer, 1, open);
    header_put_bytes(&writer, 2, message);
    size = sizeof route - from + (size_t)(writer.at - body);
    head[local + 6] = (uint8_t)(size >> 8);
    head[local + 7] = (uint8_t)size;
    add(seed, head, plain_head_size(local));
    add(seed, route + from, sizeof route - from);
    add(seed, body, (size_t)(writer.at - body));
}

static void
seed_plain(struct idem_arena *arena)
{
    const struct idem_bytes nothing = {(const uint8_t *)"", 0};
    static uint8_t bytes[FRAME_HEADER_MAX];
    struct idem_bytes open = open_header(bytes, "echo.v1.Echo/Echo", arena);

    for (unsigned local = 0; local < 2; local++) {
        struct seed seed = begin((uint8_t)(local | 6));

        add_plain(&seed, local, 1, open, echo_request(arena));
        add_plain(&seed, local, 2, open, nothing);
        add_plain(&seed, local, 1, nothing, nothing);
        save(&seed, "plain", local ? "ipc" : "tcp");
    }
}

int
main(int argc, char **argv)
{
    struct idem_arena *arena = arena_new(4096, 0);

    if (argc != 2 || !arena) {
        fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
        return 1;
    }
    folder = argv[1];
    mkdir(folder, 0777);
    seed_headers(arena);
    seed_frames(arena);
    seed_plain(arena);
    seed_steps();
    seed_messages(arena);
    seed_options();
    seed_entry(arena);
    seed_redis();
    seed_keys();
    seed_minted_keys();
    seed_targets();
    seed_configs();
    arena_free(arena);
    return 0;
}
