#include "chaos_io.h"

#include "io_inproc.h"

#include <stdlib.h>
#include <string.h>

struct chaos_stream {
    struct io_stream base;
    struct io_stream *inner;
    struct chaos_io *chaos;
    struct chaos_stream *next, **link; /* the chaos's lock */

    /* The write under way. */
    uint64_t n_writes, sent;
    struct idem_bytes parts[IO_PARTS], cut[IO_PARTS];
    unsigned n_parts, n_cut;
    size_t size;
    io_done_fn *sent_done;
    void *sent_with;
    bool held; /* the chaos's lock */
    bool again, cutting;
    enum idem_status result;
    struct inproc_task task;

    /* The read under way. */
    bool is_cut; /* the chaos's lock */
    uint64_t received;
    void *buffer;
    size_t room;
    io_done_fn *recv_done;
    void *recv_with;
};

struct chaos_listener {
    struct io_listener base;
    struct io_listener *inner;
    struct chaos_io *chaos;
    io_open_fn *done;
    void *with;
};

struct chaos_dialer {
    struct io_dialer base;
    struct io_dialer *inner;
    struct chaos_io *chaos;
    io_open_fn *done;
    void *with;
    struct inproc_task task;
};

/* Nothing is heard of a stream that was cut, not even what had arrived. */
static bool
is_cut(struct chaos_stream *stream)
{
    bool cut;

    pthread_mutex_lock(&stream->chaos->lock);
    cut = stream->is_cut;
    pthread_mutex_unlock(&stream->chaos->lock);
    return cut;
}

static struct chaos_script
script_of(struct chaos_io *chaos)
{
    struct chaos_script script;

    pthread_mutex_lock(&chaos->lock);
    script = chaos->script;
    pthread_mutex_unlock(&chaos->lock);
    return script;
}

/* --- Writing --- */

static void
run_answer(struct inproc_task *task)
{
    struct chaos_stream *stream =
        (struct chaos_stream *)((char *)task -
                                offsetof(struct chaos_stream, task));

    stream->sent_done(stream->sent_with, stream->result, stream->size);
}

/* Answer the write from another stack. */
static void
answer(struct chaos_stream *stream, enum idem_status result)
{
    stream->result = result;
    stream->task.run = run_answer;
    inproc_post(&stream->task);
}

static void
sent(void *with, enum idem_status result, size_t size)
{
    struct chaos_stream *stream = with;

    (void)size;
    if (stream->cutting) {
        stream->inner->ops->close(stream->inner);
        result = IDEM_UNAVAILABLE;
    }
    if (result == IDEM_OK && stream->again) {
        stream->again = false;
        if (stream->inner->ops->send(stream->inner, stream->parts,
                                     stream->n_parts, sent, stream))
            return;
        result = IDEM_UNAVAILABLE;
    }
    stream->sent_done(stream->sent_with, result, stream->size);
}

static void
forward(struct chaos_stream *stream, const struct idem_bytes *parts, unsigned n)
{
    if (!stream->inner->ops->send(stream->inner, parts, n, sent, stream))
        answer(stream, IDEM_UNAVAILABLE);
}

/* The first bytes of the write and no more. */
static void
cut_write(struct chaos_stream *stream, uint64_t room)
{
    stream->n_cut = 0;
    for (unsigned i = 0; i < stream->n_parts && room > 0; i++) {
        struct idem_bytes part = stream->parts[i];

        if (part.size > room)
            part.size = (size_t)room;
        room -= part.size;
        stream->cut[stream->n_cut++] = part;
    }
    stream->cutting = true;
    if (stream->n_cut > 0) {
        forward(stream, stream->cut, stream->n_cut);
        return;
    }
    stream->inner->ops->close(stream->inner);
    answer(stream, IDEM_UNAVAILABLE);
}

static void
write_by_script(struct chaos_stream *stream, const struct chaos_script *script)
{
    uint64_t number = stream->n_writes++;
    uint64_t before = stream->sent;

    stream->sent += stream->size;
    if (stream->sent > script->cut_sent) {
        cut_write(stream,
                  script->cut_sent > before ? script->cut_sent - before : 0);
        return;
    }
    if (number == script->drop_write) {
        answer(stream, IDEM_OK);
        return;
    }
    stream->again = number == script->twice_write;
    forward(stream, stream->parts, stream->n_parts);
}

static bool
chaos_send(struct io_stream *base, const struct idem_bytes *parts, unsigned n,
           io_done_fn *done, void *with)
{
    struct chaos_stream *stream = (struct chaos_stream *)base;
    struct chaos_io *chaos = stream->chaos;
    struct chaos_script script;

    memcpy(stream->parts, parts, n * sizeof *parts);
    stream->n_parts = n;
    stream->sent_done = done;
    stream->sent_with = with;
    stream->size = 0;
    for (unsigned i = 0; i < n; i++)
        stream->size += parts[i].size;
    pthread_mutex_lock(&chaos->lock);
    script = chaos->script;
    stream->held = script.hold;
    if (script.hold) {
        chaos->held++;
        pthread_cond_broadcast(&chaos->changed);
    }
    pthread_mutex_unlock(&chaos->lock);
    if (!script.hold)
        write_by_script(stream, &script);
    return true;
}

