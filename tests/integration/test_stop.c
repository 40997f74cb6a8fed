/* A server is stopped under full load, again and again, over one database: it
 * ends in time, every answer that was told is recorded, and every key takes
 * effect once.
 *
 *   test_stop [ROUNDS]   5 */
#include "support.h"

#include "effects.h"
#include "tempdir.h"

#include <idem/channel.h>
#include <idem/clock.h>
#include <idem/sqlite.h>
#include <idem/standard.h>

#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 5
#define IN_FLIGHT 64
#define KEYS_MAX 100000 /* of a round */
#define STOPPERS 3
#define STOP_SLACK_MS 5000 /* beyond drain_ms, on a machine that is busy */
#define NS_PER_MS 1000000

static unsigned rounds = ROUNDS;

/* What came of one key. */
struct told {
    bool ok;
    int64_t number;
};

struct theatre {
    struct tempdir dir;
    char books[TEMPDIR_MAX + 32], push_log[TEMPDIR_MAX + 32];
    struct effects effects;
    struct idem_server *server;
    struct idem_channel *channel;
    unsigned round;
    uint64_t keys; /* of all rounds */

    atomic_uint begun, alive, answered; /* calls of this round */
    atomic_bool over;
    struct told told[KEYS_MAX];
};

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

/* --- The house --- */

static void
open_server(struct theatre *theatre, int64_t drain_ms)
{
    const struct idem_sqlite_options books = {.path = theatre->books,
                                              .schema = EFFECTS_SCHEMA};
    const struct idem_server_options options = {.drain_ms = drain_ms};
    struct idem_store *store;
    struct idem_error err;

    must(idem_sqlite_open(&store, &books, &err), &err);
    must(idem_server_open(&theatre->server, store, &options, NULL, &err), &err);
    must(effects_register(theatre->server, &effects_handlers, &theatre->effects,
                          &err),
         &err);
    must(idem_server_listen(theatre->server, "tcp://127.0.0.1:0", &err), &err);
    must(idem_server_start(theatre->server, &err), &err);
    /* Without retries: each call says what became of its one attempt. */
    must(idem_channel_new(&theatre->channel,
                          idem_server_address(theatre->server, 0), NULL, &err),
         &err);
}

static void
key_of(char key[32], const struct theatre *theatre, unsigned i)
{
    snprintf(key, 32, "r%u-%u", theatre->round, i);
}

/* --- The load: each answer begins the next call --- */

struct act {
    struct theatre *theatre;
    unsigned i;
};

static void play(struct theatre *theatre);

static void
done(struct idem_call *call, const effects_add_reply *reply,
     const struct idem_outcome *outcome)
{
    struct act *act = idem_call_user(call);
    struct theatre *theatre = act->theatre;
    struct told *told = &theatre->told[act->i];

    if (outcome->status == IDEM_OK) {
        told->ok = true;
        told->number = reply->number;
    }
    free(act);
    atomic_fetch_add(&theatre->answered, 1);
    if (outcome->status == IDEM_OK && !atomic_load(&theatre->over))
        play(theatre);
    atomic_fetch_sub(&theatre->alive, 1);
}

/* One in two writes to the database, one elsewhere. */
static void
play(struct theatre *theatre)
{
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct idem_call_options options = {0};
    struct act *act = malloc(sizeof *act);
    unsigned i = atomic_fetch_add(&theatre->begun, 1);
    char key[32];

    assert_non_null(act);
    assert_true(i < KEYS_MAX);
    *act = (struct act){theatre, i};
    theatre->told[i] = (struct told){false, 0};
    key_of(key, theatre, i);
    options.key = key;
    options.user = act;
    request.amount = i;
    atomic_fetch_add(&theatre->alive, 1);
    idem_call_release(
        i % 2 ? effects_push_async(theatre->channel, &request, &options, done)
              : effects_add_async(theatre->channel, &request, &options, done));
}

static void
load(struct theatre *theatre)
{
    atomic_store(&theatre->over, false);
    atomic_store(&theatre->begun, 0);
    atomic_store(&theatre->answered, 0);
    for (unsigned i = 0; i < IN_FLIGHT; i++)
        play(theatre);
    while (atomic_load(&theatre->answered) < 2 * IN_FLIGHT)
        sched_yield();
}

/* --- The end, by several at once --- */

