/* Handlers that keep their context and answer later (dispatch ASYNC). */
#include "later_world.h"

#include "fake_clock.h"

#include <idem/reason.h>

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

/* --- The answer --- */

static void
it_is_given_on_another_thread_after_the_handler_has_returned(void **state)
{
    struct later_world world;
    struct later_result result;

    (void)state;
    later_world_open(&world, NULL);
    later_begin(&world, later_ask_async, 7, NULL, &result);
    later_answer_it(later_take(&world), IDEM_OK);
    later_await_ended(&world, 1);
    later_assert_ended(&result, IDEM_OK, IDEM_EFFECT_COMMITTED);
    assert_int_equal(result.number, 7);
    later_world_close(&world);
}

static bool
answer_at_once(struct kept *kept)
{
    later_answer_it(kept, IDEM_OK);
    return true;
}

static void
it_may_be_given_before_the_handler_returns(void **state)
{
    struct later_world world;
    struct later_result result;

    (void)state;
    later_world_open(&world, NULL);
    world.at_once = answer_at_once;
    for (unsigned i = 0; i < 20; i++) {
        later_begin(&world, later_ask_async, i, NULL, &result);
        later_await_ended(&world, i + 1);
        later_assert_ended(&result, IDEM_OK, IDEM_EFFECT_COMMITTED);
        assert_int_equal(result.number, i);
    }
    later_world_close(&world);
}

static void
it_may_be_a_failure_with_its_reason(void **state)
{
    struct later_world world;
    struct later_result result;

    (void)state;
    later_world_open(&world, NULL);
    later_begin(&world, later_ask_async, 7, NULL, &result);
    later_answer_it(later_take(&world), IDEM_NOT_FOUND);
    later_await_ended(&world, 1);
    later_assert_ended(&result, IDEM_NOT_FOUND, IDEM_EFFECT_ROLLED_BACK);
    assert_string_equal(result.outcome.message, "said so");
    later_world_close(&world);
}

static void
an_empty_slot_is_not_waited_for(void **state)
{
    struct later_world world;
    struct later_result result;

    (void)state;
    later_world_open(&world, NULL);
    later_begin(&world, later_nobody_async, 7, NULL, &result);
    later_await_ended(&world, 1);
    assert_int_equal(result.outcome.status, IDEM_UNIMPLEMENTED);
    assert_string_equal(result.outcome.message,
                        "later.v1.Later/Nobody has no handler");
    later_world_close(&world);
}

#define CROWD 200

/* One worker, and it is free. */
static void
calls_that_are_kept_hold_no_worker(void **state)
{
    const struct idem_server_options options = {.workers = 1};
    static struct later_result results[CROWD];
    struct kept *kept[CROWD];
    struct later_world world;
    later_question question = LATER_QUESTION_INIT;

    (void)state;
    later_world_open(&world, &options);
    for (unsigned i = 0; i < CROWD; i++)
        later_begin(&world, later_ask_async, i, NULL, &results[i]);
    for (unsigned i = 0; i < CROWD; i++)
        kept[i] = later_take(&world);
    assert_int_equal(later_note(world.channel, &question, NULL, NULL, NULL),
                     IDEM_OK);
    for (unsigned i = 0; i < CROWD; i++)
        later_answer_it(kept[i], IDEM_OK);
    later_await_ended(&world, CROWD);
    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(results[i].number, i);
    later_world_close(&world);
}

/* --- That nobody waits any more --- */

/* The time is the test's, at both ends. */
static void
open_timed(struct later_world *world, struct fake_clock *clock)
{
    const struct idem_server_options options = {.clock = &clock->clock};

    fake_clock_init(clock);
    later_world_open(world, &options);
}

static void
close_timed(struct later_world *world, struct fake_clock *clock)
{
    later_world_close(world);
    fake_clock_fini(clock);
}

static void
the_deadline_is_told(void **state)
{
    const struct idem_call_options soon = {.timeout_ms = 50};
    struct fake_clock clock;
    struct later_world world;
    struct later_result result;
    struct kept *kept;

    (void)state;
    open_timed(&world, &clock);
    later_begin(&world, later_ask_async, 7, &soon, &result);
    kept = later_take(&world);
    later_listen(kept);
    fake_clock_advance_ms(&clock, 50);
    later_await_told(kept);
    assert_true(idem_context_cancelled(kept->context));
    assert_int_equal(idem_context_remaining_ms(kept->context), 0);
    later_await_ended(&world, 1);
    later_assert_ended(&result, IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_IN_DOUBT);
    later_answer_it(kept, IDEM_OK);
    close_timed(&world, &clock);
}