/* True: the write was held and is now the caller's to answer. */
static bool
take_held(struct chaos_stream *stream)
{
    bool held;

    pthread_mutex_lock(&stream->chaos->lock);
    held = stream->held;
    stream->held = false;
    if (held)
        stream->chaos->held--;
    pthread_mutex_unlock(&stream->chaos->lock);
    return held;
}

/* --- Reading --- */

static void received(void *with, enum idem_status result, size_t size);

static bool
read_more(struct chaos_stream *stream)
{
    return stream->inner->ops->recv(stream->inner, stream->buffer, stream->room,
                                    received, stream);
}

static void
received(void *with, enum idem_status result, size_t size)
{
    struct chaos_stream *stream = with;
    struct chaos_script script = script_of(stream->chaos);

    if (is_cut(stream)) {
        size = 0;
    } else if (result == IDEM_OK && size > 0) {
        stream->received += size;
        if (stream->received > script.cut_received) {
            stream->inner->ops->close(stream->inner);
            size = 0;
        } else if (script.deaf) {
            if (read_more(stream))
                return;
            size = 0;
        }
    }
    stream->recv_done(stream->recv_with, result, size);
}

static bool
chaos_recv(struct io_stream *base, void *buffer, size_t size, io_done_fn *done,
           void *with)
{
    struct chaos_stream *stream = (struct chaos_stream *)base;

    stream->buffer = buffer;
    stream->room = size;
    stream->recv_done = done;
    stream->recv_with = with;
    return read_more(stream);
}

/* --- Streams --- */

static void
chaos_close(struct io_stream *base)
{
    struct chaos_stream *stream = (struct chaos_stream *)base;

    stream->inner->ops->close(stream->inner);
    if (take_held(stream))
        answer(stream, IDEM_UNAVAILABLE);
}

static void
chaos_free(struct io_stream *base)
{
    struct chaos_stream *stream = (struct chaos_stream *)base;

    pthread_mutex_lock(&stream->chaos->lock);
    *stream->link = stream->next;
    if (stream->next)
        stream->next->link = stream->link;
    pthread_mutex_unlock(&stream->chaos->lock);
    stream->inner->ops->free(stream->inner);
    free(stream);
}

static const char *
chaos_peer(const struct io_stream *base)
{
    const struct chaos_stream *stream = (const struct chaos_stream *)base;

    return stream->inner->ops->peer(stream->inner);
}

static const struct io_stream_ops stream_ops = {
    .recv = chaos_recv,
    .send = chaos_send,
    .close = chaos_close,
    .free = chaos_free,
    .peer = chaos_peer,
};

static struct io_stream *
wrap(struct chaos_io *chaos, struct io_stream *inner)
{
    struct chaos_stream *stream;

    if (!inner)
        return NULL;
    stream = calloc(1, sizeof *stream);
    IDEM_ASSERT(stream);
    stream->base.ops = &stream_ops;
    stream->inner = inner;
    stream->chaos = chaos;
    pthread_mutex_lock(&chaos->lock);
    stream->next = chaos->streams;
    stream->link = &chaos->streams;
    if (stream->next)
        stream->next->link = &stream->next;
    chaos->streams = stream;
    pthread_mutex_unlock(&chaos->lock);
    return &stream->base;
}

/* --- Listeners --- */

static void
accepted(void *with, struct io_stream *stream, const struct idem_error *err)
{
    struct chaos_listener *listener = with;

    listener->done(listener->with, wrap(listener->chaos, stream), err);
}

static bool
chaos_accept(struct io_listener *base, io_open_fn *done, void *with)
{
    struct chaos_listener *listener = (struct chaos_listener *)base;

    listener->done = done;
    listener->with = with;
    return listener->inner->ops->accept(listener->inner, accepted, listener);
}

static const char *
chaos_address(const struct io_listener *base)
{
    const struct chaos_listener *listener = (const struct chaos_listener *)base;

    return listener->inner->ops->address(listener->inner);
}

static void
chaos_listener_close(struct io_listener *base)
{
    struct chaos_listener *listener = (struct chaos_listener *)base;

    listener->inner->ops->close(listener->inner);
}

static void
chaos_listener_free(struct io_listener *base)
{
    struct chaos_listener *listener = (struct chaos_listener *)base;

    listener->inner->ops->free(listener->inner);
    free(listener);
}

static const struct io_listener_ops listener_ops = {
    chaos_accept,
    chaos_address,
    chaos_listener_close,
    chaos_listener_free,
};

static enum idem_status
chaos_listen(const struct io *io, const char *address, struct io_listener **out,
             struct idem_error *err)
{
    struct chaos_io *chaos = (struct chaos_io *)(uintptr_t)io;
    struct chaos_listener *listener = calloc(1, sizeof *listener);
    enum idem_status status;