static void *
stop(void *with)
{
    idem_server_stop(with);
    return NULL;
}

static void
stop_in_time(struct theatre *theatre, int64_t drain_ms)
{
    const struct idem_clock *clock = idem_clock_system();
    int64_t from_ns = clock->monotonic_ns(clock);
    pthread_t stoppers[STOPPERS];

    for (unsigned i = 0; i < STOPPERS; i++)
        assert_int_equal(
            pthread_create(&stoppers[i], NULL, stop, theatre->server), 0);
    idem_server_drain(theatre->server);
    for (unsigned i = 0; i < STOPPERS; i++)
        pthread_join(stoppers[i], NULL);
    idem_server_stop(theatre->server);
    assert_in_range((clock->monotonic_ns(clock) - from_ns) / NS_PER_MS, 0,
                    drain_ms + STOP_SLACK_MS);
    idem_server_free(theatre->server);
    atomic_store(&theatre->over, true);
    while (atomic_load(&theatre->alive) > 0)
        sched_yield();
    idem_channel_close(theatre->channel);
}

/* --- The reckoning --- */

static void
repeat(struct theatre *theatre, unsigned i)
{
    const struct told *told = &theatre->told[i];
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct idem_call_options options = {0};
    effects_add_reply *reply = NULL;
    struct idem_outcome outcome;
    enum idem_status status;
    char key[32];

    key_of(key, theatre, i);
    options.key = key;
    request.amount = i;
    status = i % 2 ? effects_push(theatre->channel, &request, &reply, &options,
                                  &outcome)
                   : effects_add(theatre->channel, &request, &reply, &options,
                                 &outcome);
    if (status != IDEM_OK)
        fail_msg("%s was%s told OK; again: %s, %s: %s", key,
                 told->ok ? "" : " not", idem_status_name(status),
                 idem_effect_name(outcome.effect), outcome.message);
    if (told->ok) {
        assert_int_equal(outcome.effect, IDEM_EFFECT_REPLAYED);
        assert_int_equal(reply->number, told->number);
    }
    effects_add_reply_free(reply);
}

static int64_t
effects_there_are(struct theatre *theatre)
{
    static const effects_count_request request = EFFECTS_COUNT_REQUEST_INIT;
    effects_count_reply *reply = NULL;
    int64_t effects;

    assert_int_equal(
        effects_count(theatre->channel, &request, &reply, NULL, NULL), IDEM_OK);
    effects = reply->effects;
    effects_count_reply_free(reply);
    return effects;
}

static unsigned
open_files(void)
{
    DIR *files = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(files);
    while (readdir(files))
        n++;
    closedir(files);
    return n;
}

/* Every second key is in the books, the others in the log. */
static void
reckon(struct theatre *theatre)
{
    unsigned n = atomic_load(&theatre->begun);

    open_server(theatre, 10000);
    for (unsigned i = 0; i < n; i++)
        repeat(theatre, i);
    theatre->keys += n;
    assert_int_equal(effects_there_are(theatre) +
                         effects_pushes(theatre->push_log, NULL),
                     theatre->keys);
    idem_channel_close(theatre->channel);
    idem_server_free(theatre->server);
}

static void
nothing_is_lost_by_a_stop_under_load(void **state)
{
    static const int64_t drains_ms[] = {1, 20, 10000};
    static struct theatre theatre;
    unsigned files = 0;

    (void)state;
    tempdir_open(&theatre.dir);
    tempdir_file(&theatre.dir, "books.db", theatre.books, sizeof theatre.books);
    tempdir_file(&theatre.dir, "push.log", theatre.push_log,
                 sizeof theatre.push_log);
    effects_init(&theatre.effects, theatre.push_log);
    for (theatre.round = 0; theatre.round < rounds; theatre.round++) {
        int64_t drain_ms = drains_ms[theatre.round % 3];

        open_server(&theatre, drain_ms);
        load(&theatre);
        stop_in_time(&theatre, drain_ms);
        reckon(&theatre);
        if (theatre.round == 0)
            files = open_files();
    }
    assert_in_range(open_files(), 1, files);
    effects_fini(&theatre.effects);
    tempdir_close(&theatre.dir);
    printf("%u rounds, %llu keys\n", rounds, (unsigned long long)theatre.keys);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_by_a_stop_under_load),
    };

    if (argc > 1)
        rounds = (unsigned)strtoul(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
