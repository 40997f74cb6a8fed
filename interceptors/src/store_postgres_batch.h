#ifndef STORE_POSTGRES_BATCH_H
#define STORE_POSTGRES_BATCH_H

#include "store_postgres_array.h"
#include "store_postgres_slot.h"

/* The tickets that a group session has: those that it sends together, each in
 * its own step, as one transaction (dedup.md 4). Its thread alone touches it.
 */

#define BATCH_MAX 512
#define BATCH_LEAST 16        /* a share is no smaller, while so many wait */
#define BATCH_BYTES (4 << 20) /* of answers; one alone may be larger */

/* Claims go as a plain INSERT, which is cheaper and undoes the batch when a key
 * has a record; then so many rounds go by ON CONFLICT: twice as many after each
 * such batch, half as many after each that went well (decision 56). */
#define WARY_LEAST 8
#define WARY_MOST 1024

struct pg_batch {
    unsigned n;
    unsigned wary;      /* rounds from here that are */
    unsigned next_wary; /* after the next such batch; at least the least */
    struct pg_slot slots[BATCH_MAX];
    struct pg_arrays arrays;
};

/**
 * Take every slot one step further: sorted by their keys, a statement for each
 * step and table, one transaction. An error that one row caused fails that row
 * alone. Slots that were lost are to be asked again; the session is closed
 * then.
 */
void pg_batch_round(struct pg_session *session, struct pg_batch *batch);

#endif
