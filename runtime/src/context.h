#ifndef CONTEXT_H
#define CONTEXT_H

#include <stdatomic.h>

#include <idem/call.h>
#include <idem/context.h>
#include <idem/context_once.h>

/* A handler's view of its call. The server's endpoint embeds one in each call
 * and sets call->context before the chain begins, so that interceptors can fill
 * it. Lives as long as the call. */
struct idem_context {
    struct idem_call *call;
    void *user;
    struct idem_error error; /* what the handler said; status OK: nothing */
    int64_t retry_after_ms;  /* what it asks for; -1: nothing */
    int64_t fence;
    atomic_bool lost; /* the lease; set on any thread */
    void *slot;
    enum idem_task task;
    enum idem_probed probed;
    void (*run)(struct idem_context *context); /* the endpoint's */
};

/* Sets call->context too. */
void context_init(struct idem_context *context, struct idem_call *call,
                  void *user);

/* Before each run of the handler: what an earlier one said is forgotten, also
 * the trailers that it added. */
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
