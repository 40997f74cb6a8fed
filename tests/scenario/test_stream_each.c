/* Streams whose messages take effect once each: kill -9 of the server at every
 * step that a message comes to, two servers of which one always dies, a
 * connection that is cut again and again. Each entry has one effect, in order.
 *
 *    test_stream_each sqlite|postgres [long]    at each step, also of others */
#include "support.h"

#include "books.h"
#include "child.h"
#include "journal.h"
#include "loopback.h"
#include "points.h"
#include "postgres.h"
#include "redis.h"
#include "tcp_proxy.h"
#include "tempdir.h"

#include <idem/key.h>
#include <idem/postgres.h>
#include <idem/standard.h>

#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 200
#define CUTS 100
#define CALL_MS 60000
#define STEPS_SHORT 4 /* of so many, the first is where a server dies */

static bool on_postgres;
static bool lasts; /* the long form */

struct site {
    struct tempdir dir;
    char books[160], pushes[160], points[160], log[2][160], address[2][64];
    struct postgres *postgres; /* NULL: sqlite */
    struct redis *redis;
    pid_t servers[2];
};

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s", err->message);
}

/* --- The site --- */

/* One with a fault may die before it listens. */
static void
serve(struct site *site, unsigned i, const char *variable, const char *value)
{
    const struct child_options options = {.log = site->log[i]};
    const char *words[] = {JOURNAL_SERVER,
                           site->address[i],
                           site->pushes,
                           "sqlite",
                           site->books,
                           NULL,
                           NULL};

    if (site->postgres) {
        words[3] = "postgres";
        words[4] = postgres_conninfo(site->postgres);
        words[5] = redis_url(site->redis);
    }
    if (variable)
        setenv(variable, value, 1);
    site->servers[i] = child_serve(&options, words);
    if (variable)
        unsetenv(variable);
    if (!variable && site->servers[i] == 0) {
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
    tempdir_file(&site->dir, "books", site->books, sizeof site->books);
    tempdir_file(&site->dir, "pushes", site->pushes, sizeof site->pushes);
    tempdir_file(&site->dir, "points", site->points, sizeof site->points);
    tempdir_file(&site->dir, "log0", site->log[0], sizeof site->log[0]);
    tempdir_file(&site->dir, "log1", site->log[1], sizeof site->log[1]);
    for (unsigned i = 0; i < 2; i++)
        snprintf(site->address[i], sizeof site->address[i],
                 "tcp://127.0.0.1:%u", loopback_free_port());
    if (on_postgres) {
        site->postgres = postgres_start(NULL);
        site->redis = redis_start(NULL);
        must(idem_postgres_migrate(postgres_conninfo(site->postgres), NULL,
                                   &err),
             &err);
        postgres_sql(site->postgres, JOURNAL_SCHEMA_POSTGRES);
    }
    *state = site;
    return 0;
}

static int
tear_down(void **state)
{
    struct site *site = *state;

    for (unsigned i = 0; i < 2; i++)
        child_stop(site->servers[i], SIGKILL);
    redis_free(site->redis);
    postgres_free(site->postgres);
    tempdir_close(&site->dir);
    free(site);
    return 0;
}

/* --- What is in the books --- */

static int64_t IDEM_PRINTF(2, 3)
    ask(const struct site *site, const char *format, ...)
{
    char sql[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    return site->postgres ? postgres_sql(site->postgres, "%s", sql)
                          : books_ask(site->books, sql);
}

/* 1 to n have a row each, in order, and the end's is behind them. */
static void
assert_rows(const struct site *site, const char *session, int64_t n, bool ended)
{
    assert_int_equal(
        ask(site, "SELECT count(*) FROM journal WHERE session = '%s'", session),
        n + ended);
    assert_int_equal(ask(site,
                         "SELECT count(DISTINCT number) FROM journal WHERE "
                         "session = '%s' AND number BETWEEN 1 AND %lld",
                         session, (long long)n),
                     n);
    assert_int_equal(
        ask(site,
            "SELECT count(*) FROM journal a JOIN journal b ON a.session = "
            "b.session AND a.id < b.id AND (a.number > b.number AND b.number "
            "> 0 OR a.number = 0) WHERE a.session = '%s'",
            session),
        0);
}

/* In a file of another system: 1 to n, in order; a number that was begun when
 * its server died is there twice, with the same key. */
static void
assert_lines(const struct site *site, const char *session, int64_t n)
{
    FILE *file = fopen(site->pushes, "r");
    char key[IDEM_KEY_MAX + 1], of[IDEM_SESSION_MAX];
    int64_t last = 0, number, sequence;
    long long read;
    bool ended = false;

    assert_non_null(file);
    while (fscanf(file, "%lld %255s", &read, key) == 2) {
        assert_true(idem_session_split(idem_bytes_of(key), of, &sequence));
        if (strcmp(of, session) != 0)
            continue;
        number = read ? read : n + 1;
        assert_int_equal(sequence, number);
        assert_true(number == last || number == last + 1);
        last = number;
        ended = read == 0;
    }
    fclose(file);
    assert_true(ended);
}

/* --- Who writes --- */

enum kind { WRITE, PUSH, ASK };

struct writer {
    enum kind kind;
    const char *target;
    int64_t count;
    void (*at)(struct writer *writer, int64_t written); /* after each */
    struct tcp_proxy *proxy;
    int64_t cut_at; /* the watermark of the last cut */
    unsigned cuts;

    pthread_t thread, reader;
    void *stream;
    int64_t read;
    bool strange; /* an answer was not the next */
    char words[COUNT][32];
    int64_t entries;
    struct idem_outcome outcome;
    atomic_bool over;
};

static const journal_entry *
entry_of(int64_t number)
{
    static _Thread_local journal_entry entry;

    entry = (journal_entry)JOURNAL_ENTRY_INIT;
    entry.number = number;
    return &entry;
}

static void *
read_answers(void *with)
{
    struct writer *writer = with;
    const journal_answer *answer;

    while ((answer = journal_ask_next(writer->stream))) {
        writer->strange |= answer->number != ++writer->read;
        if (writer->read <= COUNT)
            snprintf(writer->words[writer->read - 1], sizeof writer->words[0],
                     "%s", answer->word);
    }
    return NULL;
}

static void
write_all(struct writer *writer,
          enum idem_status (*write)(struct idem_stream *stream,
                                    const struct ProtobufCMessage *message))
{
    for (int64_t i = 1; i <= writer->count; i++) {
        if (write(writer->stream, &entry_of(i)->base) != IDEM_OK)
            return;
        if (writer->at)
            writer->at(writer, i);
    }
}

static void
talk(struct writer *writer, struct idem_channel *channel)
{
    static const struct idem_method *const methods[] = {
        &journal_write_method, &journal_push_method, &journal_ask_method};
    const struct idem_call_options options = {.timeout_ms = CALL_MS,
                                              .wait_for_ready = true};
    struct ProtobufCMessage *reply = NULL;

    writer->stream =
        idem_stream_open(channel, methods[writer->kind], NULL, &options);
    if (writer->kind == ASK)
        pthread_create(&writer->reader, NULL, read_answers, writer);
    write_all(writer, idem_stream_write);
    if (writer->kind == ASK) {
        idem_stream_end(writer->stream);
        pthread_join(writer->reader, NULL);
        idem_stream_finish(writer->stream, NULL, &writer->outcome);
    } else if (idem_stream_finish(writer->stream, &reply, &writer->outcome) ==
               IDEM_OK) {
        writer->entries = ((journal_receipt *)reply)->entries;
        journal_receipt_free((journal_receipt *)reply);
    }
}

static void *
run(void *with)
{
    struct writer *writer = with;
    const struct idem_channel_options options = {.connect_backoff_ms = 10};
    struct idem_channel *channel;
    struct idem_error err;

    if (idem_client_open(&channel, writer->target, &options, &err) == IDEM_OK) {
        talk(writer, channel);
        idem_channel_close(channel);
    }
    atomic_store(&writer->over, true);
    return NULL;
}

static void
start(struct writer *writer)
{
    assert_int_equal(pthread_create(&writer->thread, NULL, run, writer), 0);
}

static const char *
session_of(const struct writer *writer)
{
    static char session[IDEM_SESSION_MAX];
    int64_t number;

    assert_true(idem_session_split(idem_bytes_of(writer->outcome.key), session,
                                   &number));
    assert_int_equal(number, writer->count + 1);
    return session;
}

static void
assert_answers(const struct site *site, const struct writer *writer,
               const char *session)
{
    assert_int_equal(writer->read, writer->count);
    assert_false(writer->strange);
    for (int64_t i = 0; i < writer->count && i < COUNT; i += 10)
        assert_int_equal(ask(site,
                             "SELECT count(*) FROM journal WHERE session = "
                             "'%s' AND number = %lld AND word = '%s'",
                             session, (long long)i + 1, writer->words[i]),
                         1);
}

static void
assert_written(const struct site *site, const struct writer *writer)
{
    const char *session;

    if (writer->outcome.status != IDEM_OK)
        fail_msg("%s after %lld, %u attempts: %s",
                 idem_status_name(writer->outcome.status),
                 (long long)writer->outcome.watermark, writer->outcome.attempts,
                 writer->outcome.message);
    assert_int_equal(writer->outcome.watermark, writer->count);
    session = session_of(writer);
    if (writer->kind == PUSH) {
        assert_lines(site, session, writer->count);
        return;
    }
    assert_rows(site, session, writer->count, writer->kind == WRITE);
    if (writer->kind == ASK)
        assert_answers(site, writer, session);
    else
        assert_int_equal(writer->entries, writer->count);
}

/* --- kill -9 at every step --- */

/* The steps are not listed here: a first stream writes down those that it
 * comes to. */
static void
find_points(struct site *site, enum kind kind, struct points *points)
{
    struct writer writer = {
        .kind = kind, .target = site->address[0], .count = COUNT};

    serve(site, 0, "IDEM_FAULT_LOG", site->points);
    start(&writer);
    pthread_join(writer.thread, NULL);
    child_stop(site->servers[0], SIGKILL);
    assert_written(site, &writer);
    points_read(points, site->points);
}

static bool
is_dead_or_over(void *with)
{
    void **both = with;
    const struct site *site = both[0];
    const struct writer *writer = both[1];

    return atomic_load(&writer->over) || !child_alive(site->servers[0]);
}

/* In the middle: the time that it is reached for a message that has as many
 * before as behind it. */
static void
crash_at(struct site *site, enum kind kind, const char *point, unsigned time)
{
    struct writer writer = {
        .kind = kind, .target = site->address[0], .count = COUNT};
    void *both[] = {site, &writer};
    char plan[POINT_SIZE + 32];

    snprintf(plan, sizeof plan, "%s:%u:kill", point, time);
    serve(site, 0, "IDEM_FAULT", plan);
    start(&writer);
    assert_true(child_wait_until(is_dead_or_over, both, CALL_MS));
    if (atomic_load(&writer.over))
        fail_msg("%s: the server lives", plan);
    serve(site, 0, NULL, NULL);
    pthread_join(writer.thread, NULL);
    child_stop(site->servers[0], SIGKILL);
    print_message("at %s: %u attempts, %s\n", plan, writer.outcome.attempts,
                  writer.outcome.message);
    assert_written(site, &writer);
    if (time > 1) /* else it may have died before it was called */
        assert_true(writer.outcome.attempts >= 2);
}

static void
survive_steps(struct site *site, enum kind kind, unsigned every)
{
    struct points points;

    find_points(site, kind, &points);
    for (unsigned i = 0; i < points.n; i += every)
        crash_at(site, kind, points.name[i], 1 + points.times[i] / 2);
}

static void
each_entry_is_once_wherever_its_server_dies(void **state)
{
    survive_steps(*state, WRITE, 1);
}

static void
so_it_is_elsewhere_by_its_key(void **state)
{
    survive_steps(*state, PUSH, lasts ? 1 : STEPS_SHORT);
}

static void
so_it_is_with_its_answer(void **state)
{
    survive_steps(*state, ASK, lasts ? 1 : STEPS_SHORT);
}

/* --- Two servers --- */

/* The one that is not killed goes on; it is the other one's turn next. */
static void
two_servers_of_which_one_dies_make_each_effect_once(void **state)
{
    struct site *site = *state;
    char target[160];
    struct writer writers[] = {
        {.kind = WRITE, .target = target, .count = COUNT},
        {.kind = ASK, .target = target, .count = COUNT},
    };

    if (!site->postgres)
        skip();
    snprintf(target, sizeof target, "list://%s,%s",
             strstr(site->address[0], "127"), strstr(site->address[1], "127"));
    serve(site, 0, NULL, NULL);
    serve(site, 1, NULL, NULL);
    for (unsigned i = 0; i < 2; i++)
        start(&writers[i]);
    for (unsigned i = 0;
         !atomic_load(&writers[0].over) || !atomic_load(&writers[1].over);
         i = !i) {
        child_stop(site->servers[i], SIGKILL);
        serve(site, i, NULL, NULL);
    }
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(writers[i].thread, NULL);
        assert_written(site, &writers[i]);
    }
}

/* --- Cut --- */

static bool
got_on(void *with)
{
    const struct writer *writer = with;

    return idem_stream_watermark(writer->stream) > writer->cut_at;
}

/* At random, whenever something took effect since the last time: as often as it
 * is to be, and for as many entries as that takes. */
static void
cut_at_random(struct writer *writer, int64_t written)
{
    if (writer->cuts == CUTS || rand() % 2)
        return;
    if (!child_wait_until(got_on, writer, CALL_MS))
        return; /* the stream has ended, which its outcome says */
    writer->cut_at = idem_stream_watermark(writer->stream);
    tcp_proxy_break(writer->proxy);
    writer->cuts++;
    if (written + CUTS > writer->count)
        writer->count++;
}

static void
write_over_cuts(struct site *site, enum kind kind)
{
    unsigned port =
        (unsigned)strtoul(strrchr(site->address[0], ':') + 1, NULL, 10);
    struct tcp_proxy *proxy = tcp_proxy_start(port);
    char target[64];
    struct writer writer = {.kind = kind,
                            .target = target,
                            .count = COUNT,
                            .at = cut_at_random,
                            .proxy = proxy};

    snprintf(target, sizeof target, "tcp://127.0.0.1:%u",
             tcp_proxy_port(proxy));
    serve(site, 0, NULL, NULL);
    start(&writer);
    pthread_join(writer.thread, NULL);
    print_message("%lld entries, %u cuts, %u attempts\n",
                  (long long)writer.count, writer.cuts,
                  writer.outcome.attempts);
    assert_written(site, &writer);
    assert_int_equal(writer.cuts, CUTS);
    tcp_proxy_free(proxy);
}

static void
a_connection_that_is_cut_a_hundred_times_costs_nothing(void **state)
{
    write_over_cuts(*state, WRITE);
    child_stop(((struct site *)*state)->servers[0], SIGKILL);
    write_over_cuts(*state, ASK);
}

int
main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(each_entry_is_once_wherever_its_server_dies),
        TEST(so_it_is_elsewhere_by_its_key),
        TEST(so_it_is_with_its_answer),
        TEST(two_servers_of_which_one_dies_make_each_effect_once),
        TEST(a_connection_that_is_cut_a_hundred_times_costs_nothing),
    };

    lasts = argc > 2 && strcmp(argv[2], "long") == 0;
    on_postgres = argc > 1 && strcmp(argv[1], "postgres") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
