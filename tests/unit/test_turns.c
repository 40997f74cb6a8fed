#include "support.h"

#include "fake_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <idem/turns.h>

#define MS INT64_C(1000000)
#define ASKERS 4
#define ASKED 20000 /* by each of them */

struct world {
    struct fake_clock fake;
    int fd;
    struct idem_turns *turns;
    atomic_bool inside;
    bool stopped;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    unsigned turned, reads;
    int64_t by_ns; /* what the next turn asks for; 0: nothing */
};

static void
turn(void *with)
{
    struct world *w = with;
    uint64_t read_now = 0;
    int64_t by_ns;

    assert_false(atomic_exchange(&w->inside, true));
    (void)!read(w->fd, &read_now, sizeof(read_now));
    pthread_mutex_lock(&w->lock);
    by_ns = w->by_ns;
    w->by_ns = 0;
    pthread_mutex_unlock(&w->lock);
    if (by_ns > 0)
        idem_turns_by(w->turns, by_ns);
    atomic_store(&w->inside, false);

    pthread_mutex_lock(&w->lock);
    w->turned++;
    w->reads += read_now > 0;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void
await(struct world *w, const unsigned *counter, unsigned count)
{
    pthread_mutex_lock(&w->lock);
    while (*counter < count)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static unsigned
turned(struct world *w)
{
    unsigned count;

    pthread_mutex_lock(&w->lock);
    count = w->turned;
    pthread_mutex_unlock(&w->lock);
    return count;
}

static int
set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct idem_turns_options options = {.turn = turn, .with = w};

    assert_non_null(w);
    fake_clock_init(&w->fake);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->fd = options.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    options.clock = &w->fake.clock;
    *state = w;
    return idem_turns_new(&w->turns, &options, NULL) == IDEM_OK ? 0 : -1;
}

static int
tear_down(void **state)
{
    struct world *w = *state;

    idem_turns_free(w->turns);
    fake_clock_fini(&w->fake);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return 0;
}

static void
a_turn_follows_each_time_that_one_is_asked_for(void **state)
{
    struct world *w = *state;

    for (unsigned n = 1; n <= 1000; n++) {
        idem_turns_ask(w->turns);
        await(w, &w->turned, n);
    }
    assert_int_equal(turned(w), 1000);
}

/* A turn that reads nothing is followed by others, one that does by none. */
static void
there_are_turns_as_long_as_the_descriptor_can_be_read(void **state)
{
    struct world *w = *state;
    const uint64_t one = 1;

    for (unsigned n = 1; n <= 100; n++) {
        assert_int_equal(write(w->fd, &one, sizeof(one)), sizeof(one));
        await(w, &w->reads, n);
    }
    assert_int_equal(turned(w), 100);
}

static void *
ask_often(void *with)
{
    struct world *w = with;

    for (unsigned n = 0; n < ASKED; n++)
        idem_turns_ask(w->turns);
    return NULL;
}

/* turn() fails when it is on two threads; what asks share is not lost: one
 * turn more follows the last of them. */
static void
turns_never_overlap(void **state)
{
    struct world *w = *state;
    pthread_t askers[ASKERS];
    unsigned before;

    for (unsigned i = 0; i < ASKERS; i++)
        assert_int_equal(pthread_create(&askers[i], NULL, ask_often, w), 0);
    for (unsigned i = 0; i < ASKERS; i++)
        pthread_join(askers[i], NULL);
    before = turned(w);
    idem_turns_ask(w->turns);
    await(w, &w->turned, before + 1);
    assert_in_range(turned(w), 1, ASKERS * ASKED + 1);
}

static void
a_turn_comes_by_its_time(void **state)
{
    struct world *w = *state;
    const struct idem_clock *clock = &w->fake.clock;

    w->by_ns = clock->monotonic_ns(clock) + 50 * MS;
    idem_turns_ask(w->turns);
    await(w, &w->turned, 1);
    fake_clock_await_waiter(&w->fake, clock->monotonic_ns(clock) + 50 * MS);
    fake_clock_advance_ms(&w->fake, 49);
    assert_int_equal(turned(w), 1);
    fake_clock_advance_ms(&w->fake, 2);
    await(w, &w->turned, 2);
}

/* The earlier of two times counts. */
static void
an_earlier_time_moves_it(void **state)
{
    struct world *w = *state;
    const struct idem_clock *clock = &w->fake.clock;
    int64_t begun_ns = clock->monotonic_ns(clock);
    const int64_t by_ns[] = {begun_ns + 500 * MS, begun_ns + 50 * MS};

    for (unsigned n = 0; n < 2; n++) {
        pthread_mutex_lock(&w->lock);
        w->by_ns = by_ns[n];
        pthread_mutex_unlock(&w->lock);
        idem_turns_ask(w->turns);
        await(w, &w->turned, n + 1);
    }
    fake_clock_await_waiter(&w->fake, by_ns[1]);
    fake_clock_advance_ms(&w->fake, 60);
    await(w, &w->turned, 3);
}

static void
no_turn_comes_behind_stop(void **state)
{
    struct world *w = *state;
    unsigned before;

    for (unsigned n = 0; n < 100; n++)
        idem_turns_ask(w->turns);
    idem_turns_stop(w->turns);
    w->stopped = true;
    before = turned(w);
    idem_turns_ask(w->turns);
    fake_clock_advance_ms(&w->fake, 1000);
    assert_int_equal(turned(w), before);
    assert_int_equal(fcntl(w->fd, F_GETFD), -1);
    assert_int_equal(errno, EBADF);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_turn_follows_each_time_that_one_is_asked_for),
        TEST(there_are_turns_as_long_as_the_descriptor_can_be_read),
        TEST(turns_never_overlap),
        TEST(a_turn_comes_by_its_time),
        TEST(an_earlier_time_moves_it),
        TEST(no_turn_comes_behind_stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
