#ifndef LATE_H
#define LATE_H

#include "errand.h"
#include "once.h"

/* A LEASED call's last word to a store that is away: its handler has run, its
 * caller was told IN_DOUBT, and the record is still to be written (fault case
 * 43). It is tried again while the token is ours, which each try checks itself,
 * for as long as one execution may take. */
struct late;

typedef void store_op_fn(struct idem_store *store, struct idem_ticket *ticket);

/* op is complete, release or doubt, with the ticket as it was asked before;
 * everything is copied. Does nothing when the server stops. */
void late_start(struct once *once, struct idem_call *call,
                const struct idem_ticket *ticket, store_op_fn *op);

/* Those that wait give up; no more are begun. */
void errands_stop(struct errands *errands);

#endif
