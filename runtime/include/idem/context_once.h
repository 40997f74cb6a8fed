#ifndef IDEM_CONTEXT_ONCE_H
#define IDEM_CONTEXT_ONCE_H

#include <idem/context.h>

/* What the interceptor that lets a call through tells its handler's context.
 * Not for handlers. */

IDEM_BEGIN_DECLS

/* What idem_context_fence gives back. Before the handler, by the holder of the
 * call. */
IDEM_API void idem_context_set_fence(struct idem_context *context,
                                     int64_t fence);

/* What idem_context_owned gives back; true at first. From any thread while the
 * call lives. */
IDEM_API void idem_context_set_owned(struct idem_context *context, bool owned);

/* One pointer for the interceptor that owns the call's database transaction:
 * NULL until set. Whoever holds the call. */
IDEM_API void idem_context_set_slot(struct idem_context *context, void *slot);
IDEM_API void *idem_context_slot(const struct idem_context *context);

/* What the endpoint does with a call that comes down. */
enum idem_task {
    IDEM_TASK_RUN,     /* the handler */
    IDEM_TASK_PROBE,   /* the probe; then, if it says NOT_DONE, the handler */
    IDEM_TASK_REBUILD, /* the method's rebuild, which it has */
    IDEM_TASK_STATE,   /* the handler's first half, which makes no reply */
};

/* RUN until set. Before the endpoint, by the holder of the call. */
IDEM_API void idem_context_set_task(struct idem_context *context,
                                    enum idem_task task);

/* The endpoint does it on the thread that sends the call down, which has
 * nothing else to do meanwhile and may block; false at first: on a worker.
 * Before the endpoint, by the holder of the call. */
IDEM_API void idem_context_set_here(struct idem_context *context, bool here);

/* What the probe of this task has said; UNKNOWN when it was not asked. */
IDEM_API enum idem_probed
idem_context_probed(const struct idem_context *context);

/* Run the handler here and now, on the thread of whoever holds the call, as the
 * endpoint does: outcome and reply are in the call afterwards. */
IDEM_API void idem_context_run(struct idem_context *context);

/* The handler is to run again: from here it has a fresh arena, the same for
 * each repeat (semantics.md 4.4), so that the memory of a call that meets
 * conflicts stays what two executions take. Whatever the execution before took
 * is free, its reply and trailers among it. By the holder of the call, between
 * two executions. */
IDEM_API void idem_context_renew(struct idem_context *context);

/* The call that the handler answers. */
IDEM_API struct idem_call *
idem_context_call(const struct idem_context *context);

IDEM_END_DECLS

#endif
