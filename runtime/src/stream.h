#ifndef STREAM_H
#define STREAM_H

#include "arena.h"
#include "backlog.h"
#include "call.h"
#include "connection.h"
#include "inflow.h"
#include "stream_each.h"

#include <idem/compression.h>
#include <idem/stream.h>

/* One end of a call of many messages, the same on both sides: what is written
 * (stream_write.c), what comes (stream_read.c), and the author's callbacks
 * (stream_deliver.c). Whose connection it is on, and what ends it, is the
 * side's to say.
 *
 *                 placed on a connection
 *   write -> [backlog of an attempt] -> MESSAGE ... MESSAGE LAST
 *   next  <- [inflow]                <- MESSAGE ... END
 *                  over
 *
 * Locks: a peer's or channel's, then this, then the connection's. No hook or
 * callback runs under it. */

#define STREAM_WINDOW 262144 /* bytes that a peer may send unasked, usually */
#define STREAM_WINDOW_MAX 0x7fffffff
#define STREAM_COST 64 /* bytes that a message counts for beside its own */

enum stream_ending {
    STREAM_GOES_ON,
    STREAM_ENDS,     /* when all that has come is taken */
    STREAM_ENDS_NOW, /* what is not taken never will be */
};

/* What differs between the client's end and a handler's. */
struct stream_side {
    /* What was appended leaves soon; now: this thread is about to wait. */
    void (*flush)(struct connection *connection, bool now);

    /* A message that came cannot be used: the stream is to end so. Without the
     * lock, on the reader's thread. */
    void (*fail)(struct idem_stream *stream, const struct idem_error *err);

    /* See to it that stream_deliver runs: now, without the lock; or later, from
     * elsewhere, with the lock. */
    void (*stir)(struct idem_stream *stream);
    void (*stir_later)(struct idem_stream *stream);

    /* Callback style: is it time for the end callback? Without the lock. */
    enum stream_ending (*ending)(struct idem_stream *stream);

    /* Run it. Once, last. */
    void (*tell_end)(struct idem_stream *stream);

    /* Instead of callbacks, where the library itself is who reads and writes:
     * what is due. One at a time, without the lock. Else NULL. */
    void (*due)(struct idem_stream *stream);
};

struct idem_stream {
    struct call *call; /* whose memory this is in */
    const struct stream_side *side;
    bool server;
    bool blocks;              /* blocking style */
    bool resumes;             /* a server stream with a mode */
    bool keeps;               /* what is written is kept for another attempt */
    struct stream_each *each; /* its messages take effect once each; or NULL */
    const struct ProtobufCMessageDescriptor *writes, *reads;
    const struct idem_compression *compression; /* of what is written; NULL:
                                                 * none */
    size_t max_message;
    uint32_t window; /* that the peer has from us */
    void *user;
    struct idem_metadata *trailers; /* where the caller wants them; or NULL */

    struct idem_arena *packing; /* the writer's */
    uint64_t n_written;         /* … */
    struct idem_bytes mark;     /* … of the next message */
    uint64_t skip;              /* … messages that the client has already */
    size_t unflushed;           /* … bytes that may wait for others */

    struct idem_arena *unpacking;        /* the reader's; and … */
    const struct ProtobufCMessage *held; /* … not taken by the callback */
    uint64_t n_read;                     /* … */
    bool failed;                         /* … one could not be used */
    uint64_t cost_read;                  /* … of all that was read */
    uint64_t cost_told;                  /* … of what a WINDOW said so */

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    struct connection *connection; /* a reference; NULL: not placed */
    uint32_t id;
    uint64_t n_came;         /* messages */
    uint64_t cost_came;      /* of all of them */
    uint64_t cost_before;    /* of those of attempts before this one */
    struct idem_bytes token; /* the last mark: of a client in at; of a handler
                              * in the arena, and const */
    uint8_t *token_room;     /* HEADER_TOKEN_MAX bytes; NULL: none has come */
    uint64_t came_since;     /* messages after it */
    size_t peer_max;         /* bytes of a message */
    atomic_uint codecs;      /* that the peer opens; all until it has said so.
                              * Read without the lock */
    int64_t credit;          /* to write; below 0 after a large message */
    struct backlog written;  /* what is kept; at: what this attempt has sent */
    bool out_ended;          /* this side has */
    bool said_last;          /* … and this attempt has said so */
    bool wanting;            /* a write found no room */
    struct inflow in;
    int64_t granted;         /* credit that the peer has left */
    bool in_ended;           /* the peer's side has, or it has none */
    bool over;               /* nothing is written or read any more */
    bool advanced;           /* something came in this attempt; for the call's
                              * base.advanced, which is the walk's */
    struct idem_error error; /* why, when the side did not say; status OK: none
                              */

