#ifndef CHANNEL_INSIDE_H
#define CHANNEL_INSIDE_H

#include "call.h"
#include "channel.h"
#include "connection.h"
#include "streams.h"
#include "timer.h"

/* What the files of the channel share. A channel has calls (channel_call.c);
 * a call that has come down its chain (channel_send.c) waits in the
 * channel (channel_wait.c) or flies on a link (channel_link.c); the dialer
 * makes links (channel_dial.c).
 *
 * Locks: a call's, then the channel's, then the connection's. No event, hook or
 * callback runs under the channel's. */

#define METHOD_IDS 256 /* methods that get a number; the rest go by name */

/* Where an attempt is. The channel's lock. */
enum place {
    PLACE_NOWHERE, /* in the chain, or its answer is being read */
    PLACE_WAITING, /* in the channel, for a link */
    PLACE_FLYING,  /* on a link */
};

struct client_call {
    struct call call;
    struct idem_channel *channel;            /* a reference */
    struct client_call *next, **link_in_all; /* the channel's lock */
    struct client_call *next_cancelled;      /* by close, once */
    size_t room; /* bytes of its request that the channel counts; an interceptor
                  * may change the request */
    bool wait_for_ready;
    void *user;

    /* The attempt; the channel's lock. */
    enum place place;
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

/* One connection and the attempts on it. The channel's lock; freed when the
 * connection is gone. */
struct link {
    struct idem_channel *channel;
    struct connection *connection;
    struct link *next; /* in the channel */
    struct streams streams;
    uint32_t last_stream;
    bool ready;                /* SETTINGS were exchanged */
    bool proved;               /* a call was answered on it */
    bool draining;             /* takes no more */
    bool told[METHOD_IDS + 1]; /* methods whose id the peer knows */
};

struct method_id {
    const struct idem_method *method;
    uint32_t id;
};

struct idem_channel {
    const struct idem_clock *clock;
    struct idem_timers *timers;
    const struct io *io;
    char *target;
    struct idem_channel_options options; /* no zeroes left */
    struct chain chain;
    atomic_uint refs; /* the owner's and one for each call's memory */

    atomic_size_t buffered; /* bytes of requests that wait or fly */

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t idle;  /* something that close waits for is over */
    bool closing;

    struct client_call *calls; /* not finished */
    unsigned n_calls;
    struct client_call *waiting, **last_waiting;

    struct link *link;                 /* ready and not draining, or NULL */
    struct link *links;                /* all that are not gone */
    struct io_dialer *dialer;          /* while its dial is pending */
    bool dialing;                      /* a dial is pending */
    bool dialed;                       /* what came of it is being seen to */
    bool away;                         /* the last attempt to connect failed */
    char trouble[IDEM_MESSAGE_MAX];    /* of it */
    int64_t backoff_ms;                /* the next pause */
    struct idem_timer redial, give_up; /* pause over; attempt takes too long */

    struct method_id ids[METHOD_IDS * 2]; /* by the method's address */
    uint32_t n_ids;
};

/* --- channel.c --- */
void channel_unref(struct idem_channel *channel);

/* --- channel_dial.c: without the lock --- */
void channel_dial(struct idem_channel *channel);
void channel_dial_failed(struct idem_channel *channel, const char *why);
void channel_dial_stop(struct idem_channel *channel);
void channel_dial_done(struct idem_channel *channel);

/* --- channel_link.c --- */

/* Own the stream. The lock is not held. */
void link_open(struct idem_channel *channel, struct io_stream *stream);

enum link_placed {
    LINK_PLACED, /* flies; flush the connection */
    LINK_FULL,   /* no room, or the link is about to be lost: wait */
    LINK_REFUSED /* the outcome says why; not taken */
};

/* With the channel's lock. */
bool link_has_room(const struct link *link);

/* Its stream ids are used up: it takes no more. True, once: another is wanted,
 * dial. */
bool link_used_up(struct link *link);

/* True: it drains and nothing flies. Finish the connection. */
bool link_over(const struct link *link);
enum link_placed link_place(struct link *link, struct client_call *call);
void link_withdraw(struct link *link, struct client_call *call);

/* --- channel_wait.c: with the lock --- */
void wait_in(struct idem_channel *channel, struct client_call *call);
void wait_out(struct idem_channel *channel, struct client_call *call);

/* Calls that are turned away, one after another by next_waiting; resume them
 * without the lock. Those that wait for ready stay. */
struct client_call *wait_take_impatient(struct idem_channel *channel);

/* Put on the link what fits; gives back those that it refused. */
struct client_call *wait_board(struct idem_channel *channel);

/* Without the lock: send them up with the outcome that they have. */
void wait_resume(struct client_call *calls);

/* --- channel_send.c: the endpoint --- */
enum idem_step channel_send(struct call *call);

/* --- channel_make.c --- */
int64_t channel_deadline_ns(const struct idem_channel *channel,
                            const struct idem_method *method,
                            const struct idem_call_options *options);

/* Key, metadata and request, checked and copied into the call. */
enum idem_status channel_take(struct client_call *call,
                              const struct ProtobufCMessage *request,
                              const struct idem_call_options *options,
                              struct idem_error *err) IDEM_MUST_CHECK;

/* --- channel_reply.c --- */

/* What an END says, into the call. */
void channel_take_end(struct client_call *call, const struct frame *frame);

/* --- channel_call.c --- */
/* Blocking in one would wait for what only this thread can do. */
bool channel_in_callback(void);

static inline struct client_call *
client_call_of(struct call *call)
{
    return (struct client_call *)call;
}

#endif
