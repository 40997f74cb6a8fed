#include "echo_world.h"

#include "chaos_io.h"

#include <sched.h>
#include <string.h>

/* Connections that are lost: whoever had a call on one knows at once whether it
 * can have taken effect. */

struct lossy {
    struct chaos_io chaos; /* under the client */
    struct echo_world world;
};

static void
open_lossy(struct lossy *lossy, const struct io *io,
           enum echo_transport transport)
{
    struct echo_options options = {
        .transport = transport,
        .channel = {.connect_backoff_ms = 1, .connect_backoff_max_ms = 5}};
    struct echo_result result;

    chaos_init(&lossy->chaos, io);
    options.channel_io = &lossy->chaos.io;
    echo_world_open(&lossy->world, &options);
    result = echo_world_call(&lossy->world, 1, 1, NULL);
    assert_echoed(&result, 1, 1);
}

static void
close_lossy(struct lossy *lossy)
{
    echo_world_close(&lossy->world);
    chaos_fini(&lossy->chaos);
}

/* It is the same channel, and calls work again. */
static void
assert_recovers(struct lossy *lossy)
{
    const struct idem_call_options patient = {.wait_for_ready = true};
    struct echo_result result;

    do /* until the channel has seen that its connection is gone */
        result = echo_world_call(&lossy->world, 5, 5, &patient);
    while (result.status == IDEM_UNAVAILABLE);
    assert_echoed(&result, 5, 5);
}

/* The first OPEN is on its way when the connection goes, the second is still in
 * our queue behind it. */
