#include "support.h"

#include "fake_clock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_MS 1000000

/* One thread in wait_until, on its stack. */
struct fake_waiter {
    struct fake_waiter *next, **link;
    pthread_cond_t *condition;
    pthread_mutex_t *mutex;
    int64_t at_ns;
    bool pinned; /* advance uses the condition: do not leave */
};

static struct fake_clock *
fake_of(const struct idem_clock *clock)
{
    return (struct fake_clock *)(uintptr_t)clock;
}

static int64_t
fake_monotonic_ns(const struct idem_clock *clock)
{
    struct fake_clock *fake = fake_of(clock);

    pthread_mutex_lock(&fake->lock);

    int64_t now_ns = fake->now_ns;

    pthread_mutex_unlock(&fake->lock);
    return now_ns;
}

static int64_t
fake_wall_ms(const struct idem_clock *clock)
{
    struct fake_clock *fake = fake_of(clock);

    pthread_mutex_lock(&fake->lock);

    int64_t wall_ms = fake->wall_ms;

    pthread_mutex_unlock(&fake->lock);
    return wall_ms;
}

/* With fake->lock. False: its time has come already. */
static bool
begin_wait(struct fake_clock *fake, struct fake_waiter *waiter)
{
    if (waiter->at_ns <= fake->now_ns)
        return false;
    waiter->next = fake->waiters;
    waiter->link = &fake->waiters;
    if (waiter->next)
        waiter->next->link = &waiter->next;
    fake->waiters = waiter;
    pthread_cond_broadcast(&fake->changed);
    return true;
}

/* Without the waiter's mutex, which advance takes while it pins. */
static void
end_wait(struct fake_clock *fake, struct fake_waiter *waiter)
{
    pthread_mutex_lock(&fake->lock);
    while (waiter->pinned)
        pthread_cond_wait(&fake->changed, &fake->lock);
    *waiter->link = waiter->next;
    if (waiter->next)
        waiter->next->link = waiter->link;
    pthread_mutex_unlock(&fake->lock);
}

static void
fake_wait_until(const struct idem_clock *clock, pthread_cond_t *condition,
                pthread_mutex_t *mutex, int64_t monotonic_ns)
{
    struct fake_clock *fake = fake_of(clock);
    struct fake_waiter waiter = {
        .condition = condition,
        .mutex = mutex,
        .at_ns = monotonic_ns,
    };

    pthread_mutex_lock(&fake->lock);

    bool waits = begin_wait(fake, &waiter);

    pthread_mutex_unlock(&fake->lock);
    if (!waits)
        return;
    pthread_cond_wait(condition, mutex);
    pthread_mutex_unlock(mutex);
    end_wait(fake, &waiter);
    pthread_mutex_lock(mutex);
}

/* xorshift64*: repeats from the same seed. */
static void
fake_random(const struct idem_clock *clock, void *bytes, size_t size)
{
    struct fake_clock *fake = fake_of(clock);
    uint8_t *at = bytes;

    pthread_mutex_lock(&fake->lock);
    for (size_t i = 0; i < size; i++) {
        fake->seed ^= fake->seed >> 12;
        fake->seed ^= fake->seed << 25;
        fake->seed ^= fake->seed >> 27;
        at[i] = (uint8_t)((fake->seed * UINT64_C(0x2545F4914F6CDD1D)) >> 56);
    }
    pthread_mutex_unlock(&fake->lock);
}

void
fake_clock_init(struct fake_clock *fake)
{
    memset(fake, 0, sizeof(*fake));
    fake->clock = (struct idem_clock){
        .monotonic_ns = fake_monotonic_ns,
        .wall_ms = fake_wall_ms,
        .wait_until = fake_wait_until,
        .random = fake_random,
    };
    fake->now_ns = 1000 * (int64_t)NS_PER_MS;
    fake->wall_ms = INT64_C(1700000000000);
    fake->seed = UINT64_C(0x9E3779B97F4A7C15);
    pthread_mutex_init(&fake->lock, NULL);
    pthread_cond_init(&fake->changed, NULL);
}

void
fake_clock_fini(struct fake_clock *fake)
{
    pthread_cond_destroy(&fake->changed);
    pthread_mutex_destroy(&fake->lock);
}

/* With fake->lock, which is let go meanwhile. The waiter holds its mutex until
 * it sleeps, so a signal under that mutex cannot come too early. */
static void
wake_waiter(struct fake_clock *fake, struct fake_waiter *waiter)
{
    waiter->pinned = true;
    pthread_mutex_unlock(&fake->lock);
    pthread_mutex_lock(waiter->mutex);
    pthread_cond_broadcast(waiter->condition);
    pthread_mutex_unlock(waiter->mutex);
    pthread_mutex_lock(&fake->lock);
    waiter->pinned = false;
    waiter->at_ns = INT64_MAX;
    pthread_cond_broadcast(&fake->changed);
}

static struct fake_waiter *
find_due(struct fake_clock *fake)
{
    struct fake_waiter *waiter = fake->waiters;

    while (waiter && waiter->at_ns > fake->now_ns)
        waiter = waiter->next;
    return waiter;
}

void
fake_clock_advance_ns(struct fake_clock *fake, int64_t ns)
{
    struct fake_waiter *waiter;

    pthread_mutex_lock(&fake->lock);
    fake->now_ns += ns;
    fake->wall_ms += ns / NS_PER_MS;
    while ((waiter = find_due(fake)) != NULL)
        wake_waiter(fake, waiter);
    pthread_mutex_unlock(&fake->lock);
}

void
fake_clock_advance_ms(struct fake_clock *fake, int64_t ms)
{
    fake_clock_advance_ns(fake, ms * NS_PER_MS);
}

void
fake_clock_step_wall_ms(struct fake_clock *fake, int64_t ms)
{
    pthread_mutex_lock(&fake->lock);
    fake->wall_ms += ms;
    pthread_mutex_unlock(&fake->lock);
}

static bool
somebody_waits_for(const struct fake_clock *fake, int64_t at_ns)
{
    for (const struct fake_waiter *waiter = fake->waiters; waiter;
         waiter = waiter->next)
        if (waiter->at_ns <= at_ns)
            return true;
    return false;
}

void
fake_clock_await_waiter(struct fake_clock *fake, int64_t at_ns)
{
    struct timespec until;
    int result = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 10;
    pthread_mutex_lock(&fake->lock);
    while (result == 0 && !somebody_waits_for(fake, at_ns))
        result = pthread_cond_clockwait(&fake->changed, &fake->lock,
                                        CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&fake->lock);
    assert_int_equal(result, 0);
}
