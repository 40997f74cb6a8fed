#include "spin.h"

bool
spin_begin(struct spin *spin, int64_t limit_ns, int64_t now_ns)
{
    if (!spin->sent || limit_ns == 0)
        return false;
    spin->sent = false;
    if (!trial_is_on(&spin->trial)) {
        trial_pass(&spin->trial);
        return false;
    }
    spin->until_ns = now_ns + limit_ns;
    return true;
}

bool
spin_goes_on(const struct spin *spin, int64_t now_ns)
{
    return now_ns < spin->until_ns;
}

/* One that was caught too late was slept for in any case: the processor was
 * somebody else's meanwhile. */
void
spin_end(struct spin *spin, bool caught, int64_t now_ns)
{
    trial_judge(&spin->trial, caught && spin_goes_on(spin, now_ns));
}
