#include "io_socket.h"

#include "io_loop.h"
#include "io_opening.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* A name is looked up on a thread of its own, since that blocks. What it stands
 * for is tried in order, on the loop's thread.
 *
 *    NEW --name--> LOOKING --found--> CONNECTING --failed--> the next one
 *     `---number or path---------------^ `--connected--> DONE
 *
 * From each state: close, and nothing left to try, are DONE. */
enum stage { STAGE_NEW, STAGE_LOOKING, STAGE_CONNECTING, STAGE_DONE };

struct dialer {
    struct io_dialer base;
    struct io_source source; /* its fd is the socket that connects */
    struct socket_place place;
    char address[SOCKET_ADDRESS_MAX];
    atomic_uint refs; /* the source's, and the lookup's while it runs */

    enum stage stage; /* the loop's thread's, and the rest of this block */
    struct addrinfo *next;
    int why; /* errno of the last that failed */

    pthread_mutex_t lock;      /* guards the rest */
    struct io_opening opening; /* done is set once */
    bool dropped;
    bool found_out; /* the lookup is over: found, or error of getaddrinfo */
    struct addrinfo *found;
    int error;
};

static struct dialer *
dialer_of(struct io_source *source)
{
    return (struct dialer *)((char *)source - offsetof(struct dialer, source));
}

static void
unref(struct dialer *dialer)
{
    if (atomic_fetch_sub(&dialer->refs, 1) != 1)
        return;
    if (dialer->found)
        freeaddrinfo(dialer->found);
    pthread_mutex_destroy(&dialer->lock);
    free(dialer);
}

/* --- Its end --- */

static void
finish(struct dialer *dialer, struct io_stream *stream, const char *why)
{
    struct idem_error err = {0};

    if (!stream)
        idem_fail(&err, IDEM_UNAVAILABLE, "%s: %s", dialer->address, why);
    dialer->stage = STAGE_DONE;
    dialer->opening.done(dialer->opening.with, stream, &err);
}

static void
connected(struct dialer *dialer)
{
    struct io_stream *stream =
        socket_stream_new(io_loop_release(&dialer->source));

    finish(dialer, stream, strerror(ENOMEM));
}

/* --- Connecting --- */

static void
forget_socket(struct dialer *dialer, int why)
{
    int fd = io_loop_release(&dialer->source);

    if (fd >= 0)
        close(fd);
    dialer->why = why;
}

