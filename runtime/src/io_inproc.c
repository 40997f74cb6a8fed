#include "io_inproc.h"

#include "io_opening.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names inside the process: a dialer meets a listener's accept. The streams are
 * pairs (io_inproc_pair.c). One lock, the registry's, guards everything here.
 */

#define ADDRESS_MAX 256
#define BACKLOG_MAX 128 /* connections that nobody has accepted yet */

struct listener {
    struct io_listener base;
    char address[ADDRESS_MAX];
    struct listener *next; /* in the registry */
    struct io_opening opening;
    struct io_stream *backlog[BACKLOG_MAX];
    unsigned n_backlog;
    bool running; /* a callback is queued or runs */
    struct inproc_task task;
};

struct dialer {
    struct io_dialer base;
    char address[ADDRESS_MAX];
    struct io_opening opening;
    struct io_stream *stream; /* NULL: failed */
    struct inproc_task task;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t idle; /* a listener's callback has returned */
    struct listener *first;
} registry = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL};

static struct listener *
find(const char *address)
{
    struct listener *at = registry.first;

    while (at && strcmp(at->address, address) != 0)
        at = at->next;
    return at;
}

static void
drop(struct io_stream *stream)
{
    stream->ops->free(stream);
}

/* --- Listeners --- */

static struct io_stream *
take_backlog(struct listener *listener)
{
    struct io_stream *stream;

    if (listener->n_backlog == 0)
        return NULL;
    stream = listener->backlog[0];
    listener->n_backlog--;
    memmove(listener->backlog, listener->backlog + 1,
            listener->n_backlog * sizeof *listener->backlog);
    return stream;
}

/* With the lock: answer the accept that waits, when there is an answer. */
static void
serve(struct listener *listener)
{
    if (!listener->opening.done || listener->running)
        return;
    if (listener->n_backlog == 0 && !listener->opening.closed)
        return;
    listener->running = true;
    inproc_post(&listener->task);
}

static void
run_accepted(struct inproc_task *task)
{
    struct listener *listener =
        (struct listener *)((char *)task - offsetof(struct listener, task));
    struct idem_error err = {0};
    struct io_stream *stream;
    io_open_fn *done;

    pthread_mutex_lock(&registry.lock);
    done = listener->opening.done;
    listener->opening.done = NULL;
    stream = take_backlog(listener);
    pthread_mutex_unlock(&registry.lock);
    if (!stream)
        idem_fail(&err, IDEM_UNAVAILABLE, "%s: closed", listener->address);
    done(listener->opening.with, stream, &err);
    pthread_mutex_lock(&registry.lock);
    listener->running = false;
    serve(listener);
    pthread_cond_broadcast(&registry.idle);
    pthread_mutex_unlock(&registry.lock);
}

static bool
listener_accept(struct io_listener *base, io_open_fn *done, void *with)
{
    struct listener *listener = (struct listener *)base;
    bool open;

    pthread_mutex_lock(&registry.lock);
    open = io_opening_begin(&listener->opening, done, with);
    if (open)
        serve(listener);
    pthread_mutex_unlock(&registry.lock);
    return open;
}

static const char *
listener_address(const struct io_listener *base)
{
    return ((const struct listener *)base)->address;
}

/* With the lock. */
static void
unlist(struct listener *listener)
{
    struct listener **link = &registry.first;

    while (*link && *link != listener)
        link = &(*link)->next;
    if (*link)
        *link = listener->next;
}

static void
listener_close(struct io_listener *base)
{
    struct listener *listener = (struct listener *)base;

    pthread_mutex_lock(&registry.lock);
    listener->opening.closed = true;
    unlist(listener);
    serve(listener);
    pthread_mutex_unlock(&registry.lock);
}

static void
listener_free(struct io_listener *base)
{
    struct listener *listener = (struct listener *)base;

    listener_close(base);
    pthread_mutex_lock(&registry.lock);
    while (listener->running)
        pthread_cond_wait(&registry.idle, &registry.lock);
    pthread_mutex_unlock(&registry.lock);
    for (unsigned i = 0; i < listener->n_backlog; i++)
        drop(listener->backlog[i]);
    free(listener);
}

static const struct io_listener_ops listener_ops = {
    listener_accept,
    listener_address,
    listener_close,
    listener_free,
};

static enum idem_status
listen_at(const struct io *io, const char *address, struct io_listener **out,
          struct idem_error *err)
{
    struct listener *listener;
    bool taken;

    (void)io;
    if (strlen(address) >= ADDRESS_MAX)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "%s: too long", address);
    listener = calloc(1, sizeof *listener);
    if (!listener)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    listener->base.ops = &listener_ops;
    listener->task.run = run_accepted;
    snprintf(listener->address, ADDRESS_MAX, "%s", address);
    pthread_mutex_lock(&registry.lock);
    taken = find(address);
    if (!taken) {
        listener->next = registry.first;
        registry.first = listener;
    }
    pthread_mutex_unlock(&registry.lock);
    if (taken) {
        free(listener);
        return idem_fail(err, IDEM_UNAVAILABLE, "%s: address in use", address);
    }
    *out = &listener->base;
    return IDEM_OK;
}

/* --- Dialers --- */

static void
run_dialed(struct inproc_task *task)
{
    struct dialer *dialer =
        (struct dialer *)((char *)task - offsetof(struct dialer, task));
    struct idem_error err = {0};

    if (!dialer->stream)
        idem_fail(&err, IDEM_UNAVAILABLE, "%s: nobody listens",
                  dialer->address);
    dialer->opening.done(dialer->opening.with, dialer->stream, &err);
}

/* With the lock: the other end of a connection that the listener will get. */
static struct io_stream *
meet(const char *address)
{
    struct listener *listener = find(address);
    struct io_stream *ends[2];

    if (!listener || listener->n_backlog == BACKLOG_MAX ||
        !inproc_pair_new(address, ends))
        return NULL;
    listener->backlog[listener->n_backlog++] = ends[1];
    serve(listener);
    return ends[0];
}

static bool
dialer_dial(struct io_dialer *base, io_open_fn *done, void *with)
{
    struct dialer *dialer = (struct dialer *)base;
    bool open;

    pthread_mutex_lock(&registry.lock);
    open = io_opening_begin(&dialer->opening, done, with);
    if (open) {
        dialer->stream = meet(dialer->address);
        inproc_post(&dialer->task);
    }
    pthread_mutex_unlock(&registry.lock);
    return open;
}

static void
dialer_close(struct io_dialer *base)
{
    struct dialer *dialer = (struct dialer *)base;

    pthread_mutex_lock(&registry.lock);
    dialer->opening.closed = true;
    pthread_mutex_unlock(&registry.lock);
}

static void
dialer_free(struct io_dialer *base)
{
    free(base);
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

    (void)io;
    if (strlen(address) >= ADDRESS_MAX)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "%s: too long", address);
    dialer = calloc(1, sizeof *dialer);
    if (!dialer)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    dialer->base.ops = &dialer_ops;
    dialer->task.run = run_dialed;
    snprintf(dialer->address, ADDRESS_MAX, "%s", address);
    *out = &dialer->base;
    return IDEM_OK;
}

const struct io io_inproc = {
    .schemes = "inproc",
    .listen = listen_at,
    .dialer = dialer_of,
};
