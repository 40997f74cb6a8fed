#include "call_world.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

static struct idem_context *
any_context(void)
{
    static char context;

    return (struct idem_context *)(void *)&context;
}

static void
add_parking(struct call_world *w)
{
    call_world_add(w, "a", IDEM_BAND_OBSERVE, call_world_pass_down,
                   call_world_pass_up);
    call_world_add(w, "park", IDEM_BAND_ATTEMPT, call_world_park, NULL);
}

static void
a_call_that_waits_is_given_back_when_it_is_cancelled(void **state)
{
    struct call_world *w = *state;

    add_parking(w);

    struct call *call = call_world_call(w);

    call_begin(call);
    call_interrupt(call, IDEM_CANCELLED);
    assert_int_equal(w->finished, 1);
    assert_int_equal(w->outcome.status, IDEM_CANCELLED);
    assert_int_equal(w->outcome.effect, IDEM_EFFECT_NOT_SENT);
    assert_string_equal(w->trail, "APa");
    assert_null(call_world_unpark(w));

    call_interrupt(call, IDEM_DEADLINE_EXCEEDED);
    assert_int_equal(w->finished, 1);
    call_unref(call);
    call_world_await_freed(w, 1);
}

static void
a_server_call_cancelled_before_its_handler_is_refused(void **state)
{
    struct call_world *w = *state;

    add_parking(w);

    struct call *call = call_world_call(w);

    call->base.context = any_context();
    call_begin(call);
    call_interrupt(call, IDEM_CANCELLED);
    assert_int_equal(w->outcome.effect, IDEM_EFFECT_REFUSED);
    call_unref(call);
}

static enum idem_step
send_and_wait(struct call *call)
{
    struct call_world *w = call_world_of(&call->base);

    if (!idem_call_keep(&call->base, &call_world_parking, w))
        return IDEM_ANSWER;
    call_world_put(w, call);
    return IDEM_WAIT;
}

static void
a_call_that_is_sent_ends_in_doubt(void **state)
{
    struct call_world *w = *state;

    w->send = send_and_wait;

    struct call *call = call_world_call(w);

    call_begin(call);
    call_interrupt(call, IDEM_CANCELLED);
    assert_int_equal(w->outcome.status, IDEM_CANCELLED);
    assert_int_equal(w->outcome.effect, IDEM_EFFECT_IN_DOUBT);
    call_unref(call);
}

static enum idem_step
park_in_doubt(struct idem_interceptor *self, struct idem_call *call)
{
    call->outcome.effect = IDEM_EFFECT_IN_DOUBT;
    return call_world_park(self, call);
}

static void
a_hook_may_say_that_its_wait_is_in_doubt(void **state)
{
    struct call_world *w = *state;

    call_world_add(w, "once", IDEM_BAND_KEY, park_in_doubt, NULL);

    struct call *call = call_world_call(w);

    call->base.context = any_context();
    call_begin(call);
    call_interrupt(call, IDEM_DEADLINE_EXCEEDED);
    assert_int_equal(w->outcome.effect, IDEM_EFFECT_IN_DOUBT);
    call_unref(call);
}

static enum idem_step
keep_without_withdraw(struct idem_interceptor *self, struct idem_call *call)
{
    struct call_world *w = call_world_of(call);

    (void)self;
    assert_true(idem_call_keep(call, NULL, NULL));
    call_world_put(w, (struct call *)call);
    return IDEM_WAIT;
}

static void
who_cannot_give_it_back_is_not_disturbed_and_the_next_keep_fails(void **state)
{
    struct call_world *w = *state;

    call_world_add(w, "store", IDEM_BAND_KEY, keep_without_withdraw, NULL);
    call_world_add(w, "park", IDEM_BAND_ATTEMPT, call_world_park, NULL);

    struct call *call = call_world_call(w);

    call_begin(call);
    assert_false(idem_call_interrupted(&call->base));
    call_interrupt(call, IDEM_CANCELLED);
    assert_true(idem_call_interrupted(&call->base));
    assert_int_equal(w->finished, 0);
    assert_ptr_equal(call_world_unpark(w), call);
    idem_call_resume(&call->base, IDEM_NEXT);
    assert_int_equal(w->outcome.status, IDEM_CANCELLED);
    assert_int_equal(w->sends, 0);
    assert_string_equal(w->trail, "P");
    call_unref(call);
}

/* What a handler did is recorded also when its caller has gone. */
static void
on_the_way_up_a_holder_of_null_is_granted_although_interrupted(void **state)
{
    struct call_world *w = *state;

    call_world_add(w, "once", IDEM_BAND_KEY, NULL, keep_without_withdraw);

    struct call *call = call_world_call(w);

    call_interrupt(call, IDEM_CANCELLED);
    call_begin(call);
    assert_ptr_equal(call_world_unpark(w), call);
    idem_call_resume(&call->base, IDEM_NEXT);
    assert_int_equal(w->outcome.status, IDEM_OK);
    assert_string_equal(w->reply, "ok");
    call_unref(call);
}

