#include "stream.h"

#include "codec.h"
#include "context.h"
#include "header.h"
#include "worker.h"

#include <idem/message.h>
#include <idem/reason.h>

/* What a stream's end writes: as far as the peer's credit goes, and no further.
 * A message may be larger than the credit that is left, so that each can go at
 * all; then the next one waits for longer. */

#define KEPT_MAX STREAM_WINDOW /* bytes for another attempt */
#define UNFLUSHED_MAX 32768    /* bytes of messages that wait for others */
#define PACKING_FIRST 1024

/* --- Onto the connection: with the lock --- */

/* What takes effect once each is kept until it did: it may be needed again. */
static bool
keeps_enough(const struct idem_stream *stream)
{
    return stream->each && !stream->server &&
           backlog_kept(&stream->written) >= KEPT_MAX;
}

bool
stream_has_room(const struct idem_stream *stream)
{
    return stream->connection && !stream->over && !keeps_enough(stream) &&
           backlog_is_through(&stream->written) && stream->credit > 0 &&
           !connection_crowded(stream->connection);
}

static void
append(struct idem_stream *stream, uint8_t flags, struct idem_bytes message)
{
    uint8_t header[HEADER_TOKEN_MAX + 16];
    const struct header_message said = {
        .token = stream->mark,
        .ack_below =
            stream->each && !stream->server ? stream_each_ack(stream) : 0,
    };
    struct frame frame = {
        .type = FRAME_MESSAGE,
        .flags = flags,
        .stream = stream->id,
        .header = {header, 0},
        .payload = message,
    };

    frame.header.size = header_message_write(header, sizeof header, &said);
    /* One that is closed ends the call, which says so. */
    (void)connection_append(stream->connection, &frame, (struct outbox_hold){0},
                            NULL);
}

/* bytes: the message, or with SQUEEZED what was made of it. */
static void
append_message(struct idem_stream *stream, uint8_t more_flags,
               struct idem_bytes bytes)
{
    if (stream->each)
        stream->each->sent++;
    append(stream, FRAME_FLAG_MESSAGE | more_flags, bytes);
    stream->credit -= (int64_t)(bytes.size + STREAM_COST);
}

/* The server's side ends with END. */
static bool
is_to_say_last(const struct idem_stream *stream)
{
    return !stream->server && stream->out_ended && !stream->said_last &&
           (stream->call->base.method->streams & IDEM_STREAMS_CLIENT) &&
           backlog_is_through(&stream->written);
}

void
stream_pump(struct idem_stream *stream)
{
    struct idem_bytes message;
    bool squeezed;

    if (!stream->connection || stream->over)
        return;
    /* What is kept is as it was before compression: the next server may not
     * know how, and under locks nothing is compressed. */
    while (stream->credit > 0 &&
           backlog_next(&stream->written, &message, &squeezed))
        append_message(stream, 0, message);
    if (is_to_say_last(stream)) {
        append(stream, FRAME_FLAG_LAST, (struct idem_bytes){0});
        stream->said_last = true;
    }
    if (!stream->keeps && backlog_is_through(&stream->written))
        backlog_clear(&stream->written, 0);
}

void
stream_commit(struct idem_stream *stream)
{
    if (stream->server || stream->resumes || stream->each ||
        stream->call->base.committed)
        return;
    stream->call->base.committed = true;
    stream->keeps = false;
    if (backlog_is_through(&stream->written))
        backlog_clear(&stream->written, 0);
}

/* False: out of memory, and it must be kept. */
static bool
keep(struct idem_stream *stream, struct idem_bytes message)
{
    bool fits = stream->each || stream->written.size + message.size <= KEPT_MAX;

    if (stream->keeps && fits &&
        backlog_put(&stream->written, message, false)) {
        stream->written.at = stream->written.size;
        return true;
    }
    stream_commit(stream);
    return !stream->keeps || !stream->each;
}

/* Why nothing can be written any more; OK: it can. */
static enum idem_status
why_closed(const struct idem_stream *stream)
{
    const struct call *call = stream->call;
    enum idem_status status = stream->error.status;

    if (!stream->over)
        return stream->out_ended ? IDEM_FAILED_PRECONDITION : IDEM_OK;
    if (status == IDEM_OK)
        status = stream->server ? idem_call_interrupted_by(&call->base)
                                : call->base.outcome.status;
    return status == IDEM_OK ? IDEM_FAILED_PRECONDITION : status;
}

/* --- One message --- */

/* Room for one message's bytes. */
static enum idem_status
clear_packing(struct idem_stream *stream)
{
    if (!stream->packing)
        stream->packing = arena_new(PACKING_FIRST, 0);
    if (!stream->packing)
        return IDEM_RESOURCE_EXHAUSTED;
    arena_reset(stream->packing);
    return IDEM_OK;
}

