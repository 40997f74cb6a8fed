/* The whole road with a Redis that lies in every way (fault 38, I8): not one
 * execution more than keys, not one answer of another key, every corruption
 * counted.
 *
 *    test_once_liar [CALLS]        1,000,000 for the long run */
#include "support.h"

#include "checker.h"
#include "child.h"
#include "effects.h"
#include "fake_redis.h"
#include "tempdir.h"

#include <idem/reason.h>
#include <idem/shield.h>
#include <idem/sqlite.h>
#include <idem/standard.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 200
#define CALLERS 4
#define CALLS 12000
#define OTHER_EVERY 17 /* of these one is another request under the key */

static unsigned long calls = CALLS;

struct liar_world {
    struct tempdir dir;
    char books[TEMPDIR_MAX + 32];
    struct effects effects;
    struct fake_redis *fake;
    struct idem_shield *shield; /* the server's */
    struct idem_interceptor *once;
    struct idem_server *server;
    struct idem_channel *channel;
    int64_t numbers[KEYS]; /* of the effect under each key */
    pthread_mutex_t telling;
    struct checker *checker; /* of all calls; under telling */
};

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

static void
open_shield(struct liar_world *world)
{
    const struct idem_redis_options options = {
        .url = fake_redis_url(world->fake),
        .secret = idem_bytes_of("sixteen bytes and more"),
        .budget_ms = 5000,
        .breaker_failures = UINT32_MAX, /* lies must go on */
    };
    struct idem_error err;

    must(idem_redis_new(&world->shield, &options, &err), &err);
}

/* Without memory: it would answer in place of Redis. */
static void
open_server(struct liar_world *world)
{
    const struct idem_sqlite_options sqlite = {.path = world->books,
                                               .schema = EFFECTS_SCHEMA};
    const struct idem_once_options options = {.shield = world->shield,
                                              .no_memory = true};
    struct idem_store *store;
    struct idem_error err;

    must(idem_sqlite_open(&store, &sqlite, &err), &err);
    must(idem_once_new(&world->once, store, &options, &err), &err);
    must(idem_server_new(&world->server, NULL, &err), &err);
    must(idem_server_add(world->server, world->once, &err), &err);
    must(effects_register(world->server, &effects_handlers, &world->effects,
                          &err),
         &err);
    must(idem_server_listen(world->server, "inproc://once-liar", &err), &err);
    must(idem_server_start(world->server, &err), &err);
    must(idem_client_open(&world->channel,
                          idem_server_address(world->server, 0), NULL, &err),
         &err);
}

static int
setup(void **state)
{
    struct liar_world *world = calloc(1, sizeof(*world));

    assert_non_null(world);
    tempdir_open(&world->dir);
    tempdir_file(&world->dir, "books", world->books, sizeof(world->books));
    effects_init(&world->effects, NULL);
    pthread_mutex_init(&world->telling, NULL);
    world->checker = checker_new();
    world->fake = fake_redis_start();
    open_shield(world);
    open_server(world);
    *state = world;
    return 0;
}

static int
teardown(void **state)
{
    struct liar_world *world = *state;

    idem_channel_close(world->channel);
    idem_server_free(world->server);
    fake_redis_free(world->fake);
    effects_fini(&world->effects);
    checker_free(world->checker);
    pthread_mutex_destroy(&world->telling);
    tempdir_close(&world->dir);
    free(world);
    return 0;
}

static void
tell(struct liar_world *world, const char *key, struct checker_call *told,
     const struct idem_outcome *outcome)
{
    told->key = key;
    told->ended_ns = idem_clock_system()->monotonic_ns(idem_clock_system());
    told->status = outcome->status;
    told->effect = outcome->effect;
    told->final = outcome->final;
    told->reason = outcome->reason;
    pthread_mutex_lock(&world->telling);
    checker_key(world->checker, key, CHECKER_RUN_ONCE, INT64_MAX);
    checker_call(world->checker, told);
    pthread_mutex_unlock(&world->telling);
}

/* Every key has its amount, and its effect a number of its own. */
static enum idem_status
add(struct liar_world *world, unsigned key, int64_t amount, int64_t *number,
    struct idem_outcome *outcome)
{
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct idem_call_options options = {.timeout_ms = 60000};
    struct checker_call told = {
        .began_ns = idem_clock_system()->monotonic_ns(idem_clock_system())};
    effects_add_reply *reply = NULL;
    char text[32];
    enum idem_status status;

    snprintf(text, sizeof(text), "liar-%u", key);
    options.key = text;
    request.amount = amount;
    status =
        effects_add_always(world->channel, &request, &reply, &options, outcome);
    *number = 0;
    if (reply) {
        *number = reply->amount == amount ? reply->number : -1;
        told.reply = (uint64_t)reply->number + 1;
        told.foreign = reply->amount != amount;
        effects_add_reply_free(reply);
    }
    tell(world, text, &told, outcome);
    return status;
}

static void
run_each_key_once(struct liar_world *world)
{
    for (unsigned key = 0; key < KEYS; key++) {
        struct idem_outcome outcome;

        assert_int_equal(add(world, key, key, &world->numbers[key], &outcome),
                         IDEM_OK);
        assert_int_equal(outcome.effect, IDEM_EFFECT_COMMITTED);
    }
}

struct caller {
    pthread_t thread;
    struct liar_world *world;
    unsigned first;
    unsigned long calls;
    char wrong[256]; /* the first surprise; "" */
};