static void
what_was_never_written_is_not_sent_and_the_rest_in_doubt(void **state)
{
    struct lossy lossy;
    struct chaos_script script = chaos_peace();
    struct echo_result flying, queued;

    (void)state;
    open_lossy(&lossy, &io_socket, ECHO_TCP);
    script.hold = true;
    chaos_set(&lossy.chaos, &script);
    echo_world_start(&lossy.world, lossy.world.channel, echo_echo_async, 1, 1,
                     NULL, &flying);
    chaos_await_held(&lossy.chaos, 1);
    echo_world_start(&lossy.world, lossy.world.channel, echo_echo_async, 2,
                     50000, NULL, &queued);
    chaos_cut(&lossy.chaos);
    echo_world_await(&lossy.world);
    assert_ended(&flying, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    assert_ended(&queued, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT);
    assert_int_equal(atomic_load(&lossy.world.ran), 1);
    echo_result_fini(&flying);
    echo_result_fini(&queued);
    assert_recovers(&lossy);
    close_lossy(&lossy);
}

/* B098: the handler ran, its reply is lost. */
static void
a_reply_that_is_lost_leaves_the_call_in_doubt(void **state)
{
    struct lossy lossy;
    struct chaos_script script = chaos_peace();
    struct echo_result result;

    (void)state;
    open_lossy(&lossy, &io_socket, ECHO_TCP);
    script.deaf = true;
    chaos_set(&lossy.chaos, &script);
    echo_world_start(&lossy.world, lossy.world.channel, echo_echo_async, 1, 1,
                     NULL, &result);
    while (atomic_load(&lossy.world.ran) < 2)
        sched_yield();
    chaos_cut(&lossy.chaos);
    echo_world_await(&lossy.world);
    assert_ended(&result, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    assert_int_equal(atomic_load(&lossy.world.ran), 2);
    echo_result_fini(&result);
    assert_recovers(&lossy);
    close_lossy(&lossy);
}

/* rpc 74: the connection stays up, nothing comes. */
static void
a_peer_that_is_silent_does_not_stop_the_deadline(void **state)
{
    const struct idem_call_options brief = {.timeout_ms = 50};
    struct lossy lossy;
    struct chaos_script script = chaos_peace();
    struct echo_result result;

    (void)state;
    open_lossy(&lossy, &io_socket, ECHO_TCP);
    script.deaf = true;
    chaos_set(&lossy.chaos, &script);
    result = echo_world_call(&lossy.world, 1, 1, &brief);
    assert_ended(&result, IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_IN_DOUBT);
    chaos_cut(&lossy.chaos);
    assert_recovers(&lossy);
    close_lossy(&lossy);
}

/* Wherever in the OPEN the connection breaks: an answer or a doubt, at most one
 * run, and the channel goes on. */
static void
a_cut_at_any_byte_leaves_one_run_or_none(void **state)
{
    struct chaos_io chaos;
    struct echo_options options = {
        .transport = ECHO_INPROC,
        .channel_io = &chaos.io,
        .channel = {.connect_backoff_ms = 1, .connect_backoff_max_ms = 2}};

    (void)state;
    for (unsigned cut = 0; cut < 160; cut += 3) {
        struct chaos_script script = chaos_peace();
        struct echo_world world;
        struct echo_result result;

        chaos_init(&chaos, &io_inproc);
        script.cut_sent = cut;
        chaos_set(&chaos, &script);
        echo_world_open(&world, &options);
        result = echo_world_call(&world, 1, 30, NULL);
        if (result.status != IDEM_OK)
            assert_int_equal(result.status, IDEM_UNAVAILABLE);
        else
            assert_int_equal(atomic_load(&world.ran), 1);
        assert_true(atomic_load(&world.ran) <= 1);
        if (result.outcome.effect == IDEM_EFFECT_NOT_SENT)
            assert_int_equal(atomic_load(&world.ran), 0);
        echo_world_close(&world);
        chaos_fini(&chaos);
    }
}

/* A repeated write is no repeated call: the server sees that ids do not grow,
 * and closes. */
static void
bytes_that_come_twice_do_not_run_twice(void **state)
{
    struct lossy lossy;
    struct chaos_script script = chaos_peace();
    struct echo_result result;

    (void)state;
    open_lossy(&lossy, &io_socket, ECHO_TCP);
    script.twice_write = 2; /* hello, the first call, this one */
    chaos_set(&lossy.chaos, &script);
    result = echo_world_call(&lossy.world, 2, 2, NULL);
    if (result.status != IDEM_OK)
        assert_ended(&result, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    assert_recovers(&lossy);
    assert_in_range(atomic_load(&lossy.world.ran), 2, 3);
    close_lossy(&lossy);
}

/* The connection goes while the handler runs: with a key the work goes on, its
 * answer will be asked for; without one the handler is told. */
static void
a_handler_is_told_that_its_caller_is_gone_unless_there_is_a_key(void **state)
{
    const struct idem_call_options keyed = {.key = "k"};
    struct lossy lossy;
    struct echo_result with, without;

    (void)state;
    open_lossy(&lossy, &io_socket, ECHO_TCP);
    echo_world_start(&lossy.world, lossy.world.channel, echo_block_async, 1, 1,
                     &keyed, &with);
    echo_world_start(&lossy.world, lossy.world.channel, echo_block_async, 2, 1,
                     NULL, &without);
    echo_world_await_inside(&lossy.world, 2);
    chaos_cut(&lossy.chaos);
    echo_world_await(&lossy.world);
    assert_ended(&with, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    while (atomic_load(&lossy.world.gave_up) < 1)
        sched_yield();
    assert_recovers(&lossy);
    assert_int_equal(atomic_load(&lossy.world.gave_up), 1);
    echo_result_fini(&with);
    echo_result_fini(&without);
    close_lossy(&lossy);
}

/* A write that says it was done and was not: only the deadline tells. */
static void
a_write_that_is_swallowed_ends_in_doubt(void **state)
{
    const struct idem_call_options brief = {.timeout_ms = 50};
    struct lossy lossy;
    struct chaos_script script = chaos_peace();
    struct echo_result result;

    (void)state;
    open_lossy(&lossy, &io_socket, ECHO_TCP);
    script.drop_write = 2;
    chaos_set(&lossy.chaos, &script);
    result = echo_world_call(&lossy.world, 1, 1, &brief);
    assert_ended(&result, IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_IN_DOUBT);
    assert_int_equal(atomic_load(&lossy.world.ran), 1);
    close_lossy(&lossy);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            what_was_never_written_is_not_sent_and_the_rest_in_doubt),
        cmocka_unit_test(a_reply_that_is_lost_leaves_the_call_in_doubt),
        cmocka_unit_test(a_peer_that_is_silent_does_not_stop_the_deadline),
        cmocka_unit_test(a_cut_at_any_byte_leaves_one_run_or_none),
        cmocka_unit_test(bytes_that_come_twice_do_not_run_twice),
        cmocka_unit_test(
            a_handler_is_told_that_its_caller_is_gone_unless_there_is_a_key),
        cmocka_unit_test(a_write_that_is_swallowed_ends_in_doubt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
