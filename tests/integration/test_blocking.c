#include "echo_world.h"

#include "channel_inside.h"

#include <sched.h>
#include <stdlib.h>

/* Threads in blocking stubs of one channel: how they are woken, and that what
 * is held for those that still sleep leaves in any case (decision 51). */

#define CALLERS 16
#define CALLS 200 /* of each */
#define MANY 300  /* callers: some share the bit that they sleep on */
#define HELD 8    /* requests at most */

struct caller {
    struct idem_channel *channel;
    uint64_t number; /* of its first call */
    unsigned calls;
    int64_t timeout_ms;
    enum idem_status status; /* of the last call */
    enum idem_effect effect;
    atomic_bool over;
    pthread_t thread;
};

typedef enum idem_status stub_fn(struct idem_channel *channel,
                                 const echo_echo_request *request,
                                 echo_echo_reply **reply,
                                 const struct idem_call_options *options,
                                 struct idem_outcome *outcome);

static void
call_once(struct caller *caller, uint64_t number, stub_fn *stub)
{
    const struct idem_call_options options = {.timeout_ms = caller->timeout_ms};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;
    echo_echo_reply *reply = NULL;
    struct idem_outcome outcome;

    request.number = number;
    caller->status =
        stub(caller->channel, &request, &reply, &options, &outcome);
    caller->effect = outcome.effect;
    if (caller->status == IDEM_OK)
        assert_int_equal(reply->number, number);
    echo_echo_reply_free(reply);
}

static void *
echo_all(void *with)
{
    struct caller *caller = with;

    for (unsigned i = 0; i < caller->calls; i++)
        call_once(caller, caller->number + i, echo_echo);
    atomic_store(&caller->over, true);
    return NULL;
}

static void *
block_once(void *with)
{
    struct caller *caller = with;

    call_once(caller, caller->number, echo_block);
    atomic_store(&caller->over, true);
    return NULL;
}

static void
start(struct caller *caller, struct idem_channel *channel,
      void *(*run)(void *with))
{
    caller->channel = channel;
    assert_int_equal(pthread_create(&caller->thread, NULL, run, caller), 0);
}

static void
join(const struct caller *caller)
{
    assert_int_equal(pthread_join(caller->thread, NULL), 0);
}

static void
call_from_threads(enum echo_transport transport, unsigned callers,
                  unsigned calls)
{
    const struct echo_options options = {.transport = transport};
    struct caller *all = calloc(callers, sizeof *all);
    struct echo_world world;

    assert_non_null(all);
    echo_world_open(&world, &options);
    for (unsigned i = 0; i < callers; i++) {
        all[i].number = (uint64_t)i * calls + 1;
        all[i].calls = calls;
        start(&all[i], world.channel, echo_all);
    }
    for (unsigned i = 0; i < callers; i++) {
        join(&all[i]);
        assert_int_equal(all[i].status, IDEM_OK);
    }
    assert_int_equal(atomic_load(&world.ran), callers * calls);
    assert_int_equal(atomic_load(&world.channel->gathering.asleep), 0);
    assert_null(atomic_load(&world.channel->gathering.held));
    assert_in_range(world.channel->gathering.frames, 0, HELD);
    echo_world_close(&world);
    free(all);
}

static void
each_of_many_callers_gets_its_own_answer(void **state)
{
    (void)state;
    call_from_threads(ECHO_TCP, CALLERS, CALLS);
    call_from_threads(ECHO_IPC, CALLERS, CALLS);
    call_from_threads(ECHO_INPROC, CALLERS, CALLS);
}

static void
so_do_more_callers_than_there_are_bits(void **state)
{
    (void)state;
    call_from_threads(ECHO_TCP, MANY, 5);
}

/* --- What is held --- */

static unsigned
times_held(struct idem_channel *channel)
{
    return (unsigned)atomic_load(&channel->gathering.number);
}

/* Connected; and one has been told and never wakes, as when others have the
 * processors. */
static void
open_with_a_sleeper(struct echo_world *world)
{
    struct echo_result result;

    echo_world_open(world, NULL);
    result = echo_world_call(world, 1, 1, NULL);
    assert_echoed(&result, 1, 1);
    gather_told(world->channel);
}

static void
a_request_is_held_for_a_while_only(void **state)
{
    struct echo_world world;
    struct caller caller = {.number = 1, .calls = 1};

    (void)state;
    open_with_a_sleeper(&world);
    caller.channel = world.channel;
    echo_all(&caller);
    assert_int_equal(caller.status, IDEM_OK);
    assert_int_equal(times_held(world.channel), 1);
    assert_true(atomic_load(&world.channel->gathering.late));
    assert_null(atomic_load(&world.channel->gathering.held));
    echo_world_close(&world);
}

