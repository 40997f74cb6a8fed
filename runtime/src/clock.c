#include <idem/clock.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define NS_PER_S 1000000000

static int64_t
system_monotonic_ns(const struct idem_clock *clock)
{
    struct timespec now;

    (void)clock;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int64_t
system_wall_ms(const struct idem_clock *clock)
{
    struct timespec now;

    (void)clock;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void
system_wait_until(const struct idem_clock *clock, pthread_cond_t *condition,
                  pthread_mutex_t *mutex, int64_t monotonic_ns)
{
    (void)clock;
    if (monotonic_ns == INT64_MAX) {
        pthread_cond_wait(condition, mutex);
        return;
    }

    /* Without pthread_condattr_setclock: whoever made the condition need not
     * know which clock it will wait on. */
    int64_t at = monotonic_ns < 0 ? 0 : monotonic_ns;
    struct timespec until = {.tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S};

    pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &until);
}

static void
ask_kernel(uint8_t *at, size_t size)
{
    while (size > 0) {
        ssize_t got = getrandom(at, size, 0);

        IDEM_ASSERT(got > 0 || errno == EINTR);
        if (got <= 0)
            continue;
        at += got;
        size -= (size_t)got;
    }
}

/* A thread's bytes from the kernel, that were asked for at once: a call needs a
 * few of them, and each question is a system call. What was given is wiped. */
struct pool {
    unsigned left, forks;
    uint8_t bytes[256];
};

static _Thread_local struct pool pool;
static atomic_uint forks; /* of this process, from its parent */
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void
note_fork(void)
{
    atomic_fetch_add(&forks, 1);
}

static void
watch_forks(void)
{
    int failed = pthread_atfork(NULL, NULL, note_fork);

    IDEM_ASSERT(failed == 0);
}

/* A child has its parent's pool, and must not give the same bytes. */
static void
fill(void)
{
    unsigned now = atomic_load(&forks);

    if (pool.forks == now && pool.left > 0)
        return;
    pthread_once(&watched, watch_forks);
    pool.forks = now;
    ask_kernel(pool.bytes, sizeof(pool.bytes));
    pool.left = sizeof(pool.bytes);
}

static void
system_random(const struct idem_clock *clock, void *bytes, size_t size)
{
    uint8_t *at = bytes;

    (void)clock;
    while (size > 0) {
        size_t some;

        fill();
        some = size < pool.left ? size : pool.left;
        pool.left -= (unsigned)some;
        memcpy(at, pool.bytes + pool.left, some);
        memset(pool.bytes + pool.left, 0, some);
        at += some;
        size -= some;
    }
}

static const struct idem_clock system_clock = {
    .monotonic_ns = system_monotonic_ns,
    .wall_ms = system_wall_ms,
    .wait_until = system_wait_until,
    .random = system_random,
};

const struct idem_clock *
idem_clock_system(void)
{
    return &system_clock;
}

int64_t
idem_clock_between(const struct idem_clock *clock, int64_t low, int64_t high)
{
    IDEM_ASSERT(low <= high);

    uint64_t count = (uint64_t)high - (uint64_t)low + 1; /* 0: all 2^64 */
    uint64_t excess = count ? (0 - count) % count : 0;   /* 2^64 mod count */
    uint64_t number;

    do
        clock->random(clock, &number, sizeof(number));
    while (number < excess); /* else the low numbers would come more often */
    if (count)
        number %= count;
    return (int64_t)((uint64_t)low + number);
}
