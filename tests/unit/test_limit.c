/* The limit: who gets a permit, who waits in line, who is turned away. */
#include "limit_world.h"

#include <string.h>

/* A call of a method without an effect. */
static void
note(struct trial *trial, struct world *world)
{
    const struct trial_options options = {.method = &effects_note_method};

    trial_begin(trial, world, &options);
}

static void
end_note(struct trial *trial)
{
    trial_return(trial, IDEM_OK, "x");
    trial_await(trial);
    assert_int_equal(trial->outcome.status, IDEM_OK);
}

/* --- In line --- */

static void
at_the_limit_calls_wait_and_over_the_line_they_are_turned_away(void **state)
{
    struct world *world = *state;
    struct trial first, second, third, fourth;

    limit_to(world, 2, 1);
    note(&first, world);
    note(&second, world);
    assert_int_equal(first.begun + second.begun, 2);
    note(&third, world);
    assert_int_equal(third.begun, 0);
    assert_int_equal(limit_counts(world).waiting, 1);
    note(&fourth, world);
    assert_shed(&fourth);
    assert_int_equal(limit_counts(world).shed, 1);
    end_note(&first);
    trial_await_handler(&third, 1);
    assert_int_equal(limit_counts(world).in_flight, 2);
    end_note(&second);
    end_note(&third);
    assert_int_equal(limit_counts(world).in_flight, 0);
}

static void
those_in_line_go_in_their_order(void **state)
{
    struct world *world = *state;
    struct trial trials[5];

    limit_to(world, 1, 10);
    for (int i = 0; i < 5; i++)
        note(&trials[i], world);
    for (int i = 0; i < 5; i++) {
        trial_await_handler(&trials[i], 1);
        if (i < 4)
            assert_int_equal(trials[i + 1].begun, 0);
        end_note(&trials[i]);
    }
}

static void
who_gives_up_leaves_the_line(void **state)
{
    struct world *world = *state;
    struct trial first, second, third;

    limit_to(world, 1, 10);
    note(&first, world);
    note(&second, world);
    note(&third, world);
    trial_interrupt(&second);
    trial_await(&second);
    assert_int_equal(second.outcome.status, IDEM_CANCELLED);
    assert_int_equal(second.outcome.effect, IDEM_EFFECT_REFUSED);
    end_note(&first);
    trial_await_handler(&third, 1);
    end_note(&third);
    assert_int_equal(second.begun, 0);
}

static void
the_deadline_ends_the_wait(void **state)
{
    struct world *world = *state;
    const struct trial_options soon = {.method = &effects_note_method,
                                       .timeout_ms = 50};
    struct trial first, second;

    limit_to(world, 1, 10);
    note(&first, world);
    trial_begin(&second, world, &soon);
    fake_clock_advance_ms(&world->clock, 60);
    trial_await(&second);
    assert_int_equal(second.outcome.status, IDEM_DEADLINE_EXCEEDED);
    assert_int_equal(second.outcome.effect, IDEM_EFFECT_REFUSED);
    end_note(&first);
}

static void
stop_lets_those_in_line_go(void **state)
{
    struct world *world = *state;
    struct trial first, second, third;

    limit_to(world, 1, 10);
    note(&first, world);
    note(&second, world);
    begin_add(&third, world, "k1");
    chain_stop(&world->chain);
    trial_await(&second);
    trial_await(&third);
    assert_int_equal(second.outcome.status, IDEM_UNAVAILABLE);
    assert_int_equal(second.outcome.effect, IDEM_EFFECT_REFUSED);
    assert_int_equal(third.outcome.status, IDEM_UNAVAILABLE);
    assert_int_equal(third.outcome.effect, IDEM_EFFECT_REFUSED);
    assert_int_equal(fake_store_asked(&world->store, FAKE_CLAIM), 0);
    end_note(&first);
}

/* --- Of a method --- */

static void
a_methods_own_limit_holds_no_other_method_up(void **state)
{
    struct world *world = *state;
    struct idem_method narrow = effects_note_method;
    const struct trial_options options = {.method = &narrow};
    struct trial first, second, third, other;

    narrow.limit = (struct idem_limit_policy){1, 1, 0, 0, 0};
    limit_to(world, 10, 10);
    trial_begin(&first, world, &options);
    trial_begin(&second, world, &options);
    trial_begin(&third, world, &options);
    assert_int_equal(first.begun, 1);
    assert_int_equal(second.begun, 0);
    assert_shed(&third);
    note(&other, world);
    assert_int_equal(other.begun, 1);
    end_note(&first);
    trial_await_handler(&second, 1);
    end_note(&second);
    end_note(&other);
    assert_int_equal(limit_counts(world).in_flight, 0);
}

