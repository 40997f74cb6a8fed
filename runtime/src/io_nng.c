#include "io.h"

#include <nng/nng.h>

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

#define ADDRESS_MAX 256
#define PREFIX "nng+" /* of addresses that are nng's by choice */

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
    nng_aio *now;            /* of send_now: without a callback */
    nng_iov parts[IO_PARTS]; /* not written yet */
    unsigned n_parts;
    size_t size; /* of the whole send */
    char peer[ADDRESS_MAX];
};

struct listener {
    struct io_listener base;
    nng_stream_listener *nng;
    nng_aio *aio;
    pthread_mutex_t lock; /* guards closed */
    bool closed;
    io_open_fn *done;
    void *with;
    char address[ADDRESS_MAX];
};

struct dialer {
    struct io_dialer base;
    nng_stream_dialer *nng;
    nng_aio *aio;
    pthread_mutex_t lock; /* guards closed */
    bool closed;
    io_open_fn *done;
    void *with;
    char address[ADDRESS_MAX];
};

/* --- Streams --- */

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

/* Forget the bytes that are written. */
static void
advance(struct stream *stream, size_t size)
{
    unsigned whole = 0;

    while (whole < stream->n_parts && size >= stream->parts[whole].iov_len)
        size -= stream->parts[whole++].iov_len;
    stream->n_parts -= whole;
    memmove(stream->parts, stream->parts + whole,
            stream->n_parts * sizeof *stream->parts);
    if (stream->n_parts > 0) {
        stream->parts[0].iov_buf = (char *)stream->parts[0].iov_buf + size;
        stream->parts[0].iov_len -= size;
    }
}

static bool
send_rest(struct stream *stream)
{
    struct direction *out = &stream->out;
    bool open;

    pthread_mutex_lock(&out->lock);
    open = !out->closed;
    if (open) {
        nng_aio_set_iov(out->aio, stream->n_parts, stream->parts);
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
        advance(stream, nng_aio_count(stream->out.aio));
        if (stream->n_parts == 0) {
            stream->out.done(stream->out.with, IDEM_OK, stream->size);
            return;
        }
        if (send_rest(stream))
            return;
    }
    stream->out.done(stream->out.with, IDEM_UNAVAILABLE, 0);
}

