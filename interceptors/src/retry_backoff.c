#include "retry_backoff.h"

#define MS 1000000LL
#define LONGEST_MS (24 * 3600 * 1000LL) /* no pause is longer than a day */

static int64_t
or_default(int64_t ms, int64_t ms_default)
{
    if (ms <= 0)
        return ms_default;
    return ms < LONGEST_MS ? ms : LONGEST_MS;
}

static int64_t
grow(int64_t ns, unsigned multiplier_milli)
{
    int64_t product;

    if (__builtin_mul_overflow(ns, (int64_t)multiplier_milli, &product))
        return INT64_MAX;
    return product / 1000;
}

int64_t
retry_backoff_base_ns(const struct retry_backoff *backoff, unsigned n)
{
    int64_t ns = or_default(backoff->initial_ms, 100) * MS;
    int64_t max_ns = or_default(backoff->max_ms, 2000) * MS;
    unsigned multiplier = backoff->multiplier_milli;

    if (multiplier == 0)
        multiplier = 2000;
    for (unsigned i = 1; i < n && ns < max_ns; i++) {
        if (multiplier == 1000 || (multiplier < 1000 && ns <= MS))
            break;
        ns = grow(ns, multiplier);
    }
    if (ns > max_ns)
        ns = max_ns;
    return ns > MS ? ns : MS;
}

int64_t
retry_backoff_ns(const struct retry_backoff *backoff, unsigned n,
                 const struct idem_clock *clock)
{
    int64_t base = retry_backoff_base_ns(backoff, n);

    return base / 1000 * idem_clock_between(clock, 800, 1200);
}
