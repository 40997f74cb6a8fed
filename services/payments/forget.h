#ifndef PAYMENTS_FORGET_H
#define PAYMENTS_FORGET_H

#include <idem/interceptor.h>

/* The baseline of the demo: gives every attempt a key of its own, so that once
 * finds nothing to repeat and each attempt is a call, as on a server without
 * idempotency. Add it before start; never in production. NULL: out of memory.
 */
struct idem_interceptor *forget_new(void);

#endif
