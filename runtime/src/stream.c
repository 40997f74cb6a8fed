#include "stream.h"

#include "codec.h"

#include <stdlib.h>

/* The life of a stream's end, and what may end it. */

struct idem_stream *
stream_new(struct call *call, bool server, const struct stream_side *side,
           size_t max_message, uint32_t window)
{
    const struct idem_method *method = call->base.method;
    struct idem_stream *stream =
        idem_arena_zalloc(call->base.arena, sizeof *stream);

    if (!stream)
        return NULL;
    stream->call = call;
    stream->side = side;
    stream->server = server;
    stream->writes = server ? method->reply : method->request;
    stream->reads = server ? method->request : method->reply;
    stream->max_message = max_message;
    stream->window = window;
    stream->resumes = method->streams == IDEM_STREAMS_SERVER &&
                      method->mode != IDEM_MODE_NONE;
    if (method->each)
        stream->each =
            idem_arena_zalloc(call->base.arena, sizeof *stream->each);
    if (method->each && !stream->each)
        return NULL;
    /* Whoever does not stream says all with OPEN or END. */
    stream->out_ended = !(method->streams &
                          (server ? IDEM_STREAMS_SERVER : IDEM_STREAMS_CLIENT));
    stream->in_ended = !(method->streams &
                         (server ? IDEM_STREAMS_CLIENT : IDEM_STREAMS_SERVER));
    atomic_init(&stream->codecs, CODECS);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    call->stream = stream;
    return stream;
}

void
stream_fini(struct idem_stream *stream)
{
    if (!stream)
        return;
    arena_free(stream->packing);
    arena_free(stream->unpacking);
    backlog_fini(&stream->written);
    free(stream->token_room);
    inflow_fini(&stream->in);
    if (stream->connection)
        connection_unref(stream->connection);
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
}

void
stream_compress(struct idem_stream *stream,
                const struct idem_compression *compression)
{
    if (compression->codec != IDEM_CODEC_NONE)
        stream->compression = compression;
}

void
stream_place(struct idem_stream *stream, struct connection *connection,
             uint32_t id)
{
    const struct connection_limits *peer = connection_peer_limits(connection);

    pthread_mutex_lock(&stream->lock);
    connection_ref(connection);
    stream->connection = connection;
    stream->id = id;
    stream->peer_max = peer->max_message;
    atomic_store(&stream->codecs, peer->codecs);
    stream->credit = peer->stream_window;
    stream->granted = stream->window;
    stream->cost_before = stream->cost_came;
    backlog_rewind(&stream->written);
    stream->said_last = false;
    stream_pump(stream);
    pthread_cond_broadcast(&stream->changed);
    if (stream->wanting && !stream->blocks)
        stream->side->stir_later(stream);
    pthread_mutex_unlock(&stream->lock);
}

void
stream_note_advance(struct idem_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    if (stream->advanced)
        stream->call->base.advanced = true;
    stream->advanced = false;
    pthread_mutex_unlock(&stream->lock);
}

void
stream_unplace(struct idem_stream *stream)
{
    struct connection *connection;

    pthread_mutex_lock(&stream->lock);
    connection = stream->connection;
    stream->connection = NULL;
    pthread_mutex_unlock(&stream->lock);
    stream_note_advance(stream);
    if (connection)
        connection_unref(connection);
}

void
stream_over(struct idem_stream *stream, const struct idem_error *err)
{
    pthread_mutex_lock(&stream->lock);
    if (!stream->over && err)
        stream->error = *err;
    stream->over = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

void
stream_stir(struct idem_stream *stream)
{
    if (!stream->blocks)
        stream->side->stir(stream);
}

void
stream_wake(struct idem_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    stream_stir(stream);
}

enum idem_status
stream_pass_hooks(struct idem_stream *stream, bool sent,
                  struct idem_bytes *bytes, struct idem_error *err)
{
    const struct chain *chain = stream->call->chain;
    struct idem_stream_message message = {
        .sent = sent,
        .number = sent ? stream->n_written : stream->n_read,
        .bytes = *bytes,
        .arena = sent ? stream->packing : stream->unpacking,
    };
    bool inward = sent != stream->server; /* as a request goes */

    for (unsigned i = 0; i < chain->count && chain->n_listen > 0; i++) {
        struct idem_interceptor *at =
            chain->at[inward ? i : chain->count - 1 - i];
        enum idem_status status = IDEM_OK;

        if (at->ops->message)
            status = at->ops->message(at, &stream->call->base, &message, err);
        if (status != IDEM_OK)
            return status;
    }
    *bytes = message.bytes;
    return IDEM_OK;
}

void *
idem_stream_user(const struct idem_stream *stream)
{
    return stream->user;
}

void
idem_stream_resume(struct idem_stream *stream)
{
    stream_stir(stream);
}
