#include "stream.h"

#include "codec.h"
#include "header.h"
#include "worker.h"

#include <idem/message.h>
#include <idem/reason.h>

#include <stdlib.h>
#include <string.h>

/* What comes on a stream, and what a peer may send: no more than its credit,
 * and nothing after its end. */

#define UNPACKING_FIRST 2048

static enum idem_status
too_large(const struct idem_stream *stream, uint64_t number, size_t size,
          struct idem_error *err)
{
    return idem_fail_reason(
        err, IDEM_RESOURCE_EXHAUSTED,
        stream->server ? IDEM_REQUEST_TOO_LARGE : IDEM_REPLY_TOO_LARGE,
        "message %llu of the stream is %zu bytes, the %s takes %zu",
        (unsigned long long)number, size, stream->server ? "server" : "channel",
        stream->max_message);
}

/* --- The connection's thread --- */

static enum idem_status
broken(const struct idem_stream *stream, const char *what,
       struct idem_error *err)
{
    return idem_fail(err, IDEM_INTERNAL, "message %llu of stream %u %s",
                     (unsigned long long)stream->n_came + 1, stream->id, what);
}

/* With the lock: how far it has come, for who asks again. */
static bool
note_mark(struct idem_stream *stream, const struct frame *frame)
{
    struct header_message header;

    stream->advanced = true;
    stream->came_since++;
    if (frame->header.size == 0)
        return true;
    if (!header_message_read(frame->header, &header))
        return false;
    if (!stream->token_room)
        stream->token_room = malloc(HEADER_TOKEN_MAX);
    IDEM_ASSERT(stream->token_room);
    memcpy(stream->token_room, header.token.data, header.token.size);
    stream->token = (struct idem_bytes){stream->token_room, header.token.size};
    stream->came_since = 0;
    return true;
}

/* With the lock, where messages take effect once each: what one that came says.
 * To a client it is the answer of its next message. */
static enum idem_status
note_number(struct idem_stream *stream, const struct frame *frame,
            struct idem_error *err)
{
    struct header_message header;

    if (!stream->server)
        return stream_each_move(stream, (uint64_t)stream->each->watermark + 1,
                                err);
    if (!header_message_read(frame->header, &header))
        return broken(stream, "has a header that cannot be read", err);
    return stream_each_take_ack(stream, header.ack_below, err);
}

/* With the lock. */
static enum idem_status
put(struct idem_stream *stream, const struct frame *frame,
    struct idem_error *err)
{
    if (stream->granted <= 0)
        return broken(stream, "is past its credit", err);
    if (frame->oversize)
        return too_large(stream, stream->n_came + 1, frame->payload.size, err);
    stream->granted -= (int64_t)(frame->payload.size + STREAM_COST);
    if (stream->each) {
        enum idem_status status = note_number(stream, frame, err);

        if (status != IDEM_OK)
            return status;
    }
    if (stream->resumes && !note_mark(stream, frame))
        return broken(stream, "has a header that cannot be read", err);
    if (!inflow_put(&stream->in, frame->payload,
                    frame->flags & FRAME_FLAG_SQUEEZED))
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                         "no memory for a message of %zu bytes",
                         frame->payload.size);
    stream->n_came++;
    stream->cost_came += frame->payload.size + STREAM_COST;
    stream_commit(stream);
    return IDEM_OK;
}

/* With the lock. */
static enum idem_status
take(struct idem_stream *stream, const struct frame *frame,
     struct idem_error *err)
{
    bool has = frame->flags & FRAME_FLAG_MESSAGE;
    bool last = frame->flags & FRAME_FLAG_LAST;
    enum idem_status status = IDEM_OK;

    if (stream->in_ended)
        return broken(stream,
                      "is after the end of its side, or of a side without any",
                      err);
    if (!has && !last)
        return broken(stream, "says nothing: neither MESSAGE nor LAST", err);
    if (last && !stream->server)
        return broken(stream, "has LAST, and a server ends with END", err);
    if (has)
        status = put(stream, frame, err);
    stream->in_ended = last;
    pthread_cond_broadcast(&stream->changed);
    return status;
}

