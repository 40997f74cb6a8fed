#include "clock_held.h"

static _Thread_local struct {
    bool holds, author;
    int64_t monotonic_ns, wall_ms; /* 0: not read yet */
} held;

static void
forget(void)
{
    held.monotonic_ns = held.wall_ms = 0;
}

void
clock_hold(void)
{
    held.holds = true;
    forget();
}

void
clock_let_go(void)
{
    held.holds = false;
}

void
clock_go_on(bool author)
{
    held.author = author;
    forget();
}

static int64_t
held_monotonic_ns(const struct idem_clock *clock)
{
    const struct idem_clock *system = idem_clock_system();

    (void)clock;
    if (!held.holds || held.author)
        return system->monotonic_ns(system);
    if (held.monotonic_ns == 0)
        held.monotonic_ns = system->monotonic_ns(system);
    return held.monotonic_ns;
}

static int64_t
held_wall_ms(const struct idem_clock *clock)
{
    const struct idem_clock *system = idem_clock_system();

    (void)clock;
    if (!held.holds || held.author)
        return system->wall_ms(system);
    if (held.wall_ms == 0)
        held.wall_ms = system->wall_ms(system);
    return held.wall_ms;
}

static void
held_wait_until(const struct idem_clock *clock, pthread_cond_t *condition,
                pthread_mutex_t *mutex, int64_t monotonic_ns)
{
    const struct idem_clock *system = idem_clock_system();

    (void)clock;
    clock_let_go();
    system->wait_until(system, condition, mutex, monotonic_ns);
}

static void
held_random(const struct idem_clock *clock, void *bytes, size_t size)
{
    const struct idem_clock *system = idem_clock_system();

    (void)clock;
    system->random(system, bytes, size);
}

const struct idem_clock *
clock_held(void)
{
    static const struct idem_clock clock = {
        .monotonic_ns = held_monotonic_ns,
        .wall_ms = held_wall_ms,
        .wait_until = held_wait_until,
        .random = held_random,
    };

    return &clock;
}
