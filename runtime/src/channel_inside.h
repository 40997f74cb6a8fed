#ifndef CHANNEL_INSIDE_H
#define CHANNEL_INSIDE_H

#include "address.h"
#include "call.h"
#include "channel.h"
#include "channel_gather.h"
#include "connection.h"
#include "streams.h"
#include "target.h"
#include "timer.h"
#include "tls.h"

/* What the files of the channel share. A channel has calls (channel_call.c);
 * a call that has come down its chain (channel_send.c) waits in the channel
 * (channel_wait.c) or flies on a link (channel_link.c) to the address that the
 * balancer picked (channel_balance.c). The target names the addresses
 * (channel_addresses.c), and each dials its link (address_dial.c).
 *
 * Locks: a call's, then the channel's, then the connection's or the timers'. No
 * event, hook or callback runs under the channel's. */

#define METHOD_IDS 256 /* methods that get a number; the rest go by name */

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

/* One connection and the attempts on it. The channel's lock; freed when the
 * connection is gone. */
struct link {
    struct idem_channel *channel;
    struct address *address; /* a use */
    struct connection *connection;
    struct link *next; /* in the channel */
    struct streams streams;
    uint32_t last_stream;
    uint32_t roomy_turn; /* which stream writes first when there is room */
    bool ready;          /* SETTINGS were exchanged */
    bool proved;         /* a call, or a stream's message, was answered on it */
    bool draining;       /* takes no more */
    bool finished;       /* … and link_finish_empty has ended it */
    struct idem_timer keepalive;
    bool ticking;              /* the timer runs, or fires */
    bool asked;                /* a PING was sent … */
    uint64_t heard;            /* … when so much was heard */
    struct idem_timer arming;  /* a round of channel_arming.c … */
    bool arms;                 /* … which is to come, or comes … */
    int64_t arms_at_ns;        /* … then … */
    uint32_t armed_to;         /* … for calls above this stream */
    bool told[METHOD_IDS + 1]; /* methods whose id the peer knows */
};

struct method_id {
    const struct idem_method *method;
    uint32_t id;
};

struct idem_channel {
    const struct idem_clock *clock;
    struct idem_timers *timers;
    const struct io *io; /* of all addresses; NULL: each scheme's own */
    struct tls *tls;     /* whose it is then; NULL: no TLS */
    char *name;          /* of the target */
    struct target *target;
    struct idem_channel_options options; /* no zeroes left; the balancer
                                          * changes, with the lock */
    struct chain chain;
    atomic_uint refs; /* the owner's and one for each call's memory */

    atomic_int_fast64_t skew_ms; /* the server's wall clock less ours */
    atomic_size_t buffered;      /* bytes of requests that wait or fly */
    atomic_uint codecs; /* that the server of the last link takes; all at first
                         */

    atomic_uint turns[WAITER_WORDS]; /* what its waiters sleep on */
    struct gathering gathering;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t idle;  /* something that close waits for is over */
    pthread_cond_t restated;
    bool closing;

    int loop_fd; /* an eventfd; -1: callbacks run on our threads */
    struct client_call *told, **last_told; /* over, for idem_channel_process */

    struct client_call *calls; /* not finished */
    unsigned n_calls;
    struct client_call *waiting, **last_waiting;

    struct address *addresses;   /* in the target's order, then the dropped */
    unsigned n_made;             /* addresses, ever */
    struct address **ready;      /* those that take calls, in order; room for */
    unsigned n_ready;            /* … all that the target names */
    unsigned next;               /* whose turn it is */
    struct link *links;          /* all that are not gone */
    unsigned n_flying;           /* on all links */
    struct idem_timer board;     /* a stream or a place was given back */
    struct idem_timer sweep;     /* of outliers … */
    bool sweeping;               /* … which runs */
    bool judging;                /* there are several addresses */
    struct idem_timer rebalance; /* the balancer is another one */
    enum idem_channel_state state;
    bool unfound;                   /* the target has no addresses yet */
    bool away;                      /* in TRANSIENT_FAILURE */
    char trouble[IDEM_MESSAGE_MAX]; /* the last */

    struct method_id ids[METHOD_IDS * 2]; /* by the method's address */
    uint32_t n_ids;
};

/* --- channel.c --- */
void channel_unref(struct idem_channel *channel);

/* Its monotonic time in so many milliseconds; INT64_MAX when it is beyond. */
int64_t channel_after_ms(const struct idem_channel *channel, int64_t ms);

/* --- channel_addresses.c --- */

