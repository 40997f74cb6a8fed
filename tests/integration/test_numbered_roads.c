/* Streams whose messages take effect once each, on the roads beside the usual
 * one: connections that get old, a server that goes away, a Redis that lies, a
 * limit, a handler as client. */
#include "journal_world.h"

#include "fake_redis.h"

#include <idem/key.h>
#include <idem/limit.h>
#include <idem/reason.h>
#include <idem/shield.h>
#include <idem/sqlite.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define COUNT 100

static struct journal_world world;

static void
open_world(const struct journal_world_options *options)
{
    journal_world_open(&world, options);
}

static struct idem_outcome
write_entries(const char *key, int64_t from, int64_t to)
{
    const struct idem_call_options options = {
        .key = key, .timeout_ms = 60000, .wait_for_ready = true};
    struct journal_write_stream *stream =
        journal_write_open(world.channel, &options);
    struct idem_outcome outcome;

    for (int64_t i = from; i <= to; i++)
        if (journal_write_write(stream, journal_entry_of(i)) != IDEM_OK)
            break;
    journal_write_finish(stream, NULL, &outcome);
    return outcome;
}

static void
assert_whole(const struct idem_outcome *outcome, int64_t n)
{
    if (outcome->status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(outcome->status), outcome->message);
    assert_int_equal(outcome->watermark, n);
    assert_journal(&world, outcome->key, n, true);
}

/* GOAWAY after so short a time that a stream meets several. */
static void
a_stream_goes_on_over_connections_that_get_old(void **state)
{
    const struct journal_world_options options = {
        .server = {.max_age_ms = 60, .age_grace_ms = 10000}};
    struct idem_outcome outcome;

    (void)state;
    open_world(&options);
    outcome = write_entries(NULL, 1, 2 * COUNT);
    assert_true(outcome.attempts > 1);
    assert_whole(&outcome, 2 * COUNT);
    journal_world_close(&world);
}

/* It ends between two messages, with what was read and not begun left to the
 * next server. */
static void
a_server_that_drains_ends_the_stream_at_a_message(void **state)
{
    const struct journal_world_options options = {.postgres = false};
    const struct idem_call_options call = {.timeout_ms = 60000};
    struct journal_write_stream *stream;
    struct idem_outcome outcome;

    (void)state;
    open_world(&options);
    journal_hold(&world.journal);
    stream = journal_write_open(world.channel, &call);
    for (int64_t i = 1; i <= 20; i++)
        assert_int_equal(journal_write_write(stream, journal_entry_of(i)),
                         IDEM_OK);
    journal_await_inside(&world.journal, 1);
    idem_server_drain(world.server);
    journal_open(&world.journal);
    journal_write_finish(stream, NULL, &outcome);
    assert_int_equal(outcome.status, IDEM_UNAVAILABLE);
    assert_int_equal(outcome.watermark, 1);
    assert_journal(&world, outcome.key, 1, false);

    idem_server_free(world.server);
    world.server = journal_world_serve(&world, &options);
    idem_channel_close(world.channel);
    assert_int_equal(idem_client_open(&world.channel,
                                      idem_server_address(world.server, 0),
                                      NULL, NULL),
                     IDEM_OK);
    outcome = write_entries(outcome.key, 2, 20);
    assert_whole(&outcome, 20);
    journal_world_close(&world);
}

/* --- A Redis that lies (fault 38) --- */

static void
ask_all(const char *key, char words[][32], int64_t n)
{
    const struct idem_call_options options = {.key = key, .timeout_ms = 60000};
    struct journal_ask_stream *stream =
        journal_ask_open(world.channel, &options);
    struct idem_outcome outcome;

    for (int64_t i = 1; i <= n; i++) {
        const journal_answer *answer;

        assert_int_equal(journal_ask_write(stream, journal_entry_of(i)),
                         IDEM_OK);
        answer = journal_ask_next(stream);
        if (!answer)
            break;
        assert_int_equal(answer->number, i);
        if (*words[i - 1])
            assert_string_equal(words[i - 1], answer->word);
        snprintf(words[i - 1], sizeof words[0], "%s", answer->word);
    }
    journal_ask_finish(stream, &outcome);
    if (outcome.status != IDEM_OK)
        fail_msg("%s", outcome.message);
    assert_int_equal(outcome.watermark, n);
}

static void
a_redis_that_lies_answers_no_message(void **state)
{
    struct fake_redis *fake = fake_redis_start();
    const struct idem_redis_options redis = {
        .url = fake_redis_url(fake),
        .secret = idem_bytes_of("sixteen bytes and more"),
        .budget_ms = 5000,
        .breaker_failures = UINT32_MAX, /* lies must go on */
    };
    struct journal_world_options options = {.once = {.no_memory = true}};
    char session[IDEM_SESSION_MAX], key[IDEM_KEY_MAX + 1];
    static char words[COUNT][32];

    (void)state;
    assert_int_equal(idem_redis_new(&options.once.shield, &redis, NULL),
                     IDEM_OK);
    open_world(&options);
    idem_session_mint(session, idem_clock_system(), 0, 60000);
    idem_key_of_session(key, session, 1);
    ask_all(key, words, COUNT);
    fake_redis_lie(fake, FAKE_REDIS_ANY, 1);
    for (unsigned round = 0; round < 2; round++)
        ask_all(key, words, COUNT);
    assert_true(fake_redis_lies(fake) > 0);
    assert_int_equal(journal_runs(&world.journal), COUNT);
    assert_journal(&world, key, COUNT, false);
    journal_world_close(&world);
    fake_redis_free(fake);
}