static void
what_was_held_in_vain_is_not_held_the_next_time(void **state)
{
    struct echo_world world;
    struct caller caller = {.number = 1, .calls = 4};

    (void)state;
    open_with_a_sleeper(&world);
    caller.channel = world.channel;
    echo_all(&caller);
    /* The first and the third; two more are sat out then. */
    assert_int_equal(times_held(world.channel), 2);
    echo_world_close(&world);
}

/* Whoever is quicker: what is held leaves, and once. */
static void
the_last_that_wakes_lets_go(void **state)
{
    struct echo_world world;

    (void)state;
    open_with_a_sleeper(&world);
    for (unsigned i = 0; i < 50; i++) {
        struct caller caller = {.number = i, .calls = 1};

        start(&caller, world.channel, echo_all);
        while (!atomic_load(&world.channel->gathering.held) &&
               !atomic_load(&caller.over))
            sched_yield();
        gather_awake(world.channel);
        join(&caller);
        assert_int_equal(caller.status, IDEM_OK);
        assert_null(atomic_load(&world.channel->gathering.held));
        gather_told(world.channel);
    }
    assert_int_equal(atomic_load(&world.ran), 51);
    echo_world_close(&world);
}

static void
who_does_not_block_is_not_held(void **state)
{
    struct echo_world world;
    struct echo_result result;

    (void)state;
    open_with_a_sleeper(&world);
    echo_world_start(&world, world.channel, echo_echo_async, 1, 1, NULL,
                     &result);
    echo_world_await(&world);
    assert_echoed(&result, 1, 1);
    echo_result_fini(&result);
    assert_int_equal(times_held(world.channel), 0);
    echo_world_close(&world);
}

static void
a_deadline_ends_a_call_that_was_held(void **state)
{
    struct echo_world world;
    struct caller caller = {.number = 1, .timeout_ms = 1};

    (void)state;
    open_with_a_sleeper(&world);
    caller.channel = world.channel;
    block_once(&caller);
    assert_int_equal(caller.status, IDEM_DEADLINE_EXCEEDED);
    assert_null(atomic_load(&world.channel->gathering.held));
    echo_world_close(&world);
}

static void
await_calls(struct idem_channel *channel, unsigned wanted)
{
    unsigned calls;

    do {
        sched_yield();
        pthread_mutex_lock(&channel->lock);
        calls = channel->n_calls;
        pthread_mutex_unlock(&channel->lock);
    } while (calls < wanted);
}

/* Also whose request is held. */
static void
close_tells_all_that_wait(void **state)
{
    struct caller callers[CALLERS] = {0};
    struct echo_world world;

    (void)state;
    open_with_a_sleeper(&world);
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i].number = i;
        start(&callers[i], world.channel, block_once);
    }
    await_calls(world.channel, CALLERS);
    idem_channel_close(world.channel);
    world.channel = NULL;
    for (unsigned i = 0; i < CALLERS; i++) {
        join(&callers[i]);
        assert_int_equal(callers[i].status, IDEM_CANCELLED);
    }
    echo_world_close(&world);
}

/* The server goes while some are held and some are inside. */
static void
a_lost_connection_tells_all_that_wait(void **state)
{
    struct caller callers[CALLERS] = {0};
    const struct echo_options options = {.server = {.drain_ms = 1}};
    struct echo_world world;
    struct echo_result result;

    (void)state;
    echo_world_open(&world, &options);
    result = echo_world_call(&world, 1, 1, NULL);
    assert_echoed(&result, 1, 1);
    gather_told(world.channel);
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i].number = i;
        start(&callers[i], world.channel, block_once);
    }
    echo_world_await_inside(&world, 1);
    echo_world_open_gate(&world);
    idem_server_free(world.server);
    world.server = NULL;
    for (unsigned i = 0; i < CALLERS; i++)
        join(&callers[i]);
    assert_null(atomic_load(&world.channel->gathering.held));
    echo_world_close(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_of_many_callers_gets_its_own_answer),
        cmocka_unit_test(so_do_more_callers_than_there_are_bits),
        cmocka_unit_test(a_request_is_held_for_a_while_only),
        cmocka_unit_test(what_was_held_in_vain_is_not_held_the_next_time),
        cmocka_unit_test(the_last_that_wakes_lets_go),
        cmocka_unit_test(who_does_not_block_is_not_held),
        cmocka_unit_test(a_deadline_ends_a_call_that_was_held),
        cmocka_unit_test(close_tells_all_that_wait),
        cmocka_unit_test(a_lost_connection_tells_all_that_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
