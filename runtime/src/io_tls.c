#include "io_tls_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the user of a TLS stream asks of it. */

/* --- The user's operations --- */

static bool
tls_recv(struct io_stream *base, void *buffer, size_t size, io_done_fn *done,
         void *with)
{
    struct tls_stream *stream = (struct tls_stream *)base;
    bool open;

    pthread_mutex_lock(&stream->lock);
    open = !stream->closed && stream->phase != TLS_OVER;
    if (open) {
        stream->recv = (struct tls_operation){done, with};
        stream->space = buffer;
        stream->room = size;
        tls_stream_see_to_answers(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    return open;
}

static void
load(struct tls_stream *stream, const struct idem_bytes *parts, unsigned n)
{
    IDEM_ASSERT(n > 0 && n <= IO_PARTS);
    memcpy(stream->parts, parts, n * sizeof *parts);
    stream->n_parts = n;
    stream->size = 0;
    for (unsigned i = 0; i < n; i++)
        stream->size += parts[i].size;
}

static bool
tls_send(struct io_stream *base, const struct idem_bytes *parts, unsigned n,
         io_done_fn *done, void *with)
{
    struct tls_stream *stream = (struct tls_stream *)base;
    bool open;

    pthread_mutex_lock(&stream->lock);
    open = !stream->closed && stream->phase != TLS_OVER;
    if (open) {
        load(stream, parts, n);
        tls_stream_skip_ahead(stream);
        stream->send = (struct tls_operation){done, with};
        tls_stream_see_to_answers(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    return open;
}

static size_t
tls_send_now(struct io_stream *base, const struct idem_bytes *parts, unsigned n)
{
    struct tls_stream *stream = (struct tls_stream *)base;
    size_t taken = 0;

    pthread_mutex_lock(&stream->lock);
    if (!stream->closed && stream->phase == TLS_OPEN && !stream->sending &&
        stream->lower->ops->send_now) {
        load(stream, parts, n);
        taken = tls_stream_write_now(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    return taken;
}

/* The peer is told that nothing more comes, if the socket takes it. */
static void
tls_close(struct io_stream *base)
{
    struct tls_stream *stream = (struct tls_stream *)base;
    bool first;

    pthread_mutex_lock(&stream->lock);
    first = !stream->closed;
    stream->closed = true;
    if (first && stream->phase == TLS_OPEN && !stream->sending &&
        stream->lower->ops->send_now) {
        struct idem_bytes bye;

        tls_session_bye(stream->session);
        bye = tls_session_take_off(stream->session);
        if (bye.size > 0)
            (void)stream->lower->ops->send_now(stream->lower, &bye, 1);
    }
    pthread_mutex_unlock(&stream->lock);
    stream->lower->ops->close(stream->lower);
}

static void
tls_free_stream(struct io_stream *base)
{
    struct tls_stream *stream = (struct tls_stream *)base;

    stream->lower->ops->close(stream->lower);
    pthread_mutex_lock(&stream->lock);
    stream->freed = true;
    tls_stream_leave(stream);
}

/* --- What it knows --- */

static const char *
tls_peer(const struct io_stream *base)
{
    return ((const struct tls_stream *)base)->peer;
}

static const char *
tls_identity_of(const struct io_stream *base)
{
    return tls_session_identity(((const struct tls_stream *)base)->session);
}

static const char *
tls_trouble(const struct io_stream *base)
{
    struct tls_stream *stream = (struct tls_stream *)(uintptr_t)base;
    const char *lost;

    pthread_mutex_lock(&stream->lock);
    lost = stream->lost ? stream->lost : tls_session_trouble(stream->session);
    pthread_mutex_unlock(&stream->lock);
    return lost;
}

static const struct io_stream_ops stream_ops = {
    .recv = tls_recv,
    .send = tls_send,
    .send_now = tls_send_now,
    .close = tls_close,
    .free = tls_free_stream,
    .peer = tls_peer,
    .identity = tls_identity_of,
    .trouble = tls_trouble,
    .secure = true,
};

struct io_stream *
io_tls_stream_new(struct io_stream *lower, struct tls_session *session)
{
    struct tls_stream *stream = calloc(1, sizeof *stream);

    if (!stream) {
        lower->ops->close(lower);
        lower->ops->free(lower);
        tls_session_free(session);
        return NULL;
    }
    stream->base.ops = &stream_ops;
    stream->lower = lower;
    stream->session = session;
    stream->task.run = tls_stream_run;
    pthread_mutex_init(&stream->lock, NULL);
    snprintf(stream->peer, sizeof stream->peer, "tls+%s",
             lower->ops->peer(lower));
    return &stream->base;
}
