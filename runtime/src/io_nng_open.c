#include "io_nng.h"

#include "io_opening.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "nng+" /* of addresses that are nng's by choice */

struct listener {
    struct io_listener base;
    nng_stream_listener *nng;
    nng_aio *aio;
    pthread_mutex_t lock; /* guards the next */
    struct io_opening opening;
    char address[IO_NNG_ADDRESS_MAX];
};

struct dialer {
    struct io_dialer base;
    nng_stream_dialer *nng;
    nng_aio *aio;
    pthread_mutex_t lock; /* guards the next */
    struct io_opening opening;
    char address[IO_NNG_ADDRESS_MAX];
};

/* What an accept or a dial came to. */
static void
opened(nng_aio *aio, const char *address, io_open_fn *done, void *with)
{
    struct idem_error err = {0};
    struct io_stream *stream = NULL;
    int rv = nng_aio_result(aio);

    if (rv == 0) {
        stream = io_nng_stream_new(nng_aio_get_output(aio, 0));
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

    opened(listener->aio, listener->address, listener->opening.done,
           listener->opening.with);
}

static bool
listener_accept(struct io_listener *base, io_open_fn *done, void *with)
{
    struct listener *listener = (struct listener *)base;
    bool open;

    pthread_mutex_lock(&listener->lock);
    open = io_opening_begin(&listener->opening, done, with);
    if (open)
        nng_stream_listener_accept(listener->nng, listener->aio);
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
    listener->opening.closed = true;
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
        snprintf(listener->address, IO_NNG_ADDRESS_MAX, "%.*s:%d",
                 (int)(last - address), address, port);
    else
        snprintf(listener->address, IO_NNG_ADDRESS_MAX, "%s", address);
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
    done = dialer->opening.done;
    done_with = dialer->opening.with;
    pthread_mutex_unlock(&dialer->lock);
    opened(dialer->aio, dialer->address, done, done_with);
}

static bool
dialer_dial(struct io_dialer *base, io_open_fn *done, void *with)
{
    struct dialer *dialer = (struct dialer *)base;
    bool open;

    pthread_mutex_lock(&dialer->lock);
    open = io_opening_begin(&dialer->opening, done, with);
    if (open)
        nng_stream_dialer_dial(dialer->nng, dialer->aio);
    pthread_mutex_unlock(&dialer->lock);
    return open;
}

static void
dialer_close(struct io_dialer *base)
{
    struct dialer *dialer = (struct dialer *)base;

    pthread_mutex_lock(&dialer->lock);
    dialer->opening.closed = true;
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
    snprintf(dialer->address, IO_NNG_ADDRESS_MAX, "%s", address);
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