enum idem_status
stream_take_message(struct idem_stream *stream, const struct frame *frame,
                    struct idem_error *err)
{
    enum idem_status status = IDEM_OK;

    pthread_mutex_lock(&stream->lock);
    if (!stream->over)
        status = take(stream, frame, err);
    pthread_mutex_unlock(&stream->lock);
    return status;
}

/* A bidirectional stream needs its messages until their answers are here. */
static bool
is_told_by_window(const struct idem_stream *stream)
{
    return stream->each && !stream->server &&
           !(stream->call->base.method->streams & IDEM_STREAMS_SERVER);
}

enum idem_status
stream_take_window(struct idem_stream *stream, const struct frame *frame,
                   struct idem_error *err)
{
    struct header_window window;
    enum idem_status status = IDEM_OK;

    if (!header_window_read(frame->header, &window))
        return idem_fail(err, IDEM_INTERNAL,
                         "the WINDOW of stream %u cannot be read", stream->id);
    pthread_mutex_lock(&stream->lock);
    stream->credit += window.credit;
    if (is_told_by_window(stream))
        status = stream_each_move(stream, window.watermark, err);
    if (status == IDEM_OK && stream->credit > STREAM_WINDOW_MAX)
        status = idem_fail(err, IDEM_INTERNAL,
                           "the WINDOWs of stream %u give over %d bytes",
                           stream->id, STREAM_WINDOW_MAX);
    else if (status == IDEM_OK)
        stream_pump(stream);
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return status;
}

/* --- The reader's --- */

/* With the lock: there is somebody to be told, and something. */
static bool
is_listened_to(const struct idem_stream *stream)
{
    return !stream->over && stream->connection &&
           (!stream->in_ended || (stream->each && stream->server));
}

/* With the lock: what was read of this attempt and not told yet. Who sent the
 * rest is gone. */
static uint32_t
credit_due(const struct idem_stream *stream)
{
    uint64_t told = stream->cost_told > stream->cost_before
                        ? stream->cost_told
                        : stream->cost_before;

    return stream->cost_read > told ? (uint32_t)(stream->cost_read - told) : 0;
}

void
stream_give_credit(struct idem_stream *stream)
{
    uint8_t header[32];
    struct header_window window = {0};
    struct frame frame = {.type = FRAME_WINDOW, .header = {header, 0}};

    pthread_mutex_lock(&stream->lock);
    if (!is_listened_to(stream)) {
        pthread_mutex_unlock(&stream->lock);
    } else {
        if (stream->each && stream->server)
            window.watermark = stream_each_tell(stream);
        window.credit = credit_due(stream);
        frame.header.size = header_window_write(header, sizeof header, &window);
        frame.stream = stream->id;
        stream->granted += window.credit;
        (void)connection_append(stream->connection, &frame,
                                (struct outbox_hold){0}, NULL);
        stream_flush(stream, false);
    }
    stream->cost_told = stream->cost_read;
}

/* Here and not when it comes: what waits is as small as it came, and one
 * message at a time is as large as it says. */
static enum idem_status
open_message(struct idem_stream *stream, struct idem_bytes *bytes,
             struct idem_error *err)
{
    struct idem_bytes squeezed = *bytes;

    switch (
        codec_open(bytes, squeezed, stream->max_message, stream->unpacking)) {
    case CODEC_OPENED:
        return IDEM_OK;
    case CODEC_OVERSIZE:
        return too_large(stream, stream->n_read, bytes->size, err);
    case CODEC_NO_MEMORY:
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                         "no memory for a message of %zu bytes", bytes->size);
    case CODEC_BROKEN:
        break;
    }
    return idem_fail_reason(
        err, stream->server ? IDEM_INVALID_ARGUMENT : IDEM_INTERNAL,
        IDEM_BAD_COMPRESSION,
        "message %llu of the stream cannot be made of its %zu compressed bytes",
        (unsigned long long)stream->n_read, squeezed.size);
}

