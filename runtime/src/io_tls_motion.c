#include "io_tls_inside.h"

#include <stdlib.h>
#include <string.h>

/* What moves between a TLS stream, its session and the stream below. */

#define SLICE 49152  /* plain bytes that are made records at once */
#define RECORD 16384 /* bytes of a record; small parts are gathered to one */

/* --- Moving, with the lock --- */

static void lower_received(void *with, enum idem_status result, size_t size);
static void lower_sent(void *with, enum idem_status result, size_t size);

static void
end(struct tls_stream *stream, const char *lost)
{
    if (stream->phase == TLS_OVER)
        return;
    stream->phase = TLS_OVER;
    stream->lost = lost;
    stream->lower->ops->close(stream->lower);
}

/* What is for the peer leaves. */
static void
fly(struct tls_stream *stream)
{
    struct idem_bytes bytes;

    if (stream->sending || stream->phase == TLS_OVER)
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
end_with_alert(struct tls_stream *stream)
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
listen_to_peer(struct tls_stream *stream)
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
shake(struct tls_stream *stream)
{
    switch (tls_session_shake(stream->session)) {
    case TLS_DONE:
        stream->phase = TLS_OPEN;
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
next_piece(struct tls_stream *stream, uint8_t *gather, size_t room)
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
make_records(struct tls_stream *stream)
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
wants_bytes(const struct tls_stream *stream)
{
    return stream->phase == TLS_SHAKING ||
           (stream->phase == TLS_OPEN && stream->recv.done);
}

/* All that can move without an answer to the user. */
static void
advance(struct tls_stream *stream)
{
    if (stream->phase == TLS_SHAKING && !stream->receiving)
        shake(stream);
    if (stream->phase == TLS_OPEN && !stream->sending)
        make_records(stream);
    fly(stream);
    if (wants_bytes(stream) && !stream->receiving &&
        !tls_session_readable(stream->session))
        listen_to_peer(stream);
}

/* --- Answering --- */

struct answer {
    struct tls_operation to;
    enum idem_status result;
    size_t size;
};

static struct answer
answer_to(struct tls_operation *operation, enum idem_status result, size_t size)
{
    struct answer answer = {*operation, result, size};

    operation->done = NULL;
    return answer;
}

/* With the lock: the receive has its bytes. */
static bool
read_some(struct tls_stream *stream, struct answer *answer)
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
recv_answerable(const struct tls_stream *stream)
{
    return stream->recv.done && (stream->phase == TLS_OVER ||
                                 (stream->phase == TLS_OPEN &&
                                  tls_session_readable(stream->session)));
}

static bool
send_answerable(const struct tls_stream *stream)
{
    return stream->send.done && (stream->phase == TLS_OVER ||
                                 (stream->phase == TLS_OPEN &&
                                  !stream->sending && stream->n_parts == 0));
}

/* With the lock. */
static bool
take_answer(struct tls_stream *stream, struct answer *answer)
{
    advance(stream);
    if (recv_answerable(stream) && stream->phase == TLS_OPEN) {
        if (read_some(stream, answer))
            return true;
        advance(stream);
    }
    if (stream->phase == TLS_OVER && stream->recv.done) {
        *answer = answer_to(&stream->recv, IDEM_UNAVAILABLE, 0);
        return true;
    }
    if (!send_answerable(stream))
        return false;
    *answer = stream->phase == TLS_OPEN
                  ? answer_to(&stream->send, IDEM_OK, stream->size)
                  : answer_to(&stream->send, IDEM_UNAVAILABLE, 0);
    return true;
}

static void
destroy(struct tls_stream *stream)
{
    stream->lower->ops->free(stream->lower);
    tls_session_free(stream->session);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

void
tls_stream_leave(struct tls_stream *stream)
{
    bool last = stream->freed && !stream->receiving && !stream->sending &&
                !stream->pumping && !stream->posted;

    pthread_mutex_unlock(&stream->lock);
    if (last)
        destroy(stream);
}

/* With the lock, which it drops. On a thread of a transport. */
static void
pump(struct tls_stream *stream)
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
    tls_stream_leave(stream);
}

static void
lower_received(void *with, enum idem_status result, size_t size)
{
    struct tls_stream *stream = with;

    pthread_mutex_lock(&stream->lock);
    stream->receiving = false;
    if (result == IDEM_OK && size > 0)
        tls_session_filled(stream->session, size);
    else
        end(stream, stream->phase == TLS_SHAKING
                        ? "TLS: the peer went away in the handshake"
                        : "the connection is lost");
    pump(stream);
}

static void
lower_sent(void *with, enum idem_status result, size_t size)
{
    struct tls_stream *stream = with;

    (void)size;
    pthread_mutex_lock(&stream->lock);
    stream->sending = false;
    tls_session_landed(stream->session);
    if (result != IDEM_OK)
        end(stream, "the connection is lost");
    pump(stream);
}

void
tls_stream_run(struct inproc_task *task)
{
    struct tls_stream *stream =
        (struct tls_stream *)((char *)task - offsetof(struct tls_stream, task));

    pthread_mutex_lock(&stream->lock);
    stream->posted = false;
    pump(stream);
}

void
tls_stream_see_to_answers(struct tls_stream *stream)
{
    advance(stream);
    if (stream->pumping || stream->posted ||
        (!recv_answerable(stream) && !send_answerable(stream)))
        return;
    stream->posted = true;
    inproc_post(&stream->task);
}

/* --- Sending --- */

void
tls_stream_skip_ahead(struct tls_stream *stream)
{
    uint8_t unused[RECORD];

    while (stream->ahead > 0 && stream->n_parts > 0)
        stream->ahead -=
            next_piece(stream, unused,
                       stream->ahead < RECORD ? stream->ahead : RECORD)
                .size;
}

size_t
tls_stream_write_now(struct tls_stream *stream)
{
    const struct io_stream_ops *ops = stream->lower->ops;
    size_t made = make_records(stream), written;
    struct idem_bytes bytes;

    stream->n_parts = 0;
    if (stream->phase == TLS_OVER)
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
