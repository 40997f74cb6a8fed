#include "support.h"

#include "burst.h"
#include "channel_inside.h"

#include <sched.h>

/* Threads that sleep on the words of their channel: who is told wakes, and
 * nobody else (decision 51). */

#define MANY 300 /* some share the bit that they sleep on */

struct sleeper {
    struct idem_channel *channel;
    struct waiter waiter;
    pthread_t thread;
    atomic_bool ready, awake;
};

static void *
sleep_until_told(void *with)
{
    struct sleeper *sleeper = with;

    waiter_init(&sleeper->waiter);
    atomic_store(&sleeper->ready, true);
    assert_true(waiter_wait(sleeper->channel, &sleeper->waiter, INT64_MAX));
    atomic_store(&sleeper->awake, true);
    return NULL;
}

/* A channel that nothing is at the other end of. */
static struct idem_channel *
lonely_channel(void)
{
    struct idem_channel *channel = NULL;

    assert_int_equal(idem_channel_new(&channel, "inproc://nobody", NULL, NULL),
                     IDEM_OK);
    return channel;
}

static void
who_is_told_wakes_and_nobody_else(void **state)
{
    static struct sleeper sleepers[MANY];
    struct idem_channel *channel = lonely_channel();
    unsigned awake = 0;

    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        sleepers[i].channel = channel;
        assert_int_equal(pthread_create(&sleepers[i].thread, NULL,
                                        sleep_until_told, &sleepers[i]),
                         0);
    }
    for (unsigned i = 0; i < MANY; i++)
        while (!atomic_load(&sleepers[i].ready) ||
               atomic_load(&sleepers[i].waiter.state) == 0)
            sched_yield();
    burst_begin();
    for (unsigned i = 0; i < MANY; i += 3)
        waiter_tell(channel, &sleepers[i].waiter);
    burst_end();
    for (unsigned i = 0; i < MANY; i += 3)
        pthread_join(sleepers[i].thread, NULL);
    for (unsigned i = 0; i < MANY; i++)
        awake += atomic_load(&sleepers[i].awake);
    assert_int_equal(awake, MANY / 3);
    for (unsigned i = 0; i < MANY; i++)
        if (i % 3 > 0)
            waiter_tell(channel, &sleepers[i].waiter);
    for (unsigned i = 0; i < MANY; i++)
        if (i % 3 > 0)
            pthread_join(sleepers[i].thread, NULL);
    idem_channel_close(channel);
}

static void
who_is_told_before_it_waits_does_not_sleep(void **state)
{
    struct idem_channel *channel = lonely_channel();
    struct waiter waiter;

    (void)state;
    waiter_init(&waiter);
    waiter_tell(channel, &waiter);
    assert_true(waiter_wait(channel, &waiter, INT64_MAX));
    idem_channel_close(channel);
}

static void
whose_time_is_over_may_be_told_later(void **state)
{
    struct idem_channel *channel = lonely_channel();
    struct waiter waiter;

    (void)state;
    waiter_init(&waiter);
    assert_false(waiter_wait(channel, &waiter, 1));
    assert_false(waiter_wait(channel, &waiter, 1));
    waiter_tell(channel, &waiter);
    assert_true(waiter_wait(channel, &waiter, 1));
    idem_channel_close(channel);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_told_wakes_and_nobody_else),
        cmocka_unit_test(who_is_told_before_it_waits_does_not_sleep),
        cmocka_unit_test(whose_time_is_over_may_be_told_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
