#ifndef RETRY_BACKOFF_H
#define RETRY_BACKOFF_H

#include <idem/clock.h>

/* Pauses that grow: min(initial * multiplier^(n-1), max) * U(0.8, 1.2), n = 1
 * for the first (gRFC A6 as of proposal#452). Integers throughout, without
 * overflow at any n (case B033). */
struct retry_backoff {
    int64_t initial_ms;        /* 0: 100 */
    int64_t max_ms;            /* 0: 2,000; also the first pause keeps to it */
    unsigned multiplier_milli; /* 0: 2,000; 1,500 is 1.5 */
};

/* Nanoseconds of pause n before the jitter, at least a millisecond. */
int64_t retry_backoff_base_ns(const struct retry_backoff *backoff, unsigned n);

/* The pause itself: 20 % around the base. */
int64_t retry_backoff_ns(const struct retry_backoff *backoff, unsigned n,
                         const struct idem_clock *clock);

#endif
