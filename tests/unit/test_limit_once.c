/* The limit in front of once: who has a permit while a record is asked for,
 * and that nothing is asked of the store for who has none. */
#include "limit_world.h"

#define DUPLICATES 50

static void
lead(struct trial *trial, struct world *world, const char *key)
{
    begin_add(trial, world, key);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(trial, 1);
}

static void
complete(struct trial *trial, struct world *world)
{
    trial_return(trial, IDEM_OK, "seven");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
    trial_await(trial);
    assert_int_equal(trial->outcome.effect, IDEM_EFFECT_COMMITTED);
}

/* --- In front of the record --- */

static void
overload_is_told_before_the_store_is_asked(void **state)
{
    struct world *world = *state;
    struct trial first, second, third;

    limit_to(world, 1, 1);
    lead(&first, world, "k1");
    begin_add(&second, world, "k2");
    begin_add(&third, world, "k3");
    assert_shed(&third);
    assert_int_equal(fake_store_asked(&world->store, FAKE_CLAIM), 1);
    complete(&first, world);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&second, 1);
    complete(&second, world);
    lead(&third, world, "k3"); /* the key was not used up */
    complete(&third, world);
    assert_int_equal(limit_counts(world).in_flight, 0);
}

static void
a_duplicate_that_waits_has_no_permit(void **state)
{
    struct world *world = *state;
    struct trial first, other, duplicates[DUPLICATES];

    limit_to(world, 2, 1);
    lead(&first, world, "k1");
    for (int i = 0; i < DUPLICATES; i++)
        begin_add(&duplicates[i], world, "k1");
    assert_int_equal(limit_counts(world).in_flight, 1);
    assert_int_equal(limit_counts(world).waiting, 0);
    lead(&other, world, "k2");
    complete(&first, world);
    for (int i = 0; i < DUPLICATES; i++) {
        trial_await(&duplicates[i]);
        assert_int_equal(duplicates[i].outcome.effect, IDEM_EFFECT_REPLAYED);
    }
    complete(&other, world);
    assert_int_equal(limit_counts(world).in_flight, 0);
    assert_int_equal(limit_counts(world).shed, 0);
}

/* What is recorded is told at any load. */
static void
an_answer_out_of_memory_needs_no_permit(void **state)
{
    struct world *world = *state;
    const struct trial_options again = {.key = "k1", .amount = 7, .attempt = 2};
    struct trial first, other, waiting, repeat;

    limit_to(world, 1, 1);
    fake_store_set_epoch(&world->store, "7:1:1");
    lead(&first, world, "k1");
    complete(&first, world);
    lead(&other, world, "k2");
    begin_add(&waiting, world, "k3");
    trial_begin(&repeat, world, &again);
    trial_await(&repeat);
    assert_int_equal(repeat.outcome.effect, IDEM_EFFECT_REPLAYED);
    complete(&other, world);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&waiting, 1);
    complete(&waiting, world);
}

/* The next in line for the key goes on in the place of the first one. */
static void
an_heir_takes_the_permit_over(void **state)
{
    struct world *world = *state;
    struct trial first, heir;

    limit_to(world, 1, 1);
    lead(&first, world, "k1");
    begin_add(&heir, world, "k1");
    trial_return(&first, IDEM_UNAVAILABLE, NULL);
    fake_store_next(&world->store, FAKE_RELEASE, IDEM_VERDICT_MINE);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&heir, 1);
    trial_await(&first);
    assert_int_equal(limit_counts(world).in_flight, 1);
    complete(&heir, world);
    assert_int_equal(limit_counts(world).in_flight, 0);
}

/* The key runs in another process: its permit is for others meanwhile, and it
 * does not stand in their line to ask again. */
static void
who_waits_for_another_process_has_no_permit(void **state)
{
    struct world *world = *state;
    struct trial elsewhere, other;

    limit_to(world, 1, 1);
    begin_add(&elsewhere, world, "k1");
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_RUNNING);
    lead(&other, world, "k2");
    fake_clock_advance_ms(&world->clock, 1000);
    assert_false(trial_is_finished(&elsewhere));
    complete(&other, world);
    fake_clock_advance_ms(&world->clock, 1000);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&elsewhere, 1);
    complete(&elsewhere, world);
    assert_int_equal(limit_counts(world).in_flight, 0);
}

static void
who_gives_up_in_front_of_the_store_leaves_the_line(void **state)
{
    struct world *world = *state;
    struct trial first, second, third;

    limit_to(world, 1, 2);
    lead(&first, world, "k1");
    begin_add(&second, world, "k2");
    begin_add(&third, world, "k3");
    trial_interrupt(&second);
    trial_await(&second);
    assert_int_equal(second.outcome.status, IDEM_CANCELLED);
    assert_int_equal(second.outcome.effect, IDEM_EFFECT_REFUSED);
    complete(&first, world);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&third, 1);
    complete(&third, world);
    assert_int_equal(fake_store_asked(&world->store, FAKE_CLAIM), 2);
}

/* --- Rates --- */

/* Fault 53: the record is untouched, and the key good for later. */
static void
a_rate_is_told_before_the_store_is_asked(void **state)
{
    struct world *world = *state;
    const struct idem_limit_options options = {
        .method = {.rate_calls = 1, .rate_per_ms = 1000}};
    struct trial_options as = {.key = "k1", .amount = 7, .tenant = "ann"};
    struct trial first, second, other;

    world_use_limit(world, &options);
    trial_begin(&first, world, &as);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&first, 1);
    complete(&first, world);
    fake_clock_advance_ms(&world->clock, 300);
    as.key = "k2";
    trial_begin(&second, world, &as);
    trial_await(&second);
    assert_int_equal(second.outcome.status, IDEM_RESOURCE_EXHAUSTED);
    assert_int_equal(second.outcome.effect, IDEM_EFFECT_REFUSED);
    assert_string_equal(second.outcome.reason, IDEM_RATE_LIMITED);
    assert_int_equal(second.outcome.retry_after_ms, 700);
    assert_int_equal(fake_store_asked(&world->store, FAKE_CLAIM), 1);
    assert_int_equal(limit_counts(world).rate_limited, 1);
    as.tenant = "bob";
    trial_begin(&other, world, &as);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&other, 1);
    complete(&other, world);
    fake_clock_advance_ms(&world->clock, 700);
    as.tenant = "ann";
    trial_begin(&second, world, &as);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&second, 1);
    complete(&second, world);
}

#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(overload_is_told_before_the_store_is_asked),
        TEST(a_duplicate_that_waits_has_no_permit),
        TEST(an_answer_out_of_memory_needs_no_permit),
        TEST(an_heir_takes_the_permit_over),
        TEST(who_waits_for_another_process_has_no_permit),
        TEST(who_gives_up_in_front_of_the_store_leaves_the_line),
        TEST(a_rate_is_told_before_the_store_is_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
