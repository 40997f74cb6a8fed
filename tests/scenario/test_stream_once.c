/* A server stream whose effect is once and whose messages resume: its server is
 * killed at any of its messages, its connection is cut, two servers are asked
 * for it at once. Whatever happens, each message comes once, in order, with
 * what the one effect kept, and the same end; and the checker finds nothing.
 *
 *    test_stream_once sqlite|postgres */
#include "support.h"

#include "books.h"
#include "checker.h"
#include "child.h"
#include "loopback.h"
#include "postgres.h"
#include "tcp_proxy.h"
#include "tempdir.h"

#include "feed.idem.h"

#include <idem/postgres.h>
#include <idem/standard.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 200
#define CALL_MS 120000
#define FEED_KEYS "SELECT key FROM feed_effects"
#define LEASE_MS 200 /* of feed.proto */

static bool on_postgres;

struct site {
    struct tempdir dir;
    char books[160], log[2][160], address[2][64];
    struct postgres *postgres; /* NULL: sqlite */
    pid_t servers[2];
    struct checker *checker; /* of all streams but those that fail */
};

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s", err->message);
}

static void
serve(struct site *site, unsigned i)
{
    const struct child_options options = {.log = site->log[i]};
    const char *const arguments[] = {
        FEED_SERVER,
        site->address[i],
        site->dir.path,
        site->postgres ? "postgres" : "sqlite",
        site->postgres ? postgres_conninfo(site->postgres) : site->books,
        NULL};

    site->servers[i] = child_serve(&options, arguments);
    if (site->servers[i] == 0) {
        child_show(site->log[i]);
        fail_msg("the server does not start");
    }
}

static int
set_up(void **state)
{
    struct site *site = calloc(1, sizeof *site);
    struct idem_error err;

    assert_non_null(site);
    tempdir_open(&site->dir);
    site->checker = checker_new();
    checker_pass_over_others(site->checker);
    tempdir_file(&site->dir, "books", site->books, sizeof site->books);
    tempdir_file(&site->dir, "log0", site->log[0], sizeof site->log[0]);
    tempdir_file(&site->dir, "log1", site->log[1], sizeof site->log[1]);
    for (unsigned i = 0; i < 2; i++)
        snprintf(site->address[i], sizeof site->address[i],
                 "tcp://127.0.0.1:%u", loopback_free_port());
    if (on_postgres) {
        site->postgres = postgres_start(NULL);
        must(idem_postgres_migrate(postgres_conninfo(site->postgres), NULL,
                                   &err),
             &err);
        postgres_sql(site->postgres, "CREATE TABLE feed_effects (key text)");
    }
    serve(site, 0);
    *state = site;
    return 0;
}

static int
tear_down(void **state)
{
    struct site *site = *state;

    for (unsigned i = 0; i < 2; i++)
        child_stop(site->servers[i], SIGKILL);
    postgres_free(site->postgres);
    checker_free(site->checker);
    tempdir_close(&site->dir);
    free(site);
    return 0;
}

static void
put_file(const struct site *site, const char *name)
{
    char path[160];
    FILE *file = fopen(tempdir_file(&site->dir, name, path, sizeof path), "w");

    assert_non_null(file);
    fclose(file);
}

static void
tell_to_die(const struct site *site, const char *when)
{
    char name[32];

    snprintf(name, sizeof name, "die.%s", when);
    put_file(site, name);
}

static int64_t
lines_of(const struct site *site, const char *name)
{
    char path[160];
    FILE *file = fopen(tempdir_file(&site->dir, name, path, sizeof path), "r");
    int64_t lines = 0;
    int c;

    if (!file)
        return 0;
    while ((c = fgetc(file)) != EOF)
        lines += c == '\n';
    fclose(file);
    return lines;
}

static int64_t
rows_of(const struct site *site, const char *key)
{
    char sql[128];

    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM feed_effects WHERE key = '%s'", key);
    if (site->postgres)
        return postgres_sql(site->postgres, "%s", sql);
    return books_ask(site->books, sql);
}

/* --- Who follows --- */

struct follower {
    const char *target, *key;
    bool marked;
    enum idem_status wanted;
    void (*at)(struct follower *follower); /* after each event; or NULL */
    void *with;

    pthread_t thread;
    uint32_t read;
    bool out_of_order;
    char kept[32];
    uint32_t last_from;
    struct idem_outcome outcome;
    struct checker_call told;
    atomic_bool over;
};

