#include "io_socket.h"

#include "io_loop.h"
#include "io_opening.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BACKLOG 1024 /* connections that nobody has accepted yet */

struct listener {
    struct io_listener base;
    struct io_source source;
    pthread_mutex_t lock; /* guards what is below */
    pthread_cond_t over;  /* it is dropped */
    struct io_opening opening;
    bool dropped;
    char path[SOCKET_ADDRESS_MAX]; /* of ipc: unlinked at the end */
    char address[SOCKET_ADDRESS_MAX];
};

static struct listener *
listener_of(struct io_source *source)
{
    return (struct listener *)((char *)source -
                               offsetof(struct listener, source));
}

/* --- Accepting --- */

/* The waiting accept, which is answered now; NULL: none. */
static io_open_fn *
take_accept(struct listener *listener, void **with)
{
    io_open_fn *done;

    pthread_mutex_lock(&listener->lock);
    done = listener->opening.done;
    *with = listener->opening.with;
    listener->opening.done = NULL;
    pthread_mutex_unlock(&listener->lock);
    return done;
}

static void
answer(struct listener *listener, int fd, int error)
{
    struct io_stream *stream = fd >= 0 ? socket_stream_new(fd) : NULL;
    struct idem_error err = {0};
    void *with;
    io_open_fn *done = take_accept(listener, &with);

    if (!stream)
        idem_fail(&err, IDEM_UNAVAILABLE, "%s: %s", listener->address,
                  strerror(fd >= 0 ? ENOMEM : error));
    if (done)
        done(with, stream, &err);
    else if (stream)
        stream->ops->free(stream);
}

static bool
no_connection(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR ||
           error == ECONNABORTED;
}

static void
listener_ready(struct io_source *source, uint32_t events)
{
    struct listener *listener = listener_of(source);
    bool closed, waits;
    int fd;

    (void)events;
    pthread_mutex_lock(&listener->lock);
    closed = listener->opening.closed;
    waits = listener->opening.done != NULL;
    pthread_mutex_unlock(&listener->lock);
    if (!waits)
        return;
    if (closed) {
        answer(listener, -1, ECANCELED);
        return;
    }
    fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0 || !no_connection(errno))
        answer(listener, fd, errno);
    else if (!io_loop_watch(source, EPOLLIN | EPOLLONESHOT))
        answer(listener, -1, errno);
}

static bool
listener_accept(struct io_listener *base, io_open_fn *done, void *with)
{
    struct listener *listener = (struct listener *)base;
    bool open;

    pthread_mutex_lock(&listener->lock);
    open = io_opening_begin(&listener->opening, done, with);
    pthread_mutex_unlock(&listener->lock);
    if (open)
        io_loop_nudge(&listener->source);
    return open;
}

static const char *
listener_address(const struct io_listener *base)
{
    return ((const struct listener *)base)->address;
}

/* --- Its end --- */

static void
listener_close(struct io_listener *base)
{
    struct listener *listener = (struct listener *)base;
    bool first;

    pthread_mutex_lock(&listener->lock);
    first = !listener->opening.closed;
    listener->opening.closed = true;
    pthread_mutex_unlock(&listener->lock);
    if (!first)
        return;
    if (listener->path[0])
        unlink(listener->path);
    /* On Linux: who connects now is refused. */
    shutdown(listener->source.fd, SHUT_RDWR);
    io_loop_nudge(&listener->source);
}

static void
listener_dropped(struct io_source *source)
{
    struct listener *listener = listener_of(source);

    answer(listener, -1, ECANCELED);
    pthread_mutex_lock(&listener->lock);
    listener->dropped = true;
    pthread_cond_signal(&listener->over);
    pthread_mutex_unlock(&listener->lock);
}

static void
listener_fini(struct listener *listener)
{
    pthread_cond_destroy(&listener->over);
    pthread_mutex_destroy(&listener->lock);
    free(listener);
}

static void
listener_free(struct io_listener *base)
{
    struct listener *listener = (struct listener *)base;

    listener_close(base);
    io_loop_drop(&listener->source);
    pthread_mutex_lock(&listener->lock);
    while (!listener->dropped)
        pthread_cond_wait(&listener->over, &listener->lock);
    pthread_mutex_unlock(&listener->lock);
    listener_fini(listener);
}

static const struct io_listener_ops listener_ops = {
    listener_accept,
    listener_address,
    listener_close,
    listener_free,
};