    IDEM_ASSERT(listener);
    listener->base.ops = &listener_ops;
    listener->chaos = chaos;
    status = chaos->inner->listen(chaos->inner, address, &listener->inner, err);
    if (status == IDEM_OK)
        *out = &listener->base;
    else
        free(listener);
    return status;
}

/* --- Dialers --- */

static void
dialed(void *with, struct io_stream *stream, const struct idem_error *err)
{
    struct chaos_dialer *dialer = with;

    dialer->done(dialer->with, wrap(dialer->chaos, stream), err);
}

static void
run_refused(struct inproc_task *task)
{
    struct chaos_dialer *dialer =
        (struct chaos_dialer *)((char *)task -
                                offsetof(struct chaos_dialer, task));
    struct idem_error err;

    idem_fail(&err, IDEM_UNAVAILABLE, "refused by the script");
    dialer->done(dialer->with, NULL, &err);
}

static bool
chaos_dial(struct io_dialer *base, io_open_fn *done, void *with)
{
    struct chaos_dialer *dialer = (struct chaos_dialer *)base;

    dialer->done = done;
    dialer->with = with;
    if (!script_of(dialer->chaos).refuse)
        return dialer->inner->ops->dial(dialer->inner, dialed, dialer);
    dialer->task.run = run_refused;
    inproc_post(&dialer->task);
    return true;
}

static void
chaos_dialer_close(struct io_dialer *base)
{
    struct chaos_dialer *dialer = (struct chaos_dialer *)base;

    dialer->inner->ops->close(dialer->inner);
}

static void
chaos_dialer_free(struct io_dialer *base)
{
    struct chaos_dialer *dialer = (struct chaos_dialer *)base;

    dialer->inner->ops->free(dialer->inner);
    free(dialer);
}

static const struct io_dialer_ops dialer_ops = {
    chaos_dial,
    chaos_dialer_close,
    chaos_dialer_free,
};

static enum idem_status
chaos_dialer_of(const struct io *io, const char *address,
                struct io_dialer **out, struct idem_error *err)
{
    struct chaos_io *chaos = (struct chaos_io *)(uintptr_t)io;
    struct chaos_dialer *dialer = calloc(1, sizeof *dialer);
    enum idem_status status;

    IDEM_ASSERT(dialer);
    dialer->base.ops = &dialer_ops;
    dialer->chaos = chaos;
    status = chaos->inner->dialer(chaos->inner, address, &dialer->inner, err);
    if (status == IDEM_OK)
        *out = &dialer->base;
    else
        free(dialer);
    return status;
}

/* --- The script --- */

struct chaos_script
chaos_peace(void)
{
    return (struct chaos_script){
        .drop_write = CHAOS_NEVER,
        .twice_write = CHAOS_NEVER,
        .cut_sent = CHAOS_NEVER,
        .cut_received = CHAOS_NEVER,
    };
}

void
chaos_init(struct chaos_io *chaos, const struct io *inner)
{
    *chaos = (struct chaos_io){
        .io = {.schemes = inner->schemes,
               .listen = chaos_listen,
               .dialer = chaos_dialer_of},
        .inner = inner,
        .script = chaos_peace(),
    };
    pthread_mutex_init(&chaos->lock, NULL);
    pthread_cond_init(&chaos->changed, NULL);
}

void
chaos_fini(struct chaos_io *chaos)
{
    pthread_cond_destroy(&chaos->changed);
    pthread_mutex_destroy(&chaos->lock);
}

/* With the lock: some write that is held, not held any more. */
static struct chaos_stream *
any_held(struct chaos_io *chaos)
{
    struct chaos_stream *stream = chaos->streams;

    while (stream && !stream->held)
        stream = stream->next;
    if (stream) {
        stream->held = false;
        chaos->held--;
    }
    return stream;
}

void
chaos_set(struct chaos_io *chaos, const struct chaos_script *script)
{
    struct chaos_stream *stream = NULL;

    do {
        if (stream)
            write_by_script(stream, script);
        pthread_mutex_lock(&chaos->lock);
        chaos->script = *script;
        stream = script->hold ? NULL : any_held(chaos);
        pthread_mutex_unlock(&chaos->lock);
    } while (stream);
}

void
chaos_cut(struct chaos_io *chaos)
{
    pthread_mutex_lock(&chaos->lock);
    chaos->script = chaos_peace();
    for (struct chaos_stream *at = chaos->streams; at; at = at->next) {
        at->is_cut = true;
        at->inner->ops->close(at->inner);
        if (at->held) {
            at->held = false;
            chaos->held--;
            answer(at, IDEM_UNAVAILABLE);
        }
    }
    pthread_mutex_unlock(&chaos->lock);
}

void
chaos_await_held(struct chaos_io *chaos, unsigned held)
{
    pthread_mutex_lock(&chaos->lock);
    while (chaos->held < held)
        pthread_cond_wait(&chaos->changed, &chaos->lock);
    pthread_mutex_unlock(&chaos->lock);
}
