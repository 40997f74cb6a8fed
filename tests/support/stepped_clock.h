#ifndef STEPPED_CLOCK_H
#define STEPPED_CLOCK_H

#include <stdatomic.h>

#include <idem/clock.h>

/* The system's clock, but for its wall time, which another process may step: by
 * how much stands in a file that both have open. Any thread reads it. */
struct stepped_clock {
    struct idem_clock clock; /* first: a struct idem_clock is made of it */
    atomic_int_fast64_t *ahead_ms; /* in the file */
};

/* Of a file that is made when it is not there, then with the right time. Fails
 * the program when it cannot be. */
void stepped_clock_open(struct stepped_clock *stepped, const char *path);

/* Ahead of the system's by so much, from now on, for all who have the file;
 * below 0: behind. */
void stepped_clock_set(struct stepped_clock *stepped, int64_t ahead_ms);

/* When nobody reads it any more; one that was not opened is fine. */
void stepped_clock_close(struct stepped_clock *stepped);

#endif