/* What the target names; with is the channel. Without the lock. */
void channel_found(void *with, const char *const *names, unsigned n);

/* What it names cannot be used. Without the lock. */
void channel_trouble(void *with, const struct idem_error *err);

/* With the lock: an address has another state, or its link takes calls now or
 * takes none any more. */
void channel_restate(struct idem_channel *channel);

/* --- channel_keepalive.c: with the lock --- */

/* A call flies and nobody ticks. */
void keepalive_begin(struct link *link);

/* The link is closed. True: a reference of its connection is to be dropped. */
bool keepalive_end(struct link *link);

/* --- channel_arming.c: with the lock --- */

/* The call flies from now on: sees to its deadline. */
void arming_note(struct link *link, struct call *call);

/* As keepalive_end. */
bool arming_end(struct link *link);

/* --- channel_outlier.c --- */
void outlier_defaults(struct idem_outlier_options *options);
enum idem_status outlier_check(const struct idem_outlier_options *options,
                               struct idem_error *err) IDEM_MUST_CHECK;
void outlier_init(struct idem_channel *channel);

/* With the lock: so many addresses are there now. */
void outlier_watch(struct idem_channel *channel, unsigned n);

/* With the lock: an attempt at the address was lost or ended too late. */
void outlier_failed(struct address *address);

/* Without the lock: how an attempt at the address ended. */
void outlier_note(struct address *address, const struct idem_outcome *outcome);

/* --- channel_balance.c: with the lock --- */

/* As many calls fly as the channel's option allows. */
bool is_full(const struct idem_channel *channel);

enum idem_status balancer_check(enum idem_balancer balancer,
                                struct idem_error *err) IDEM_MUST_CHECK;

/* A link with room for the call; NULL: there is none now. */
struct link *balance(struct idem_channel *channel,
                     const struct client_call *call);

/* --- channel_rebalance.c --- */
void rebalance_init(struct idem_channel *channel);

/* --- channel_link_life.c --- */

/* Own the stream. The lock is not held. */
void link_open(struct address *address, struct io_stream *stream);

/* Without the lock: end the links that are retired and empty. */
void link_finish_empty(struct idem_channel *channel);

/* --- channel_link.c --- */

/* What its connection reads; see connection_events. */
const char *link_frame(void *with, const struct frame *frame);

/* With the lock: the flying calls over this stream, not resumed yet, one after
 * another by next_waiting. */
struct client_call *link_take_flying(struct link *link, uint32_t above);

enum link_placed {
    LINK_PLACED, /* flies; flush the connection */
    LINK_FULL,   /* no room, or the link is about to be lost: wait */
    LINK_REFUSED /* the outcome says why; not taken */
};

/* With the channel's lock. */
bool link_has_room(const struct link *link);

/* A call got on here: the next time its address is dialled again without a long
 * pause. */
void link_prove(struct link *link);

/* No new calls here; it ends with its last one. True: it had been the link of
 * its address, which wants another. */
bool link_retire(struct link *link);

/* Its stream ids are used up: retired. True, once: see to its address. */
bool link_used_up(struct link *link);

/* True: it drains and nothing flies. Finish the connection. */
bool link_over(const struct link *link);
enum link_placed link_place(struct link *link, struct client_call *call);
void link_withdraw(struct link *link, struct client_call *call);

/* --- channel_wait.c: with the lock --- */
void wait_in(struct idem_channel *channel, struct client_call *call);
void wait_out(struct idem_channel *channel, struct client_call *call);

/* Of one that is out and interrupted: what it has waited for. */
void wait_say_why(const struct idem_channel *channel, struct client_call *call);

/* Calls that are turned away, one after another by next_waiting; resume them
 * without the lock. Those that wait for ready stay. */
struct client_call *wait_take_impatient(struct idem_channel *channel);

/* Without the lock: put on links what fits. */
void wait_board(struct idem_channel *channel);

/* As wait_board, on the timers' thread. */
void wait_fire_board(struct idem_timer *timer);

/* Without the lock: send them up with the outcome that they have. */
void wait_resume(struct client_call *calls);

/* --- channel_send.c: the endpoint --- */
enum idem_step channel_send(struct call *call);

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

/* --- channel_loop.c --- */
enum idem_status loop_init(struct idem_channel *channel, struct idem_error *err)
    IDEM_MUST_CHECK;
void loop_fini(struct idem_channel *channel);

/* The call is over, or of a stream there is news: its callbacks are for
 * idem_channel_process. */
void loop_put(struct client_call *call);

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
