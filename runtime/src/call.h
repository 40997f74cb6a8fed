#ifndef CALL_H
#define CALL_H

#include <pthread.h>
#include <stdatomic.h>

#include "chain.h"

#include <idem/attempt.h>
#include <idem/call.h>

/* A call's inside: its place in the chain, who keeps it, who may see it.
 *
 * Threads: the holder's, one at a time; interrupt and the references are for
 * any. Lock order: the call's lock, then the holder's. */

struct call;

/* Who has a call in his hands (call_hold.c, under the drawing). */
enum call_hold {
    CALL_LOOSE,  /* the walk */
    CALL_KEPT,   /* somebody, since idem_call_keep */
    CALL_TAKING, /* still he, and an interruption takes it back */
};

struct call_ops {
    /* The bottom of the chain: put the request on the wire, or run the handler.
     * Once per attempt. Same rules as a request hook: WAIT or ANSWER. */
    enum idem_step (*send)(struct call *call);

    /* Past the top: the outcome is there. Once. Then the walk's reference is
     * dropped. */
    void (*finish)(struct call *call);

    /* The last reference is gone. The ops free what they embed the call in,
     * after call_fini. */
    void (*free)(struct call *call);

    /* Another call for the same endpoint, to be an attempt of this one:
     * call_init, and method, clock and timers as they are here. NULL: out of
     * memory. The op itself is NULL where calls have one attempt. */
    struct call *(*fork)(struct call *call);

    /* Optional. It was interrupted where nobody can take it back: its handler
     * runs, or it is on its way. Without a lock. */
    void (*interrupted)(struct call *call);
};

struct call {
    struct idem_call base;
    const struct call_ops *ops;
    const struct chain *chain;
    unsigned top;      /* the walk ends above this place; 0 unless an attempt */
    unsigned cursor;   /* chain->count is the endpoint */
    unsigned reached;  /* interceptors that the call has come to */
    unsigned attempts; /* how often it came to the endpoint … */
    atomic_uint beside; /* … and attempts of it did */
    bool up;            /* on the reply side */
    /* Set by the endpoint, under the lock that its withdraw takes: this
     * attempt's request may have left, or the handler is begun. */
    bool sent;
    atomic_uint refs;

    atomic_uint hold;                 /* enum call_hold */
    const struct idem_holder *holder; /* NULL: cannot be withdrawn. Written … */
    void *with;                       /* … while it is loose */
    pthread_mutex_t lock;             /* an interruption's */
    atomic_uint interrupt; /* a status, written under the lock; OK: none */

    int64_t end_ns;             /* of its walk; INT64_MAX: none. It is … */
    struct idem_timer deadline; /* … armed when somebody keeps the call, and
                                 * holds a reference while it runs */
    struct idem_timer nap;      /* idem_call_sleep's */
    enum idem_step after_nap;
    bool armed;

    struct idem_stream *stream; /* NULL: unary */

    struct call *parent; /* an attempt's, a reference; NULL: not an attempt */
    idem_attempt_done_fn *done; /* an attempt's: instead of the ops' finish */
    void *done_with;

    void **state; /* one for each interceptor of the chain; in the arena */
};

/* Clear and start with one reference, the walk's. The arena has room for a
 * pointer for each interceptor of the chain. base.clock, timers, method,
 * attempt, deadline_ns and the request are set by the caller before call_begin,
 * on a server also base.context. */
void call_init(struct call *call, const struct call_ops *ops,
               const struct chain *chain, struct idem_arena *arena);

/* Forget hooks, arena. */
void call_fini(struct call *call);

/* Walk from the top on this thread, until the deadline at the latest. */
void call_begin(struct call *call);

/* The same with a reference of this thread's, which is dropped. */
void call_begin_with(struct call *call);

/* The same with another end than the deadline that the wire says; INT64_MAX:
 * none. */
void call_begin_until(struct call *call, int64_t end_ns);

/* Somebody is about to keep the call: interrupt it at its end, whoever has it
 * then. A call that nobody keeps needs no timer: who has it looks at the time.
 */
void call_arm(struct call *call);

/* idem_call_keep by who sees to the deadline himself: he arms the call before
 * that is over, if he keeps it still (decision 53). */
bool call_keep_unarmed(struct call *call, const struct idem_holder *holder,
                       void *with) IDEM_MUST_CHECK;

/* The walk is over and its deadline with it: arm that again, for what a server
 * still does with the call; and disarm it. */
void call_arm_again(struct call *call);
void call_disarm(struct call *call);

/* End it from outside: the holder gives it back and it goes up with this status
 * (CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE); or, when nobody can give it
 * back, it is marked and the next keep fails. The effect is what the chain
 * knows: IN_DOUBT when it is sent, else NOT_SENT on a client and REFUSED on a
 * server; on the reply side that of the attempt which is over, and an OK stays.
 * First one wins. The caller has a reference. */
void call_interrupt(struct call *call, enum idem_status status);

/* Move the call along its chain until somebody keeps it or it is answered. From
 * here to the end of the walk the call is not ours once a turn has said WAIT;
 * only our reference is. True: it was answered, and the walk's reference is to
 * be dropped. */
bool call_walk(struct call *call, enum idem_step step) IDEM_MUST_CHECK;

/* What a call that goes up from the request side has done. */
enum idem_effect call_effect_so_far(const struct call *call);

/* Whoever kept it does not any more. */
void call_let_go(struct call *call);

/* A hook has returned IDEM_WAIT. An interruption between its keep and its
 * putting the call away found nothing to withdraw; look again. The walk's
 * second reference makes that safe although the call may be far away by now. */
enum idem_step call_after_wait(struct call *call);

/* Write the call's key into its outcome. The walk does so at the end; a handler
 * reads it there (idem_context_key). */
void call_note_key(struct idem_call *call);

/* A list of its own, since interceptors add to it. False: out of memory. */
bool call_copy_metadata(struct idem_call *to, const struct idem_call *from)
    IDEM_MUST_CHECK;

void call_ref(struct call *call);

/* So many at once, of a call that nobody else sees yet. */
void call_ref_unseen(struct call *call, unsigned references);
void call_unref(struct call *call);

#endif
