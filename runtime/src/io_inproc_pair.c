#include "io_inproc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A send meets a receive and its bytes are copied from the one's buffer to the
 * other's: nothing is kept in between, so a reader that is slow holds its
 * writer back at once. */

#define ADDRESS_MAX 256

/* A receive or a send that waits for its callback. */
struct operation {
    bool pending; /* submitted, not complete */
    io_done_fn *done;
    void *with;
    enum idem_status result;
    size_t size;
    struct inproc_task task;
};

struct end {
    struct io_stream base;
    struct pair *pair;
    bool closed;
    struct operation recv, send;
    uint8_t *space; /* recv's */
    size_t room;
    struct idem_bytes parts[IO_PARTS]; /* send's */
    unsigned n_parts, part;
    size_t at; /* in that part */
};

struct pair {
    pthread_mutex_t lock; /* guards all */
    unsigned refs;
    struct end ends[2];
    char address[ADDRESS_MAX];
};

/* --- The thread --- */

static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    pthread_cond_t some;
    struct inproc_task *first, **last;
} queue = {PTHREAD_ONCE_INIT, PTHREAD_MUTEX_INITIALIZER,
           PTHREAD_COND_INITIALIZER, NULL, &queue.first};

static void *
run_tasks(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&queue.lock);
    for (;;) {
        struct inproc_task *task = queue.first;

        if (!task) {
            pthread_cond_wait(&queue.some, &queue.lock);
            continue;
        }
        queue.first = task->next;
        if (!queue.first)
            queue.last = &queue.first;
        pthread_mutex_unlock(&queue.lock);
        task->run(task);
        pthread_mutex_lock(&queue.lock);
    }
    return NULL;
}

static void
start_thread(void)
{
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, run_tasks, NULL);

    IDEM_ASSERT(!failed);
    pthread_detach(thread);
}

void
inproc_post(struct inproc_task *task)
{
    pthread_once(&queue.once, start_thread);
    pthread_mutex_lock(&queue.lock);
    task->next = NULL;
    *queue.last = task;
    queue.last = &task->next;
    pthread_cond_signal(&queue.some);
    pthread_mutex_unlock(&queue.lock);
}

/* --- Operations --- */

static void
run_operation(struct inproc_task *task)
{
    struct operation *operation =
        (struct operation *)((char *)task - offsetof(struct operation, task));

    operation->done(operation->with, operation->result, operation->size);
}

static void
begin(struct operation *operation, io_done_fn *done, void *with)
{
    operation->pending = true;
    operation->done = done;
    operation->with = with;
    operation->task.run = run_operation;
}

static void
complete(struct operation *operation, enum idem_status result, size_t size)
{
    if (!operation->pending)
        return;
    operation->pending = false;
    operation->result = result;
    operation->size = size;
    inproc_post(&operation->task);
}

static struct end *
other(struct end *end)
{
    return end == &end->pair->ends[0] ? &end->pair->ends[1]
                                      : &end->pair->ends[0];
}

static size_t
copy_parts(struct end *from, uint8_t *space, size_t room)
{
    size_t copied = 0;

    while (copied < room && from->part < from->n_parts) {
        struct idem_bytes part = from->parts[from->part];
        size_t left = part.size - from->at;
        size_t size = left < room - copied ? left : room - copied;

        memcpy(space + copied, part.data + from->at, size);
        copied += size;
        from->at += size;
        if (from->at == part.size) {
            from->part++;
            from->at = 0;
        }
    }
    return copied;
}

/* With the lock: whatever waits in this direction and can go on, does. */
static void
transfer(struct end *from, struct end *to)
{
    if (from->closed || to->closed) {
        complete(&from->send, IDEM_UNAVAILABLE, 0);
        complete(&to->recv, to->closed ? IDEM_UNAVAILABLE : IDEM_OK, 0);
        return;
    }
    if (!from->send.pending || !to->recv.pending)
        return;
    complete(&to->recv, IDEM_OK, copy_parts(from, to->space, to->room));
    if (from->part == from->n_parts)
        complete(&from->send, IDEM_OK, 0);
}

/* --- Streams --- */

static bool
pair_recv(struct io_stream *base, void *buffer, size_t size, io_done_fn *done,
          void *with)
{
    struct end *end = (struct end *)base;
    bool open;

    pthread_mutex_lock(&end->pair->lock);
    open = !end->closed;
    if (open) {
        begin(&end->recv, done, with);
        end->space = buffer;
        end->room = size;
        transfer(other(end), end);
    }
    pthread_mutex_unlock(&end->pair->lock);
    return open;
}

static bool
pair_send(struct io_stream *base, const struct idem_bytes *parts, unsigned n,
          io_done_fn *done, void *with)
{
    struct end *end = (struct end *)base;
    bool open;

    IDEM_ASSERT(n > 0 && n <= IO_PARTS);
    pthread_mutex_lock(&end->pair->lock);
    open = !end->closed;
    if (open) {
        begin(&end->send, done, with);
        memcpy(end->parts, parts, n * sizeof *parts);
        end->n_parts = n;
        end->part = 0;
        end->at = 0;
        transfer(end, other(end));
    }
    pthread_mutex_unlock(&end->pair->lock);
    return open;
}

static void
pair_close(struct io_stream *base)
{
    struct end *end = (struct end *)base;

    pthread_mutex_lock(&end->pair->lock);
    end->closed = true;
    transfer(end, other(end));
    transfer(other(end), end);
    pthread_mutex_unlock(&end->pair->lock);
}

static void
pair_free(struct io_stream *base)
{
    struct pair *pair = ((struct end *)base)->pair;
    bool last;

    pair_close(base);
    pthread_mutex_lock(&pair->lock);
    last = --pair->refs == 0;
    pthread_mutex_unlock(&pair->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&pair->lock);
    free(pair);
}

static const char *
pair_peer(const struct io_stream *base)
{
    return ((const struct end *)base)->pair->address;
}

static const struct io_stream_ops pair_ops = {
    .recv = pair_recv,
    .send = pair_send,
    .close = pair_close,
    .free = pair_free,
    .peer = pair_peer,
    .secure = true,
};

bool
inproc_pair_new(const char *address, struct io_stream *ends[2])
{
    struct pair *pair = calloc(1, sizeof *pair);

    if (!pair)
        return false;
    pthread_mutex_init(&pair->lock, NULL);
    pair->refs = 2;
    snprintf(pair->address, sizeof pair->address, "%s", address);
    for (unsigned i = 0; i < 2; i++) {
        pair->ends[i].base.ops = &pair_ops;
        pair->ends[i].pair = pair;
        ends[i] = &pair->ends[i].base;
    }
    return true;
}
