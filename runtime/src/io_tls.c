#include "io_tls.h"

#include "io_inproc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* TLS around another stream (decision 31). One lock a stream, under which
 * records are made and read and the lower stream's operations are submitted;
 * callbacks run without it.
 *
 *    SHAKING --handshake--> OPEN
 *        \                   |
 *         +---lost, broken---+--> OVER: the lower stream is closed
 *
 * What moves is moved by advance(), on any thread; the user's operations are
 * answered by pump(), on a thread of a transport, one at a time. */

#define ADDRESS_MAX 256
#define SLICE 49152  /* plain bytes that are made records at once */
#define RECORD 16384 /* bytes of a record; small parts are gathered to one */

enum phase {
    PHASE_SHAKING,
    PHASE_OPEN,
    PHASE_OVER,
};

/* A user's receive or send; done is NULL: none. */
struct operation {
    io_done_fn *done;
    void *with;
};

struct stream {
    struct io_stream base;
    struct io_stream *lower;
    char peer[ADDRESS_MAX];

    pthread_mutex_t lock; /* guards the rest */
    struct tls_session *session;
    enum phase phase;
    const char *lost; /* why it is over, when not the session's trouble */
    bool closed;      /* by the user */
    bool freed;
    bool receiving, sending; /* operations of the lower stream … */
    bool pumping;            /* a thread answers the user's operations … */
    bool posted;             /* … or will: nobody frees meanwhile */
    struct inproc_task task;

    struct operation recv;
    void *space;
    size_t room;

    struct operation send;
    struct idem_bytes parts[IO_PARTS]; /* not made records yet */
    unsigned n_parts;
    size_t size;  /* of the whole send */
    size_t ahead; /* bytes of the next send that are records already */
};

/* --- Moving, with the lock --- */

static void lower_received(void *with, enum idem_status result, size_t size);
static void lower_sent(void *with, enum idem_status result, size_t size);

static void
end(struct stream *stream, const char *lost)
{
    if (stream->phase == PHASE_OVER)
        return;
    stream->phase = PHASE_OVER;
    stream->lost = lost;
    stream->lower->ops->close(stream->lower);
}

/* What is for the peer leaves. */
static void
fly(struct stream *stream)
{
    struct idem_bytes bytes;

    if (stream->sending || stream->phase == PHASE_OVER)
        return;
    bytes = tls_session_take_off(stream->session);
    if (bytes.size == 0)
        return;
    stream->sending =
        stream->lower->ops->send(stream->lower, &bytes, 1, lower_sent, stream);
    if (!stream->sending)
        end(stream, "closed");
}

/* The peer may still hear why it is turned away. */
static void
end_with_alert(struct stream *stream)
{
    const struct io_stream_ops *ops = stream->lower->ops;
    struct idem_bytes alert;

    if (!stream->sending && ops->send_now) {
        alert = tls_session_take_off(stream->session);
        if (alert.size > 0)
            (void)ops->send_now(stream->lower, &alert, 1);
    }
    end(stream, NULL);
}

static void
listen_to_peer(struct stream *stream)
{
    size_t room;
    uint8_t *space = tls_session_space(stream->session, &room);

    stream->receiving =
        space && stream->lower->ops->recv(stream->lower, space, room,
                                          lower_received, stream);
    if (!stream->receiving)
        end(stream, space ? "closed" : "out of memory");
}

static void
shake(struct stream *stream)
{
    switch (tls_session_shake(stream->session)) {
    case TLS_DONE:
        stream->phase = PHASE_OPEN;
        break;
    case TLS_MORE:
        break;
    case TLS_CLOSED:
    case TLS_BROKEN:
        end_with_alert(stream);
        break;
    }
}

/* The next bytes of the send, at most room: whole parts while they are small,
 * gathered, or a piece of one. */
static struct idem_bytes
next_piece(struct stream *stream, uint8_t *gather, size_t room)
{
    struct idem_bytes *part = stream->parts;
    struct idem_bytes piece = {gather, 0};
    size_t some;

    if (part->size >= room || stream->n_parts == 1) {
        piece = (struct idem_bytes){part->data,
                                    part->size < room ? part->size : room};
    }
    while (stream->n_parts > 0 && room > 0) {
        some = part->size < room ? part->size : room;
        if (piece.data == gather) {
            memcpy(gather + piece.size, part->data, some);
            piece.size += some;
        }
        part->data += some;
        part->size -= some;
        room -= some;
        if (part->size == 0 && --stream->n_parts > 0)
            memmove(part, part + 1, stream->n_parts * sizeof *part);
    }
    return piece;
}

/* Records of what the user sends, a slice of it. Returns how many bytes. */
static size_t
make_records(struct stream *stream)
{
    uint8_t gather[RECORD];
    size_t made = 0;

    while (stream->n_parts > 0 && made < SLICE) {
        struct idem_bytes piece = next_piece(stream, gather, sizeof gather);

        if (!tls_session_write(stream->session, piece)) {
            end_with_alert(stream);
            return made;
        }
        made += piece.size;
    }
    return made;
}

