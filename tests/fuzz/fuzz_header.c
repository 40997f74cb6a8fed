#include "fuzz.h"

#include "arena.h"
#include "frame.h"
#include "header.h"

#include <idem/v1/wire.pb-c.h>

/* The headers of frames and their metadata: what can be read can be written and
 * is read the same again, and protobuf-c reads no other numbers. */

static bool
is_same(struct idem_bytes a, struct idem_bytes b)
{
    return idem_bytes_equal(a, b);
}

static bool
same_metadata(const struct idem_metadata *a, const struct idem_metadata *b)
{
    const struct idem_metadata_entry *one = a->first, *two = b->first;

    for (; one && two; one = one->next, two = two->next)
        if (!is_same(one->name, two->name) || !is_same(one->value, two->value))
            return false;
    return !one && !two && a->size == b->size;
}

static void
check_open_alike(struct idem_bytes bytes, const struct header_open *open)
{
    Idem__V1__OpenHeader *read =
        idem__v1__open_header__unpack(NULL, bytes.size, bytes.data);

    if (!read)
        return;
    IDEM_ASSERT(read->method_id == open->method_id);
    IDEM_ASSERT(read->attempt == open->attempt);
    IDEM_ASSERT(read->ack_below == open->ack_below);
    IDEM_ASSERT(read->streams == open->streams);
    IDEM_ASSERT(!open->has_timeout || read->timeout_us == open->timeout_us);
    idem__v1__open_header__free_unpacked(read, NULL);
}

static void
try_message(struct idem_bytes bytes)
{
    uint8_t written[HEADER_TOKEN_MAX + 16];
    struct header_message message, again;
    struct idem_bytes view = {written, 0};

    if (!header_message_read(bytes, &message))
        return;
    view.size = header_message_write(written, sizeof written, &message);
    IDEM_ASSERT(header_message_read(view, &again));
    IDEM_ASSERT(is_same(message.token, again.token));
    IDEM_ASSERT(message.ack_below == again.ack_below);
}

/* Left out, it is the first. */
static uint32_t
attempt_of(const struct header_open *open)
{
    return open->attempt ? open->attempt : 1;
}

static void
try_open(struct idem_bytes bytes, struct idem_arena *arena)
{
    uint8_t written[2 * FRAME_HEADER_MAX];
    struct header_open open, again;
    struct idem_metadata metadata = {0}, same = {0};
    struct idem_bytes view = {written, 0};

    if (!header_open_read(bytes, &open))
        return;
    check_open_alike(bytes, &open);
    if (header_open_metadata(bytes, &metadata, arena, NULL) != IDEM_OK)
        metadata = (struct idem_metadata){0};
    view.size = header_open_write(written, sizeof written, &open, &metadata);
    IDEM_ASSERT(header_open_read(view, &again));
    IDEM_ASSERT(is_same(open.method, again.method));
    IDEM_ASSERT(is_same(open.key, again.key));
    IDEM_ASSERT(open.method_id == again.method_id);
    IDEM_ASSERT(open.has_timeout == again.has_timeout);
    IDEM_ASSERT(open.timeout_us == again.timeout_us);
    IDEM_ASSERT(attempt_of(&open) == attempt_of(&again));
    IDEM_ASSERT(open.ack_below == again.ack_below);
    IDEM_ASSERT(open.streams == again.streams);
    IDEM_ASSERT(is_same(open.resume_token, again.resume_token));
    IDEM_ASSERT(open.resume_after == again.resume_after);
    IDEM_ASSERT(header_open_metadata(view, &same, arena, NULL) == IDEM_OK);
    IDEM_ASSERT(same_metadata(&metadata, &same));
}

static void
check_end_alike(struct idem_bytes bytes, const struct header_end *end)
{
    Idem__V1__EndHeader *read =
        idem__v1__end_header__unpack(NULL, bytes.size, bytes.data);

    if (!read)
        return;
    IDEM_ASSERT((uint32_t)read->status == end->status);
    IDEM_ASSERT((uint32_t)read->effect == end->effect);
    IDEM_ASSERT(read->first_at_ms == end->first_at_ms);
    IDEM_ASSERT(read->executions == end->executions);
    IDEM_ASSERT(read->server_time_ms == end->server_time_ms);
    idem__v1__end_header__free_unpacked(read, NULL);
}

