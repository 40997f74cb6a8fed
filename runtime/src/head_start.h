#ifndef HEAD_START_H
#define HEAD_START_H

#include "trial.h"

#include <stdint.h>

/* When the answers to frames that were read together leave. All at their end
 * costs the fewest system calls, but then the two ends of a busy connection
 * take turns: this one works while the other waits for the whole batch, and the
 * other way round. A head start is a part of the answers that leaves while the
 * rest is being worked at, so that both work.
 *
 * It is given after a wait that was long against the work before it, and no
 * more for some batches when it was in vain: where both ends share a processor
 * it costs a write and helps nobody (decision 41).
 *
 * Knows no clock and no lock: its batches' times are told, by one thread at a
 * time. Zeroed: before the first batch. */
struct head_start {
    int64_t begun_ns; /* this batch */
    int64_t left_ns;  /* a part of its answers last left, or it began */
    bool wanted;      /* of this batch: the ends take turns */
    bool given;       /* to this batch */

    int64_t ended_ns;  /* the batch before */
    int64_t worked_ns; /* it took so long, without the wait behind it */
    unsigned size;     /* its frames */

    int64_t turn_ns;    /* of a frame without one, with its part of the wait; 0:
                         * not known */
    struct trial trial; /* of batches */
};

/* A batch begins, after a wait. */
void head_start_begin(struct head_start *head_start, int64_t now_ns);

/* Some of its frames are done: do their answers leave now? True: they do. */
bool head_start_due(struct head_start *head_start, int64_t now_ns);

/* All of its frames are. */
void head_start_end(struct head_start *head_start, unsigned size,
                    int64_t now_ns);

#endif
