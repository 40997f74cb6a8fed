#ifndef IDEM_CLOCK_H
#define IDEM_CLOCK_H

#include <pthread.h>

#include <idem/base.h>

IDEM_BEGIN_DECLS

/* Time and randomness come in through this, so that every timer, lease and
 * backoff is tested on a fake clock. A user of a clock embeds nothing: it keeps
 * the pointer, which must outlive it. All functions are called from any thread.
 */
struct idem_clock {
    /* Nanoseconds of a clock that never steps. */
    int64_t (*monotonic_ns)(const struct idem_clock *clock);

    /* Milliseconds since 1970 UTC; may step. For keys and logs only. */
    int64_t (*wall_ms)(const struct idem_clock *clock);

    /* Wait on the condition, as pthread_cond_wait, until it is signalled or the
     * monotonic time is reached; INT64_MAX: no end. May wake early. */
    void (*wait_until)(const struct idem_clock *clock,
                       pthread_cond_t *condition, pthread_mutex_t *mutex,
                       int64_t monotonic_ns);

    /* size bytes that nobody can guess (getrandom(2)). */
    void (*random)(const struct idem_clock *clock, void *bytes, size_t size);
};

/* CLOCK_MONOTONIC, CLOCK_REALTIME, getrandom(2). Never freed. */
IDEM_API const struct idem_clock *idem_clock_system(void);

/* A number from low to high, both included. */
IDEM_API int64_t idem_clock_between(const struct idem_clock *clock, int64_t low,
                                    int64_t high);

IDEM_END_DECLS

#endif
