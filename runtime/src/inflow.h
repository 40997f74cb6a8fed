#ifndef INFLOW_H
#define INFLOW_H

#include "backlog.h"

/* Messages that came and are not read yet: two halves. One is filled by the
 * connection, the other is read; when the reader is through it takes what was
 * filled meanwhile. The filling half is guarded by its user's lock, the other
 * one belongs to the reader. Empty when zeroed. */
struct inflow {
    struct backlog filling, reading;
};

void inflow_fini(struct inflow *inflow);

/* With the lock. False: out of memory. */
bool inflow_put(struct inflow *inflow, struct idem_bytes message, bool squeezed)
    IDEM_MUST_CHECK;

/* The reader's. The view is good until inflow_turn. False: its half is
 * through. */
bool inflow_next(struct inflow *inflow, struct idem_bytes *message,
                 bool *squeezed) IDEM_MUST_CHECK;

/* With the lock, by the reader, when its half is through. False: nothing has
 * come. */
bool inflow_turn(struct inflow *inflow) IDEM_MUST_CHECK;

#endif