/* --- Its beginning --- */

/* Where a tcp listener stands. */
static enum idem_status
resolve(const struct socket_place *place, const char *address,
        struct sockaddr_storage *where, socklen_t *size, struct idem_error *err)
{
    const struct addrinfo hints = {.ai_family = place->family,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found;
    int rc = getaddrinfo(place->host[0] ? place->host : NULL, place->port,
                         &hints, &found);

    if (rc != 0)
        return idem_fail(err, IDEM_UNAVAILABLE, "%s: %s", address,
                         gai_strerror(rc));
    memcpy(where, found->ai_addr, found->ai_addrlen);
    *size = found->ai_addrlen;
    freeaddrinfo(found);
    return IDEM_OK;
}

/* A path that nobody listens at any more, left by a process that was killed. */
static bool
is_left_over(const struct sockaddr_storage *where, socklen_t size)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool left;

    if (fd < 0)
        return false;
    left = connect(fd, (const struct sockaddr *)where, size) != 0 &&
           errno == ECONNREFUSED;
    close(fd);
    return left;
}

static bool
bind_to(int fd, const struct socket_place *place,
        const struct sockaddr_storage *where, socklen_t size)
{
    const struct sockaddr *name = (const struct sockaddr *)where;

    if (place->family != AF_UNIX)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fd, name, size) == 0)
        return true;
    if (place->family != AF_UNIX || errno != EADDRINUSE)
        return false;
    if (!is_left_over(where, size)) {
        errno = EADDRINUSE;
        return false;
    }
    unlink(place->host);
    return bind(fd, name, size) == 0;
}

/* A socket that listens; -1: errno says why not. */
static int
open_socket(const struct socket_place *place,
            const struct sockaddr_storage *where, socklen_t size)
{
    int why, fd = socket(where->ss_family,
                         SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (bind_to(fd, place, where, size) && listen(fd, BACKLOG) == 0)
        return fd;
    why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* The port that port 0 became. */
static void
note_address(struct listener *listener, const char *address)
{
    struct sockaddr_storage where = {0};
    socklen_t size = sizeof where;
    const struct sockaddr_in *name = (const struct sockaddr_in *)&where;

    snprintf(listener->address, sizeof listener->address, "%s", address);
    if (listener->path[0] ||
        getsockname(listener->source.fd, (struct sockaddr *)&where, &size) != 0)
        return;
    /* The port stands at the same place for IPv4 and IPv6. */
    snprintf(listener->address, sizeof listener->address, "%.*s:%u",
             (int)(strrchr(address, ':') - address), address,
             ntohs(name->sin_port));
}

/* Owns fd. */
static enum idem_status
listener_new(int fd, const struct socket_place *place, const char *address,
             struct io_listener **out, struct idem_error *err)
{
    struct listener *listener = calloc(1, sizeof(*listener));

    if (!listener) {
        close(fd);
        return idem_fail(err, IDEM_UNAVAILABLE, "%s: out of memory", address);
    }
    listener->base.ops = &listener_ops;
    listener->source.fd = fd;
    listener->source.ready = listener_ready;
    listener->source.dropped = listener_dropped;
    pthread_mutex_init(&listener->lock, NULL);
    pthread_cond_init(&listener->over, NULL);
    if (!io_loop_join(&listener->source)) {
        close(fd);
        listener_fini(listener);
        return idem_fail(err, IDEM_UNAVAILABLE, "%s: no thread", address);
    }
    if (place->family == AF_UNIX)
        snprintf(listener->path, sizeof listener->path, "%s", place->host);
    note_address(listener, address);
    *out = &listener->base;
    return IDEM_OK;
}

enum idem_status
socket_listen(const struct io *io, const char *address,
              struct io_listener **listener, struct idem_error *err)
{
    struct sockaddr_storage where;
    struct socket_place place;
    enum idem_status status;
    socklen_t size = 0;
    int fd;

    (void)io;
    status = socket_place_read(&place, address, err);
    if (status != IDEM_OK)
        return status;
    if (place.family == AF_UNIX)
        size = socket_path(&where, place.host);
    else
        status = resolve(&place, address, &where, &size, err);
    if (status != IDEM_OK)
        return status;
    fd = open_socket(&place, &where, size);
    if (fd < 0)
        return idem_fail(err, IDEM_UNAVAILABLE, "%s: %s", address,
                         strerror(errno));
    return listener_new(fd, &place, address, listener, err);
}
