#include "io_socket.h"

#include "io_loop.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* tcp and ipc by the system's sockets, edge-triggered: an operation runs on the
 * thread that learns that it can, and calls back there (decision 37). The
 * kernel tells each change once, so what was told is noted until a call comes
 * to its end: `readable` until a read finds less than it has room for. */

#define READS_MAX 16 /* of one stream, before others have their turn */
#define WATCHED (EPOLLIN | EPOLLRDHUP | EPOLLET)

struct receiving {
    pthread_mutex_t lock; /* guards what is below; held over no system call */
    bool pending;         /* buffer, size, done, with are the thread's */
    bool readable;
    bool closed;
    uint8_t *buffer;
    size_t size;
    io_done_fn *done;
    void *with;
};

struct sending {
    pthread_mutex_t lock; /* guards what is below; held over sendmsg */
    bool pending;
    bool closed;
    bool watched; /* for room: an ipc socket tells of each byte that is read */
    struct idem_bytes parts[IO_PARTS]; /* not written yet */
    unsigned n_parts;
    size_t size; /* of the whole send */
    io_done_fn *done;
    void *with;
};

struct stream {
    struct io_stream base;
    struct io_source source;
    bool hung; /* the thread's: nothing comes after what is there */
    struct receiving in;
    struct sending out;
    char peer[SOCKET_ADDRESS_MAX];
};

static struct stream *
stream_of(struct io_source *source)
{
    return (struct stream *)((char *)source - offsetof(struct stream, source));
}

/* --- Receiving --- */

static bool
receive(struct io_stream *base, void *buffer, size_t size, io_done_fn *done,
        void *with)
{
    struct stream *stream = (struct stream *)base;
    struct receiving *in = &stream->in;
    bool open, readable;

    pthread_mutex_lock(&in->lock);
    open = !in->closed;
    readable = in->readable;
    if (open) {
        in->pending = true;
        in->buffer = buffer;
        in->size = size;
        in->done = done;
        in->with = with;
    }
    pthread_mutex_unlock(&in->lock);
    if (open && readable)
        io_loop_nudge(&stream->source);
    return open;
}

/* What the socket has, up to the room; < 0: nothing now, or failed. */
static ssize_t
read_some(struct stream *stream)
{
    ssize_t n;

    do
        n = recv(stream->source.fd, stream->in.buffer, stream->in.size, 0);
    while (n < 0 && errno == EINTR);
    return n;
}

/* The pending receive is over. */
static void
received(struct stream *stream, enum idem_status result, size_t size,
         bool readable)
{
    struct receiving *in = &stream->in;

    pthread_mutex_lock(&in->lock);
    in->pending = false;
    in->readable = readable;
    pthread_mutex_unlock(&in->lock);
    in->done(in->with, result, size);
}

static void
unreadable(struct receiving *in)
{
    pthread_mutex_lock(&in->lock);
    in->readable = false;
    pthread_mutex_unlock(&in->lock);
}

/* One read. A stream socket that gives less than there is room for has no
 * more, but for its end, which is told once (epoll(7)). */
static void
receive_once(struct stream *stream)
{
    size_t room = stream->in.size;
    ssize_t n = read_some(stream);

    if (n >= 0)
        received(stream, IDEM_OK, (size_t)n, stream->hung || (size_t)n == room);
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
        unreadable(&stream->in);
    else
        received(stream, IDEM_UNAVAILABLE, 0, true);
}

static void
receive_ready(struct stream *stream, uint32_t events)
{
    struct receiving *in = &stream->in;
    bool came = events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    bool again = true;

    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        stream->hung = true;
    for (unsigned i = 0; again && i < READS_MAX; i++) {
        bool closed, readable;

        pthread_mutex_lock(&in->lock);
        in->readable |= came;
        came = false;
        readable = in->readable;
        closed = in->closed;
        again = in->pending && (readable || closed);
        pthread_mutex_unlock(&in->lock);
        if (again && closed)
            received(stream, IDEM_UNAVAILABLE, 0, readable);
        else if (again)
            receive_once(stream);
    }
    if (again)
        io_loop_nudge(&stream->source);
}

/* --- Sending --- */