/* True: it is under way, or done already. */
static bool
connect_to(struct dialer *dialer, const struct sockaddr *where, socklen_t size)
{
    struct io_source *source = &dialer->source;

    dialer->stage = STAGE_CONNECTING;
    source->fd =
        socket(where->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (source->fd >= 0 && connect(source->fd, where, size) == 0) {
        connected(dialer);
        return true;
    }
    if (source->fd >= 0 && errno == EINPROGRESS &&
        io_loop_watch(source, EPOLLOUT | EPOLLONESHOT))
        return true;
    forget_socket(dialer, errno);
    return false;
}

static void
connect_next(struct dialer *dialer)
{
    while (dialer->next) {
        const struct addrinfo *to = dialer->next;

        dialer->next = to->ai_next;
        if (connect_to(dialer, to->ai_addr, to->ai_addrlen))
            return;
    }
    finish(dialer, NULL, strerror(dialer->why));
}

static void
connect_path(struct dialer *dialer)
{
    struct sockaddr_storage where;
    socklen_t size = socket_path(&where, dialer->place.host);

    if (!connect_to(dialer, (const struct sockaddr *)&where, size))
        finish(dialer, NULL, strerror(dialer->why));
}

static void
see_connection(struct dialer *dialer)
{
    int why = 0;
    socklen_t size = sizeof why;

    (void)getsockopt(dialer->source.fd, SOL_SOCKET, SO_ERROR, &why, &size);
    if (why == 0) {
        connected(dialer);
        return;
    }
    forget_socket(dialer, why);
    connect_next(dialer);
}

/* --- Looking up --- */

static int
look_up(const struct socket_place *place, int flags, struct addrinfo **found)
{
    const struct addrinfo hints = {.ai_family = place->family,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = flags | AI_NUMERICSERV};

    *found = NULL;
    return getaddrinfo(place->host[0] ? place->host : NULL, place->port, &hints,
                       found);
}

static void *
look_up_name(void *with)
{
    struct dialer *dialer = with;
    struct addrinfo *found;
    int error = look_up(&dialer->place, 0, &found);

    pthread_mutex_lock(&dialer->lock);
    dialer->found = found;
    dialer->error = error;
    dialer->found_out = true;
    if (!dialer->dropped)
        io_loop_nudge(&dialer->source);
    pthread_mutex_unlock(&dialer->lock);
    unref(dialer);
    return NULL;
}

static void
start_lookup(struct dialer *dialer)
{
    pthread_t thread;

    dialer->stage = STAGE_LOOKING;
    atomic_fetch_add(&dialer->refs, 1);
    if (pthread_create(&thread, NULL, look_up_name, dialer) == 0) {
        pthread_detach(thread);
        return;
    }
    atomic_fetch_sub(&dialer->refs, 1);
    finish(dialer, NULL, "no thread to look the name up");
}

static void
begin(struct dialer *dialer)
{
    if (dialer->place.family == AF_UNIX) {
        connect_path(dialer);
    } else if (look_up(&dialer->place, AI_NUMERICHOST, &dialer->found) == 0) {
        dialer->next = dialer->found;
        connect_next(dialer);
    } else {
        start_lookup(dialer);
    }
}

static void
see_lookup(struct dialer *dialer)
{
    bool over;

    pthread_mutex_lock(&dialer->lock);
    over = dialer->found_out;
    pthread_mutex_unlock(&dialer->lock);
    if (!over)
        return;
    if (dialer->error != 0) {
        finish(dialer, NULL, gai_strerror(dialer->error));
        return;
    }
    dialer->next = dialer->found;
    connect_next(dialer);
}

/* --- Its life --- */

static void
dialer_ready(struct io_source *source, uint32_t events)
{
    struct dialer *dialer = dialer_of(source);
    bool closed, waits;

    pthread_mutex_lock(&dialer->lock);
    closed = dialer->opening.closed;
    waits = dialer->opening.done != NULL;
    pthread_mutex_unlock(&dialer->lock);
    if (!waits || dialer->stage == STAGE_DONE)
        return;
    if (closed) {
        forget_socket(dialer, ECANCELED);
        finish(dialer, NULL, "closed");
    } else if (dialer->stage == STAGE_NEW) {
        begin(dialer);
    } else if (dialer->stage == STAGE_LOOKING) {
        see_lookup(dialer);
    } else if (events) {
        see_connection(dialer);
    }
}

static bool
dialer_dial(struct io_dialer *base, io_open_fn *done, void *with)
{
    struct dialer *dialer = (struct dialer *)base;
    bool open;

    pthread_mutex_lock(&dialer->lock);
    open = io_opening_begin(&dialer->opening, done, with);
    if (open)
        io_loop_nudge(&dialer->source);
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
    io_loop_nudge(&dialer->source);
}

static void
dialer_dropped(struct io_source *source)
{
    struct dialer *dialer = dialer_of(source);

    pthread_mutex_lock(&dialer->lock);
    dialer->dropped = true;
    pthread_mutex_unlock(&dialer->lock);
    unref(dialer);
}

static void
dialer_free(struct io_dialer *base)
{
    io_loop_drop(&((struct dialer *)base)->source);
}

static const struct io_dialer_ops dialer_ops = {
    dialer_dial,
    dialer_close,
    dialer_free,
};

enum idem_status
socket_dialer(const struct io *io, const char *address, struct io_dialer **out,
              struct idem_error *err)
{
    struct socket_place place;
    struct dialer *dialer;

    (void)io;
    if (socket_place_read(&place, address, err) != IDEM_OK)
        return IDEM_INVALID_ARGUMENT;
    dialer = calloc(1, sizeof(*dialer));
    if (!dialer)
        return idem_fail(err, IDEM_UNAVAILABLE, "%s: out of memory", address);
    dialer->base.ops = &dialer_ops;
    dialer->source.fd = -1;
    dialer->source.ready = dialer_ready;
    dialer->source.dropped = dialer_dropped;
    dialer->place = place;
    snprintf(dialer->address, sizeof dialer->address, "%s", address);
    atomic_init(&dialer->refs, 1);
    pthread_mutex_init(&dialer->lock, NULL);
    if (!io_loop_join(&dialer->source)) {
        unref(dialer);
        return idem_fail(err, IDEM_UNAVAILABLE, "%s: no thread", address);
    }
    *out = &dialer->base;
    return IDEM_OK;
}
