#include "support.h"

#include "clock_held.h"

#include <pthread.h>

/* Each reads the real clock, which has moved by the next look. */

static int64_t
now_ns(void)
{
    const struct idem_clock *clock = clock_held();

    return clock->monotonic_ns(clock);
}

static void
await_later(int64_t ns)
{
    const struct idem_clock *clock = idem_clock_system();

    while (clock->monotonic_ns(clock) <= ns)
        continue;
}

static void
time_stands_while_it_is_held(void **state)
{
    int64_t held_ns;

    (void)state;
    clock_hold();
    held_ns = now_ns();
    await_later(held_ns);
    assert_int_equal(now_ns(), held_ns);
    clock_let_go();
    assert_true(now_ns() > held_ns);
}

static void
a_hold_begins_at_a_time_that_is_known(void **state)
{
    int64_t known_ns = now_ns();

    (void)state;
    await_later(known_ns);
    clock_hold_at(known_ns);
    assert_int_equal(now_ns(), known_ns);
    clock_go_on(true);
    clock_go_on(false);
    assert_true(now_ns() > known_ns);
    clock_let_go();
}

/* Half a millisecond, and a whole one that the two readings are cut to. */
static void
the_walls_time_is_read_again_soon(void **state)
{
    const struct idem_clock *held = clock_held(), *real = idem_clock_system();
    int64_t before_ms, between_ms;

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        before_ms = real->wall_ms(real);
        between_ms = held->wall_ms(held);
        assert_in_range(between_ms, before_ms - 1, real->wall_ms(real));
        await_later(now_ns() + 100000);
    }
}

static void
a_later_hold_reads_again(void **state)
{
    int64_t held_ns;

    (void)state;
    clock_hold();
    held_ns = now_ns();
    clock_let_go();
    await_later(held_ns);
    clock_hold();
    assert_true(now_ns() > held_ns);
    clock_let_go();
}

static void
time_goes_on_for_an_authors_code_and_is_read_again_after_it(void **state)
{
    int64_t held_ns, authors_ns;

    (void)state;
    clock_hold();
    held_ns = now_ns();
    clock_go_on(true);
    authors_ns = now_ns();
    await_later(authors_ns);
    assert_true(now_ns() > authors_ns);
    clock_go_on(false);
    assert_true(now_ns() > authors_ns && authors_ns >= held_ns);
    clock_let_go();
}

static void
waiting_ends_the_hold(void **state)
{
    const struct idem_clock *clock = clock_held();
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    int64_t until_ns;

    (void)state;
    clock_hold();
    until_ns = now_ns() + 1000000;
    pthread_mutex_lock(&mutex);
    while (now_ns() < until_ns)
        clock->wait_until(clock, &condition, &mutex, until_ns);
    pthread_mutex_unlock(&mutex);
    assert_true(now_ns() >= until_ns);
}

static void *
look(void *with)
{
    int64_t *ns = with;

    await_later(*ns);
    *ns = now_ns();
    return NULL;
}

static void
another_thread_holds_nothing(void **state)
{
    pthread_t thread;
    int64_t held_ns, others_ns;

    (void)state;
    clock_hold();
    held_ns = others_ns = now_ns();
    assert_int_equal(pthread_create(&thread, NULL, look, &others_ns), 0);
    pthread_join(thread, NULL);
    assert_true(others_ns > held_ns);
    assert_int_equal(now_ns(), held_ns);
    clock_let_go();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hold_begins_at_a_time_that_is_known),
        cmocka_unit_test(the_walls_time_is_read_again_soon),
        cmocka_unit_test(time_stands_while_it_is_held),
        cmocka_unit_test(a_later_hold_reads_again),
        cmocka_unit_test(
            time_goes_on_for_an_authors_code_and_is_read_again_after_it),
        cmocka_unit_test(waiting_ends_the_hold),
        cmocka_unit_test(another_thread_holds_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
