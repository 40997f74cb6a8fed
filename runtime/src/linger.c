#include <idem/linger.h>

#include "io_loop.h"
#include "trial.h"

#include <idem/clock.h>

/* Of sockets' threads: until the answer is read, and until the next call is. */
#define WAITS 3

static int64_t
now(void)
{
    const struct idem_clock *clock = idem_clock_system();

    return clock->monotonic_ns(clock);
}

static bool
look(int64_t until_ns, bool (*found)(const void *with), const void *with)
{
    bool seen;

    do
        seen = found(with);
    while (!seen && now() < until_ns);
    return seen;
}

bool
idem_linger(struct idem_linger *linger, bool (*found)(const void *with),
            const void *with)
{
    struct trial trial = {linger->sits_out, linger->failures};
    int64_t limit_ns = WAITS * io_loop_spin_ns();
    bool seen = false;

    if (limit_ns == 0)
        return false;
    if (trial_is_on(&trial)) {
        int64_t until_ns = now() + limit_ns;

        seen = look(until_ns, found, with);
        trial_judge(&trial, seen && now() < until_ns);
    } else {
        trial_pass(&trial);
    }
    *linger = (struct idem_linger){trial.sits_out, trial.failures};
    return seen;
}
