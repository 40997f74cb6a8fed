#ifndef SPIN_H
#define SPIN_H

#include "trial.h"

#include <stdint.h>

/* Whether a thread that has nothing to do looks again and again for a while
 * before it sleeps. Going to sleep and being woken costs both ends more than
 * some looks, where an answer comes soon and each end has a processor; where
 * they share one, or the answer takes its time, looking is in vain and is given
 * up (decision 40). It never looks when it has sent nothing: an idle process
 * sleeps.
 *
 * Knows no clock and no lock: one thread's, which tells it the time. Zeroed at
 * first. */
struct spin {
    struct trial trial;
    bool sent; /* something, since the last look: an answer may come */
    int64_t until_ns;
};

/* Bytes have left. */
static inline void
spin_sent(struct spin *spin)
{
    spin->sent = true;
}

/* There is nothing to do: look for so long? 0: never. */
bool spin_begin(struct spin *spin, int64_t limit_ns, int64_t now_ns);

/* Nothing yet: look once more? */
bool spin_goes_on(const struct spin *spin, int64_t now_ns);

/* What was begun is over, with something to do or without. */
void spin_end(struct spin *spin, bool caught, int64_t now_ns);

#endif
