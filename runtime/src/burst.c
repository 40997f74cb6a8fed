#include "burst.h"

#define PUT_OFF_MAX 8

static _Thread_local struct {
    unsigned depth, n;
    struct {
        void (*run)(void *with);
        void *with;
    } at[PUT_OFF_MAX];
} burst;

bool
idem_burst_put_off(void (*run)(void *with), void *with)
{
    if (burst.depth == 0)
        return false;
    for (unsigned i = burst.n; i-- > 0;)
        if (burst.at[i].run == run && burst.at[i].with == with)
            return true;
    if (burst.n == PUT_OFF_MAX)
        return false;
    burst.at[burst.n].run = run;
    burst.at[burst.n++].with = with;
    return true;
}

void
burst_begin(void)
{
    burst.depth++;
}

/* What is put off while this runs is no part of a burst. */
void
burst_end(void)
{
    if (--burst.depth > 0)
        return;
    while (burst.n > 0) {
        unsigned i = --burst.n;

        burst.at[i].run(burst.at[i].with);
    }
}