static void
load(struct stream *stream, const struct idem_bytes *parts, unsigned n)
{
    IDEM_ASSERT(n > 0 && n <= IO_PARTS);
    stream->size = 0;
    stream->n_parts = n;
    for (unsigned i = 0; i < n; i++) {
        stream->parts[i].iov_buf = (void *)(uintptr_t)parts[i].data;
        stream->parts[i].iov_len = parts[i].size;
        stream->size += parts[i].size;
    }
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

    load(stream, parts, n);
    pthread_mutex_lock(&out->lock);
    if (!out->closed) {
        nng_aio_set_iov(stream->now, n, stream->parts);
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

    load(stream, parts, n);
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

static void
write_tcp_address(char text[ADDRESS_MAX], const nng_sockaddr *address)
{
    const uint8_t *ip = (const uint8_t *)&address->s_in.sa_addr;
    const uint8_t *port = (const uint8_t *)&address->s_in.sa_port;

    if (address->s_family == NNG_AF_INET)
        snprintf(text, ADDRESS_MAX, "tcp://%u.%u.%u.%u:%u", ip[0], ip[1], ip[2],
                 ip[3], port[0] << 8 | port[1]);
}

/* Owns the nng stream. NULL: out of memory. */
static struct io_stream *
stream_new(nng_stream *nng)
{
    struct stream *stream = calloc(1, sizeof *stream);
    nng_sockaddr address;

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
    if (nng_stream_get_addr(nng, NNG_OPT_REMADDR, &address) == 0)
        write_tcp_address(stream->peer, &address);
    return &stream->base;
}

/* What an accept or a dial came to. */
static void
opened(nng_aio *aio, const char *address, io_open_fn *done, void *with)
{
    struct idem_error err = {0};
    struct io_stream *stream = NULL;
    int rv = nng_aio_result(aio);

    if (rv == 0) {
        stream = stream_new(nng_aio_get_output(aio, 0));
        rv = stream ? 0 : NNG_ENOMEM;
    }
    if (rv != 0)
        idem_fail(&err, IDEM_UNAVAILABLE, "%s: %s", address, nng_strerror(rv));
    done(with, stream, &err);
}

/* --- Listeners --- */

static void
accepted(void *with)
{
    struct listener *listener = with;

    opened(listener->aio, listener->address, listener->done, listener->with);
}

static bool
listener_accept(struct io_listener *base, io_open_fn *done, void *with)
{
    struct listener *listener = (struct listener *)base;
    bool open;

    pthread_mutex_lock(&listener->lock);
    open = !listener->closed;
    if (open) {
        listener->done = done;
        listener->with = with;
        nng_stream_listener_accept(listener->nng, listener->aio);
    }
    pthread_mutex_unlock(&listener->lock);
    return open;
}

static const char *
listener_address(const struct io_listener *base)
{
    return ((const struct listener *)base)->address;
}

static void
listener_close(struct io_listener *base)
{
    struct listener *listener = (struct listener *)base;

    pthread_mutex_lock(&listener->lock);
    listener->closed = true;
    pthread_mutex_unlock(&listener->lock);
    nng_stream_listener_close(listener->nng);
}

static void
listener_free(struct io_listener *base)
{
    struct listener *listener = (struct listener *)base;

    listener_close(base);
    if (listener->aio) {
        nng_aio_stop(listener->aio);
        nng_aio_free(listener->aio);
    }
    nng_stream_listener_free(listener->nng);
    pthread_mutex_destroy(&listener->lock);
    free(listener);
}

static const struct io_listener_ops listener_ops = {
    listener_accept,
    listener_address,
    listener_close,
    listener_free,
};

static enum idem_status
refuse(struct idem_error *err, const char *address, int rv)
{
    bool wrong = rv == NNG_EADDRINVAL || rv == NNG_EINVAL || rv == NNG_ENOTSUP;

    return idem_fail(err, wrong ? IDEM_INVALID_ARGUMENT : IDEM_UNAVAILABLE,
                     "%s: %s", address, nng_strerror(rv));
}

/* "nng+tcp://…" as nng knows it. */
static const char *
bare(const char *address)
{
    return strncmp(address, PREFIX, sizeof PREFIX - 1) == 0
               ? address + sizeof PREFIX - 1
               : address;
}

/* The port that port 0 became. */
static void
note_address(struct listener *listener, const char *address)
{
    int port = 0;
    const char *last = strrchr(address, ':');
    bool tcp = strncmp(bare(address), "tcp", 3) == 0;

    if (tcp && last &&
        nng_stream_listener_get_int(listener->nng, NNG_OPT_TCP_BOUND_PORT,
                                    &port) == 0)
        snprintf(listener->address, ADDRESS_MAX, "%.*s:%d",
                 (int)(last - address), address, port);
    else
        snprintf(listener->address, ADDRESS_MAX, "%s", address);
}

/* Nobody logs in by an address, and nng 1.5.2 reads past the end of "tcp://a@".
 */
static bool
has_user(const char *address)
{
    return strncmp(bare(address), "tcp", 3) == 0 && strchr(address, '@');
}

static enum idem_status
refuse_user(struct idem_error *err, const char *address)
{
    return idem_fail(err, IDEM_INVALID_ARGUMENT,
                     "\"%s\" is no address: it has a user before the @",
                     address);
}

static enum idem_status
listen_at(const struct io *io, const char *address, struct io_listener **out,
          struct idem_error *err)
{
    struct listener *listener;
    int rv;

    (void)io;
    if (has_user(address))
        return refuse_user(err, address);
    listener = calloc(1, sizeof *listener);
    rv = listener ? 0 : NNG_ENOMEM;
    if (rv == 0)
        rv = nng_stream_listener_alloc(&listener->nng, bare(address));
    if (rv != 0) {
        free(listener);
        return refuse(err, address, rv);
    }
    listener->base.ops = &listener_ops;
    pthread_mutex_init(&listener->lock, NULL);
    (void)nng_stream_listener_set_bool(listener->nng, NNG_OPT_TCP_NODELAY,
                                       true);
    rv = nng_stream_listener_listen(listener->nng);
    if (rv == 0)
        rv = nng_aio_alloc(&listener->aio, accepted, listener);
    if (rv != 0) {
        listener_free(&listener->base);
        return refuse(err, address, rv);
    }
    note_address(listener, address);
    *out = &listener->base;
    return IDEM_OK;
}

/* --- Dialers --- */

static void
dialed(void *with)
{
    struct dialer *dialer = with;
    io_open_fn *done;
    void *done_with;

    /* dialer_dial is still inside its lock when the dialling ends early, and
     * done may free the dialer. */
    pthread_mutex_lock(&dialer->lock);
    done = dialer->done;
    done_with = dialer->with;
    pthread_mutex_unlock(&dialer->lock);
    opened(dialer->aio, dialer->address, done, done_with);
}

static bool
dialer_dial(struct io_dialer *base, io_open_fn *done, void *with)
{
    struct dialer *dialer = (struct dialer *)base;
    bool open;

    pthread_mutex_lock(&dialer->lock);
    open = !dialer->closed;
    if (open) {
        dialer->done = done;
        dialer->with = with;
        nng_stream_dialer_dial(dialer->nng, dialer->aio);
    }
    pthread_mutex_unlock(&dialer->lock);
    return open;
}

static void
dialer_close(struct io_dialer *base)
{
    struct dialer *dialer = (struct dialer *)base;

    pthread_mutex_lock(&dialer->lock);
    dialer->closed = true;
    pthread_mutex_unlock(&dialer->lock);
    nng_stream_dialer_close(dialer->nng);
}

static void
dialer_free(struct io_dialer *base)
{
    struct dialer *dialer = (struct dialer *)base;

    if (dialer->aio)
        nng_aio_reap(dialer->aio);
    nng_stream_dialer_free(dialer->nng);
    pthread_mutex_destroy(&dialer->lock);
    free(dialer);
}

static const struct io_dialer_ops dialer_ops = {
    dialer_dial,
    dialer_close,
    dialer_free,
};

static enum idem_status
dialer_of(const struct io *io, const char *address, struct io_dialer **out,
          struct idem_error *err)
{
    struct dialer *dialer;
    int rv;

    (void)io;
    if (has_user(address))
        return refuse_user(err, address);
    dialer = calloc(1, sizeof *dialer);
    rv = dialer ? 0 : NNG_ENOMEM;
    if (rv == 0)
        rv = nng_stream_dialer_alloc(&dialer->nng, bare(address));
    if (rv != 0) {
        free(dialer);
        return refuse(err, address, rv);
    }
    dialer->base.ops = &dialer_ops;
    pthread_mutex_init(&dialer->lock, NULL);
    snprintf(dialer->address, ADDRESS_MAX, "%s", address);
    (void)nng_stream_dialer_set_bool(dialer->nng, NNG_OPT_TCP_NODELAY, true);
    rv = nng_aio_alloc(&dialer->aio, dialed, dialer);
    if (rv != 0) {
        dialer_free(&dialer->base);
        return refuse(err, address, rv);
    }
    *out = &dialer->base;
    return IDEM_OK;
}

const struct io io_nng = {
    .schemes = "abstract nng+tcp nng+tcp4 nng+tcp6 nng+ipc",
    .listen = listen_at,
    .dialer = dialer_of,
};