static void
repeat(struct caller *caller, unsigned key)
{
    struct idem_outcome outcome;
    int64_t number;
    enum idem_status status = add(caller->world, key, key, &number, &outcome);

    if (status != IDEM_OK || outcome.effect != IDEM_EFFECT_REPLAYED ||
        number != caller->world->numbers[key])
        snprintf(caller->wrong, sizeof(caller->wrong),
                 "key %u: status %d, effect %d, number %lld, not %lld", key,
                 status, outcome.effect, (long long)number,
                 (long long)caller->world->numbers[key]);
}

/* Fault 45. */
static void
ask_otherwise(struct caller *caller, unsigned key)
{
    struct idem_outcome outcome;
    int64_t number;
    enum idem_status status =
        add(caller->world, key, key + 1000, &number, &outcome);

    if (status != IDEM_INVALID_ARGUMENT || number != 0 ||
        strcmp(outcome.reason, IDEM_KEY_REUSED) != 0)
        snprintf(caller->wrong, sizeof(caller->wrong),
                 "another request under key %u: status %d, %s", key, status,
                 outcome.reason);
}

static void *
call_again_and_again(void *with)
{
    struct caller *caller = with;

    for (unsigned long n = 0; n < caller->calls && !caller->wrong[0]; n++) {
        unsigned key = (unsigned)((caller->first + n * 7) % KEYS);

        if (n % OTHER_EVERY == 0)
            ask_otherwise(caller, key);
        else
            repeat(caller, key);
    }
    return NULL;
}

static void
call_all(struct liar_world *world, unsigned long n)
{
    struct caller callers[CALLERS] = {{.first = 0}};

    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){
            .world = world, .first = i * 31, .calls = n / CALLERS};
        assert_int_equal(pthread_create(&callers[i].thread, NULL,
                                        call_again_and_again, &callers[i]),
                         0);
    }
    for (unsigned i = 0; i < CALLERS; i++)
        pthread_join(callers[i].thread, NULL);
    for (unsigned i = 0; i < CALLERS; i++)
        if (callers[i].wrong[0])
            fail_msg("%s", callers[i].wrong);
}

static struct idem_shield_counts
shield_counts(const struct liar_world *world)
{
    struct idem_shield_counts counts;

    idem_shield_counts(world->shield, &counts);
    return counts;
}

/* Lies that end a connection are told to looks that are not there any more; one
 * that denies a value is a miss, as good as any. */
static bool
is_counted_one_by_one(enum fake_redis_lie lie)
{
    return lie == FAKE_REDIS_FLIP || lie == FAKE_REDIS_TRUNCATE;
}

static bool
redis_answers(void *with)
{
    struct liar_world *world = with;
    uint64_t hits = shield_counts(world).hits;
    struct idem_outcome outcome;
    int64_t number;

    (void)add(world, 0, 0, &number, &outcome);
    return shield_counts(world).hits > hits;
}

static void
lie(struct liar_world *world, enum fake_redis_lie lie)
{
    struct idem_shield_counts before, after;
    unsigned lies;

    /* The lie before may have cost the connection. */
    fake_redis_lie(world->fake, FAKE_REDIS_HONEST, 0);
    assert_true(child_wait_until(redis_answers, world, 10000));
    before = shield_counts(world);
    lies = fake_redis_lies(world->fake);
    fake_redis_lie(world->fake, lie, 3);
    call_all(world, calls / (FAKE_REDIS_LIES - 2));
    lies = fake_redis_lies(world->fake) - lies;
    after = shield_counts(world);
    if (is_counted_one_by_one(lie)) {
        assert_true(lies > 0);
        assert_int_equal(after.rejected - before.rejected, lies);
    }
}

/* In peace: so the last word of each key is its own. */
static void
ask_each_key_once_more(struct liar_world *world)
{
    struct caller caller = {.world = world};

    fake_redis_lie(world->fake, FAKE_REDIS_HONEST, 0);
    for (unsigned key = 0; key < KEYS; key++)
        repeat(&caller, key);
    assert_string_equal(caller.wrong, "");
}

static void
no_lie_makes_an_execution_or_shows_anothers_answer(void **state)
{
    struct liar_world *world = *state;
    struct idem_once_counts counts;

    run_each_key_once(world);
    for (enum fake_redis_lie what = FAKE_REDIS_SWAP; what < FAKE_REDIS_LIES;
         what++)
        if (what != FAKE_REDIS_SILENT) /* each costs the budget */
            lie(world, what);
    assert_int_equal(effects_runs(&world->effects), KEYS);
    idem_once_counts(world->once, &counts);
    assert_int_equal(counts.executed, KEYS);
    print_message("%lu calls, %u lies, %llu rejected, %llu failed, %llu hits\n",
                  calls, fake_redis_lies(world->fake),
                  (unsigned long long)shield_counts(world).rejected,
                  (unsigned long long)shield_counts(world).failed,
                  (unsigned long long)shield_counts(world).hits);
    assert_true(shield_counts(world).hits > 0);
    ask_each_key_once_more(world);
    checker_read_sqlite(world->checker, world->books, EFFECTS_KEYS);
    assert_int_equal(checker_run(world->checker, 0, checker_print, NULL), 0);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            no_lie_makes_an_execution_or_shows_anothers_answer, setup,
            teardown),
    };

    if (argc > 1)
        calls = strtoul(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
