#ifndef CHANNEL_INSIDE_H
#define CHANNEL_INSIDE_H

#include "address.h"
#include "channel.h"
#include "channel_call.h"
#include "channel_gather.h"
#include "channel_link.h"
#include "target.h"
#include "tls.h"

/* What the files of the channel share. A channel has calls (channel_call.c);
 * a call that has come down its chain (channel_send.c) waits in the channel
 * (channel_wait.c) or flies on a link (channel_link.c) to the address that the
 * balancer picked (channel_balance.c). The target names the addresses
 * (channel_addresses.c), and each dials its link (address_dial.c).
 *
 * Locks: a call's, then the channel's, then the connection's or the timers'. No
 * event, hook or callback runs under the channel's. */

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

/* --- channel_loop.c --- */
enum idem_status loop_init(struct idem_channel *channel, struct idem_error *err)
    IDEM_MUST_CHECK;
void loop_fini(struct idem_channel *channel);

/* The call is over, or of a stream there is news: its callbacks are for
 * idem_channel_process. */
void loop_put(struct client_call *call);

#endif
