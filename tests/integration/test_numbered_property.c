/* Streams whose messages take effect once each, against a model: processes that
 * die anywhere and go on from anywhere behind it, connections that are cut,
 * handlers that fail, several streams at once. However it went, each entry has
 * one row, in order, and one answer for good.
 *
 *    test_numbered_property [SESSIONS [SEED]]  of each thread */
#include "journal_world.h"

#include "tcp_proxy.h"

#include <idem/key.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS 4
#define COUNT_MAX 40
#define BEHIND_MAX                                                             \
    5 /* entries that are written and whose answers are unread                 \
       */

static struct journal_world world;
static struct tcp_proxy *proxy;
static struct idem_channel *channel;
static unsigned sessions = 3;
static unsigned seed;

/* What must be so of a session, whatever happens. */
struct model {
    char session[IDEM_SESSION_MAX];
    int64_t count;                 /* entries that it is to have */
    int64_t watermark;             /* that was told last, to any process */
    char words[COUNT_MAX + 1][32]; /* the answers that were seen */
    bool ended;
};

struct writer {
    pthread_t thread;
    unsigned seed;
    bool asks;
    struct model model;
    unsigned processes, cut, failed, cancelled;
};

/* cmocka's asserts are for the main thread. */
static void
must(bool so, const char *what, const struct model *model)
{
    if (so)
        return;
    fprintf(stderr, "seed %u: %s, at %lld of %lld of %s\n", seed, what,
            (long long)model->watermark, (long long)model->count,
            model->session);
    abort();
}

static unsigned
below(struct writer *writer, unsigned n)
{
    return (unsigned)rand_r(&writer->seed) % n;
}

static void
do_harm(struct writer *writer)
{
    switch (below(writer, 12)) {
    case 0:
        tcp_proxy_break(proxy);
        writer->cut++;
        break;
    case 1:
        journal_fail(&world.journal, 1 + below(writer, 3), IDEM_UNAVAILABLE);
        writer->failed++;
        break;
    default:
        break;
    }
}

static void
note_answer(struct model *model, int64_t number, const journal_answer *answer)
{
    char *word = model->words[number];

    must(answer->number == number, "another answer than the next", model);
    if (!*word)
        snprintf(word, sizeof model->words[0], "%s", answer->word);
    must(strcmp(word, answer->word) == 0, "two answers to one entry", model);
}

/* True: the process lives on. */
static bool
write_one(struct writer *writer, struct idem_stream *stream, int64_t number)
{
    if (idem_stream_write(stream, &journal_entry_of(number)->base) != IDEM_OK)
        return false;
    do_harm(writer);
    if (below(writer, 25) > 0)
        return true;
    idem_stream_cancel(stream);
    writer->cancelled++;
    return false;
}

/* False: no more comes. */
static bool
read_one(struct writer *writer, struct idem_stream *stream, int64_t number)
{
    const struct ProtobufCMessage *message = idem_stream_next(stream);

    if (message)
        note_answer(&writer->model, number, (const journal_answer *)message);
    return message;
}

static void
talk(struct writer *writer, struct idem_stream *stream, int64_t first)
{
    const struct model *model = &writer->model;
    int64_t written = first - 1, read = first - 1;
    bool lives = true;

    while (lives && written < model->count) {
        lives = write_one(writer, stream, ++written);
        while (lives && writer->asks &&
               (written - read > BEHIND_MAX || below(writer, 2)) &&
               read < written)
            lives = read_one(writer, stream, ++read);
    }
    if (!writer->asks)
        return;
    idem_stream_end(stream);
    while (read_one(writer, stream, ++read))
        ;
}

static void
note_end(struct model *model, int64_t first, const struct idem_outcome *outcome)
{
    must(outcome->status == IDEM_OK || outcome->status == IDEM_UNAVAILABLE ||
             outcome->status == IDEM_CANCELLED,
         outcome->message, model);
    must(outcome->watermark <= model->count, "more than was written", model);
    must(outcome->watermark >= first - 1, "less than took effect", model);
    if (outcome->watermark > model->watermark)
        model->watermark = outcome->watermark;
    model->ended =
        outcome->status == IDEM_OK && outcome->watermark == model->count;
    must(model->ended || outcome->status != IDEM_OK, "an end before the last",
         model);
}

/* From anywhere that took effect, or the first that did not. */
static void
run_process(struct writer *writer)
{
    struct model *model = &writer->model;
    int64_t first = 1 + below(writer, (unsigned)model->watermark + 1);
    char key[IDEM_KEY_MAX + 1];
    const struct idem_call_options options = {
        .key = key, .timeout_ms = 60000, .wait_for_ready = true};
    struct idem_stream *stream;
    struct idem_outcome outcome;

    idem_key_of_session(key, model->session, first);
    stream = idem_stream_open(
        channel, writer->asks ? &journal_ask_method : &journal_write_method,
        NULL, &options);
    talk(writer, stream, first);
    idem_stream_finish(stream, NULL, &outcome);
    note_end(model, first, &outcome);
    writer->processes++;
}

static void
run_session(struct writer *writer)
{
    writer->model = (struct model){.count = 1 + below(writer, COUNT_MAX)};
    idem_session_mint(writer->model.session, idem_clock_system(), 0, 600000);
    while (!writer->model.ended)
        run_process(writer);
}

static void
check_session(const struct writer *writer)
{
    char key[IDEM_KEY_MAX + 1];

    idem_key_of_session(key, writer->model.session, 1);
    assert_journal(&world, key, writer->model.count, !writer->asks);
}

static void *
run(void *with)
{
    struct writer *writer = with;

    run_session(writer);
    return NULL;
}

static void
whatever_happens_each_entry_is_once_and_in_order(void **state)
{
    struct writer writers[THREADS] = {{0}};

    (void)state;
    for (unsigned round = 0; round < sessions; round++) {
        for (unsigned i = 0; i < THREADS; i++) {
            writers[i].seed = seed + round * THREADS + i;
            writers[i].asks = i % 2;
            assert_int_equal(
                pthread_create(&writers[i].thread, NULL, run, &writers[i]), 0);
        }
        for (unsigned i = 0; i < THREADS; i++)
            pthread_join(writers[i].thread, NULL);
        journal_fail(&world.journal, 0, IDEM_OK);
        for (unsigned i = 0; i < THREADS; i++)
            check_session(&writers[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        print_message("%u processes, %u cuts, %u failures, %u cancels\n",
                      writers[i].processes, writers[i].cut, writers[i].failed,
                      writers[i].cancelled);
}

static int
up(void **state)
{
    const struct journal_world_options options = {.postgres = false};
    const struct idem_channel_options client = {.connect_backoff_ms = 5};
    char target[64];
    struct idem_error err;

    (void)state;
    journal_world_open(&world, &options);
    proxy = tcp_proxy_start(
        (unsigned)strtoul(strrchr(world.address, ':') + 1, NULL, 10));
    snprintf(target, sizeof target, "tcp://127.0.0.1:%u",
             tcp_proxy_port(proxy));
    assert_int_equal(idem_client_open(&channel, target, &client, &err),
                     IDEM_OK);
    return 0;
}

static int
down(void **state)
{
    (void)state;
    idem_channel_close(channel);
    tcp_proxy_free(proxy);
    journal_world_close(&world);
    return 0;
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_happens_each_entry_is_once_and_in_order),
    };

    sessions = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : sessions;
    seed =
        argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    return cmocka_run_group_tests(tests, up, down);
}
