#include "dice.h"

static uint64_t
roll(struct dice *dice)
{
    uint64_t z = dice->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t
dice_between(struct dice *dice, int64_t low, int64_t high)
{
    return low + (int64_t)(roll(dice) % (uint64_t)(high - low + 1));
}
