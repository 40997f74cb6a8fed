#ifndef STREAMS_H
#define STREAMS_H

#include <idem/base.h>

/* Stream ids and what they stand for: open addressing, since ids come in order
 * and most are short-lived. Guarded by its user's lock. Empty when zeroed. */
struct streams {
    struct streams_slot {
        uint32_t id; /* 0: free */
        void *what;
    } * slots;
    uint32_t mask; /* slots - 1; a power of two */
    uint32_t count;
};

void streams_fini(struct streams *streams);

/* id is not 0 and not there. False: out of memory. */
bool streams_add(struct streams *streams, uint32_t id, void *what)
    IDEM_MUST_CHECK;

/* NULL: not there. */
void *streams_find(const struct streams *streams, uint32_t id);
void *streams_take(struct streams *streams, uint32_t id);

/* The next with an id over this; NULL: none. As streams_take_above, which takes
 * it out. */
void *streams_next_above(const struct streams *streams, uint32_t id,
                         uint32_t *at);

/* All that are there, in an array that is the caller's. */
void **streams_all(const struct streams *streams, uint32_t *n) IDEM_MUST_CHECK;

/* The next with an id over this, taken out; NULL: none. *at is 0 at first, and
 * nothing else is added or taken between the calls that share it: so that all
 * of them together look at each slot about once. */
void *streams_take_above(struct streams *streams, uint32_t id, uint32_t *at);

#endif