/* --- A limit --- */

/* One message at a time of all streams: nobody waits for a permit that his own
 * stream has. */
static void
a_permit_is_a_messages_and_not_the_streams(void **state)
{
    const struct idem_limit_options limits = {.max_in_flight = 1,
                                              .max_waiting = 100};
    const struct journal_world_options options = {
        .server = {.limits = &limits}};
    struct journal_write_stream *streams[4];
    const struct idem_call_options call = {.timeout_ms = 60000};
    struct idem_outcome outcome;

    (void)state;
    open_world(&options);
    for (unsigned i = 0; i < 4; i++)
        streams[i] = journal_write_open(world.channel, &call);
    for (int64_t n = 1; n <= 20; n++)
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(
                journal_write_write(streams[i], journal_entry_of(n)), IDEM_OK);
    for (unsigned i = 0; i < 4; i++) {
        journal_write_finish(streams[i], NULL, &outcome);
        assert_whole(&outcome, 20);
    }
    journal_world_close(&world);
}

/* --- A handler as client --- */

static struct idem_channel *behind;
static atomic_uint forwards;

/* Its stream's session follows from its own key: the second run meets what the
 * first one has done. */
static enum idem_status
forward(struct idem_context *context, const journal_entry *entry,
        journal_answer *answer)
{
    struct journal_write_stream *stream = journal_write_open(behind, NULL);
    bool first = atomic_fetch_add(&forwards, 1) == 0;
    struct idem_outcome outcome;

    answer->number = entry->number;
    for (int64_t i = 1; i <= 3; i++)
        if (journal_write_write(stream, journal_entry_of(i)) != IDEM_OK)
            break;
    if (journal_write_finish(stream, NULL, &outcome) != IDEM_OK)
        return idem_context_fail(context, outcome.status, "%s",
                                 outcome.message);
    answer->word = idem_context_printf(context, "%s", outcome.key);
    if (first)
        return idem_context_fail(context, IDEM_UNAVAILABLE, "once more");
    return IDEM_OK;
}

static struct idem_server *
serve_in_front(void)
{
    static const struct journal_handlers handlers = {.ask = forward};
    char books[TEMPDIR_MAX + 32];
    const struct idem_sqlite_options sqlite = {
        .path = tempdir_file(&world.dir, "front", books, sizeof books)};
    struct idem_store *store;
    struct idem_server *server;

    assert_int_equal(idem_sqlite_open(&store, &sqlite, NULL), IDEM_OK);
    assert_int_equal(idem_server_open(&server, store, NULL, NULL, NULL),
                     IDEM_OK);
    assert_int_equal(journal_register(server, &handlers, NULL, NULL), IDEM_OK);
    assert_int_equal(idem_server_listen(server, "tcp://127.0.0.1:0", NULL),
                     IDEM_OK);
    assert_int_equal(idem_server_start(server, NULL), IDEM_OK);
    return server;
}

static void
a_handler_that_runs_again_streams_in_the_same_session(void **state)
{
    const struct journal_world_options options = {.postgres = false};
    struct idem_server *front;
    struct idem_channel *channel;
    struct journal_ask_stream *stream;
    const journal_answer *answer;
    char key[IDEM_KEY_MAX + 1];

    (void)state;
    open_world(&options);
    behind = world.channel;
    front = serve_in_front();
    assert_int_equal(
        idem_client_open(&channel, idem_server_address(front, 0), NULL, NULL),
        IDEM_OK);
    stream = journal_ask_open(channel, NULL);
    assert_int_equal(journal_ask_write(stream, journal_entry_of(1)), IDEM_OK);
    answer = journal_ask_next(stream);
    assert_non_null(answer);
    snprintf(key, sizeof key, "%s", answer->word);
    assert_int_equal(journal_ask_finish(stream, NULL), IDEM_OK);
    assert_int_equal(atomic_load(&forwards), 2);
    assert_int_equal(journal_runs(&world.journal), 3);
    assert_journal(&world, key, 3, true);
    idem_channel_close(channel);
    idem_server_free(front);
    journal_world_close(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_goes_on_over_connections_that_get_old),
        cmocka_unit_test(a_server_that_drains_ends_the_stream_at_a_message),
        cmocka_unit_test(a_redis_that_lies_answers_no_message),
        cmocka_unit_test(a_permit_is_a_messages_and_not_the_streams),
        cmocka_unit_test(a_handler_that_runs_again_streams_in_the_same_session),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
