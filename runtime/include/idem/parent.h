#ifndef IDEM_PARENT_H
#define IDEM_PARENT_H

#include <idem/status.h>

/* A call that a handler makes is the child of the call that it answers. By
 * itself it carries:
 *
 * - a key that follows from its parent's, so that a handler that runs again
 *   repeats the keys of its first run, and what it calls takes effect once
 *   (idem_key_of_child, decision 27);
 * - no later deadline than its parent's;
 * - its parent's trace context: the metadata traceparent and tracestate (W3C
 *   Trace Context), unless the call brings a traceparent of its own;
 * - its parent's fencing token, when that is a LEASED call: the handler there
 *   reads it with idem_context_parent_fence.
 *
 * No other metadata goes on by itself. Which call is the parent: the one whose
 * handler runs on the thread that makes the call, or what
 * idem_call_options.parent says.
 *
 * What an interceptor of the channel sees of it (idem_call.parent): */
struct idem_parent {
    struct idem_bytes tenant; /* tenant, scope and key are what the parent … */
    struct idem_bytes scope;  /* … is recorded by */
    struct idem_bytes key;
    struct idem_bytes step; /* idem_call_options.step; data NULL: none, and … */
    unsigned number; /* … the how-manyeth call of its method in this run of the
                      * handler it is, from 1 */
};

#endif
