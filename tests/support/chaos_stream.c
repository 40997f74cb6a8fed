#include "chaos_inside.h"

#include <stdlib.h>
#include <string.h>

/* A stream that does what the script says to what is written and read. */

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
    struct chaos_script script = chaos_script_of(stream->chaos);

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

/* --- Its life --- */

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

struct io_stream *
chaos_wrap(struct chaos_io *chaos, struct io_stream *inner)
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

/* --- All of them --- */

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
