#include "support.h"

#include "head_start.h"

/* Two ends that take turns, on a clock of the test's. */

#define US 1000
#define FRAMES 64

struct world {
    struct head_start head_start;
    int64_t now_ns;
};

/* It begins after a wait of so long. */
static void
begin(struct world *w, int64_t wait_us)
{
    w->now_ns += wait_us * US;
    head_start_begin(&w->head_start, w->now_ns);
}

static bool
due_after(struct world *w, int64_t work_us)
{
    w->now_ns += work_us * US;
    return head_start_due(&w->head_start, w->now_ns);
}

static void
end(struct world *w, int64_t work_us)
{
    w->now_ns += work_us * US;
    head_start_end(&w->head_start, FRAMES, w->now_ns);
}

/* A batch of 60 us, looked at twice; returns how many parts left early. */
static unsigned
batch(struct world *w, int64_t wait_us)
{
    unsigned parts = 0;

    begin(w, wait_us);
    parts += due_after(w, 25);
    parts += due_after(w, 25);
    end(w, 10);
    return parts;
}

static void
the_first_batch_has_none(void **state)
{
    struct world w = {.now_ns = 5 * US};

    (void)state;
    assert_int_equal(batch(&w, 1000), 0);
}

static void
after_a_long_wait_a_part_leaves_each_16_us(void **state)
{
    struct world w = {0};

    (void)state;
    batch(&w, 0);
    begin(&w, 60);
    assert_false(due_after(&w, 15));
    assert_true(due_after(&w, 1));
    assert_false(due_after(&w, 15));
    assert_true(due_after(&w, 2));
    assert_false(due_after(&w, 0));
}

static void
after_a_short_wait_all_leaves_at_the_end(void **state)
{
    struct world w = {0};

    (void)state;
    batch(&w, 0);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(batch(&w, 30), 0);
    assert_int_equal(batch(&w, 31), 2);
}

static void
it_goes_on_while_it_helps(void **state)
{
    struct world w = {0};

    (void)state;
    batch(&w, 0);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(batch(&w, 60), 2);
        assert_int_equal(batch(&w, 15), 0); /* it helped: both work */
    }
}

/* The waits stay as they are: both ends are on one processor. */
static void
in_vain_it_pauses_for_twice_as_many_batches_each_time(void **state)
{
    static const unsigned pauses[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 256};
    struct world w = {0};

    (void)state;
    batch(&w, 0);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(batch(&w, 60), 2);
        for (unsigned k = 0; k < pauses[i]; k++)
            assert_int_equal(batch(&w, 60), 0);
    }
}

/* Of 120 us a turn, 110 are over when this end has done its work: the other one
 * has worked meanwhile, but in this one's time. */
static void
a_wait_that_is_shorter_only_because_the_work_was_longer_is_in_vain(void **state)
{
    struct world w = {0};

    (void)state;
    batch(&w, 0);
    for (unsigned i = 0; i < 2; i++) {
        begin(&w, 60);
        assert_true(due_after(&w, 50));
        end(&w, 60);
        assert_int_equal(batch(&w, 10), 0);
    }
    assert_int_equal(batch(&w, 60), 0); /* the second of two pauses */
    assert_int_equal(batch(&w, 60), 2);
}

static void
help_ends_the_pauses(void **state)
{
    struct world w = {0};

    (void)state;
    batch(&w, 0);
    assert_int_equal(batch(&w, 60), 2);
    assert_int_equal(batch(&w, 60), 0); /* in vain: one pause */
    assert_int_equal(batch(&w, 60), 2);
    assert_int_equal(batch(&w, 15), 0); /* it helped */
    assert_int_equal(batch(&w, 60), 2);
    assert_int_equal(batch(&w, 60), 0); /* one pause again, not two */
    assert_int_equal(batch(&w, 60), 2);
}

/* One call at a time: nothing to divide, and no looks that count. */
static void
short_batches_have_none_and_count_for_no_pause(void **state)
{
    struct world w = {0};

    (void)state;
    batch(&w, 0);
    assert_int_equal(batch(&w, 60), 2);
    for (unsigned i = 0; i < 10; i++) {
        begin(&w, 60);
        assert_false(due_after(&w, 15));
        end(&w, 0);
    }
    assert_int_equal(batch(&w, 60), 0); /* the first in vain's pause */
    assert_int_equal(batch(&w, 60), 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_batch_has_none),
        cmocka_unit_test(after_a_long_wait_a_part_leaves_each_16_us),
        cmocka_unit_test(after_a_short_wait_all_leaves_at_the_end),
        cmocka_unit_test(it_goes_on_while_it_helps),
        cmocka_unit_test(in_vain_it_pauses_for_twice_as_many_batches_each_time),
        cmocka_unit_test(
            a_wait_that_is_shorter_only_because_the_work_was_longer_is_in_vain),
        cmocka_unit_test(help_ends_the_pauses),
        cmocka_unit_test(short_batches_have_none_and_count_for_no_pause),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
