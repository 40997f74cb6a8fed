#include "call_world.h"

#include <string.h>

/* rpc 93 */
static void
bands_stand_in_order_and_the_first_added_is_outermost(void **state)
{
    struct call_world *w = *state;

    call_world_add(w, "retry", IDEM_BAND_RETRY, NULL, NULL);
    call_world_add(w, "log", IDEM_BAND_OBSERVE, NULL, NULL);
    call_world_add(w, "key", IDEM_BAND_KEY, NULL, NULL);
    call_world_add(w, "metrics", IDEM_BAND_OBSERVE, NULL, NULL);
    call_world_add(w, "deadline", IDEM_BAND_DEADLINE, NULL, NULL);
    assert_string_equal(w->chain.text,
                        "log > metrics > deadline > key > retry");
    assert_true(chain_has_band(&w->chain, IDEM_BAND_KEY));
    assert_false(chain_has_band(&w->chain, IDEM_BAND_LIMIT));
}

static unsigned freed;

static void
count_free(struct idem_interceptor *self)
{
    (void)self;
    freed++;
}

/* It owns the interceptor also when it refuses it. */
static void
a_chain_in_use_and_a_full_one_refuse(void **state)
{
    struct call_world *w = *state;
    const struct idem_interceptor_ops ops = {.name = "late",
                                             .free = count_free};
    struct idem_interceptor late = {.ops = &ops};
    struct idem_error err;

    while (w->chain.count < CHAIN_MAX)
        call_world_add(w, "many", IDEM_BAND_OBSERVE, NULL, NULL);
    freed = 0;
    assert_int_equal(chain_add(&w->chain, &late, &err),
                     IDEM_RESOURCE_EXHAUSTED);
    assert_int_equal(freed, 1);
    chain_seal(&w->chain);
    assert_int_equal(chain_add(&w->chain, &late, &err),
                     IDEM_FAILED_PRECONDITION);
    assert_int_equal(freed, 2);
    assert_non_null(strstr(err.message, "late"));
}

static void
count_stop(struct idem_interceptor *self)
{
    ((struct fake *)self)->count++;
}

static void
stop_is_told_to_each_that_wants_it(void **state)
{
    struct call_world *w = *state;
    struct fake *one = call_world_add(w, "one", IDEM_BAND_KEY, NULL, NULL);

    call_world_add(w, "two", IDEM_BAND_RETRY, NULL, NULL);
    one->ops.stop = count_stop;
    chain_stop(&w->chain);
    assert_int_equal(one->count, 1);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, call_world_set_up,                   \
                                    call_world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(bands_stand_in_order_and_the_first_added_is_outermost),
        TEST(a_chain_in_use_and_a_full_one_refuse),
        TEST(stop_is_told_to_each_that_wants_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
