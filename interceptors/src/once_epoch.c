#include "once_epoch.h"

bool
once_epoch(const struct once *once, char epoch[IDEM_EPOCH_MAX])
{
    epoch[0] = '\0';
    if (once->store->ops->epoch)
        once->store->ops->epoch(once->store, epoch);
    return epoch[0] != '\0';
}

void
once_heard(struct once *once, int64_t asked_ns)
{
    int64_t before = atomic_load(&once->heard_ns);

    while (asked_ns > before &&
           !atomic_compare_exchange_weak(&once->heard_ns, &before, asked_ns))
        continue;
}

bool
once_epoch_shown(const struct once *once, const struct idem_clock *clock,
                 char epoch[IDEM_EPOCH_MAX])
{
    int64_t now_ns = clock->monotonic_ns(clock);

    epoch[0] = '\0';
    return now_ns - atomic_load(&once->heard_ns) <= once->epoch_ttl_ns &&
           once_epoch(once, epoch);
}
