#include "places_world.h"

#include <stdio.h>
#include <string.h>

/* Which server a call goes to. */

#define KEYS 64

static struct idem_channel_options
with(enum idem_balancer balancer)
{
    return (struct idem_channel_options){.balancer = balancer,
                                         .connect_backoff_ms = 1,
                                         .connect_backoff_max_ms = 10};
}

static void
echo_times(struct places_world *world, unsigned times)
{
    struct idem_outcome outcome;

    for (unsigned i = 0; i < times; i++)
        assert_int_equal(places_echo(world, NULL, &outcome), IDEM_OK);
}

static void
pick_first_uses_the_first_that_is_there(void **state)
{
    const struct idem_channel_options options = with(IDEM_BALANCER_PICK_FIRST);
    struct places_world world;

    (void)state;
    places_world_open(&world, 3, &options);
    echo_times(&world, 5);
    assert_string_equal(places_ran(&world), "5 0 0");
    site_stop(&world.place[0]);
    echo_times(&world, 5);
    assert_string_equal(places_ran(&world), "5 5 0");
    places_world_close(&world);
}

/* gRPC's rule: what works is kept, also when an earlier address is back. */
static void
pick_first_stays_where_it_is(void **state)
{
    const struct idem_channel_options options = with(IDEM_BALANCER_PICK_FIRST);
    struct places_world world;

    (void)state;
    places_world_open(&world, 2, &options);
    site_stop(&world.place[0]);
    echo_times(&world, 1);
    site_start(&world.place[0]);
    echo_times(&world, 5);
    assert_string_equal(places_ran(&world), "0 6");
    places_world_close(&world);
}

static void
round_robin_gives_each_its_turn(void **state)
{
    const struct idem_channel_options options = with(IDEM_BALANCER_ROUND_ROBIN);
    struct places_world world;

    (void)state;
    places_world_open(&world, 3, &options);
    echo_times(&world, 9);
    assert_string_equal(places_ran(&world), "3 3 3");
    places_world_close(&world);
}

static void
least_in_flight_goes_round_those_that_are_busy(void **state)
{
    const struct idem_channel_options options =
        with(IDEM_BALANCER_LEAST_IN_FLIGHT);
    struct places_world world;
    unsigned inside[PLACES_MAX];

    (void)state;
    places_world_open(&world, 3, &options);
    for (unsigned i = 0; i < 3; i++)
        idem_call_release(places_block(&world, NULL, NULL));
    for (unsigned i = 0; i < 3; i++)
        places_await_inside(&world, i, 1);
    idem_call_release(places_block(&world, NULL, NULL));
    places_await_all_inside(&world, 4, inside);
    echo_times(&world, 10);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(atomic_load(&world.place[i].ran) > 0, inside[i] == 1);
    places_world_close(&world);
}

/* The place of each key: ran before and after tell. */
static void
places_of_keys(struct places_world *world, unsigned place_of[KEYS])
{
    struct idem_outcome outcome;

    for (unsigned key = 0; key < KEYS; key++) {
        unsigned before[PLACES_MAX];
        char text[16];

        for (unsigned i = 0; i < world->n; i++)
            before[i] = atomic_load(&world->place[i].ran);
        snprintf(text, sizeof text, "key-%u", key);
        assert_int_equal(places_echo(world, text, &outcome), IDEM_OK);
        for (unsigned i = 0; i < world->n; i++)
            if (atomic_load(&world->place[i].ran) > before[i])
                place_of[key] = i;
    }
}

/* Duplicates meet their first call in the same process. */
static void
a_key_has_its_server_and_only_its_keys_move_when_that_goes(void **state)
{
    const struct idem_channel_options options = with(IDEM_BALANCER_KEY_HASH);
    unsigned first[KEYS], again[KEYS], without[KEYS];
    struct places_world world;

    (void)state;
    places_world_open(&world, 4, &options);
    places_of_keys(&world, first);
    places_of_keys(&world, again);
    assert_memory_equal(first, again, sizeof first);
    for (unsigned i = 0; i < world.n; i++)
        assert_in_range(atomic_load(&world.place[i].ran), 2 * KEYS / 16,
                        2 * KEYS / 2);
    site_stop(&world.place[2]);
    places_await_ready(&world, 3);
    places_of_keys(&world, without);
    for (unsigned key = 0; key < KEYS; key++) {
        assert_int_not_equal(without[key], 2);
        if (first[key] != 2)
            assert_int_equal(without[key], first[key]);
    }
    places_world_close(&world);
}

/* Not once more to the one that just said no. */
static void
a_call_that_is_turned_away_goes_to_another_server_first(void **state)
{
    const struct idem_channel_options options = with(IDEM_BALANCER_KEY_HASH);
    struct places_world world;
    struct idem_outcome outcome;

    (void)state;
    places_world_open(&world, 3, &options);
    atomic_store(&world.place[1].refuses, true);
    for (unsigned key = 0; key < 20; key++) {
        char text[16];

        snprintf(text, sizeof text, "key-%u", key);
        assert_int_equal(places_echo(&world, text, &outcome), IDEM_OK);
        assert_in_range(outcome.attempts, 1, 2);
    }
    assert_int_equal(atomic_load(&world.place[1].ran), 0);
    places_world_close(&world);
}

