#ifndef STORE_POSTGRES_BUSY_H
#define STORE_POSTGRES_BUSY_H

#include <idem/base.h>

/* The keys that are in a batch: a key is in one at a time, so that its changes
 * come in the order in which they were asked, and no two batches of this
 * process wait for each other. Keys share a place by chance: then one waits for
 * the other's batch. The owner's lock guards it. */

#define BUSY_PLACES 65536

struct pg_busy {
    uint64_t bits[BUSY_PLACES / 64];
};

/* False: it is busy. */
bool pg_busy_begin(struct pg_busy *busy, const uint8_t digest[32],
                   unsigned *place);
void pg_busy_end(struct pg_busy *busy, unsigned place);

#endif
