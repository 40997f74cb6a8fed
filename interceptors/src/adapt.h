#ifndef ADAPT_H
#define ADAPT_H

#include <stdbool.h>
#include <stdint.h>

/* How many calls a server lets in at once, by additive increase and
 * multiplicative decrease (decision 33): the rule of TCP (RFC 5681), with
 * "late" for "lost".
 *
 *   late      a tenth less, once for all calls that were let in before: they
 *             tell of the same jam
 *   in time   one more after as many of them as are let in, and only while at
 *             least half of what is allowed is used: what nobody uses proves
 *             nothing
 *
 * Pure: the owner has the lock and the clock. */
struct adapt {
    unsigned limit; /* between … */
    unsigned least, most;
    unsigned in_time; /* since it moved */
    int64_t cut_ns;   /* who was let in before tells nothing new */
};

/* Begins at most, or a hundred: a server that is not known yet. */
void adapt_init(struct adapt *adapt, unsigned least, unsigned most);

/* A call that was let in then is over; in_use were, itself included. */
void adapt_done(struct adapt *adapt, int64_t began_ns, int64_t now_ns,
                bool late, unsigned in_use);

#endif
