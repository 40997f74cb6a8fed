/* Calls whose check takes long wait for a thread of its own: in order, so many
 * and no more, and not when they are given up. */
#include "call_world.h"

#include "verifier.h"

#include <idem/reason.h>

#include <string.h>

#define LINE 1000

/* What the verifier does in these tests: waits at a gate. */
struct gate {
    struct call_world *w;
    struct verifier *verifier;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t change;
    bool open;
    unsigned inside;
    unsigned forgotten;
    pthread_t on;
};

static struct gate gate;

static enum idem_step
check(void *with, struct idem_call *call)
{
    struct gate *at = with;

    pthread_mutex_lock(&at->lock);
    at->inside++;
    at->on = pthread_self();
    pthread_cond_broadcast(&at->change);
    while (!at->open)
        pthread_cond_wait(&at->change, &at->lock);
    pthread_mutex_unlock(&at->lock);
    if (call->attempt > 1)
        call_world_note(at->w, (char)('a' + call->attempt));
    return IDEM_NEXT;
}

static void
forget(struct idem_call *call)
{
    (void)call;
    gate.forgotten++;
}

static enum idem_step
take(struct idem_interceptor *self, struct idem_call *call)
{
    (void)self;
    return verifier_take(gate.verifier, call);
}

static int
set_up(void **state)
{
    int result = call_world_set_up(state);

    gate = (struct gate){.w = *state};
    pthread_mutex_init(&gate.lock, NULL);
    pthread_cond_init(&gate.change, NULL);
    assert_int_equal(verifier_new(&gate.verifier, check, forget, &gate, NULL),
                     IDEM_OK);
    call_world_add(*state, "auth", IDEM_BAND_AUTH, take, NULL);
    return result;
}

static int
tear_down(void **state)
{
    verifier_free(gate.verifier);
    pthread_cond_destroy(&gate.change);
    pthread_mutex_destroy(&gate.lock);
    return call_world_tear_down(state);
}

static void
open_gate(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.change);
    pthread_mutex_unlock(&gate.lock);
}

/* Begin a call and wait until it is the one that is checked. */
static struct call *
begin_first(struct call_world *w)
{
    struct call *call = call_world_call(w);

    call_begin(call);
    pthread_mutex_lock(&gate.lock);
    while (gate.inside == 0)
        pthread_cond_wait(&gate.change, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    return call;
}

static void
who_begins_a_call_does_not_wait_and_the_line_keeps_its_order(void **state)
{
    struct call_world *w = *state;
    struct call *first = begin_first(w);

    for (unsigned i = 2; i <= 6; i++) {
        struct call *call = call_world_call(w);

        call->base.attempt = i;
        call_begin(call);
        call_unref(call);
    }
    assert_int_equal(w->finished, 0);
    open_gate();
    call_world_await_finished(w, 6);
    assert_string_equal(w->trail, "cdefg");
    assert_int_equal(w->outcome.status, IDEM_OK);
    assert_false(pthread_equal(gate.on, pthread_self()));
    call_unref(first);
    call_world_await_freed(w, 6);
}

static void
one_that_is_given_up_leaves_the_line(void **state)
{
    struct call_world *w = *state;
    struct call *first = begin_first(w);
    struct call *second = call_world_call(w), *third = call_world_call(w);

    call_begin(second);
    call_begin(third);
    call_interrupt(third, IDEM_DEADLINE_EXCEEDED);
    assert_int_equal(w->finished, 1);
    assert_int_equal(w->outcome.status, IDEM_DEADLINE_EXCEEDED);
    assert_int_equal(gate.forgotten, 1);
    call_interrupt(first, IDEM_CANCELLED); /* too late to be taken back */
    assert_int_equal(gate.forgotten, 1);
    open_gate();
    call_world_await_finished(w, 3);
    assert_int_equal(gate.inside, 2);
    call_unref(first);
    call_unref(second);
    call_unref(third);
    call_world_await_freed(w, 3);
}

static void
more_than_the_line_holds_are_turned_away(void **state)
{
    struct call_world *w = *state;

    call_unref(begin_first(w));
    for (unsigned i = 0; i < LINE + 1; i++) {
        struct call *call = call_world_call(w);

        call_begin(call);
        assert_int_equal(w->finished, i == LINE);
        call_unref(call);
    }
    assert_int_equal(w->outcome.status, IDEM_RESOURCE_EXHAUSTED);
    assert_string_equal(w->outcome.reason, IDEM_OVERLOADED);
    assert_int_equal(w->outcome.effect, IDEM_EFFECT_REFUSED);
    open_gate();
    call_world_await_finished(w, LINE + 2);
    assert_int_equal(gate.inside, LINE + 1);
    call_world_await_freed(w, LINE + 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_begins_a_call_does_not_wait_and_the_line_keeps_its_order),
        TEST(one_that_is_given_up_leaves_the_line),
        TEST(more_than_the_line_holds_are_turned_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
