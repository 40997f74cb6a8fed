#ifndef FAKE_CLOCK_H
#define FAKE_CLOCK_H

#include <idem/clock.h>

/* Time that moves when a test says so, and randomness that repeats.
 *
 * A thread in wait_until sleeps until it is signalled or the clock is moved to
 * its time. Functions are for any thread. */
struct fake_clock {
    struct idem_clock clock; /* first: a struct idem_clock is made of it */
    pthread_mutex_t lock;    /* guards the rest */
    pthread_cond_t changed;  /* somebody began or ended to wait */
    struct fake_waiter *waiters;
    int64_t now_ns, wall_ms;
    uint64_t seed;
};

/* Monotonic 1 s, wall 2023-11-14 22:13:20 UTC. */
void fake_clock_init(struct fake_clock *fake);

/* When nobody waits on it any more. */
void fake_clock_fini(struct fake_clock *fake);

/* Move both times and wake whose time has come. */
void fake_clock_advance_ns(struct fake_clock *fake, int64_t ns);
void fake_clock_advance_ms(struct fake_clock *fake, int64_t ms);

/* The wall clock alone: it may step, also back. */
void fake_clock_step_wall_ms(struct fake_clock *fake, int64_t ms);

/* Block until a thread waits for that monotonic time or an earlier one: the
 * timer that a test wants to see fire is under way. Fails the test after 10 s
 * of real time. */
void fake_clock_await_waiter(struct fake_clock *fake, int64_t at_ns);

#endif
