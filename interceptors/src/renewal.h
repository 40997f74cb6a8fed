#ifndef RENEWAL_H
#define RENEWAL_H

#include "errand.h"
#include "once.h"

/* Keeps the lease of one LEASED call while its handler runs: a renewal every
 * third of the lease, until max_execution_ms. When the lease is lost the
 * handler's context is told (owned is false). */
struct renewal;

/* NULL: no memory, or the server stops; then the lease just runs out. asked_ns:
 * when the claim was sent, for its lease began no earlier. */
struct renewal *renewal_start(struct once *once, struct idem_call *call,
                              const struct idem_ticket *claimed,
                              int64_t asked_ns);

/* The handler has returned: the context is touched no more. NULL is fine. */
void renewal_end(struct renewal *renewal);

/* Free those that are kept to be used again, when none is under way. */
void renewal_free_spares(struct errands *errands);

#endif
