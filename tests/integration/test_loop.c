#include "echo_world.h"

#include <poll.h>
#include <stdlib.h>

/* Callbacks on a thread of the caller's, and very many of them. */

#define MANY 1000

struct looper {
    struct echo_world world;
    pthread_t mine;
    unsigned told, elsewhere, cancelled;
};

static void
count(struct idem_call *call, const echo_echo_reply *reply,
      const struct idem_outcome *outcome)
{
    struct looper *looper = idem_call_user(call);

    (void)reply;
    looper->told++;
    looper->elsewhere += !pthread_equal(pthread_self(), looper->mine);
    looper->cancelled += outcome->status == IDEM_CANCELLED;
}

static void
open_looper(struct looper *looper)
{
    struct echo_options options = {.channel = {.own_loop = true}};

    looper->told = looper->elsewhere = looper->cancelled = 0;
    looper->mine = pthread_self();
    echo_world_open(&looper->world, &options);
}

static void
start(struct looper *looper, echo_start_fn *start_call)
{
    const struct idem_call_options options = {.user = looper,
                                              .wait_for_ready = true};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

    idem_call_release(
        start_call(looper->world.channel, &request, &options, count));
}

static void
callbacks_run_where_the_loop_runs(void **state)
{
    struct looper looper;
    struct pollfd fd = {.events = POLLIN};

    (void)state;
    open_looper(&looper);
    fd.fd = idem_channel_fd(looper.world.channel);
    for (unsigned i = 0; i < MANY; i++)
        start(&looper, echo_echo_async);
    assert_int_equal(looper.told, 0);
    while (looper.told < MANY) {
        assert_int_equal(poll(&fd, 1, 20000), 1);
        assert_true(idem_channel_process(looper.world.channel) > 0);
    }
    assert_int_equal(looper.elsewhere, 0);
    assert_int_equal(poll(&fd, 1, 0), 0);
    assert_int_equal(idem_channel_process(looper.world.channel), 0);
    assert_int_equal(looper.told, MANY);
    echo_world_close(&looper.world);
}

static void
closing_runs_the_callbacks_that_are_left(void **state)
{
    struct looper looper;

    (void)state;
    open_looper(&looper);
    for (unsigned i = 0; i < 10; i++)
        start(&looper, echo_block_async);
    idem_channel_close(looper.world.channel);
    looper.world.channel = NULL;
    assert_int_equal(looper.told, 10);
    assert_int_equal(looper.cancelled, 10);
    assert_int_equal(looper.elsewhere, 0);
    echo_world_close(&looper.world);
}

static void
without_a_loop_of_the_callers_there_is_no_fd(void **state)
{
    struct echo_world world;

    (void)state;
    echo_world_open(&world, NULL);
    assert_int_equal(idem_channel_fd(world.channel), -1);
    assert_int_equal(idem_channel_process(world.channel), 0);
    echo_world_close(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callbacks_run_where_the_loop_runs),
        cmocka_unit_test(closing_runs_the_callbacks_that_are_left),
        cmocka_unit_test(without_a_loop_of_the_callers_there_is_no_fd),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