    /* Callback style. */
    const struct idem_stream_glue *glue; /* NULL: blocking style */
    const void *callbacks;
    bool delivering;  /* some thread is at it … */
    bool again;       /* … and is to look once more */
    bool stirring;    /* the side's, of stir_later */
    bool closed;      /* the handler's: idem_stream_close was called */
    atomic_bool told; /* end has run, or no callback is wanted any more */
};

/* In the call's arena; its call->stream. NULL: out of memory. */
struct idem_stream *stream_new(struct call *call, bool server,
                               const struct stream_side *side,
                               size_t max_message, uint32_t window);

/* What is written goes so to a peer that can open it. compression outlives the
 * stream. Before anything is written. */
void stream_compress(struct idem_stream *stream,
                     const struct idem_compression *compression);

/* With the call's memory. NULL is fine. */
void stream_fini(struct idem_stream *stream);

/* Frames may be written from here, on this connection, which gives so much
 * credit; what this attempt is to repeat is appended at once. With the peer's
 * or channel's lock. */
void stream_place(struct idem_stream *stream, struct connection *connection,
                  uint32_t id);

/* No more: the attempt is over. By whoever takes the call back to its walk, as
 * below. */
void stream_unplace(struct idem_stream *stream);

/* The call is told that its stream got on, if it did. */
void stream_note_advance(struct idem_stream *stream);

/* MESSAGE and WINDOW, in the order in which they came. Not IDEM_OK: the peer
 * has broken a rule, which err names, or a limit. Then stream_stir, without any
 * lock. */
enum idem_status stream_take_message(struct idem_stream *stream,
                                     const struct frame *frame,
                                     struct idem_error *err) IDEM_MUST_CHECK;
enum idem_status stream_take_window(struct idem_stream *stream,
                                    const struct frame *frame,
                                    struct idem_error *err) IDEM_MUST_CHECK;

/* Nothing is read or written from here; wakes who waits. err may be NULL. */
void stream_over(struct idem_stream *stream, const struct idem_error *err);

/* Something has changed: wake who waits, or have callbacks run. */
void stream_stir(struct idem_stream *stream);

/* The connection has room again. Without the lock. */
void stream_wake(struct idem_stream *stream);

/* Run the callbacks that are due. Once at a time; a second one makes the first
 * look again. The caller has a reference. */
void stream_deliver(struct idem_stream *stream);

/* Through the hooks of the chain, as the message goes: from the author to the
 * wire, or from the wire to the author. */
enum idem_status stream_pass_hooks(struct idem_stream *stream, bool sent,
                                   struct idem_bytes *bytes,
                                   struct idem_error *err) IDEM_MUST_CHECK;

/* The reader's: the next message that is there, opened, through the hooks and
 * unpacked. NULL: none is, or the stream was failed. */
const struct ProtobufCMessage *stream_read(struct idem_stream *stream);

/* The same, not unpacked: a view until the next one is read. False: none is
 * there, or the stream was failed. */
bool stream_read_bytes(struct idem_stream *stream, struct idem_bytes *bytes)
    IDEM_MUST_CHECK;

/* The reader's: say what was read, and of a server's how far messages took
 * effect. */
void stream_give_credit(struct idem_stream *stream);

/* The writer's, of a stream that does not block: a message that is packed, as
 * idem_stream_write. */
enum idem_status stream_send(struct idem_stream *stream,
                             struct idem_bytes bytes) IDEM_MUST_CHECK;

/* With the lock: what is kept and the end of this side, as far as the credit
 * goes. */
void stream_pump(struct idem_stream *stream);

/* With the lock, which is let go of: what was appended leaves, now or in the
 * flight that the connection makes next. */
void stream_flush(struct idem_stream *stream, bool now);

/* With the lock: a write would be taken now. */
bool stream_has_room(const struct idem_stream *stream);

/* With the lock: this attempt cannot be repeated from here; what is still to be
 * sent of it stays until it is. */
void stream_commit(struct idem_stream *stream);

#endif