static bool
wants_bytes(const struct stream *stream)
{
    return stream->phase == PHASE_SHAKING ||
           (stream->phase == PHASE_OPEN && stream->recv.done);
}

/* All that can move without an answer to the user. */
static void
advance(struct stream *stream)
{
    if (stream->phase == PHASE_SHAKING && !stream->receiving)
        shake(stream);
    if (stream->phase == PHASE_OPEN && !stream->sending)
        make_records(stream);
    fly(stream);
    if (wants_bytes(stream) && !stream->receiving &&
        !tls_session_readable(stream->session))
        listen_to_peer(stream);
}

/* --- Answering --- */

struct answer {
    struct operation to;
    enum idem_status result;
    size_t size;
};

static struct answer
answer_to(struct operation *operation, enum idem_status result, size_t size)
{
    struct answer answer = {*operation, result, size};

    operation->done = NULL;
    return answer;
}

/* With the lock: the receive has its bytes. */
static bool
read_some(struct stream *stream, struct answer *answer)
{
    size_t size;

    switch (
        tls_session_read(stream->session, stream->space, stream->room, &size)) {
    case TLS_DONE:
        *answer = answer_to(&stream->recv, IDEM_OK, size);
        return true;
    case TLS_MORE:
        return false;
    case TLS_CLOSED:
        end(stream, "closed by the peer");
        return false;
    case TLS_BROKEN:
        end_with_alert(stream);
        return false;
    }
    return false;
}

static bool
recv_answerable(const struct stream *stream)
{
    return stream->recv.done && (stream->phase == PHASE_OVER ||
                                 (stream->phase == PHASE_OPEN &&
                                  tls_session_readable(stream->session)));
}

static bool
send_answerable(const struct stream *stream)
{
    return stream->send.done && (stream->phase == PHASE_OVER ||
                                 (stream->phase == PHASE_OPEN &&
                                  !stream->sending && stream->n_parts == 0));
}

/* With the lock. */
static bool
take_answer(struct stream *stream, struct answer *answer)
{
    advance(stream);
    if (recv_answerable(stream) && stream->phase == PHASE_OPEN) {
        if (read_some(stream, answer))
            return true;
        advance(stream);
    }
    if (stream->phase == PHASE_OVER && stream->recv.done) {
        *answer = answer_to(&stream->recv, IDEM_UNAVAILABLE, 0);
        return true;
    }
    if (!send_answerable(stream))
        return false;
    *answer = stream->phase == PHASE_OPEN
                  ? answer_to(&stream->send, IDEM_OK, stream->size)
                  : answer_to(&stream->send, IDEM_UNAVAILABLE, 0);
    return true;
}