static void
try_end(struct idem_bytes bytes, struct idem_arena *arena)
{
    uint8_t written[2 * FRAME_HEADER_MAX];
    struct header_end end, again;
    struct idem_metadata trailers = {0}, same = {0};
    struct idem_bytes view = {written, 0};

    if (!header_end_read(bytes, &end))
        return;
    check_end_alike(bytes, &end);
    if (header_end_trailers(bytes, &trailers, arena, NULL) != IDEM_OK)
        trailers = (struct idem_metadata){0};
    view.size = header_end_write(written, sizeof written, &end, &trailers);
    IDEM_ASSERT(header_end_read(view, &again));
    IDEM_ASSERT(is_same(end.message, again.message));
    IDEM_ASSERT(is_same(end.reason, again.reason));
    IDEM_ASSERT(end.status == again.status && end.effect == again.effect);
    IDEM_ASSERT(end.final == again.final && end.rebuilt == again.rebuilt);
    IDEM_ASSERT(end.first_at_ms == again.first_at_ms);
    IDEM_ASSERT(end.executions == again.executions);
    IDEM_ASSERT(end.has_retry_after == again.has_retry_after);
    IDEM_ASSERT(end.retry_after_ms == again.retry_after_ms);
    IDEM_ASSERT(end.server_time_ms == again.server_time_ms);
    IDEM_ASSERT(header_end_trailers(view, &same, arena, NULL) == IDEM_OK);
    IDEM_ASSERT(same_metadata(&trailers, &same));
}

static void
try_settings(struct idem_bytes bytes)
{
    uint8_t written[2 * FRAME_HEADER_MAX];
    struct header_settings settings, again;
    struct idem_bytes view = {written, 0};

    if (!header_settings_read(bytes, &settings))
        return;
    view.size = header_settings_write(written, sizeof written, &settings);
    IDEM_ASSERT(header_settings_read(view, &again));
    IDEM_ASSERT(settings.version == again.version);
    IDEM_ASSERT(settings.max_message == again.max_message);
    IDEM_ASSERT(settings.max_streams == again.max_streams);
    IDEM_ASSERT(settings.time_ms == again.time_ms);
    IDEM_ASSERT(settings.stream_window == again.stream_window);
    IDEM_ASSERT(is_same(settings.identity, again.identity));
}

static void
try_goaway(struct idem_bytes bytes)
{
    uint8_t written[2 * FRAME_HEADER_MAX];
    struct header_goaway goaway, again;
    struct idem_bytes view = {written, 0};

    if (!header_goaway_read(bytes, &goaway))
        return;
    view.size = header_goaway_write(written, sizeof written, &goaway);
    IDEM_ASSERT(header_goaway_read(view, &again));
    IDEM_ASSERT(goaway.last_stream == again.last_stream);
    IDEM_ASSERT(is_same(goaway.reason, again.reason));
}

static void
try_window(struct idem_bytes bytes)
{
    uint8_t written[32];
    struct header_window window, again;
    struct idem_bytes view = {written, 0};

    if (!header_window_read(bytes, &window))
        return;
    view.size = header_window_write(written, sizeof written, &window);
    IDEM_ASSERT(header_window_read(view, &again));
    IDEM_ASSERT(window.credit == again.credit);
    IDEM_ASSERT(window.watermark == again.watermark);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_bytes input = {data, size};
    struct idem_arena *arena;

    if (size > FRAME_HEADER_MAX) /* the frame reader lets no more through */
        return 0;
    arena = arena_new(4096, 0);
    IDEM_ASSERT(arena);
    switch (fuzz_take_byte(&input) % 6) {
    case 0:
        try_open(input, arena);
        break;
    case 1:
        try_end(input, arena);
        break;
    case 2:
        try_settings(input);
        break;
    case 3:
        try_window(input);
        break;
    case 4:
        try_message(input);
        break;
    default:
        try_goaway(input);
        break;
    }
    arena_free(arena);
    return 0;
}