/* As it was written, and through the hooks, with room for what they and the
 * reader make of it. */
static enum idem_status
pass(struct idem_stream *stream, struct idem_bytes *bytes, bool squeezed,
     struct idem_error *err)
{
    enum idem_status status = IDEM_OK;

    if (!stream->unpacking)
        stream->unpacking = arena_new(UNPACKING_FIRST, 0);
    if (!stream->unpacking)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    arena_reset(stream->unpacking);
    stream->n_read++;
    if (squeezed)
        status = open_message(stream, bytes, err);
    return status == IDEM_OK ? stream_pass_hooks(stream, false, bytes, err)
                             : status;
}

static void
give_up(struct idem_stream *stream, const struct idem_error *err)
{
    stream->failed = true;
    stream->side->fail(stream, err);
}

static bool
turn(struct idem_stream *stream)
{
    bool turned;

    pthread_mutex_lock(&stream->lock);
    turned = inflow_turn(&stream->in);
    pthread_mutex_unlock(&stream->lock);
    return turned;
}

bool
stream_read_bytes(struct idem_stream *stream, struct idem_bytes *bytes)
{
    struct idem_error err;
    bool squeezed;

    if (stream->failed)
        return false;
    if (!inflow_next(&stream->in, bytes, &squeezed) &&
        !(turn(stream) && inflow_next(&stream->in, bytes, &squeezed)))
        return false;
    stream->cost_read += bytes->size + STREAM_COST;
    if (pass(stream, bytes, squeezed, &err) != IDEM_OK) {
        give_up(stream, &err);
        return false;
    }
    if (stream->cost_read - stream->cost_told >= stream->window / 2)
        stream_give_credit(stream);
    return true;
}

const struct ProtobufCMessage *
stream_read(struct idem_stream *stream)
{
    const struct idem_message_limits limits = {.max_size = stream->max_message};
    struct ProtobufCMessage *message;
    struct idem_bytes bytes;
    struct idem_error err;

    if (!stream_read_bytes(stream, &bytes))
        return NULL;
    if (idem_message_unpack(stream->reads, bytes, &limits, stream->unpacking,
                            &message, &err) == IDEM_OK)
        return message;
    give_up(stream, &err);
    return NULL;
}

/* --- Blocking style --- */

/* With the lock: nothing more will come. */
static bool
is_dry(const struct idem_stream *stream)
{
    return stream->over || (stream->server && stream->in_ended);
}

/* True: there is one, or was when the lock was let go of. */
static bool
await_message(struct idem_stream *stream)
{
    const struct idem_clock *clock = stream->call->base.clock;
    bool came;

    pthread_mutex_lock(&stream->lock);
    stream_flush(stream, true);
    workers_will_block();
    pthread_mutex_lock(&stream->lock);
    while (stream->in.filling.size == 0 && !is_dry(stream))
        clock->wait_until(clock, &stream->changed, &stream->lock, INT64_MAX);
    came = stream->in.filling.size > 0;
    pthread_mutex_unlock(&stream->lock);
    return came;
}

/* A handler that was given up reads no more; a client's caller has all that
 * came before the end. */
static bool
is_given_up(const struct idem_stream *stream)
{
    return stream->server &&
           idem_call_interrupted_by(&stream->call->base) != IDEM_OK;
}

const struct ProtobufCMessage *
idem_stream_next(struct idem_stream *stream)
{
    const struct ProtobufCMessage *message;

    if (!stream->blocks)
        return NULL;
    do {
        if (is_given_up(stream))
            return NULL;
        message = stream_read(stream);
    } while (!message && !stream->failed && await_message(stream));
    return message;
}