static void
a_cancel_is_told_once_also_to_who_asks_late(void **state)
{
    struct later_world world;
    struct later_result result;
    struct idem_call *call;
    struct kept *kept;

    (void)state;
    later_world_open(&world, NULL);
    call = later_start(&world, later_ask_async, 7, NULL, &result);
    kept = later_take(&world);
    later_listen(kept);
    idem_call_cancel(call);
    later_await_told(kept);
    later_listen(kept); /* told already */
    later_answer_it(kept, IDEM_CANCELLED);
    assert_int_equal(world.n_told, 1);

    idem_call_release(call);
    call = later_start(&world, later_ask_async, 7, NULL, &result);
    kept = later_take(&world);
    idem_call_cancel(call);
    while (!idem_context_cancelled(kept->context))
        sched_yield();
    later_listen(kept);
    later_await_told(kept);
    later_answer_it(kept, IDEM_CANCELLED);
    assert_int_equal(world.n_told, 2);
    idem_call_release(call);
    later_world_close(&world);
}

static void
complete_as_cancelled(void *with)
{
    struct kept *kept = with;
    struct later_world *world = kept->world;

    later_answer_it(kept, IDEM_CANCELLED);
    pthread_mutex_lock(&world->lock);
    world->n_told++;
    pthread_cond_broadcast(&world->change);
    pthread_mutex_unlock(&world->lock);
}

static sem_t listening;

static bool
complete_when_given_up(struct kept *kept)
{
    idem_context_on_cancel(kept->context, complete_as_cancelled, kept);
    sem_post(&listening);
    return true;
}

/* The plainest of handlers: nobody takes anything from a list. */
static void
who_is_told_may_complete_the_call(void **state)
{
    struct fake_clock clock;
    struct later_world world;
    struct later_result result;
    const struct idem_call_options soon = {.timeout_ms = 50};

    (void)state;
    assert_int_equal(sem_init(&listening, 0, 0), 0);
    open_timed(&world, &clock);
    world.at_once = complete_when_given_up;
    later_begin(&world, later_ask_async, 7, &soon, &result);
    sem_wait(&listening);
    fake_clock_advance_ms(&clock, 50);
    later_await_ended(&world, 1);
    close_timed(&world, &clock);
    assert_int_equal(world.n_told, 1);
    sem_destroy(&listening);
}

static bool
only_listen(struct kept *kept)
{
    later_listen(kept);
    return false;
}

#define BACKOFF_NS 5000000 /* and more */

/* Two attempts of a call, each with its handler: the first one's time is over,
 * then the call is given up. */
static void
an_attempt_that_is_let_go_of_is_not_cancelled_but_a_call_is(void **state)
{
    const struct idem_call_options timed = {.timeout_ms = 30000,
                                            .attempt_timeout_ms = 500};
    struct fake_clock clock;
    struct later_world world;
    struct later_result result;
    struct idem_call *call;
    struct kept *first, *second;

    (void)state;
    open_timed(&world, &clock);
    world.at_once = only_listen;
    call = later_start(&world, later_look_async, 7, &timed, &result);
    first = later_take(&world);
    fake_clock_advance_ms(&clock, 500);
    fake_clock_await_waiter(&clock, clock.now_ns + BACKOFF_NS);
    fake_clock_advance_ns(&clock, BACKOFF_NS);
    second = later_take(&world);
    idem_call_cancel(call);
    later_await_told(second);
    later_await_ended(&world, 1);
    later_assert_ended(&result, IDEM_CANCELLED, IDEM_EFFECT_IN_DOUBT);
    assert_false(first->told || idem_context_cancelled(first->context));
    later_answer_it(first, IDEM_OK);
    later_answer_it(second, IDEM_OK);
    assert_int_equal(world.n_told, 1);
    idem_call_release(call);
    close_timed(&world, &clock);
}

/* --- The end of the server --- */

static void
a_server_that_drains_waits_for_the_answer(void **state)
{
    struct later_world world;
    struct later_result result;
    struct kept *kept;
    pthread_t thread;

    (void)state;
    later_world_open(&world, NULL);
    later_begin(&world, later_ask_async, 7, NULL, &result);
    kept = later_take(&world);
    idem_server_drain(world.server);
    assert_int_equal(pthread_create(&thread, NULL, later_free_server, &world),
                     0);
    assert_false(idem_context_cancelled(kept->context));
    later_answer_it(kept, IDEM_OK);
    later_await_ended(&world, 1);
    later_assert_ended(&result, IDEM_OK, IDEM_EFFECT_COMMITTED);
    pthread_join(thread, NULL);
    later_world_close(&world);
}

