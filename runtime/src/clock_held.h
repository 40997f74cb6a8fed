#ifndef CLOCK_HELD_H
#define CLOCK_HELD_H

#include <idem/clock.h>

/* The system's clock, for a runtime that asks several times a call: a reading
 * costs more than a lock. While a thread holds it, it says on that thread what
 * it said first. Held over the frames of one read, and over a worker's job, in
 * which nothing waits: not while an author's handler runs, and waiting by it
 * ends the hold. The wall's time is read anew on a thread when half a
 * millisecond has passed there since. */
const struct idem_clock *clock_held(void);

/* From here on this thread holds it, or no more. */
void clock_hold(void);
void clock_let_go(void);

/* As clock_hold, and this is the time: the system's has just said so. */
void clock_hold_at(int64_t monotonic_ns);

/* An author's code begins on this thread, and time goes on for it; or ends. */
void clock_go_on(bool author);

#endif
