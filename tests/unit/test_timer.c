#include "support.h"

#include "fake_clock.h"
#include "timer.h"

#include <stdlib.h>

#define MS INT64_C(1000000)

struct world {
    struct fake_clock fake;
    struct idem_timers *timers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned fired;
};

struct bell {
    struct idem_timer timer;
    struct world *world;
    int64_t rang_at_ns; /* 0: not yet */
    unsigned again;     /* starts itself so many times more */
};

static int64_t
now(struct world *w)
{
    return w->fake.clock.monotonic_ns(&w->fake.clock);
}

static void
ring(struct idem_timer *timer)
{
    struct bell *bell = (struct bell *)timer;
    struct world *w = bell->world;

    if (bell->again > 0) {
        bell->again--;
        idem_timer_start(w->timers, timer, now(w));
    }
    pthread_mutex_lock(&w->lock);
    bell->rang_at_ns = now(w);
    w->fired++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void
await_fired(struct world *w, unsigned count)
{
    pthread_mutex_lock(&w->lock);
    while (w->fired < count)
        pthread_cond_wait(&w->changed, &w->lock);
    assert_int_equal(w->fired, count);
    pthread_mutex_unlock(&w->lock);
}

static struct bell
bell_of(struct world *w)
{
    return (struct bell){.timer.fire = ring, .world = w};
}

static int
set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    fake_clock_init(&w->fake);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->timers = timers_new(&w->fake.clock);
    *state = w;
    return w->timers ? 0 : -1;
}

static int
tear_down(void **state)
{
    struct world *w = *state;

    timers_free(w->timers);
    fake_clock_fini(&w->fake);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return 0;
}

static void
a_timer_fires_at_its_time_and_not_before(void **state)
{
    struct world *w = *state;
    struct bell early = bell_of(w), late = bell_of(w);
    int64_t start = now(w);

    idem_timer_start(w->timers, &early.timer, start + 10 * MS);
    idem_timer_start(w->timers, &late.timer, start + 10 * MS + 1);
    fake_clock_advance_ns(&w->fake, 10 * MS - 1);
    fake_clock_await_waiter(&w->fake, start + 10 * MS);
    assert_int_equal(w->fired, 0);
    fake_clock_advance_ns(&w->fake, 1);
    await_fired(w, 1);
    fake_clock_await_waiter(&w->fake, start + 10 * MS + 1);
    fake_clock_advance_ns(&w->fake, 1);
    await_fired(w, 2);
    assert_int_equal(early.rang_at_ns, start + 10 * MS);
    assert_int_equal(late.rang_at_ns, start + 10 * MS + 1);
}

static void
a_timer_of_the_past_fires_at_once(void **state)
{
    struct world *w = *state;
    struct bell bell = bell_of(w), older = bell_of(w);

    idem_timer_start(w->timers, &bell.timer, now(w) - 1);
    idem_timer_start(w->timers, &older.timer, -5);
    await_fired(w, 2);
}

static void
a_stopped_timer_does_not_fire(void **state)
{
    struct world *w = *state;
    struct bell stopped = bell_of(w), other = bell_of(w);
    int64_t start = now(w);

    assert_false(idem_timer_stop(w->timers, &stopped.timer));
    idem_timer_start(w->timers, &stopped.timer, start + MS);
    idem_timer_start(w->timers, &other.timer, start + 2 * MS);
    assert_true(idem_timer_stop(w->timers, &stopped.timer));
    fake_clock_advance_ms(&w->fake, 5);
    await_fired(w, 1);
    assert_int_equal(stopped.rang_at_ns, 0);
    assert_false(idem_timer_stop(w->timers, &other.timer));
}

static void
a_timer_that_runs_is_moved(void **state)
{
    struct world *w = *state;
    struct bell bell = bell_of(w);
    int64_t start = now(w);

    idem_timer_start(w->timers, &bell.timer, start + 1000 * MS);
    idem_timer_start(w->timers, &bell.timer, start + MS);
    fake_clock_advance_ms(&w->fake, 1);
    await_fired(w, 1);
    fake_clock_advance_ms(&w->fake, 5000);
    assert_false(idem_timer_stop(w->timers, &bell.timer));
    assert_int_equal(w->fired, 1);
}

static void
a_timer_may_start_itself_again(void **state)
{
    struct world *w = *state;
    struct bell bell = bell_of(w);

    bell.again = 3;
    idem_timer_start(w->timers, &bell.timer, now(w) + MS);
    fake_clock_advance_ms(&w->fake, 1);
    await_fired(w, 4);
}

static int64_t
between(struct world *w, int64_t low, int64_t high)
{
    return idem_clock_between(&w->fake.clock, low, high);
}

/* Every distance, from less than a tick to 200 days, and the clock moved by
 * odd amounts: each fires, none early, none later than the clock's step. */
static void
thousands_of_timers_fire_each_in_its_step(void **state)
{
    enum { N = 3000 };
    struct world *w = *state;
    struct bell *bells = calloc(N, sizeof(*bells));
    int64_t step = 1, start = now(w);
    unsigned due = 0;

    for (unsigned i = 0; i < N; i++) {
        bells[i] = bell_of(w);
        int64_t span = INT64_C(1) << between(w, 1, 54);
        idem_timer_start(w->timers, &bells[i].timer,
                         start + between(w, 1, span));
    }
    while (due < N) {
        int64_t before = now(w);

        fake_clock_advance_ns(&w->fake, step);
        due = 0;
        for (unsigned i = 0; i < N; i++)
            due += bells[i].timer.at_ns <= before + step;
        await_fired(w, due);
        for (unsigned i = 0; i < N; i++)
            if (bells[i].timer.at_ns <= before)
                assert_true(bells[i].rang_at_ns <= before);
            else if (bells[i].timer.at_ns <= before + step)
                assert_int_equal(bells[i].rang_at_ns, before + step);
        step += step / 2 + 1;
    }
    free(bells);
}

static void
without_timers_the_thread_waits_without_an_end(void **state)
{
    struct world *w = *state;
    struct bell bell = bell_of(w);

    fake_clock_await_waiter(&w->fake, INT64_MAX);
    idem_timer_start(w->timers, &bell.timer, now(w) + 1000 * MS);
    fake_clock_await_waiter(&w->fake, now(w) + 1000 * MS);
    assert_true(idem_timer_stop(w->timers, &bell.timer));
    fake_clock_advance_ms(&w->fake, 1000);
    fake_clock_await_waiter(&w->fake, INT64_MAX);
    assert_int_equal(w->fired, 0);
}

static void
timers_of_the_real_clock_fire(void **state)
{
    struct world *w = *state;
    struct idem_timers *timers = timers_new(idem_clock_system());
    struct bell bell = bell_of(w);
    const struct idem_clock *clock = idem_clock_system();
    int64_t at_ns = clock->monotonic_ns(clock) + 3 * MS;

    idem_timer_start(timers, &bell.timer, at_ns);
    await_fired(w, 1);
    assert_true(clock->monotonic_ns(clock) >= at_ns);
    timers_free(timers);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_timer_fires_at_its_time_and_not_before),
        TEST(a_timer_of_the_past_fires_at_once),
        TEST(a_stopped_timer_does_not_fire),
        TEST(a_timer_that_runs_is_moved),
        TEST(a_timer_may_start_itself_again),
        TEST(thousands_of_timers_fire_each_in_its_step),
        TEST(without_timers_the_thread_waits_without_an_end),
        TEST(timers_of_the_real_clock_fire),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
