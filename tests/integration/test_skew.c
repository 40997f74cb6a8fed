/* Fault 58: a client whose clock is wrong, against a real server. */
#include "support.h"

#include "effects.h"
#include "tempdir.h"

#include <idem/key.h>
#include <idem/reason.h>
#include <idem/sqlite.h>
#include <idem/standard.h>

#include <stdlib.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)
#define WRONG_MS (10 * DAY_MS)
#define ABOUT_MS 60000 /* two readings of the true time in one test */

/* The system's clock, but for the date. */
struct wrong_clock {
    struct idem_clock clock;
    _Atomic int64_t ahead_ms;
};

static int64_t
wrong_wall_ms(const struct idem_clock *clock)
{
    const struct idem_clock *system = idem_clock_system();

    return system->wall_ms(system) +
           ((const struct wrong_clock *)clock)->ahead_ms;
}

struct world {
    struct tempdir dir;
    char books[128];
    struct effects effects;
    struct idem_server *server;
    struct idem_channel *channel;
    struct wrong_clock clock;
};

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

static void
serve(struct world *world)
{
    const struct idem_sqlite_options sqlite = {.path = world->books,
                                               .schema = EFFECTS_SCHEMA};
    struct idem_store *store;
    struct idem_error err;

    must(idem_sqlite_open(&store, &sqlite, &err), &err);
    must(idem_server_open(&world->server, store, NULL, NULL, &err), &err);
    must(effects_register(world->server, &effects_handlers, &world->effects,
                          &err),
         &err);
    must(idem_server_listen(world->server, "inproc://skew", &err), &err);
    must(idem_server_start(world->server, &err), &err);
}

static int
set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    struct idem_channel_options options = {.clock = &world->clock.clock};
    struct idem_error err;

    world->clock.clock = *idem_clock_system();
    world->clock.clock.wall_ms = wrong_wall_ms;
    tempdir_open(&world->dir);
    tempdir_file(&world->dir, "books", world->books, sizeof world->books);
    effects_init(&world->effects, NULL);
    serve(world);
    must(idem_client_open(&world->channel, "inproc://skew", &options, &err),
         &err);
    *state = world;
    return 0;
}

static int
tear_down(void **state)
{
    struct world *world = *state;

    idem_channel_close(world->channel);
    idem_server_free(world->server);
    effects_fini(&world->effects);
    tempdir_close(&world->dir);
    free(world);
    return 0;
}

static struct idem_outcome
add(struct world *world, const char *key)
{
    const struct idem_call_options options = {.key = key};
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct idem_outcome outcome;

    request.amount = 7;
    effects_add(world->channel, &request, NULL, &options, &outcome);
    return outcome;
}

static int64_t
minted_ms(const struct idem_outcome *outcome)
{
    struct idem_key key;

    assert_int_equal(idem_key_parse(&key, idem_bytes_of(outcome->key), NULL),
                     IDEM_OK);
    assert_true(key.minted);
    return key.minted_ms;
}

static void
assert_about(int64_t ms, int64_t than_ms)
{
    assert_true(llabs(ms - than_ms) < ABOUT_MS);
}

static void
a_clock_that_is_wrong_costs_one_more_key(void **state)
{
    static const int64_t wrong_ms[] = {WRONG_MS, -WRONG_MS};
    const struct idem_clock *system = idem_clock_system();
    struct world *world = *state;

    for (int i = 0; i < 2; i++) {
        struct idem_outcome outcome;

        world->clock.ahead_ms = wrong_ms[i];
        outcome = add(world, NULL);
        assert_int_equal(outcome.status, IDEM_OK);
        assert_int_equal(outcome.effect, IDEM_EFFECT_COMMITTED);
        assert_int_equal(outcome.attempts, 2);
        assert_about(minted_ms(&outcome), system->wall_ms(system));
        assert_about(outcome.server_time_ms, system->wall_ms(system));
        assert_about(idem_channel_skew_ms(world->channel), -wrong_ms[i]);
        outcome = add(world, NULL);
        assert_int_equal(outcome.status, IDEM_OK);
        assert_int_equal(outcome.attempts, 1);
    }
    assert_int_equal(effects_runs(&world->effects), 4);
}

/* The same key, whatever the clock says when it is repeated. */
static void
a_clock_that_steps_between_attempts_changes_no_key(void **state)
{
    struct world *world = *state;
    struct idem_outcome first = add(world, NULL), again;

    world->clock.ahead_ms = -WRONG_MS;
    again = add(world, first.key);
    assert_int_equal(again.effect, IDEM_EFFECT_REPLAYED);
    assert_string_equal(again.key, first.key);
    assert_int_equal(effects_runs(&world->effects), 1);
}

/* It may have been used before: only its caller knows. A key that is over stays
 * so; the day of one that is ahead comes, and then it is no final "no" (I3). */
static void
a_key_that_the_caller_gave_is_not_replaced(void **state)
{
    static const int64_t ahead_ms[] = {WRONG_MS, -WRONG_MS};
    struct world *world = *state;

    for (int i = 0; i < 2; i++) {
        struct idem_outcome outcome;
        char key[IDEM_KEY_MAX + 1];

        world->clock.ahead_ms = ahead_ms[i];
        idem_key_mint(key, &world->clock.clock, DAY_MS);
        outcome = add(world, key);
        assert_int_equal(outcome.status, IDEM_FAILED_PRECONDITION);
        assert_string_equal(outcome.reason, IDEM_KEY_EXPIRED);
        assert_int_equal(outcome.effect, IDEM_EFFECT_REFUSED);
        assert_int_equal(outcome.final, ahead_ms[i] < 0);
        assert_true(outcome.server_time_ms > 0);
        assert_string_equal(outcome.key, key);
    }
    assert_int_equal(effects_runs(&world->effects), 0);
}

static void
every_answer_tells_the_servers_time(void **state)
{
    const struct idem_clock *system = idem_clock_system();
    struct world *world = *state;
    struct idem_outcome outcome;

    assert_int_equal(idem_channel_skew_ms(world->channel), 0);
    world->clock.ahead_ms = 5000;
    outcome = add(world, "k1");
    assert_about(outcome.server_time_ms, system->wall_ms(system));
    assert_in_range(-idem_channel_skew_ms(world->channel), 4000, ABOUT_MS);
    outcome = add(world, "bad key");
    assert_string_equal(outcome.reason, IDEM_KEY_CHARSET);
    assert_int_equal(outcome.server_time_ms, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_clock_that_is_wrong_costs_one_more_key),
        TEST(a_clock_that_steps_between_attempts_changes_no_key),
        TEST(a_key_that_the_caller_gave_is_not_replaced),
        TEST(every_answer_tells_the_servers_time),
    };

    return cmocka_run_group_tests_name("skew", tests, NULL, NULL);
}