static void
note(struct follower *follower, const feed_event *event)
{
    follower->out_of_order |= event->number != ++follower->read;
    if (!*follower->kept)
        snprintf(follower->kept, sizeof follower->kept, "%s", event->kept);
    follower->out_of_order |= strcmp(follower->kept, event->kept) != 0;
    follower->last_from = event->from;
    if (follower->at)
        follower->at(follower);
}

static void
read_all(struct follower *follower, struct idem_channel *channel)
{
    const struct idem_call_options options = {
        .key = follower->key, .timeout_ms = CALL_MS, .wait_for_ready = true};
    feed_follow_request request = FEED_FOLLOW_REQUEST_INIT;
    const feed_event *event;

    request.count = COUNT;
    request.status = follower->wanted;
    if (follower->marked) {
        struct feed_follow_marked_stream *stream =
            feed_follow_marked_open(channel, &request, &options);

        while ((event = feed_follow_marked_next(stream)))
            note(follower, event);
        feed_follow_marked_finish(stream, &follower->outcome);
    } else {
        struct feed_follow_stream *stream =
            feed_follow_open(channel, &request, &options);

        while ((event = feed_follow_next(stream)))
            note(follower, event);
        feed_follow_finish(stream, &follower->outcome);
    }
}

static void *
follow(void *with)
{
    struct follower *follower = with;
    const struct idem_channel_options options = {.connect_backoff_ms = 10};
    const struct idem_clock *clock = idem_clock_system();
    struct idem_channel *channel;
    struct idem_error err;

    follower->told.began_ns = clock->monotonic_ns(clock);
    if (idem_client_open(&channel, follower->target, &options, &err) ==
        IDEM_OK) {
        read_all(follower, channel);
        idem_channel_close(channel);
    }
    follower->told.ended_ns = clock->monotonic_ns(clock);
    atomic_store(&follower->over, true);
    return NULL;
}

static void
start(struct follower *follower)
{
    assert_int_equal(pthread_create(&follower->thread, NULL, follow, follower),
                     0);
}

/* The end of a stream that fails is its messages' and not its effect's: no
 * final no of the key. */
static void
tell(const struct site *site, struct follower *follower)
{
    struct checker_call *told = &follower->told;

    if (follower->wanted != IDEM_OK)
        return;
    told->key = follower->key;
    told->status = follower->outcome.status;
    told->effect = follower->outcome.effect;
    told->final = follower->outcome.final;
    told->reason = follower->outcome.reason;
    told->reply = strtoull(follower->kept, NULL, 16);
    checker_key(site->checker, follower->key,
                follower->marked ? CHECKER_RUN_AGAIN : CHECKER_RUN_ONCE,
                INT64_MAX);
    checker_call(site->checker, told);
}

static void
await(const struct site *site, struct follower *follower)
{
    pthread_join(follower->thread, NULL);
    if (follower->outcome.status != follower->wanted)
        print_error("%s, after %u events\n", follower->outcome.message,
                    follower->read);
    assert_int_equal(follower->outcome.status, follower->wanted);
    assert_int_equal(follower->read, COUNT);
    assert_false(follower->out_of_order);
    tell(site, follower);
}

/* After all of them, for their records and effects are those of all. */
static void
the_rules_of_exactly_once_hold(void **state)
{
    const struct site *site = *state;
    char effects[160];

    if (site->postgres)
        checker_read_postgres(site->checker, postgres_conninfo(site->postgres),
                              FEED_KEYS);
    else
        checker_read_sqlite(site->checker, site->books, FEED_KEYS);
    tempdir_file(&site->dir, "effects", effects, sizeof effects);
    checker_read_log(site->checker, effects);
    assert_int_equal(checker_run(site->checker, LEASE_MS, checker_print, NULL),
                     0);
}

static bool
is_dead_or_over(void *with)
{
    void **both = with;
    const struct site *site = both[0];
    const struct follower *follower = both[1];

    return atomic_load(&follower->over) || !child_alive(site->servers[0]);
}

/* Start the server again whenever it has died, until the stream is over. How
 * often. */
static unsigned
keep_serving(struct site *site, struct follower *follower)
{
    void *both[] = {site, follower};
    unsigned deaths = 0;

    for (;;) {
        assert_true(child_wait_until(is_dead_or_over, both, CALL_MS));
        if (atomic_load(&follower->over))
            return deaths;
        deaths++;
        serve(site, 0);
    }
}

