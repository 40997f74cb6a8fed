/* Streams whose messages take effect once each: kill -9 of the server at every
 * step that a message comes to, two servers of which one always dies, a
 * connection that is cut again and again. Each entry has one effect, in order.
 *
 *    test_stream_each sqlite|postgres die|cut [long]
 *
 * long: at each step, also of those that are elsewhere or answered. */
#include "journal_writer.h"

#include "child.h"
#include "points.h"

#include <idem/stream.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUTS 100
#define STEPS_SHORT 4 /* of so many, the first is where a server dies */

static bool on_postgres;
static bool lasts; /* the long form */

static int
up(void **state)
{
    return on_postgres ? journal_site_on_postgres(state)
                       : journal_site_on_sqlite(state);
}

/* --- kill -9 at every step --- */

/* The steps are not listed here: a first stream writes down those that it
 * comes to. */
static void
find_points(struct journal_site *site, enum journal_kind kind,
            struct points *points)
{
    struct journal_writer writer = {
        .kind = kind, .target = site->address[0], .count = JOURNAL_COUNT};

    journal_site_serve(site, 0, "IDEM_FAULT_LOG", site->points);
    journal_writer_start(&writer);
    pthread_join(writer.thread, NULL);
    child_stop(site->servers[0], SIGKILL);
    assert_journal_written(site, &writer);
    points_read(points, site->points);
}

static bool
is_dead_or_over(void *with)
{
    void **both = with;
    const struct journal_site *site = both[0];
    const struct journal_writer *writer = both[1];

    return atomic_load(&writer->over) || !child_alive(site->servers[0]);
}

/* In the middle: the time that it is reached for a message that has as many
 * before as behind it. */
static void
crash_at(struct journal_site *site, enum journal_kind kind, const char *point,
         unsigned time)
{
    struct journal_writer writer = {
        .kind = kind, .target = site->address[0], .count = JOURNAL_COUNT};
    void *both[] = {site, &writer};
    char plan[POINT_SIZE + 32];

    snprintf(plan, sizeof plan, "%s:%u:kill", point, time);
    journal_site_serve(site, 0, "IDEM_FAULT", plan);
    journal_writer_start(&writer);
    assert_true(child_wait_until(is_dead_or_over, both, JOURNAL_CALL_MS));
    if (atomic_load(&writer.over))
        fail_msg("%s: the server lives", plan);
    journal_site_serve(site, 0, NULL, NULL);
    pthread_join(writer.thread, NULL);
    child_stop(site->servers[0], SIGKILL);
    print_message("at %s: %u attempts, %s\n", plan, writer.outcome.attempts,
                  writer.outcome.message);
    assert_journal_written(site, &writer);
    if (time > 1) /* else it may have died before it was called */
        assert_true(writer.outcome.attempts >= 2);
}

static void
survive_steps(struct journal_site *site, enum journal_kind kind, unsigned every)
{
    struct points points;

    find_points(site, kind, &points);
    for (unsigned i = 0; i < points.n; i += every)
        crash_at(site, kind, points.name[i], 1 + points.times[i] / 2);
    journal_site_check(site);
}

static void
each_entry_is_once_wherever_its_server_dies(void **state)
{
    survive_steps(*state, JOURNAL_WRITE, 1);
}

static void
so_it_is_elsewhere_by_its_key(void **state)
{
    survive_steps(*state, JOURNAL_PUSH, lasts ? 1 : STEPS_SHORT);
}

static void
so_it_is_with_its_answer(void **state)
{
    survive_steps(*state, JOURNAL_ASK, lasts ? 1 : STEPS_SHORT);
}

/* --- Two servers --- */

