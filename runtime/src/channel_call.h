#ifndef CHANNEL_CALL_H
#define CHANNEL_CALL_H

#include "call.h"
#include "channel.h"
#include "timer.h"

/* A client's call, from the stub to whoever is told. Part of channel_inside.h,
 * which says in what order locks are taken. */

struct frame;
struct link;
struct waiter;

/* Where an attempt is. The channel's lock. */
enum place {
    PLACE_NOWHERE, /* in the chain, or its answer is being read */
    PLACE_WAITING, /* in the channel, for a link */
    PLACE_FLYING,  /* on a link */
};

/* A request, compressed. */
struct squeezed {
    const uint8_t *of; /* the request's bytes: an interceptor may change them */
    struct idem_bytes bytes;
};

struct client_call {
    struct call call;
    struct idem_channel *channel;            /* a reference */
    struct client_call *next, **link_in_all; /* the channel's lock */
    struct client_call *next_cancelled;      /* by close, once */
    struct client_call *next_told; /* by the caller's loop; of a stream again
                                    * and again … */
    bool queued;                   /* … and is not there twice */
    size_t room; /* bytes of its request that the channel counts; an interceptor
                  * may change the request */
    bool wait_for_ready;
    bool fail_fast; /* whatever a config says */
    bool no_compression;
    void *user;

    /* Its request as it is sent to who takes it so; NULL: as it is. Written by
     * the walk while nobody waits or flies. */
    const struct squeezed *squeezed;

    /* Addresses, by their bits, that turned it away or that it never reached.
     * The walk's and the channel's lock: written while nobody waits or flies.
     * Of a call that stands still beside its attempts: where they fly; the
     * channel's lock. */
    uint64_t tried;

    /* The attempt; the channel's lock. */
    enum place place;
    uint64_t bit; /* of the address at which it flies or flew */
    struct client_call *next_waiting, **link_in_waiting;
    struct link *link;
    uint32_t stream;
    uint64_t mark; /* of its OPEN */

    /* Who is told. One of the two. */
    idem_call_done_fn *done;
    void (*author)(void);
    struct waiter *waiter;
    struct idem_timer later; /* done, when it may not run inside start */
};

/* --- channel_make.c --- */
int64_t channel_deadline_ns(const struct idem_channel *channel,
                            const struct idem_method *method,
                            const struct idem_call_options *options,
                            const struct idem_context *parent);

/* Key, metadata and request, checked and copied into the call. */
enum idem_status channel_take(struct client_call *call,
                              const struct ProtobufCMessage *request,
                              const struct idem_call_options *options,
                              struct idem_error *err) IDEM_MUST_CHECK;

/* --- channel_reply.c --- */

/* What an END says, into the call. */
void channel_take_end(struct client_call *call, const struct frame *frame);

/* --- channel_trailers.c --- */

/* On the heap, for idem_trailers_free. */
void channel_copy_trailers(struct idem_metadata *copy,
                           const struct idem_metadata *trailers);

/* --- channel_call.c --- */

/* Run the callback of a call that is over, and leave the channel. */
void channel_tell(struct client_call *call);

/* A call with three references: the walk's, its handle's, and one of this
 * thread that channel_run drops; and what runs it down its chain. */
struct client_call *channel_new_call(struct idem_channel *channel,
                                     const struct idem_method *method,
                                     const struct idem_call_options *options);
void channel_run(struct client_call *call,
                 const struct ProtobufCMessage *request,
                 const struct idem_call_options *options);

/* This thread is inside channel_run of that call. */
bool channel_is_starting(const struct client_call *call);

/* The channel does not wait for it any more. */
void channel_leave(struct client_call *call);

/* The reply of a call that ended OK, in its arena, or on the heap if one is
 * wanted; one that cannot be read fails the call. */
struct ProtobufCMessage *channel_unpack_reply(struct client_call *call);
void channel_unpack_for_caller(struct client_call *call,
                               struct ProtobufCMessage **reply);

/* An author's callback runs between these. */
void channel_enter_callback(void);
void channel_leave_callback(void);

/* Blocking in one would wait for what only this thread can do. */
bool channel_in_callback(void);

/* --- channel_stream.c --- */

/* MESSAGE and WINDOW. */
const char *channel_stream_frame(struct link *link, const struct frame *frame);

/* The link's connection has room again. */
void channel_stream_roomy(void *link);

/* The walk is over. */
void channel_stream_over(struct client_call *call);

/* It was interrupted while nobody could take it back. */
void channel_stream_interrupted(struct call *call);

/* Run its callbacks on this thread. */
void channel_stream_deliver(struct client_call *call);

static inline struct client_call *
client_call_of(struct call *call)
{
    return (struct client_call *)call;
}

#endif