/* --- Killed --- */

/* The server dies where it is told to, so many times. */
static void
survive(struct site *site, struct follower *follower, const char *const *whens,
        unsigned n)
{
    unsigned deaths;

    for (unsigned i = 0; i < n; i++)
        tell_to_die(site, whens[i]);
    follower->target = site->address[0];
    start(follower);
    deaths = keep_serving(site, follower);
    await(site, follower);
    assert_int_equal(deaths, n);
    assert_int_equal(follower->outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_true(follower->outcome.attempts > deaths);
}

static void
kill_9_costs_no_message_and_doubles_none(void **state)
{
    static const char *const whens[] = {"1", "57", "58", "end"};
    struct follower follower = {.key = "killed"};

    survive(*state, &follower, whens, 4);
    assert_int_equal(rows_of(*state, "killed"), 1);
}

static void
the_end_is_the_same_also_when_it_is_a_failure(void **state)
{
    static const char *const whens[] = {"end"};
    struct follower follower = {.key = "failed", .wanted = IDEM_OUT_OF_RANGE};

    survive(*state, &follower, whens, 1);
    assert_string_equal(follower.outcome.message, "as it was asked to");
    assert_int_equal(rows_of(*state, "failed"), 1);
}

static void
with_marks_it_goes_on_where_it_was(void **state)
{
    static const char *const whens[] = {"57", "200"};
    struct follower follower = {.key = "marked", .marked = true};

    survive(*state, &follower, whens, 2);
    assert_int_equal(lines_of(*state, "effects"), 1);
    assert_true(follower.last_from > 58);
}

/* The first server sends its messages as they are, the others compressed. */
static void
compressed_it_goes_on_where_it_was(void **state)
{
    static const char *const whens[] = {"57", "58", "200"};
    struct follower plain = {.key = "compressed"};
    struct follower marked = {.key = "compressed-and-marked", .marked = true};

    put_file(*state, "compress");
    survive(*state, &plain, whens, 3);
    survive(*state, &marked, whens, 3);
    assert_int_equal(rows_of(*state, "compressed"), 1);
    assert_true(marked.last_from > 58);
}

/* --- Two servers --- */

static void
two_servers_make_one_effect(void **state)
{
    struct site *site = *state;
    struct follower followers[4] = {{0}};

    if (!site->postgres)
        skip();
    serve(site, 1);
    for (unsigned i = 0; i < 4; i++) {
        followers[i].key = "both";
        followers[i].target = site->address[i % 2];
        start(&followers[i]);
    }
    for (unsigned i = 0; i < 4; i++) {
        await(site, &followers[i]);
        assert_string_equal(followers[i].kept, followers[0].kept);
    }
    assert_int_equal(rows_of(site, "both"), 1);
}

/* --- Cut --- */

static void
cut_at_some(struct follower *follower)
{
    if (follower->read == 20 || follower->read == 130)
        tcp_proxy_break(follower->with);
}

static void
a_connection_that_is_cut_is_made_again(void **state)
{
    struct site *site = *state;
    unsigned port =
        (unsigned)strtoul(strrchr(site->address[0], ':') + 1, NULL, 10);
    struct tcp_proxy *proxy = tcp_proxy_start(port);
    char target[64];
    struct follower follower = {
        .key = "cut", .target = target, .at = cut_at_some, .with = proxy};

    snprintf(target, sizeof target, "tcp://127.0.0.1:%u",
             tcp_proxy_port(proxy));
    start(&follower);
    await(site, &follower);
    assert_int_equal(rows_of(site, "cut"), 1);
    tcp_proxy_free(proxy);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kill_9_costs_no_message_and_doubles_none),
        cmocka_unit_test(the_end_is_the_same_also_when_it_is_a_failure),
        cmocka_unit_test(with_marks_it_goes_on_where_it_was),
        cmocka_unit_test(two_servers_make_one_effect),
        cmocka_unit_test(a_connection_that_is_cut_is_made_again),
        cmocka_unit_test(compressed_it_goes_on_where_it_was),
        cmocka_unit_test(the_rules_of_exactly_once_hold),
    };

    on_postgres = argc > 1 && strcmp(argv[1], "postgres") == 0;
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
