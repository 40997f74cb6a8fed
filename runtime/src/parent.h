#ifndef PARENT_H
#define PARENT_H

#include "context.h"

#include <idem/channel.h>
#include <idem/parent.h>

/* The name under which a fencing token travels; its value is decimal. */
#define PARENT_FENCE "idem-fence"

/* The context whose handler makes this call; NULL: none does. */
struct idem_context *parent_of(const struct idem_call_options *options);

/* What is left of the parent's time, on the channel's clock: the earlier of
 * this and deadline_ns. */
int64_t parent_deadline_ns(const struct idem_context *parent,
                           const struct idem_clock *clock, int64_t deadline_ns);

/* Into a child that has its own metadata already: trace context, fencing token,
 * and what its key follows from. */
enum idem_status parent_give(struct idem_context *parent,
                             const struct idem_call_options *options,
                             struct idem_call *child, struct idem_error *err)
    IDEM_MUST_CHECK;

/* What the library says by metadata is not for the handler's eyes: out of that,
 * and into the context. */
void parent_take_fence(struct idem_context *context);

#endif
