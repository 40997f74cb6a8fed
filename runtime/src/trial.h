#ifndef TRIAL_H
#define TRIAL_H

#include <stdbool.h>

/* What helps at some times and is in vain at others is used as long as it
 * helps: each time in vain it sits out twice as many chances as before, 1 to
 * TRIAL_PAUSE_MAX, and each time that it helps the next pause is half as long
 * again. What helps less than every other time is hardly ever used. No lock.
 * Zeroed: in use. */

#define TRIAL_PAUSE_MAX 256 /* chances */

struct trial {
    unsigned sits_out; /* so many chances more */
    unsigned failures; /* less what helped */
};

/* Is this chance one to use? */
static inline bool
trial_is_on(const struct trial *trial)
{
    return trial->sits_out == 0;
}

/* This chance has passed unused. */
static inline void
trial_pass(struct trial *trial)
{
    trial->sits_out -= trial->sits_out > 0;
}

/* It was used. */
static inline void
trial_judge(struct trial *trial, bool helped)
{
    if (helped) {
        trial->failures -= trial->failures > 0;
        return;
    }
    trial->sits_out = 1U << trial->failures;
    if (trial->sits_out < TRIAL_PAUSE_MAX)
        trial->failures++;
}

#endif