/* The one that is not killed goes on; it is the other one's turn next. */
static void
two_servers_of_which_one_dies_make_each_effect_once(void **state)
{
    struct journal_site *site = *state;
    char target[160];
    struct journal_writer writers[] = {
        {.kind = JOURNAL_WRITE, .target = target, .count = JOURNAL_COUNT},
        {.kind = JOURNAL_ASK, .target = target, .count = JOURNAL_COUNT},
    };

    if (!site->postgres)
        skip();
    snprintf(target, sizeof target, "list://%s,%s",
             strstr(site->address[0], "127"), strstr(site->address[1], "127"));
    journal_site_serve(site, 0, NULL, NULL);
    journal_site_serve(site, 1, NULL, NULL);
    for (unsigned i = 0; i < 2; i++)
        journal_writer_start(&writers[i]);
    for (unsigned i = 0;
         !atomic_load(&writers[0].over) || !atomic_load(&writers[1].over);
         i = !i) {
        child_stop(site->servers[i], SIGKILL);
        journal_site_serve(site, i, NULL, NULL);
    }
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(writers[i].thread, NULL);
        assert_journal_written(site, &writers[i]);
    }
    journal_site_check(site);
}

/* --- Cut --- */

static bool
got_on(void *with)
{
    const struct journal_writer *writer = with;

    return idem_stream_watermark(writer->stream) > writer->cut_at;
}

/* At random, whenever something took effect since the last time: as often as it
 * is to be, and for as many entries as that takes. */
static void
cut_at_random(struct journal_writer *writer, int64_t written)
{
    if (writer->cuts == CUTS || rand() % 2)
        return;
    if (!child_wait_until(got_on, writer, JOURNAL_CALL_MS))
        return; /* the stream has ended, which its outcome says */
    writer->cut_at = idem_stream_watermark(writer->stream);
    tcp_proxy_break(writer->proxy);
    writer->cuts++;
    if (written + CUTS > writer->count)
        writer->count++;
}

static void
write_over_cuts(struct journal_site *site, enum journal_kind kind)
{
    unsigned port =
        (unsigned)strtoul(strrchr(site->address[0], ':') + 1, NULL, 10);
    struct tcp_proxy *proxy = tcp_proxy_start(port);
    char target[64];
    struct journal_writer writer = {.kind = kind,
                                    .target = target,
                                    .count = JOURNAL_COUNT,
                                    .at = cut_at_random,
                                    .proxy = proxy};

    snprintf(target, sizeof target, "tcp://127.0.0.1:%u",
             tcp_proxy_port(proxy));
    journal_site_serve(site, 0, NULL, NULL);
    journal_writer_start(&writer);
    pthread_join(writer.thread, NULL);
    print_message("%lld entries, %u cuts, %u attempts\n",
                  (long long)writer.count, writer.cuts,
                  writer.outcome.attempts);
    assert_journal_written(site, &writer);
    assert_int_equal(writer.cuts, CUTS);
    tcp_proxy_free(proxy);
}

static void
a_connection_that_is_cut_a_hundred_times_costs_nothing(void **state)
{
    struct journal_site *site = *state;

    write_over_cuts(site, JOURNAL_WRITE);
    child_stop(site->servers[0], SIGKILL);
    write_over_cuts(site, JOURNAL_ASK);
    journal_site_check(site);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, journal_site_down)

int
main(int argc, char **argv)
{
    const struct CMUnitTest die[] = {
        TEST(each_entry_is_once_wherever_its_server_dies),
        TEST(so_it_is_elsewhere_by_its_key),
        TEST(so_it_is_with_its_answer),
    };
    const struct CMUnitTest cut[] = {
        TEST(two_servers_of_which_one_dies_make_each_effect_once),
        TEST(a_connection_that_is_cut_a_hundred_times_costs_nothing),
    };

    IDEM_ASSERT(argc >= 3);
    on_postgres = strcmp(argv[1], "postgres") == 0;
    lasts = argc > 3 && strcmp(argv[3], "long") == 0;
    if (strcmp(argv[2], "die") == 0)
        return cmocka_run_group_tests(die, NULL, NULL);
    return cmocka_run_group_tests(cut, NULL, NULL);
}
