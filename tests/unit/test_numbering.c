#include "support.h"

#include "fake_clock.h"
#include "numbering.h"

#include <idem/outcome.h>
#include <idem/reason.h>

#include <stdio.h>
#include <string.h>

#define WINDOW_MS 60000

/* A channel's numbers, and the keys that they make. */

struct world {
    struct fake_clock clock;
    struct numbering numbering;
};

static int
set_up(void **state)
{
    static struct world world;

    fake_clock_init(&world.clock);
    numbering_init(&world.numbering);
    *state = &world;
    return 0;
}

static int
tear_down(void **state)
{
    struct world *world = *state;

    numbering_fini(&world->numbering);
    fake_clock_fini(&world->clock);
    return 0;
}

static struct numbered
take(struct world *world, char key[IDEM_KEY_MAX + 1])
{
    struct numbered numbered;

    numbering_take(&world->numbering, &world->clock.clock, 0, WINDOW_MS,
                   &numbered, key);
    return numbered;
}

static struct idem_key
parsed(const char *key)
{
    struct idem_key read;

    assert_int_equal(idem_key_parse(&read, idem_bytes_of(key), NULL), IDEM_OK);
    return read;
}

static void
calls_are_numbered_from_one_in_one_session(void **state)
{
    char first[IDEM_KEY_MAX + 1], second[IDEM_KEY_MAX + 1];
    struct world *world = *state;
    struct idem_key read;

    assert_int_equal(take(world, first).sequence, 1);
    assert_int_equal(take(world, second).sequence, 2);
    read = parsed(second);
    assert_true(read.minted);
    assert_int_equal(read.sequence, 2);
    assert_int_equal(read.window_ms, 2 * WINDOW_MS);
    assert_int_equal(read.minted_ms,
                     world->clock.clock.wall_ms(&world->clock.clock));
    assert_memory_equal(first, second, read.session_size);
}

static void
answers_are_acknowledged_in_order(void **state)
{
    char key[IDEM_KEY_MAX + 1];
    struct world *world = *state;
    struct numbered calls[4];

    for (int i = 0; i < 4; i++)
        calls[i] = take(world, key);
    assert_int_equal(calls[3].ack_below, 1);
    numbering_finish(&world->numbering, &calls[2]);
    numbering_finish(&world->numbering, &calls[1]);
    assert_int_equal(take(world, key).ack_below, 1);
    numbering_finish(&world->numbering, &calls[0]);
    assert_int_equal(take(world, key).ack_below, 4);
    numbering_finish(&world->numbering, &calls[0]);
    assert_int_equal(take(world, key).ack_below, 4);
}

/* One that never gets its answer does not make the channel remember all. */
static void
too_many_without_an_answer_begin_another_session(void **state)
{
    char key[IDEM_KEY_MAX + 1];
    struct world *world = *state;
    struct numbered lost = take(world, key), call;

    for (int i = 1; i < NUMBERING_MAX; i++) {
        call = take(world, key);
        assert_int_equal(call.generation, lost.generation);
        numbering_finish(&world->numbering, &call);
    }
    call = take(world, key);
    assert_true(call.generation != lost.generation);
    assert_int_equal(call.sequence, 1);
    numbering_finish(&world->numbering, &lost);
    assert_int_equal(take(world, key).ack_below, 1);
}

static void
a_session_takes_new_calls_for_one_window(void **state)
{
    char key[IDEM_KEY_MAX + 1];
    struct world *world = *state;
    uint64_t first = take(world, key).generation;

    fake_clock_advance_ms(&world->clock, WINDOW_MS - 1);
    assert_int_equal(take(world, key).generation, first);
    fake_clock_advance_ms(&world->clock, 1);
    assert_int_equal(take(world, key).generation, first + 1);
    numbering_renew(&world->numbering);
    assert_int_equal(take(world, key).generation, first + 2);
}

/* Fault 66: what is no number of a session is no key. */
static void
a_key_of_a_session_has_one_spelling(void **state)
{
    static const char *const numbers[] = {
        "0", "", "01", "-1", "1 ", "+1", "9223372036854775808"};
    char session[IDEM_SESSION_MAX], text[IDEM_KEY_MAX + 1];
    struct world *world = *state;
    struct idem_error err;
    struct idem_key key;

    idem_session_mint(session, &world->clock.clock, 0, WINDOW_MS);
    idem_key_of_session(text, session, INT64_MAX);
    assert_true(parsed(text).sequence == INT64_MAX);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(text, sizeof text, "%s_%s_00000000", session, numbers[i]);
        assert_int_equal(idem_key_parse(&key, idem_bytes_of(text), &err),
                         IDEM_INVALID_ARGUMENT);
    }
    idem_key_of_session(text, session, 7);
    text[strlen(text) - 1] ^= 1;
    assert_int_equal(idem_key_parse(&key, idem_bytes_of(text), &err),
                     IDEM_INVALID_ARGUMENT);
    assert_string_equal(err.reason, IDEM_KEY_FORMAT);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(calls_are_numbered_from_one_in_one_session),
        TEST(answers_are_acknowledged_in_order),
        TEST(too_many_without_an_answer_begin_another_session),
        TEST(a_session_takes_new_calls_for_one_window),
        TEST(a_key_of_a_session_has_one_spelling),
    };

    return cmocka_run_group_tests_name("numbering", tests, NULL, NULL);
}
