#include "stepped_clock.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static int64_t
stepped_monotonic_ns(const struct idem_clock *clock)
{
    const struct idem_clock *system = idem_clock_system();

    (void)clock;
    return system->monotonic_ns(system);
}

static int64_t
stepped_wall_ms(const struct idem_clock *clock)
{
    const struct stepped_clock *stepped = (const struct stepped_clock *)clock;
    const struct idem_clock *system = idem_clock_system();

    return system->wall_ms(system) + atomic_load(stepped->ahead_ms);
}

static void
stepped_wait_until(const struct idem_clock *clock, pthread_cond_t *condition,
                   pthread_mutex_t *mutex, int64_t monotonic_ns)
{
    const struct idem_clock *system = idem_clock_system();

    (void)clock;
    system->wait_until(system, condition, mutex, monotonic_ns);
}

static void
stepped_random(const struct idem_clock *clock, void *bytes, size_t size)
{
    const struct idem_clock *system = idem_clock_system();

    (void)clock;
    system->random(system, bytes, size);
}

void
stepped_clock_open(struct stepped_clock *stepped, const char *path)
{
    const size_t size = sizeof(*stepped->ahead_ms);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *shared;

    IDEM_ASSERT(file >= 0 && ftruncate(file, (off_t)size) == 0);
    shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    IDEM_ASSERT(shared != MAP_FAILED);
    close(file);
    *stepped = (struct stepped_clock){
        .clock = {stepped_monotonic_ns, stepped_wall_ms, stepped_wait_until,
                  stepped_random},
        .ahead_ms = shared,
    };
}

void
stepped_clock_set(struct stepped_clock *stepped, int64_t ahead_ms)
{
    atomic_store(stepped->ahead_ms, ahead_ms);
}

void
stepped_clock_close(struct stepped_clock *stepped)
{
    if (stepped->ahead_ms)
        munmap(stepped->ahead_ms, sizeof(*stepped->ahead_ms));
    stepped->ahead_ms = NULL;
}