static enum idem_step
interrupt_before_it_is_put(struct idem_interceptor *self,
                           struct idem_call *call)
{
    struct call_world *w = call_world_of(call);

    (void)self;
    assert_true(idem_call_keep(call, &call_world_parking, w));
    call_interrupt((struct call *)call, IDEM_CANCELLED);
    call_world_put(w, (struct call *)call);
    return IDEM_WAIT;
}

static void
an_interruption_between_keep_and_the_queue_is_not_lost(void **state)
{
    struct call_world *w = *state;

    call_world_add(w, "early", IDEM_BAND_ATTEMPT, interrupt_before_it_is_put,
                   NULL);

    struct call *call = call_world_call(w);

    call_begin(call);
    assert_int_equal(w->finished, 1);
    assert_int_equal(w->outcome.status, IDEM_CANCELLED);
    assert_null(call_world_unpark(w));
    call_unref(call);
}

/* --- Naps --- */

static enum idem_step
nap_then_go(struct idem_interceptor *self, struct idem_call *call)
{
    (void)self;
    return idem_call_sleep(call, 50 * MS, IDEM_NEXT) ? IDEM_WAIT : IDEM_ANSWER;
}

static enum idem_step
nap_then_again(struct idem_interceptor *self, struct idem_call *call)
{
    struct fake *fake = (struct fake *)self;

    if (call->outcome.status == IDEM_OK || fake->count++ == 3)
        return IDEM_NEXT;
    return idem_call_sleep(call, 50 * MS, IDEM_AGAIN) ? IDEM_WAIT : IDEM_NEXT;
}

static enum idem_step
fail_in_doubt(struct call *call)
{
    idem_call_fail(&call->base, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT, NULL,
                   "lost");
    return IDEM_ANSWER;
}

static void
a_nap_ends_at_its_time(void **state)
{
    struct call_world *w = *state;

    call_world_add(w, "nap", IDEM_BAND_RETRY, nap_then_go, nap_then_again);

    struct call *call = call_world_call(w);

    call_begin(call);
    fake_clock_advance_ns(&w->fake, 50 * MS - 1);
    assert_int_equal(w->sends, 0);
    fake_clock_advance_ns(&w->fake, 1);
    call_world_await_finished(w, 1);
    assert_int_equal(w->outcome.status, IDEM_OK);
    call_unref(call);
}

static void
a_call_that_naps_between_attempts_is_cancelled_with_what_it_knows(void **state)
{
    struct call_world *w = *state;

    w->send = fail_in_doubt;
    call_world_add(w, "nap", IDEM_BAND_RETRY, NULL, nap_then_again);

    struct call *call = call_world_call(w);

    call_begin(call);
    assert_int_equal(w->finished, 0);
    call_interrupt(call, IDEM_CANCELLED);
    assert_int_equal(w->finished, 1);
    assert_int_equal(w->outcome.status, IDEM_CANCELLED);
    assert_int_equal(w->outcome.effect, IDEM_EFFECT_IN_DOUBT);
    fake_clock_advance_ms(&w->fake, 100);
    assert_int_equal(w->sends, 1);
    call_unref(call);
    call_world_await_freed(w, 1);
}

/* --- Deadlines --- */

static void
the_deadline_ends_a_call_that_waits(void **state)
{
    struct call_world *w = *state;

    add_parking(w);

    struct call *call = call_world_call(w);

    call->base.deadline_ns = w->fake.now_ns + 30 * MS;
    call_begin(call);
    call_unref(call); /* the timer holds it */
    assert_int_equal(idem_call_remaining_ns(&call->base), 30 * MS);
    fake_clock_advance_ms(&w->fake, 29);
    assert_int_equal(w->finished, 0);
    fake_clock_advance_ms(&w->fake, 1);
    call_world_await_freed(w, 1);
    assert_int_equal(w->outcome.status, IDEM_DEADLINE_EXCEEDED);
    assert_int_equal(w->outcome.effect, IDEM_EFFECT_NOT_SENT);
}

/* Its hooks look at the time themselves. */
static void
a_call_that_nobody_keeps_needs_no_timer(void **state)
{
    struct call_world *w = *state;
    struct call *call = call_world_call(w);

    call->base.deadline_ns = w->fake.now_ns + 30 * MS;
    call_begin(call);
    assert_int_equal(w->finished, 1);
    assert_false(call->armed);
    assert_null(call->deadline.fire);
    call_unref(call);
}

