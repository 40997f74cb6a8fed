#ifndef DEMO_DICE_H
#define DEMO_DICE_H

#include <stdint.h>

/* Chance that a seed repeats (splitmix64). One thread at a time. */
struct dice {
    uint64_t state;
};

/* A number from low to high, both included. */
int64_t dice_between(struct dice *dice, int64_t low, int64_t high);

#endif