static void
a_server_that_stops_tells_the_handler_and_waits_for_it(void **state)
{
    const struct idem_server_options options = {.drain_ms = 1};
    struct later_world world;
    struct later_result result;
    struct kept *kept;
    pthread_t thread;

    (void)state;
    later_world_open(&world, &options);
    later_begin(&world, later_ask_async, 7, NULL, &result);
    kept = later_take(&world);
    later_listen(kept);
    assert_int_equal(pthread_create(&thread, NULL, later_free_server, &world),
                     0);
    later_await_told(kept);
    assert_true(idem_context_cancelled(kept->context));
    later_answer_it(kept, IDEM_UNAVAILABLE);
    pthread_join(thread, NULL);
    later_await_ended(&world, 1);
    assert_int_equal(result.outcome.status, IDEM_UNAVAILABLE);
    later_world_close(&world);
}

static void
a_transaction_is_refused_when_it_is_registered(void **state)
{
    struct idem_method method = later_act_method;
    const struct idem_service service = {
        .name = "later.v1.Held", .methods = &method, .n_methods = 1};
    struct later_world world;
    struct idem_server *server;
    struct idem_error err;

    (void)state;
    later_world_open(&world, NULL);
    method.mode = IDEM_MODE_TRANSACTION;
    assert_int_equal(idem_server_new(&server, NULL, &err), IDEM_OK);
    assert_int_equal(
        idem_server_register(server, &service, NULL, 0, NULL, &err),
        IDEM_INVALID_ARGUMENT);
    assert_string_equal(err.message,
                        "later.v1.Later/Act: a handler that answers later "
                        "(dispatch ASYNC) cannot keep a transaction open: mode "
                        "TRANSACTION is for POOL");
    idem_server_free(server);
    later_world_close(&world);
}

/* --- All at once --- */

#define STORM 400

static void *
answer_all(void *with)
{
    struct later_world *world = with;
    struct kept *kept;

    for (unsigned i = 0; (kept = later_take(world)); i++)
        later_answer_it(kept, i % 3 ? IDEM_OK : IDEM_NOT_FOUND);
    return NULL;
}

static void *
cancel_half(void *with)
{
    struct idem_call **calls = with;

    for (unsigned i = 0; i < STORM; i += 2)
        idem_call_cancel(calls[i]);
    return NULL;
}

/* A call that is given up before its handler begins never comes to it. */
static void
a_storm_of_cancels_loses_no_answer_and_doubles_none(void **state)
{
    static struct later_result results[STORM];
    static struct idem_call *calls[STORM];
    struct later_world world;
    pthread_t threads[4];

    (void)state;
    later_world_open(&world, NULL);
    world.at_once = only_listen;
    for (unsigned i = 0; i < STORM; i++)
        calls[i] = later_start(&world, later_ask_async, i, NULL, &results[i]);
    pthread_create(&threads[0], NULL, answer_all, &world);
    pthread_create(&threads[1], NULL, answer_all, &world);
    pthread_create(&threads[2], NULL, cancel_half, calls);
    later_await_ended(&world, STORM);
    pthread_create(&threads[3], NULL, later_free_server, &world);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < STORM; i++) {
        assert_int_equal(results[i].told, 1);
        assert_true(i % 2 == 0 || results[i].outcome.status == IDEM_OK ||
                    results[i].outcome.status == IDEM_NOT_FOUND);
        idem_call_release(calls[i]);
    }
    later_world_close(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            it_is_given_on_another_thread_after_the_handler_has_returned),
        cmocka_unit_test(it_may_be_given_before_the_handler_returns),
        cmocka_unit_test(it_may_be_a_failure_with_its_reason),
        cmocka_unit_test(an_empty_slot_is_not_waited_for),
        cmocka_unit_test(calls_that_are_kept_hold_no_worker),
        cmocka_unit_test(the_deadline_is_told),
        cmocka_unit_test(a_cancel_is_told_once_also_to_who_asks_late),
        cmocka_unit_test(who_is_told_may_complete_the_call),
        cmocka_unit_test(
            an_attempt_that_is_let_go_of_is_not_cancelled_but_a_call_is),
        cmocka_unit_test(a_server_that_drains_waits_for_the_answer),
        cmocka_unit_test(
            a_server_that_stops_tells_the_handler_and_waits_for_it),
        cmocka_unit_test(a_transaction_is_refused_when_it_is_registered),
        cmocka_unit_test(a_storm_of_cancels_loses_no_answer_and_doubles_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
