#include "io_nng.h"
#include "io_nng_address.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* abstract sockets, and tcp and ipc where somebody wants nng's, over nng_stream
 * (design.md 4; nng.md lists what nng 1.5.2 does). What this file keeps to:
 *
 * - a receive that is submitted after one's own close never completes, so each
 *   direction looks at a flag of its own, under a lock, before it submits;
 * - a send may complete in part: go on with the rest;
 * - callbacks are queued to nng's threads and never run inside a submit; an aio
 *   without a callback costs no thread: it is over at once, or is aborted, and
 *   then nothing of it was written;
 * - an aio is freed by nng_aio_reap, which its own callback may call;
 * - Nagle's delay is on unless switched off;
 * - writes use MSG_NOSIGNAL, no SIGPIPE comes. */

struct direction {
    nng_aio *aio;
    pthread_mutex_t lock; /* guards closed; held over the submit */
    bool closed;
    io_done_fn *done;
    void *with;
};

struct stream {
    struct io_stream base;
    nng_stream *nng;
    struct direction in, out;
    nng_aio *now;                      /* of send_now: without a callback */
    struct idem_bytes parts[IO_PARTS]; /* not written yet */
    unsigned n_parts;
    size_t size; /* of the whole send */
    char peer[IO_NNG_ADDRESS_MAX];
};

static void
received(void *with)
{
    struct stream *stream = with;
    int rv = nng_aio_result(stream->in.aio);
    size_t size = rv ? 0 : nng_aio_count(stream->in.aio);

    /* A peer that closes is an error to nng (NNG_ECONNSHUT). */
    stream->in.done(stream->in.with, rv ? IDEM_UNAVAILABLE : IDEM_OK, size);
}

static bool
recv_some(struct io_stream *base, void *buffer, size_t size, io_done_fn *done,
          void *with)
{
    struct stream *stream = (struct stream *)base;
    struct direction *in = &stream->in;
    nng_iov iov = {buffer, size};
    bool open;

    pthread_mutex_lock(&in->lock);
    open = !in->closed;
    if (open) {
        in->done = done;
        in->with = with;
        nng_aio_set_iov(in->aio, 1, &iov);
        nng_stream_recv(stream->nng, in->aio);
    }
    pthread_mutex_unlock(&in->lock);
    return open;
}

static void
set_parts(nng_aio *aio, const struct idem_bytes *parts, unsigned n)
{
    nng_iov vector[IO_PARTS];

    IDEM_ASSERT(n > 0 && n <= IO_PARTS);
    for (unsigned i = 0; i < n; i++) {
        vector[i].iov_buf = (void *)(uintptr_t)parts[i].data;
        vector[i].iov_len = parts[i].size;
    }
    nng_aio_set_iov(aio, n, vector);
}

static bool
send_rest(struct stream *stream)
{
    struct direction *out = &stream->out;
    bool open;

    pthread_mutex_lock(&out->lock);
    open = !out->closed;
    if (open) {
        set_parts(out->aio, stream->parts, stream->n_parts);
        nng_stream_send(stream->nng, out->aio);
    }
    pthread_mutex_unlock(&out->lock);
    return open;
}

static void
sent(void *with)
{
    struct stream *stream = with;
    int rv = nng_aio_result(stream->out.aio);

    if (rv == 0) {
        stream->n_parts = io_skip(stream->parts, stream->n_parts,
                                  nng_aio_count(stream->out.aio));
        if (stream->n_parts == 0) {
            stream->out.done(stream->out.with, IDEM_OK, stream->size);
            return;
        }
        if (send_rest(stream))
            return;
    }
    stream->out.done(stream->out.with, IDEM_UNAVAILABLE, 0);
}

/* The socket is full, or the write has failed: take it back. */
static void
take_back(nng_aio *aio)
{
    nng_aio_abort(aio, NNG_ECANCELED);
    nng_aio_wait(aio);
}

static size_t
send_now(struct io_stream *base, const struct idem_bytes *parts, unsigned n)
{
    struct stream *stream = (struct stream *)base;
    struct direction *out = &stream->out;
    size_t written = 0;

    pthread_mutex_lock(&out->lock);
    if (!out->closed) {
        set_parts(stream->now, parts, n);
        nng_stream_send(stream->nng, stream->now);
        if (nng_aio_count(stream->now) == 0)
            take_back(stream->now);
        if (nng_aio_result(stream->now) == 0)
            written = nng_aio_count(stream->now);
    }
    pthread_mutex_unlock(&out->lock);
    return written;
}

static bool
send_all(struct io_stream *base, const struct idem_bytes *parts, unsigned n,
         io_done_fn *done, void *with)
{
    struct stream *stream = (struct stream *)base;

    memcpy(stream->parts, parts, n * sizeof(parts[0]));
    stream->n_parts = n;
    stream->size = 0;
    for (unsigned i = 0; i < n; i++)
        stream->size += parts[i].size;
    stream->out.done = done;
    stream->out.with = with;
    return send_rest(stream);
}

static void
shut(struct direction *direction)
{
    pthread_mutex_lock(&direction->lock);
    direction->closed = true;
    pthread_mutex_unlock(&direction->lock);
}

static void
stream_close(struct io_stream *base)
{
    struct stream *stream = (struct stream *)base;

    shut(&stream->in);
    shut(&stream->out);
    nng_stream_close(stream->nng);
}

static void
direction_fini(struct direction *direction)
{
    if (direction->aio)
        nng_aio_reap(direction->aio);
    pthread_mutex_destroy(&direction->lock);
}

static void
stream_free(struct io_stream *base)
{
    struct stream *stream = (struct stream *)base;

    direction_fini(&stream->in);
    direction_fini(&stream->out);
    if (stream->now)
        nng_aio_reap(stream->now);
    nng_stream_free(stream->nng);
    free(stream);
}

static const char *
stream_peer(const struct io_stream *base)
{
    return ((const struct stream *)base)->peer;
}

static const struct io_stream_ops stream_ops = {
    .recv = recv_some,
    .send = send_all,
    .send_now = send_now,
    .close = stream_close,
    .free = stream_free,
    .peer = stream_peer,
};

struct io_stream *
io_nng_stream_new(nng_stream *nng)
{
    struct stream *stream = calloc(1, sizeof *stream);

    if (!stream) {
        nng_stream_free(nng);
        return NULL;
    }
    stream->base.ops = &stream_ops;
    stream->nng = nng;
    pthread_mutex_init(&stream->in.lock, NULL);
    pthread_mutex_init(&stream->out.lock, NULL);
    if (nng_aio_alloc(&stream->in.aio, received, stream) != 0 ||
        nng_aio_alloc(&stream->out.aio, sent, stream) != 0 ||
        nng_aio_alloc(&stream->now, NULL, NULL) != 0) {
        stream_free(&stream->base);
        return NULL;
    }
    io_nng_peer(nng, stream->peer, sizeof stream->peer);
    return &stream->base;
}
