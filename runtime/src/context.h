#ifndef CONTEXT_H
#define CONTEXT_H

#include <stdatomic.h>

#include <idem/call.h>
#include <idem/context.h>
#include <idem/context_once.h>

/* Calls of one key space that the handler has made, for which a key follows
 * from its own (parent.c). */
struct context_made {
    struct context_made *next;
    const char *scope;
    unsigned calls;
};

/* A handler's view of its call. The server's endpoint embeds one in each call
 * and sets call->context before the chain begins, so that interceptors can fill
 * it. Lives as long as the call. */
struct idem_context {
    struct idem_call *call;
    struct idem_arena *arena; /* what the author's code and its reply take: the
                               * call's, or … */
    struct idem_arena *fresh; /* … this, of a repeated execution; ours */
    void *user;
    int64_t retry_after_ms; /* what it asks for; -1: nothing */
    int64_t fence;
    int64_t parent_fence;
    atomic_bool lost; /* the lease; set on any thread */
    void *slot;
    enum idem_task task;
    bool plain; /* the reply is not to be compressed */
    bool here;  /* run it on the thread that sends the call down */
    enum idem_probed probed;
    void (*run)(struct idem_context *context); /* the endpoint's */
    struct context_made *made;                 /* in that arena */
    struct idem_bytes kept; /* of a server stream with a mode: what the effect
                             * keeps for its messages (server_resume.c) */

    struct idem_error error; /* what the handler said; status OK: nothing */
};

/* The author's code begins to run on this thread for that context, or is over
 * (what it gave back before); NULL: for none. */
struct idem_context *context_enter(struct idem_context *context);

/* For which it runs on this thread. */
struct idem_context *context_current(void);

/* Sets call->context too. */
void context_init(struct idem_context *context, struct idem_call *call,
                  void *user);

/* When nobody uses what its code took any more; also of one that is zeroed. */
void context_fini(struct idem_context *context);

/* Before each run of the handler: what an earlier one said is forgotten, also
 * the trailers that it added and the calls that it made. */
void context_begin(struct idem_context *context);

/* After it: the call's outcome from what the handler returned and said, with
 * the effect COMMITTED or ROLLED_BACK (an interceptor above may know better). A
 * status that is no code is UNKNOWN. */
void context_end(struct idem_context *context, enum idem_status status);

/* After a probe, instead: keeps what it said. DONE: the outcome is its answer,
 * OK unless it used idem_context_fail. UNKNOWN: ABORTED, in doubt. NOT_DONE:
 * nothing yet, the handler is to run. */
void context_end_probe(struct idem_context *context, enum idem_probed probed);

#endif
