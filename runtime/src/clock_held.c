#include "clock_held.h"

#define WALL_NS 500000 /* what a reading of the wall's time is good for */

static _Thread_local struct {
    bool holds, author;
    int64_t monotonic_ns; /* 0: not read yet, or not to be held */
} held;

static _Thread_local struct {
    int64_t read_ns, wall_ms; /* 0: never */
} wall;

static void
forget(void)
{
    held.monotonic_ns = 0;
}

void
clock_hold(void)
{
    held.holds = true;
    forget();
}

void
clock_hold_at(int64_t monotonic_ns)
{
    held.holds = true;
    held.monotonic_ns = monotonic_ns;
}

void
clock_let_go(void)
{
    held.holds = false;
    forget();
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
    const struct idem_clock *system;
    int64_t now;

    (void)clock;
    if (held.monotonic_ns != 0)
        return held.monotonic_ns;
    system = idem_clock_system();
    now = system->monotonic_ns(system);
    if (held.holds && !held.author)
        held.monotonic_ns = now;
    return now;
}

static int64_t
held_wall_ms(const struct idem_clock *clock)
{
    int64_t now_ns = held_monotonic_ns(clock);

    if (wall.read_ns == 0 || now_ns - wall.read_ns >= WALL_NS) {
        const struct idem_clock *system = idem_clock_system();

        wall.wall_ms = system->wall_ms(system);
        wall.read_ns = now_ns;
    }
    return wall.wall_ms;
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
