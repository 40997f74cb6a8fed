#include "fuzz_wire.h"

#include "io_inproc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What must not come inside a submit or a close comes on the in-process
 * transport's thread. */

/* What the library waits for. */
struct operation {
    io_done_fn *done; /* NULL: for nothing */
    void *with;
    size_t size;
    struct inproc_task task;
};

struct fuzz_wire {
    struct io_stream base; /* first: the library's end */
    unsigned ends;         /* that are not let go of; the lock */

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t change;
    bool closed;
    uint8_t *buffer; /* that is received into */
    size_t room;
    struct operation recv, send;
    uint8_t *said; /* by the library: taken of size bytes are heard */
    size_t taken, size, capacity;
};

/* Who waits for a connection; one at a time. */
struct opening {
    union {
        struct io_listener listener;
        struct io_dialer dialer;
    } base; /* first */
    io_open_fn *done;
    void *with;
    bool closed;
    struct inproc_task task;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards these */
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static struct opening *accepting, *dialing; /* with done */

/* --- A connection --- */

static struct fuzz_wire *
wire_of(const struct io_stream *base)
{
    return (struct fuzz_wire *)(uintptr_t)base;
}

static void
let_go(struct fuzz_wire *wire)
{
    bool last;

    pthread_mutex_lock(&wire->lock);
    last = --wire->ends == 0;
    pthread_mutex_unlock(&wire->lock);
    if (!last)
        return;
    pthread_cond_destroy(&wire->change);
    pthread_mutex_destroy(&wire->lock);
    free(wire->said);
    free(wire);
}

/* With the lock, which is let go of: what is waited for has come. */
static void
answer(struct fuzz_wire *wire, enum idem_status result, size_t size)
{
    struct operation recv = wire->recv;

    wire->recv.done = NULL;
    pthread_mutex_unlock(&wire->lock);
    recv.done(recv.with, result, size);
}

static void
run_closed(struct inproc_task *task)
{
    struct fuzz_wire *wire =
        (struct fuzz_wire *)((char *)task -
                             offsetof(struct fuzz_wire, recv.task));

    pthread_mutex_lock(&wire->lock);
    answer(wire, IDEM_UNAVAILABLE, 0);
}

static void
run_sent(struct inproc_task *task)
{
    struct fuzz_wire *wire =
        (struct fuzz_wire *)((char *)task -
                             offsetof(struct fuzz_wire, send.task));
    struct operation send = wire->send;

    send.done(send.with, IDEM_OK, send.size);
}

static bool
wire_recv(struct io_stream *base, void *buffer, size_t size, io_done_fn *done,
          void *with)
{
    struct fuzz_wire *wire = wire_of(base);
    bool taken;

    pthread_mutex_lock(&wire->lock);
    taken = !wire->closed;
    if (taken) {
        wire->buffer = buffer;
        wire->room = size;
        wire->recv.done = done;
        wire->recv.with = with;
        pthread_cond_broadcast(&wire->change);
    }
    pthread_mutex_unlock(&wire->lock);
    return taken;
}

/* With the lock. */
static void
put(struct fuzz_wire *wire, struct idem_bytes bytes)
{
    if (bytes.size == 0)
        return;
    if (wire->taken == wire->size)
        wire->taken = wire->size = 0;
    if (wire->size + bytes.size > wire->capacity) {
        wire->capacity = 2 * (wire->size + bytes.size);
        wire->said = realloc(wire->said, wire->capacity);
        IDEM_ASSERT(wire->said);
    }
    memcpy(wire->said + wire->size, bytes.data, bytes.size);
    wire->size += bytes.size;
}

static size_t
wire_send_now(struct io_stream *base, const struct idem_bytes *parts,
              unsigned n)
{
    struct fuzz_wire *wire = wire_of(base);
    size_t size = 0;

    pthread_mutex_lock(&wire->lock);
    for (unsigned i = 0; i < n && !wire->closed; i++) {
        put(wire, parts[i]);
        size += parts[i].size;
    }
    pthread_cond_broadcast(&wire->change);
    pthread_mutex_unlock(&wire->lock);
    return size;
}

static bool
wire_send(struct io_stream *base, const struct idem_bytes *parts, unsigned n,
          io_done_fn *done, void *with)
{
    struct fuzz_wire *wire = wire_of(base);
    size_t size = wire_send_now(base, parts, n);

    if (size == 0)
        return false;
    wire->send.done = done;
    wire->send.with = with;
    wire->send.size = size;
    wire->send.task.run = run_sent;
    inproc_post(&wire->send.task);
    return true;
}

static void
wire_close(struct io_stream *base)
{
    struct fuzz_wire *wire = wire_of(base);
    bool first, waits;

    pthread_mutex_lock(&wire->lock);
    first = !wire->closed;
    waits = wire->recv.done;
    wire->closed = true;
    pthread_cond_broadcast(&wire->change);
    if (first && waits) {
        wire->recv.task.run = run_closed;
        inproc_post(&wire->recv.task);
    }
    pthread_mutex_unlock(&wire->lock);
}

static void
wire_free(struct io_stream *base)
{
    let_go(wire_of(base));
}

static const char *
wire_peer(const struct io_stream *base)
{
    (void)base;
    return FUZZ_WIRE_ADDRESS;
}

static const struct io_stream_ops stream_ops = {
    .recv = wire_recv,
    .send = wire_send,
    .send_now = wire_send_now,
    .close = wire_close,
    .free = wire_free,
    .peer = wire_peer,
};

/* --- How it comes to be --- */

static void
run_refused(struct inproc_task *task)
{
    struct opening *opening =
        (struct opening *)((char *)task - offsetof(struct opening, task));
    struct idem_error err;

    (void)idem_fail(&err, IDEM_UNAVAILABLE, "closed");
    opening->done(opening->with, NULL, &err);
}

static bool
await_peer(struct opening *opening, struct opening **where, io_open_fn *done,
           void *with)
{
    bool taken;

    pthread_mutex_lock(&lock);
    taken = !opening->closed;
    if (taken) {
        opening->done = done;
        opening->with = with;
        *where = opening;
        pthread_cond_broadcast(&change);
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

static void
stop_waiting(struct opening *opening, struct opening **where)
{
    pthread_mutex_lock(&lock);
    opening->closed = true;
    if (*where == opening) {
        *where = NULL;
        opening->task.run = run_refused;
        inproc_post(&opening->task);
    }
    pthread_mutex_unlock(&lock);
}

static bool
listener_accept(struct io_listener *listener, io_open_fn *done, void *with)
{
    return await_peer((struct opening *)listener, &accepting, done, with);
}

static void
listener_close(struct io_listener *listener)
{
    stop_waiting((struct opening *)listener, &accepting);
}

static const char *
listener_address(const struct io_listener *listener)
{
    (void)listener;
    return FUZZ_WIRE_ADDRESS;
}

struct barrier {
    struct inproc_task task;
    bool passed;
};

static void
run_barrier(struct inproc_task *task)
{
    pthread_mutex_lock(&lock);
    ((struct barrier *)task)->passed = true;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
}

/* What was posted before has run. */
static void
listener_free(struct io_listener *listener)
{
    struct barrier barrier = {.task = {.run = run_barrier}};

    listener_close(listener);
    inproc_post(&barrier.task);
    pthread_mutex_lock(&lock);
    while (!barrier.passed)
        pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
    free(listener);
}

static bool
dialer_dial(struct io_dialer *dialer, io_open_fn *done, void *with)
{
    return await_peer((struct opening *)dialer, &dialing, done, with);
}

static void
dialer_close(struct io_dialer *dialer)
{
    stop_waiting((struct opening *)dialer, &dialing);
}

static void
dialer_free(struct io_dialer *dialer)
{
    free(dialer);
}

static const struct io_listener_ops listener_ops = {
    listener_accept,
    listener_address,
    listener_close,
    listener_free,
};

static const struct io_dialer_ops dialer_ops = {
    dialer_dial,
    dialer_close,
    dialer_free,
};

static enum idem_status
wire_listen(const struct io *io, const char *address,
            struct io_listener **listener, struct idem_error *err)
{
    struct opening *opening = calloc(1, sizeof *opening);

    (void)io;
    (void)address;
    (void)err;
    IDEM_ASSERT(opening);
    opening->base.listener.ops = &listener_ops;
    *listener = &opening->base.listener;
    return IDEM_OK;
}

static enum idem_status
wire_dialer(const struct io *io, const char *address, struct io_dialer **dialer,
            struct idem_error *err)
{
    struct opening *opening = calloc(1, sizeof *opening);

    (void)io;
    (void)address;
    (void)err;
    IDEM_ASSERT(opening);
    opening->base.dialer.ops = &dialer_ops;
    *dialer = &opening->base.dialer;
    return IDEM_OK;
}

const struct io fuzz_wire_io = {
    .schemes = "fuzz", .listen = wire_listen, .dialer = wire_dialer};

/* --- The peer's end --- */

static struct fuzz_wire *
open_to(struct opening **where)
{
    struct fuzz_wire *wire = calloc(1, sizeof *wire);
    struct opening *opening;

    IDEM_ASSERT(wire);
    wire->base.ops = &stream_ops;
    wire->ends = 2;
    pthread_mutex_init(&wire->lock, NULL);
    pthread_cond_init(&wire->change, NULL);
    pthread_mutex_lock(&lock);
    while (!*where)
        pthread_cond_wait(&change, &lock);
    opening = *where;
    *where = NULL;
    pthread_mutex_unlock(&lock);
    opening->done(opening->with, &wire->base, NULL);
    return wire;
}

struct fuzz_wire *
fuzz_wire_connect(void)
{
    return open_to(&accepting);
}

struct fuzz_wire *
fuzz_wire_accept(void)
{
    return open_to(&dialing);
}

bool
fuzz_wire_say(struct fuzz_wire *wire, struct idem_bytes bytes)
{
    while (bytes.size > 0) {
        size_t size;

        pthread_mutex_lock(&wire->lock);
        while (!wire->recv.done && !wire->closed)
            pthread_cond_wait(&wire->change, &wire->lock);
        if (wire->closed) {
            pthread_mutex_unlock(&wire->lock);
            return false;
        }
        size = bytes.size < wire->room ? bytes.size : wire->room;
        memcpy(wire->buffer, bytes.data, size);
        answer(wire, IDEM_OK, size);
        bytes.data += size;
        bytes.size -= size;
    }
    return true;
}

size_t
fuzz_wire_hear(struct fuzz_wire *wire, uint8_t *buffer, size_t room)
{
    size_t size;

    pthread_mutex_lock(&wire->lock);
    while (wire->taken == wire->size && !wire->closed)
        pthread_cond_wait(&wire->change, &wire->lock);
    size = wire->size - wire->taken;
    if (size > room)
        size = room;
    if (size > 0)
        memcpy(buffer, wire->said + wire->taken, size);
    wire->taken += size;
    pthread_mutex_unlock(&wire->lock);
    return size;
}

void
fuzz_wire_hang_up(struct fuzz_wire *wire)
{
    pthread_mutex_lock(&wire->lock);
    if (!wire->closed) {
        while (!wire->recv.done && !wire->closed)
            pthread_cond_wait(&wire->change, &wire->lock);
        if (!wire->closed) {
            wire->closed = true;
            answer(wire, IDEM_OK, 0); /* the peer has closed it */
            let_go(wire);
            return;
        }
    }
    pthread_mutex_unlock(&wire->lock);
    let_go(wire);
}
