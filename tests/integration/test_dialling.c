/* The pauses between attempts to connect (docs/placement.md), on a clock that
 * the test moves. */
#include "support.h"

#include "channel.h"
#include "fake_clock.h"
#include "io.h"

#include <idem/channel.h>

#include <pthread.h>

#define NS_PER_MS INT64_C(1000000)
#define NOBODY "tcp://127.0.0.1:1"

/* Real dials to where nobody listens, counted. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t dialled;
    struct fake_clock clock;
    unsigned dials;
    int64_t last_ns;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .dialled = PTHREAD_COND_INITIALIZER};

static enum idem_status
count_dial(const struct io *io, const char *address, struct io_dialer **dialer,
           struct idem_error *err)
{
    (void)io;
    pthread_mutex_lock(&world.lock);
    world.dials++;
    world.last_ns = world.clock.clock.monotonic_ns(&world.clock.clock);
    pthread_cond_broadcast(&world.dialled);
    pthread_mutex_unlock(&world.lock);
    return io_nng.dialer(&io_nng, address, dialer, err);
}

/* When it was made. */
static int64_t
await_dial(unsigned n)
{
    struct timespec end;
    int64_t at_ns;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 10;
    pthread_mutex_lock(&world.lock);
    while (world.dials < n)
        assert_int_equal(
            pthread_cond_timedwait(&world.dialled, &world.lock, &end), 0);
    assert_int_equal(world.dials, n);
    at_ns = world.last_ns;
    pthread_mutex_unlock(&world.lock);
    return at_ns;
}

/* gRPC's connection backoff: from the first pause, doubled, to the last, each
 * 20 % more or less. */
static void
pauses_double_up_to_the_longest_and_vary_by_a_fifth(void **state)
{
    static const int64_t pauses_ms[] = {100, 200, 400, 800, 1000, 1000};
    const struct io io = {
        .schemes = "tcp", .listen = io_nng.listen, .dialer = count_dial};
    const struct idem_channel_options options = {.connect_backoff_ms = 100,
                                                 .connect_backoff_max_ms = 1000,
                                                 .clock = &world.clock.clock};
    struct idem_channel *channel;
    struct idem_error err;
    int64_t before_ns;

    (void)state;
    fake_clock_init(&world.clock);
    assert_int_equal(channel_new_with_io(&channel, &io, NOBODY, &options, &err),
                     IDEM_OK);
    before_ns = await_dial(2); /* the first was to check the address */
    for (unsigned i = 0; i < sizeof pauses_ms / sizeof *pauses_ms; i++) {
        int64_t least_ns = pauses_ms[i] * NS_PER_MS * 8 / 10;
        int64_t most_ns = pauses_ms[i] * NS_PER_MS * 12 / 10;

        /* It has failed, and the next one is set. */
        fake_clock_await_waiter(&world.clock, before_ns + most_ns);
        fake_clock_advance_ns(&world.clock, least_ns - 1);
        fake_clock_advance_ns(&world.clock, most_ns - least_ns + 1);
        assert_true(await_dial(i + 3) - before_ns >= least_ns);
        before_ns += most_ns;
    }
    idem_channel_close(channel);
    fake_clock_fini(&world.clock);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_double_up_to_the_longest_and_vary_by_a_fifth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