/* rpc 46: also of a call that waits for a connection: there is one. */
static void
what_all_turn_away_is_refused(void **state)
{
    const struct idem_channel_options options = with(IDEM_BALANCER_ROUND_ROBIN);
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;
    struct places_world world;
    struct idem_outcome outcome;

    (void)state;
    places_world_open(&world, 2, &options);
    atomic_store(&world.place[0].refuses, true);
    atomic_store(&world.place[1].refuses, true);
    for (int patient = 0; patient < 2; patient++) {
        const struct idem_call_options call = {
            .key = "k", .wait_for_ready = patient, .fail_fast = !patient};

        assert_int_equal(
            echo_echo(world.channel, &request, NULL, &call, &outcome),
            IDEM_UNAVAILABLE);
        assert_int_equal(outcome.effect, IDEM_EFFECT_REFUSED);
        assert_int_equal(outcome.attempts, 2);
    }
    places_world_close(&world);
}

static void
turn_to(struct places_world *world, enum idem_balancer balancer, unsigned ready)
{
    struct idem_error err;

    if (idem_channel_set_balancer(world->channel, balancer, &err) != IDEM_OK)
        fail_msg("%s", err.message);
    places_await_ready(world, ready);
}

/* A call that flies stays where it is, also when its connection is one too many
 * from now on. */
static void
a_channel_is_turned_to_another_balancer_while_calls_fly(void **state)
{
    const struct idem_channel_options options = with(IDEM_BALANCER_PICK_FIRST);
    struct idem_outcome outcomes[3];
    struct places_world world;

    (void)state;
    places_world_open(&world, 3, &options);
    echo_times(&world, 3);
    assert_string_equal(places_ran(&world), "3 0 0");
    turn_to(&world, IDEM_BALANCER_ROUND_ROBIN, 3);
    for (unsigned i = 0; i < 3; i++)
        idem_call_release(places_block(&world, &outcomes[i], NULL));
    for (unsigned i = 0; i < 3; i++)
        places_await_inside(&world, i, 1);
    turn_to(&world, IDEM_BALANCER_PICK_FIRST, 1);
    echo_times(&world, 3);
    assert_string_equal(places_ran(&world), "6 0 0");
    turn_to(&world, IDEM_BALANCER_LEAST_IN_FLIGHT, 3);
    places_open_gate(&world);
    while (places_flying(&world) > 0)
        echo_times(&world, 1);
    places_world_close(&world);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(outcomes[i].status, IDEM_OK);
}

#define CALLS_OF_A_THREAD 100

static void *
call_again_and_again(void *with)
{
    struct places_world *world = with;
    char key[24];
    size_t failed = 0;

    for (int i = 0; i < CALLS_OF_A_THREAD; i++) {
        const struct idem_call_options options = {
            .key = key, .wait_for_ready = true, .timeout_ms = 20000};
        echo_echo_request request = ECHO_ECHO_REQUEST_INIT;

        snprintf(key, sizeof key, "key-%d", i);
        failed += echo_echo(world->channel, &request, NULL, &options, NULL) !=
                  IDEM_OK;
    }
    return (void *)failed;
}

/* No call notices, whatever it is turned to meanwhile. */
static void
a_channel_is_turned_again_and_again_under_load(void **state)
{
    const struct idem_channel_options options = with(IDEM_BALANCER_PICK_FIRST);
    struct places_world world;
    pthread_t threads[4];

    (void)state;
    places_world_open(&world, 3, &options);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, call_again_and_again, &world);
    for (int i = 0; i < 40; i++) {
        enum idem_balancer to = (enum idem_balancer)(i % 4);

        turn_to(&world, to, to == IDEM_BALANCER_PICK_FIRST ? 1 : 3);
    }
    for (int i = 0; i < 4; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    places_world_close(&world);
}

static void
a_balancer_that_is_none_is_refused(void **state)
{
    const struct idem_channel_options options = with(IDEM_BALANCER_PICK_FIRST);
    struct places_world world;
    struct idem_error err;

    (void)state;
    places_world_open(&world, 1, &options);
    assert_int_equal(
        idem_channel_set_balancer(world.channel, (enum idem_balancer)9, &err),
        IDEM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "there is no balancer 9");
    assert_int_equal(idem_channel_balancer(world.channel),
                     IDEM_BALANCER_PICK_FIRST);
    places_world_close(&world);
}

static void
balancers_have_names(void **state)
{
    enum idem_balancer balancer;

    (void)state;
    assert_true(idem_balancer_parse("key_hash", &balancer));
    assert_int_equal(balancer, IDEM_BALANCER_KEY_HASH);
    assert_string_equal(idem_balancer_name(balancer), "key_hash");
    assert_false(idem_balancer_parse("ring_hash", &balancer));
    assert_string_equal(idem_balancer_name((enum idem_balancer)99), "unknown");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pick_first_uses_the_first_that_is_there),
        cmocka_unit_test(pick_first_stays_where_it_is),
        cmocka_unit_test(round_robin_gives_each_its_turn),
        cmocka_unit_test(least_in_flight_goes_round_those_that_are_busy),
        cmocka_unit_test(
            a_key_has_its_server_and_only_its_keys_move_when_that_goes),
        cmocka_unit_test(
            a_call_that_is_turned_away_goes_to_another_server_first),
        cmocka_unit_test(what_all_turn_away_is_refused),
        cmocka_unit_test(
            a_channel_is_turned_to_another_balancer_while_calls_fly),
        cmocka_unit_test(a_channel_is_turned_again_and_again_under_load),
        cmocka_unit_test(a_balancer_that_is_none_is_refused),
        cmocka_unit_test(balancers_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