/* With the method's it stands in the server's line. */
static void
a_call_needs_the_methods_and_the_servers(void **state)
{
    struct world *world = *state;
    struct idem_method narrow = effects_note_method;
    const struct trial_options options = {.method = &narrow};
    struct trial other, first, second;

    narrow.limit = (struct idem_limit_policy){1, 5, 0, 0, 0};
    limit_to(world, 1, 10);
    note(&other, world);
    trial_begin(&first, world, &options);
    trial_begin(&second, world, &options);
    assert_int_equal(limit_counts(world).waiting, 2);
    trial_interrupt(&first);
    trial_await(&first);
    end_note(&other);
    trial_await_handler(&second, 1);
    end_note(&second);
    assert_int_equal(limit_counts(world).in_flight, 0);
}

/* One that holds no thread is held to its method's own limit only. */
static void
an_inline_call_needs_none_of_the_servers(void **state)
{
    struct world *world = *state;
    struct idem_method quick = effects_note_method;
    const struct trial_options options = {.method = &quick};
    struct trial first, second, third;

    quick.dispatch = IDEM_DISPATCH_INLINE;
    limit_to(world, 1, 1);
    note(&first, world);
    trial_begin(&second, world, &options);
    assert_int_equal(second.begun, 1);
    quick.limit.max_in_flight = 1;
    quick.limit.max_waiting = 1;
    trial_begin(&third, world, &options);
    assert_int_equal(third.begun, 1);
    end_note(&first);
    end_note(&second);
    end_note(&third);
}

/* --- Adaptive --- */

static void
late_calls_are_fewer_permits(void **state)
{
    struct world *world = *state;
    const struct idem_limit_options options = {.adaptive = true};
    const struct trial_options in_100_ms = {.method = &effects_note_method,
                                            .timeout_ms = 100};
    struct trial trial;

    world_use_limit(world, &options);
    assert_int_equal(limit_counts(world).permits, 100);
    trial_begin(&trial, world, &in_100_ms);
    fake_clock_advance_ms(&world->clock, 50);
    end_note(&trial);
    assert_int_equal(limit_counts(world).permits, 100);
    trial_begin(&trial, world, &in_100_ms);
    fake_clock_advance_ms(&world->clock, 51);
    end_note(&trial);
    assert_int_equal(limit_counts(world).permits, 90);
}

/* --- Options --- */

static void
options_that_cannot_be_are_refused_by_name(void **state)
{
    static const struct {
        struct idem_limit_options options;
        const char *word;
    } table[] = {
        {{.max_in_flight = 4, .min_in_flight = 5}, "min_in_flight 5"},
        {{.late_ms = -1}, "late_ms"},
        {{.method = {.rate_calls = 1}}, "rate_per_ms is 0"},
        {{.method = {.rate_calls = 1, .rate_per_ms = 86400001}},
         "rate_per_ms is 86400001"},
        {{.method = {.rate_calls = 1000001, .rate_per_ms = 1}},
         "rate_calls is 1000001"},
        {{.method = {.rate_calls = 1, .rate_per_ms = 1, .rate_burst = 100001}},
         "rate_burst is 100001"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct idem_interceptor *limit;
        struct idem_error err = {0};

        assert_int_equal(idem_limit_new(&limit, &table[i].options, &err),
                         IDEM_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, table[i].word));
    }
}

#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(at_the_limit_calls_wait_and_over_the_line_they_are_turned_away),
        TEST(those_in_line_go_in_their_order),
        TEST(who_gives_up_leaves_the_line),
        TEST(the_deadline_ends_the_wait),
        TEST(stop_lets_those_in_line_go),
        TEST(a_methods_own_limit_holds_no_other_method_up),
        TEST(a_call_needs_the_methods_and_the_servers),
        TEST(an_inline_call_needs_none_of_the_servers),
        TEST(late_calls_are_fewer_permits),
        cmocka_unit_test(options_that_cannot_be_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