static void
destroy(struct stream *stream)
{
    stream->lower->ops->free(stream->lower);
    tls_session_free(stream->session);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

/* Drop the lock; the stream may be gone then. */
static void
leave(struct stream *stream)
{
    bool last = stream->freed && !stream->receiving && !stream->sending &&
                !stream->pumping && !stream->posted;

    pthread_mutex_unlock(&stream->lock);
    if (last)
        destroy(stream);
}

/* With the lock, which it drops. On a thread of a transport. */
static void
pump(struct stream *stream)
{
    struct answer answer;

    if (!stream->pumping) {
        stream->pumping = true;
        while (take_answer(stream, &answer)) {
            pthread_mutex_unlock(&stream->lock);
            answer.to.done(answer.to.with, answer.result, answer.size);
            pthread_mutex_lock(&stream->lock);
        }
        stream->pumping = false;
    }
    leave(stream);
}

static void
lower_received(void *with, enum idem_status result, size_t size)
{
    struct stream *stream = with;

    pthread_mutex_lock(&stream->lock);
    stream->receiving = false;
    if (result == IDEM_OK && size > 0)
        tls_session_filled(stream->session, size);
    else
        end(stream, stream->phase == PHASE_SHAKING
                        ? "TLS: the peer went away in the handshake"
                        : "the connection is lost");
    pump(stream);
}

static void
lower_sent(void *with, enum idem_status result, size_t size)
{
    struct stream *stream = with;

    (void)size;
    pthread_mutex_lock(&stream->lock);
    stream->sending = false;
    tls_session_landed(stream->session);
    if (result != IDEM_OK)
        end(stream, "the connection is lost");
    pump(stream);
}

static void
run_posted(struct inproc_task *task)
{
    struct stream *stream =
        (struct stream *)((char *)task - offsetof(struct stream, task));

    pthread_mutex_lock(&stream->lock);
    stream->posted = false;
    pump(stream);
}

/* With the lock, inside a submit: answers come on another thread. */
static void
see_to_answers(struct stream *stream)
{
    advance(stream);
    if (stream->pumping || stream->posted ||
        (!recv_answerable(stream) && !send_answerable(stream)))
        return;
    stream->posted = true;
    inproc_post(&stream->task);
}

/* --- The user's operations --- */

static bool
tls_recv(struct io_stream *base, void *buffer, size_t size, io_done_fn *done,
         void *with)
{
    struct stream *stream = (struct stream *)base;
    bool open;

    pthread_mutex_lock(&stream->lock);
    open = !stream->closed && stream->phase != PHASE_OVER;
    if (open) {
        stream->recv = (struct operation){done, with};
        stream->space = buffer;
        stream->room = size;
        see_to_answers(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    return open;
}

static void
load(struct stream *stream, const struct idem_bytes *parts, unsigned n)
{
    IDEM_ASSERT(n > 0 && n <= IO_PARTS);
    memcpy(stream->parts, parts, n * sizeof *parts);
    stream->n_parts = n;
    stream->size = 0;
    for (unsigned i = 0; i < n; i++)
        stream->size += parts[i].size;
}

/* Forget what send_now has made records of. */
static void
skip_ahead(struct stream *stream)
{
    uint8_t unused[RECORD];

    while (stream->ahead > 0 && stream->n_parts > 0)
        stream->ahead -=
            next_piece(stream, unused,
                       stream->ahead < RECORD ? stream->ahead : RECORD)
                .size;
}

static bool
tls_send(struct io_stream *base, const struct idem_bytes *parts, unsigned n,
         io_done_fn *done, void *with)
{
    struct stream *stream = (struct stream *)base;
    bool open;

    pthread_mutex_lock(&stream->lock);
    open = !stream->closed && stream->phase != PHASE_OVER;
    if (open) {
        load(stream, parts, n);
        skip_ahead(stream);
        stream->send = (struct operation){done, with};
        see_to_answers(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    return open;
}

/* With the lock. What the socket does not take flies, and the send that comes
 * next begins behind it. */
static size_t
write_now(struct stream *stream)
{
    const struct io_stream_ops *ops = stream->lower->ops;
    size_t made = make_records(stream), written;
    struct idem_bytes bytes;

    stream->n_parts = 0;
    if (stream->phase == PHASE_OVER)
        return 0;
    bytes = tls_session_take_off(stream->session);
    written = ops->send_now(stream->lower, &bytes, 1);
    if (written == bytes.size) {
        tls_session_landed(stream->session);
        return made;
    }
    bytes.data += written;
    bytes.size -= written;
    stream->ahead = made;
    stream->sending = ops->send(stream->lower, &bytes, 1, lower_sent, stream);
    if (!stream->sending)
        end(stream, "closed");
    return 0;
}

static size_t
tls_send_now(struct io_stream *base, const struct idem_bytes *parts, unsigned n)
{
    struct stream *stream = (struct stream *)base;
    size_t taken = 0;

    pthread_mutex_lock(&stream->lock);
    if (!stream->closed && stream->phase == PHASE_OPEN && !stream->sending &&
        stream->lower->ops->send_now) {
        load(stream, parts, n);
        taken = write_now(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    return taken;
}

/* The peer is told that nothing more comes, if the socket takes it. */
static void
tls_close(struct io_stream *base)
{
    struct stream *stream = (struct stream *)base;
    bool first;

    pthread_mutex_lock(&stream->lock);
    first = !stream->closed;
    stream->closed = true;
    if (first && stream->phase == PHASE_OPEN && !stream->sending &&
        stream->lower->ops->send_now) {
        struct idem_bytes bye;

        tls_session_bye(stream->session);
        bye = tls_session_take_off(stream->session);
        if (bye.size > 0)
            (void)stream->lower->ops->send_now(stream->lower, &bye, 1);
    }
    pthread_mutex_unlock(&stream->lock);
    stream->lower->ops->close(stream->lower);
}

static void
tls_free_stream(struct io_stream *base)
{
    struct stream *stream = (struct stream *)base;

    stream->lower->ops->close(stream->lower);
    pthread_mutex_lock(&stream->lock);
    stream->freed = true;
    leave(stream);
}

/* --- What it knows --- */

static const char *
tls_peer(const struct io_stream *base)
{
    return ((const struct stream *)base)->peer;
}

static const char *
tls_identity_of(const struct io_stream *base)
{
    return tls_session_identity(((const struct stream *)base)->session);
}

static const char *
tls_trouble(const struct io_stream *base)
{
    struct stream *stream = (struct stream *)(uintptr_t)base;
    const char *lost;

    pthread_mutex_lock(&stream->lock);
    lost = stream->lost ? stream->lost : tls_session_trouble(stream->session);
    pthread_mutex_unlock(&stream->lock);
    return lost;
}

static const struct io_stream_ops stream_ops = {
    .recv = tls_recv,
    .send = tls_send,
    .send_now = tls_send_now,
    .close = tls_close,
    .free = tls_free_stream,
    .peer = tls_peer,
    .identity = tls_identity_of,
    .trouble = tls_trouble,
    .secure = true,
};

struct io_stream *
io_tls_stream_new(struct io_stream *lower, struct tls_session *session)
{
    struct stream *stream = calloc(1, sizeof *stream);

    if (!stream) {
        lower->ops->close(lower);
        lower->ops->free(lower);
        tls_session_free(session);
        return NULL;
    }
    stream->base.ops = &stream_ops;
    stream->lower = lower;
    stream->session = session;
    stream->task.run = run_posted;
    pthread_mutex_init(&stream->lock, NULL);
    snprintf(stream->peer, sizeof stream->peer, "tls+%s",
             lower->ops->peer(lower));
    return &stream->base;
}
