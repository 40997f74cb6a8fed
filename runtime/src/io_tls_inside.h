#ifndef IO_TLS_INSIDE_H
#define IO_TLS_INSIDE_H

#include "io_inproc.h"
#include "io_tls.h"

#include <pthread.h>

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

#define TLS_ADDRESS_MAX 256

enum tls_phase {
    TLS_SHAKING,
    TLS_OPEN,
    TLS_OVER,
};

/* A user's receive or send; done is NULL: none. */
struct tls_operation {
    io_done_fn *done;
    void *with;
};

struct tls_stream {
    struct io_stream base;
    struct io_stream *lower;
    char peer[TLS_ADDRESS_MAX];

    pthread_mutex_t lock; /* guards the rest */
    struct tls_session *session;
    enum tls_phase phase;
    const char *lost; /* why it is over, when not the session's trouble */
    bool closed;      /* by the user */
    bool freed;
    bool receiving, sending; /* operations of the lower stream … */
    bool pumping;            /* a thread answers the user's operations … */
    bool posted;             /* … or will: nobody frees meanwhile */
    struct inproc_task task;

    struct tls_operation recv;
    void *space;
    size_t room;

    struct tls_operation send;
    struct idem_bytes parts[IO_PARTS]; /* not made records yet */
    unsigned n_parts;
    size_t size;  /* of the whole send */
    size_t ahead; /* bytes of the next send that are records already */
};

/* With the lock, inside a submit: answers come on another thread. */
void tls_stream_see_to_answers(struct tls_stream *stream);

/* With the lock: of the parts that are loaded, what the socket takes at once.
 * What it does not take flies, and the send that comes next begins behind it.
 * Returns the bytes of the user that are taken. */
size_t tls_stream_write_now(struct tls_stream *stream);

/* With the lock: forget what write_now has made records of. */
void tls_stream_skip_ahead(struct tls_stream *stream);

/* Drop the lock; the stream may be gone then. */
void tls_stream_leave(struct tls_stream *stream);

/* The task of a stream whose answers were posted. */
void tls_stream_run(struct inproc_task *task);

#endif
