#ifndef CONNECTION_H
#define CONNECTION_H

#include "frame.h"
#include "header.h"
#include "io.h"
#include "outbox.h"

#include <idem/peer.h>

/* One connection, either end: prefaces and SETTINGS, frames in, frames out with
 * one send in flight, PING. What the frames mean is the user's (docs/wire.md).
 *
 * Threads: events come one at a time, on the transport's threads; everything
 * else is for any thread. The lock is never held over the transport or an
 * event. Lock order: the user's locks, then the connection's. */
struct connection;

/* Both sides' SETTINGS. */
struct connection_limits {
    size_t max_message;
    uint32_t max_streams;
    uint32_t stream_window; /* bytes of a stream that may be sent unasked; 0: of
                             * the peer's: it knows no streams */
    uint32_t codecs;        /* the peer's: what it can open; ours are all */
};

struct connection_events {
    /* The peer's SETTINGS are there: frames may be sent. Once, first. */
    void (*ready)(void *with);

    /* OPEN, MESSAGE, END, WINDOW, CANCEL, DETACH, GOAWAY and types that are not
     * known. The views are good until it returns. NULL: fine. Else why the
     * connection is closed. What it sends leaves in one write when the frames
     * that came together are all done. */
    const char *(*frame)(void *with, const struct frame *frame);

    /* Optional. A PING came, which is answered if it returns NULL. As frame. */
    const char *(*ping)(void *with);

    /* Optional. The frames that came together are all done. */
    void (*settled)(void *with);

    /* Optional. It was crowded, and is not any more. */
    void (*roomy)(void *with);

    /* Once, last of these, also when it never got ready. */
    void (*closed)(void *with);

    /* The stream is freed, nothing more comes: once, for the last reference,
     * on any thread. The memory goes when it returns. */
    void (*gone)(void *with);
};

struct connection_options {
    bool server; /* answers the preface, and stops reading while too much waits
                  * to be written; a client must read on, or both would wait */
    struct connection_limits limits; /* ours */
    const struct idem_clock *clock;
    const struct connection_events *events;
    void *with;
};

/* The stream is owned from here, also on failure (NULL: out of memory; gone is
 * not called). One reference: the caller's. */
struct connection *connection_new(struct io_stream *stream,
                                  const struct connection_options *options);

/* Say hello and read. Once. */
void connection_start(struct connection *connection);

void connection_ref(struct connection *connection);
void connection_unref(struct connection *connection);

/* For who holds a lock that gone takes: false when the last reference is gone
 * already. */
bool connection_ref_alive(struct connection *connection) IDEM_MUST_CHECK;

/* Put a frame into the queue, behind those that are there; the payload's bytes
 * are needed longer only if the hold was retained. *mark, if wanted, is the
 * frame's place for connection_reached. False: the connection is closed, or
 * memory is out, which closes it; the frame is never written. */
bool connection_append(struct connection *connection, const struct frame *frame,
                       struct outbox_hold hold, uint64_t *mark);

/* More waits to be written than should: streams are to wait for roomy. */
bool connection_crowded(const struct connection *connection);

/* See to it that what is appended is written. */
void connection_flush(struct connection *connection);

/* connection_append without hold and mark, then flush. */
void connection_send(struct connection *connection, const struct frame *frame);

/* After closed: may any byte of the frame with that mark have been written? */
bool connection_reached(struct connection *connection, uint64_t mark);

/* End it. The first reason stays. */
void connection_close(struct connection *connection, const char *why);

/* End it when all that is appended is written. */
void connection_finish(struct connection *connection);

/* After closed. Lives as long as the connection. */
const char *connection_why(const struct connection *connection);

/* After ready. */
const struct connection_limits *
connection_peer_limits(const struct connection *connection);

/* After ready: what the peer is known by (<idem/peer.h>). The texts live as
 * long as the connection. */
struct idem_peer connection_peer(const struct connection *connection);

/* After ready: a plain nng REQ client (docs/plain.md), of a server's connection
 * only. Its calls come as OPENs with a route; an END with that route is its
 * answer, and whatever else is sent to it is dropped. */
bool connection_plain(const struct connection *connection);

/* What is sent is read by nobody but the peer. */
bool connection_secure(const struct connection *connection);

/* Another number than before: the peer has sent something since. */
uint64_t connection_heard(const struct connection *connection);

/* When what is begun has taken too long: a frame that is not here as a whole,
 * or bytes that the peer does not take, each with timeout_ns and a millisecond
 * for each 8 bytes. INT64_MAX: nothing is begun. Of a server's only. */
int64_t connection_stalls_at(struct connection *connection, int64_t timeout_ns);

/* True on a thread that is inside an event. */
bool connection_on_thread(void);

/* This thread is among the frames that it has read from it: what is put there
 * leaves when they are done, without a flush. */
bool connection_gathers(const struct connection *connection);

#endif