static void
a_call_that_is_over_leaves_no_timer(void **state)
{
    struct call_world *w = *state;
    struct call *call = call_world_call(w);

    call->base.deadline_ns = w->fake.now_ns + 30 * MS;
    call_begin(call);
    call_unref(call);
    assert_int_equal(w->freed, 1);
}

static void
the_deadline_ends_repeats_on_the_clock(void **state)
{
    struct call_world *w = *state;

    w->send = fail_in_doubt;
    call_world_add(w, "nap", IDEM_BAND_RETRY, NULL, nap_then_again);

    struct call *call = call_world_call(w);

    call->base.deadline_ns = w->fake.now_ns + 60 * MS;
    call_begin(call);
    fake_clock_advance_ms(&w->fake, 50);
    while (w->fake.now_ns < call->base.deadline_ns) {
        fake_clock_await_waiter(&w->fake, call->base.deadline_ns);
        fake_clock_advance_ms(&w->fake, 10);
    }
    call_world_await_finished(w, 1);
    assert_int_equal(w->outcome.status, IDEM_DEADLINE_EXCEEDED);
    assert_true(w->sends <= 2);
    call_unref(call);
    call_world_await_freed(w, 1);
}

/* --- Races --- */

#define ROUNDS 3000

struct race {
    struct call_world *world;
    struct call *call;
    pthread_barrier_t line;
    bool over;
};

static void *
interrupt_each_round(void *arg)
{
    struct race *race = arg;

    for (;;) {
        pthread_barrier_wait(&race->line);
        if (race->over)
            return NULL;
        call_interrupt(race->call, IDEM_CANCELLED);
        pthread_barrier_wait(&race->line);
    }
}

static void *
resume_each_round(void *arg)
{
    struct race *race = arg;

    for (;;) {
        pthread_barrier_wait(&race->line);
        if (race->over)
            return NULL;

        struct call *call = call_world_unpark(race->world);

        if (call)
            idem_call_resume(&call->base, IDEM_NEXT);
        pthread_barrier_wait(&race->line);
    }
}

/* Three at once: the walk that puts the call away, who takes it and resumes it,
 * who interrupts it. It ends once, and nobody touches it later. */
static void
interrupt_resume_and_walk_race_and_the_call_ends_once(void **state)
{
    struct call_world *w = *state;
    struct race race = {.world = w};
    pthread_t threads[2];
    unsigned cancelled = 0;

    call_world_add(w, "park", IDEM_BAND_KEY, call_world_park, NULL);
    call_world_add(w, "park", IDEM_BAND_ATTEMPT, call_world_park, NULL);
    w->send = send_and_wait;
    pthread_barrier_init(&race.line, NULL, 3);
    pthread_create(&threads[0], NULL, interrupt_each_round, &race);
    pthread_create(&threads[1], NULL, resume_each_round, &race);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        w->trail[0] = 0;
        race.call = call_world_call(w);
        race.call->base.deadline_ns = w->fake.now_ns + MS * (round % 2);
        pthread_barrier_wait(&race.line);
        call_begin(race.call);
        pthread_barrier_wait(&race.line);

        struct call *left = call_world_unpark(w);

        while (left) {
            idem_call_resume(&left->base, IDEM_ANSWER);
            left = call_world_unpark(w);
        }
        call_world_await_finished(w, round);
        cancelled += w->outcome.status == IDEM_CANCELLED;
        call_unref(race.call);
        call_world_await_freed(w, round);
    }
    race.over = true;
    pthread_barrier_wait(&race.line);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    pthread_barrier_destroy(&race.line);
    assert_true(cancelled > 0);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, call_world_set_up,                   \
                                    call_world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_call_that_waits_is_given_back_when_it_is_cancelled),
        TEST(a_server_call_cancelled_before_its_handler_is_refused),
        TEST(a_call_that_is_sent_ends_in_doubt),
        TEST(a_hook_may_say_that_its_wait_is_in_doubt),
        TEST(who_cannot_give_it_back_is_not_disturbed_and_the_next_keep_fails),
        TEST(on_the_way_up_a_holder_of_null_is_granted_although_interrupted),
        TEST(an_interruption_between_keep_and_the_queue_is_not_lost),
        TEST(a_nap_ends_at_its_time),
        TEST(a_call_that_naps_between_attempts_is_cancelled_with_what_it_knows),
        TEST(the_deadline_ends_a_call_that_waits),
        TEST(a_call_that_nobody_keeps_needs_no_timer),
        TEST(a_call_that_is_over_leaves_no_timer),
        TEST(the_deadline_ends_repeats_on_the_clock),
        TEST(interrupt_resume_and_walk_race_and_the_call_ends_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
