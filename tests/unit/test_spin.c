#include "support.h"

#include "spin.h"

/* Waits for answers, on a clock of the test's: a look takes a microsecond. */

#define US 1000
#define LIMIT_US 50

struct world {
    struct spin spin;
    int64_t now_ns;
    int64_t looked_ns; /* in all */
};

/* Something is sent, and its answer comes after so long; LIMIT_US or more: when
 * the thread sleeps. True: it was caught by looking. */
static bool
await_answer(struct world *w, int64_t answer_us)
{
    int64_t began_ns = w->now_ns;
    bool caught = false;

    spin_sent(&w->spin);
    if (!spin_begin(&w->spin, LIMIT_US * US, w->now_ns)) {
        w->now_ns += answer_us * US;
        return false;
    }
    do {
        w->now_ns += US;
        caught = w->now_ns - began_ns >= answer_us * US;
    } while (!caught && spin_goes_on(&w->spin, w->now_ns));
    spin_end(&w->spin, caught, w->now_ns);
    w->looked_ns += w->now_ns - began_ns;
    if (!caught)
        w->now_ns = began_ns + answer_us * US;
    return caught;
}

static void
answers_that_come_soon_are_caught(void **state)
{
    struct world w = {0};

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        assert_true(await_answer(&w, 1 + i % (LIMIT_US - 1)));
}

static void
who_has_sent_nothing_sleeps(void **state)
{
    struct world w = {0};

    (void)state;
    assert_false(spin_begin(&w.spin, LIMIT_US * US, 0));
    assert_true(await_answer(&w, 5));
    assert_false(spin_begin(&w.spin, LIMIT_US * US, w.now_ns));
}

static void
with_a_limit_of_0_it_sleeps(void **state)
{
    struct world w = {0};

    (void)state;
    spin_sent(&w.spin);
    assert_false(spin_begin(&w.spin, 0, 0));
}

static void
it_looks_no_longer_than_the_limit(void **state)
{
    struct world w = {0};

    (void)state;
    assert_false(await_answer(&w, 1000));
    assert_int_equal(w.looked_ns, LIMIT_US * US);
}

/* Both ends on one processor, or a handler that asks a database. */
static void
answers_that_take_their_time_are_slept_for(void **state)
{
    struct world w = {0};
    const unsigned waits = 100000;

    (void)state;
    for (unsigned i = 0; i < waits; i++)
        assert_false(await_answer(&w, LIMIT_US + 10));
    assert_true(w.looked_ns / waits < US / 4);
}

/* Another program has the processors half of the time, at random. */
static void
what_is_caught_every_other_time_is_hardly_looked_for(void **state)
{
    struct world w = {0};
    const unsigned waits = 100000;
    uint32_t random = 1;

    (void)state;
    for (unsigned i = 0; i < waits; i++) {
        random = random * 1664525 + 1013904223;
        (void)await_answer(&w, random >> 24 < 115 ? 10 : 200);
    }
    assert_true(w.looked_ns / waits < 2 * US);
}

static void
it_looks_again_when_answers_come_soon_again(void **state)
{
    struct world w = {0};
    unsigned caught = 0;

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        (void)await_answer(&w, 200);
    for (unsigned i = 0; i < 2000; i++)
        caught += await_answer(&w, 10);
    assert_true(caught > 1200);
    for (unsigned i = 0; i < 100; i++)
        assert_true(await_answer(&w, 10));
}

/* It was found by the last look, but the thread was not running before. */
static void
what_is_caught_over_the_limit_was_in_vain(void **state)
{
    struct spin spin = {0};

    (void)state;
    spin_sent(&spin);
    assert_true(spin_begin(&spin, LIMIT_US * US, 0));
    spin_end(&spin, true, LIMIT_US * US);
    spin_sent(&spin);
    assert_false(spin_begin(&spin, LIMIT_US * US, 1000 * US));
    spin_sent(&spin);
    assert_true(spin_begin(&spin, LIMIT_US * US, 1000 * US));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_that_come_soon_are_caught),
        cmocka_unit_test(who_has_sent_nothing_sleeps),
        cmocka_unit_test(with_a_limit_of_0_it_sleeps),
        cmocka_unit_test(it_looks_no_longer_than_the_limit),
        cmocka_unit_test(answers_that_take_their_time_are_slept_for),
        cmocka_unit_test(what_is_caught_every_other_time_is_hardly_looked_for),
        cmocka_unit_test(it_looks_again_when_answers_come_soon_again),
        cmocka_unit_test(what_is_caught_over_the_limit_was_in_vain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
