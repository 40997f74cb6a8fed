#ifndef DICE_H
#define DICE_H

#include <stdint.h>

/* Numbers that a seed repeats (splitmix64). One thread. */
struct dice {
    uint64_t state;
};

static inline uint64_t
dice_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 … sides - 1 */
static inline unsigned
dice_roll(struct dice *dice, unsigned sides)
{
    dice->state += UINT64_C(0x9e3779b97f4a7c15);
    return (unsigned)(dice_mix(dice->state) % sides);
}

#endif