/* What the socket takes of several; one costs the kernel less by send. */
static ssize_t
write_several(int fd, const struct idem_bytes *parts, unsigned n)
{
    struct iovec vector[IO_PARTS];
    struct msghdr message = {.msg_iov = vector, .msg_iovlen = n};

    IDEM_ASSERT(n <= IO_PARTS);
    for (unsigned i = 0; i < n; i++) {
        vector[i].iov_base = (void *)(uintptr_t)parts[i].data;
        vector[i].iov_len = parts[i].size;
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

/* < 0: nothing now, or failed. */
static ssize_t
write_some(const struct stream *stream, const struct idem_bytes *parts,
           unsigned n)
{
    int fd = stream->source.fd;
    ssize_t written;

    IDEM_ASSERT(n > 0);
    do
        written = n == 1 ? send(fd, parts->data, parts->size, MSG_NOSIGNAL)
                         : write_several(fd, parts, n);
    while (written < 0 && errno == EINTR);
    if (written > 0)
        io_loop_sent(&stream->source);
    return written;
}

static size_t
send_now(struct io_stream *base, const struct idem_bytes *parts, unsigned n)
{
    struct stream *stream = (struct stream *)base;
    struct sending *out = &stream->out;
    ssize_t written = 0;

    pthread_mutex_lock(&out->lock);
    if (!out->closed)
        written = write_some(stream, parts, n);
    pthread_mutex_unlock(&out->lock);
    return written > 0 ? (size_t)written : 0;
}

static bool
send_all(struct io_stream *base, const struct idem_bytes *parts, unsigned n,
         io_done_fn *done, void *with)
{
    struct stream *stream = (struct stream *)base;
    struct sending *out = &stream->out;
    bool open;

    IDEM_ASSERT(n > 0 && n <= IO_PARTS);
    pthread_mutex_lock(&out->lock);
    open = !out->closed;
    if (open) {
        memcpy(out->parts, parts, n * sizeof(parts[0]));
        out->n_parts = n;
        out->size = 0;
        for (unsigned i = 0; i < n; i++)
            out->size += parts[i].size;
        out->pending = true;
        out->done = done;
        out->with = with;
    }
    pthread_mutex_unlock(&out->lock);
    if (open)
        io_loop_nudge(&stream->source);
    return open;
}

/* With the lock. Watching anew tells also of room that is there already. False:
 * it cannot be watched. */
static bool
watch_room(struct stream *stream, bool wanted)
{
    struct sending *out = &stream->out;

    if (out->watched == wanted)
        return true;
    out->watched = wanted;
    return io_loop_watch(&stream->source, WATCHED | (wanted ? EPOLLOUT : 0));
}

/* With the lock: what the socket takes. True: the send is over. */
static bool
write_pending(struct stream *stream, enum idem_status *result)
{
    struct sending *out = &stream->out;

    *result = IDEM_OK;
    while (!out->closed && out->n_parts > 0) {
        ssize_t n = write_some(stream, out->parts, out->n_parts);

        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) &&
            watch_room(stream, true))
            return false;
        if (n < 0)
            break;
        out->n_parts = io_skip(out->parts, out->n_parts, (size_t)n);
    }
    if (out->n_parts > 0)
        *result = IDEM_UNAVAILABLE;
    else
        (void)watch_room(stream, false);
    return true;
}

static void
send_ready(struct stream *stream)
{
    struct sending *out = &stream->out;
    enum idem_status result = IDEM_OK;
    bool over;

    pthread_mutex_lock(&out->lock);
    over = out->pending && write_pending(stream, &result);
    if (over)
        out->pending = false;
    pthread_mutex_unlock(&out->lock);
    if (over)
        out->done(out->with, result, result == IDEM_OK ? out->size : 0);
}

/* --- Its life --- */

static void
stream_ready(struct io_source *source, uint32_t events)
{
    struct stream *stream = stream_of(source);

    /* A reply's way is free before the next request is read. */
    send_ready(stream);
    receive_ready(stream, events);
}

static void
stream_close(struct io_stream *base)
{
    struct stream *stream = (struct stream *)base;
    bool first;

    pthread_mutex_lock(&stream->in.lock);
    first = !stream->in.closed;
    stream->in.closed = true;
    pthread_mutex_unlock(&stream->in.lock);
    pthread_mutex_lock(&stream->out.lock);
    stream->out.closed = true;
    pthread_mutex_unlock(&stream->out.lock);
    if (!first)
        return;
    shutdown(stream->source.fd, SHUT_RDWR);
    io_loop_nudge(&stream->source);
}

static void
stream_dropped(struct io_source *source)
{
    struct stream *stream = stream_of(source);

    pthread_mutex_destroy(&stream->in.lock);
    pthread_mutex_destroy(&stream->out.lock);
    free(stream);
}

static void
stream_free(struct io_stream *base)
{
    io_loop_drop(&((struct stream *)base)->source);
}

static const char *
stream_peer(const struct io_stream *base)
{
    return ((const struct stream *)base)->peer;
}

static const struct io_stream_ops stream_ops = {
    .recv = receive,
    .send = send_all,
    .send_now = send_now,
    .close = stream_close,
    .free = stream_free,
    .peer = stream_peer,
};

/* A client's end of a unix socket has no name: then that of ours. */
static void
note_peer(struct stream *stream)
{
    struct sockaddr_storage where = {0};
    socklen_t size = sizeof where;

    if (getpeername(stream->source.fd, (struct sockaddr *)&where, &size) == 0)
        socket_address_write(stream->peer, &where);
    if (stream->peer[0])
        return;
    size = sizeof where;
    if (getsockname(stream->source.fd, (struct sockaddr *)&where, &size) == 0)
        socket_address_write(stream->peer, &where);
}

struct io_stream *
socket_stream_new(int fd)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (!stream) {
        close(fd);
        return NULL;
    }
    stream->base.ops = &stream_ops;
    stream->source.fd = fd;
    stream->source.ready = stream_ready;
    stream->source.dropped = stream_dropped;
    pthread_mutex_init(&stream->in.lock, NULL);
    pthread_mutex_init(&stream->out.lock, NULL);
    /* Not of tcp: refused, and no matter. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    note_peer(stream);
    if (!io_loop_join(&stream->source)) {
        close(fd);
        stream_dropped(&stream->source);
        return NULL;
    }
    if (!io_loop_watch(&stream->source, WATCHED)) {
        stream_free(&stream->base);
        return NULL;
    }
    return &stream->base;
}

const struct io io_socket = {
    .schemes = "tcp tcp4 tcp6 ipc unix",
    .listen = socket_listen,
    .dialer = socket_dialer,
};