/* Through the hooks; and no message that this side does not take. */
static enum idem_status
pass(struct idem_stream *stream, struct idem_bytes *bytes)
{
    struct idem_error err;
    enum idem_status status;

    stream->n_written++;
    status = stream_pass_hooks(stream, true, bytes, &err);
    if (status == IDEM_OK && bytes->size > stream->max_message)
        status = IDEM_RESOURCE_EXHAUSTED;
    return status;
}

static bool
goes_squeezed(const struct idem_stream *stream)
{
    const struct idem_compression *how = stream->compression;

    return how && (atomic_load(&stream->codecs) & CODEC_BIT(how->codec)) &&
           !(stream->server && stream->call->base.context->plain);
}

/* Before the lock: it takes its time. Empty: it goes as it is. */
static struct idem_bytes
squeeze(struct idem_stream *stream, struct idem_bytes message)
{
    struct idem_bytes squeezed;

    if (goes_squeezed(stream) &&
        codec_squeeze(&squeezed, stream->compression, message, stream->packing))
        return squeezed;
    return (struct idem_bytes){0};
}

static bool
fits(const struct idem_stream *stream, size_t size)
{
    return size <= stream->max_message &&
           (!stream->connection || size <= stream->peer_max);
}

void
stream_flush(struct idem_stream *stream, bool now)
{
    struct connection *connection = stream->connection;

    if (connection)
        connection_ref(connection);
    pthread_mutex_unlock(&stream->lock);
    if (!connection)
        return;
    stream->side->flush(connection, now);
    connection_unref(connection);
}

/* With the lock, which is let go of meanwhile: what is appended must not wait
 * for what this thread waits for. */
static void
await_room(struct idem_stream *stream)
{
    const struct idem_clock *clock = stream->call->base.clock;

    stream_flush(stream, true);
    workers_will_block();
    pthread_mutex_lock(&stream->lock);
    while (why_closed(stream) == IDEM_OK && !stream_has_room(stream))
        clock->wait_until(clock, &stream->changed, &stream->lock, INT64_MAX);
}

/* With the lock. squeezed: what squeeze made of it. */
static enum idem_status
put(struct idem_stream *stream, struct idem_bytes bytes,
    struct idem_bytes squeezed)
{
    enum idem_status status;

    if (!stream_has_room(stream) && !stream->blocks && !stream->over) {
        stream->wanting = true;
        /* Room that was made since the first look wakes nobody. */
        if (!stream_has_room(stream))
            return IDEM_UNAVAILABLE;
        stream->wanting = false;
    }
    if (!stream_has_room(stream))
        await_room(stream);
    status = why_closed(stream);
    if (status != IDEM_OK)
        return status;
    if (!fits(stream, bytes.size))
        return IDEM_RESOURCE_EXHAUSTED;
    if (!keep(stream, bytes))
        return IDEM_RESOURCE_EXHAUSTED;
    if (squeezed.size > 0 && goes_squeezed(stream))
        append_message(stream, FRAME_FLAG_SQUEEZED, squeezed);
    else
        append_message(stream, 0, bytes);
    return IDEM_OK;
}

static enum idem_status
send_bytes(struct idem_stream *stream, struct idem_bytes bytes)
{
    struct idem_bytes squeezed = squeeze(stream, bytes);
    enum idem_status status;
    bool now;

    pthread_mutex_lock(&stream->lock);
    status = put(stream, bytes, squeezed);
    stream->mark = (struct idem_bytes){0};
    if (status != IDEM_OK) {
        pthread_mutex_unlock(&stream->lock);
        return status;
    }
    stream->unflushed += bytes.size;
    now = stream->unflushed > UNFLUSHED_MAX;
    if (now)
        stream->unflushed = 0;
    stream_flush(stream, now);
    return IDEM_OK;
}

enum idem_status
idem_stream_write(struct idem_stream *stream,
                  const struct ProtobufCMessage *message)
{
    struct idem_bytes bytes;
    enum idem_status status = clear_packing(stream);

    if (status == IDEM_OK)
        status = idem_message_pack(message, stream->packing, &bytes, NULL);
    if (status == IDEM_OK)
        status = pass(stream, &bytes);
    if (status != IDEM_OK)
        return status;
    if (stream->skip > 0) { /* it has been there */
        stream->skip--;
        return IDEM_OK;
    }
    return send_bytes(stream, bytes);
}

enum idem_status
stream_send(struct idem_stream *stream, struct idem_bytes bytes)
{
    enum idem_status status = clear_packing(stream);

    if (status == IDEM_OK)
        status = pass(stream, &bytes);
    return status == IDEM_OK ? send_bytes(stream, bytes) : status;
}

void
idem_stream_end(struct idem_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->out_ended = true;
    stream_pump(stream);
    stream_flush(stream, false);
}
