/* What clients of the wire may not do in a stream whose messages take effect
 * once each, and what they are told, by hand. docs/wire.md, 9. */
#include "journal_peer.h"

#include <idem/key.h>
#include <idem/reason.h>
#include <idem/sqlite.h>

#include <stdio.h>
#include <string.h>

#define PEERS 8

static struct journal_world world;
static char session[IDEM_SESSION_MAX];

static int
up(void **state)
{
    const struct journal_world_options options = {.postgres = false};

    (void)state;
    journal_world_open(&world, &options);
    return 0;
}

static int
down(void **state)
{
    (void)state;
    journal_world_close(&world);
    return 0;
}

static const char *
key_of(int64_t number)
{
    static char key[IDEM_KEY_MAX + 1];

    idem_key_of_session(key, session, number);
    return key;
}

/* --- As a client --- */

static void
meet(struct wire *wire)
{
    journal_peer_meet(wire, &world, 65536, 0);
}

/* Stream 1, of entries from that number on. */
static void
open_at(struct wire *wire, int64_t first, uint64_t ack_below)
{
    const struct header_open open = {
        .method = idem_bytes_of(JOURNAL_WRITE_METHOD),
        .streams = JOURNAL_PEER_WRITES,
        .key = idem_bytes_of(key_of(first)),
        .ack_below = ack_below,
    };

    journal_peer_open(wire, 1, &open);
}

static void
send_entry(struct wire *wire, int64_t number, uint64_t ack_below, uint8_t flags)
{
    journal_peer_say(wire, 1, journal_entry_of(number), ack_below, flags);
}

static void
say_last(struct wire *wire)
{
    journal_peer_last(wire, 1);
}

static void
assert_told(struct wire *wire, enum idem_status status, const char *reason,
            const char *words)
{
    struct header_end end = wire_end(wire, 1);
    char said[IDEM_MESSAGE_MAX];

    snprintf(said, sizeof said, "%.*s", (int)end.message.size,
             (const char *)end.message.data);
    assert_int_equal(end.status, status);
    if (!strstr(said, words))
        fail_msg("\"%s\" is missing in: %s", words, said);
    assert_true(idem_bytes_equal(end.reason, idem_bytes_of(reason)));
}

static void
begin_session(void)
{
    idem_session_mint(session, idem_clock_system(), 0, 60000);
}

static void
an_open_says_what_the_method_is(void **state)
{
    static const uint32_t shapes[] = {1, 3, 7, 4};
    struct wire wire;

    (void)state;
    begin_session();
    for (unsigned i = 0; i < 4; i++) {
        const struct header_open open = {
            .method = idem_bytes_of(JOURNAL_WRITE_METHOD),
            .streams = shapes[i],
            .key = idem_bytes_of(key_of(1))};

        meet(&wire);
        wire_open_stream(&wire, 1, &open, idem_bytes_of(""));
        assert_told(&wire, IDEM_UNIMPLEMENTED, "",
                    "is a client stream with a key for each message, and the "
                    "client calls it as a");
        wire_close(&wire);
    }
}

static void
an_open_has_the_key_of_its_first_message(void **state)
{
    static const char *const keys[] = {"", "order-1"};
    static const char *const reasons[] = {IDEM_KEY_MISSING, IDEM_KEY_FORMAT};
    struct wire wire;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        const struct header_open open = {
            .method = idem_bytes_of(JOURNAL_WRITE_METHOD),
            .streams = JOURNAL_PEER_WRITES,
            .key = idem_bytes_of(keys[i])};

        meet(&wire);
        journal_peer_open(&wire, 1, &open);
        assert_told(&wire, IDEM_INVALID_ARGUMENT, reasons[i],
                    JOURNAL_WRITE_METHOD);
        wire_close(&wire);
    }
}

/* The watermark comes with WINDOW, when nothing is left to run, and with END.
 */
static void
the_watermark_is_told(void **state)
{
    struct header_window window = {0};
    struct header_end end;
    struct frame frame;
    struct wire wire;

    (void)state;
    begin_session();
    meet(&wire);
    open_at(&wire, 1, 0);
    for (int64_t i = 1; i <= 3; i++)
        send_entry(&wire, i, 0, 0);
    while (window.watermark < 3) {
        uint64_t before = window.watermark;

        wire_await(&wire, FRAME_WINDOW, &frame);
        assert_true(header_window_read(frame.header, &window));
        assert_true(window.watermark > before);
    }
    say_last(&wire);
    end = wire_end(&wire, 1);
    assert_int_equal(end.status, IDEM_OK);
    assert_int_equal(end.watermark, 3);
    wire_close(&wire);
    assert_journal(&world, key_of(1), 3, true);
}

/* The same message from many peers at once, while the first one runs. */
static void
duplicates_of_a_message_are_one_effect(void **state)
{
    unsigned before = journal_runs(&world.journal);
    struct wire wires[PEERS];

    (void)state;
    begin_session();
    journal_hold(&world.journal);
    for (unsigned i = 0; i < PEERS; i++) {
        meet(&wires[i]);
        open_at(&wires[i], 1, 0);
        send_entry(&wires[i], 1, 0, FRAME_FLAG_LAST);
    }
    journal_await_inside(&world.journal, 1);
    journal_open(&world.journal);
    for (unsigned i = 0; i < PEERS; i++) {
        struct header_end end = wire_end(&wires[i], 1);

        assert_int_equal(end.status, IDEM_OK);
        assert_int_equal(end.watermark, 1);
        wire_close(&wires[i]);
    }
    assert_int_equal(journal_runs(&world.journal), before + 1);
    assert_journal(&world, key_of(1), 1, true);
}

static void
an_acknowledgement_of_what_is_still_to_come_is_refused(void **state)
{
    struct wire wire;

    (void)state;
    begin_session();
    meet(&wire);
    open_at(&wire, 1, 2);
    assert_told(&wire, IDEM_INVALID_ARGUMENT, IDEM_KEY_GAP,
                "begins with message 1 of its session and acknowledges all "
                "below 2");
    wire_close(&wire);
    meet(&wire);
    open_at(&wire, 1, 1);
    send_entry(&wire, 1, 1, 0);
    send_entry(&wire, 2, 4, 0);
    assert_told(&wire, IDEM_INTERNAL, "",
                "message 2 of the session acknowledges all below 4");
    wire_close(&wire);
}

static void
a_message_that_cannot_be_read_ends_the_stream_at_it(void **state)
{
    static const uint8_t broken[] = {0xFF, 0xFF, 0xFF};
    struct header_end end;
    struct wire wire;

    (void)state;
    begin_session();
    meet(&wire);
    open_at(&wire, 1, 0);
    send_entry(&wire, 1, 0, 0);
    wire_send(&wire, &(struct frame){.type = FRAME_MESSAGE,
                                     .flags = FRAME_FLAG_MESSAGE,
                                     .stream = 1,
                                     .payload = {broken, sizeof broken}});
    send_entry(&wire, 3, 0, FRAME_FLAG_LAST);
    end = wire_end(&wire, 1);
    assert_int_equal(end.status, IDEM_INVALID_ARGUMENT);
    assert_int_equal(end.effect, IDEM_EFFECT_REFUSED);
    assert_int_equal(end.watermark, 1);
    wire_close(&wire);
    assert_journal(&world, key_of(1), 1, false);
}

/* --- At registration --- */

/* Nothing says what of it takes effect once. */
static void
a_stream_with_a_mode_and_no_unit_is_refused(void **state)
{
    struct idem_method methods[3];
    struct idem_service service = journal_service;
    char books[TEMPDIR_MAX + 32];
    const struct idem_sqlite_options sqlite = {
        .path = tempdir_file(&world.dir, "other", books, sizeof books)};
    struct idem_store *store;
    struct idem_server *server;
    struct idem_error err;

    (void)state;
    assert_int_equal(service.n_methods, 3);
    service.methods = methods;
    for (unsigned i = 0; i < 4; i++) {
        memcpy(methods, journal_methods, sizeof methods);
        if (i == 0)
            methods[0].end = NULL;
        else if (i < 3)
            methods[i].each = NULL;
        else
            methods[2].streams = IDEM_STREAMS_SERVER; /* it has no messages */
        assert_int_equal(idem_sqlite_open(&store, &sqlite, &err), IDEM_OK);
        assert_int_equal(idem_server_open(&server, store, NULL, NULL, &err),
                         IDEM_OK);
        assert_int_equal(
            idem_server_register(server, &service, &journal_handlers,
                                 sizeof journal_handlers, &world.journal, &err),
            IDEM_FAILED_PRECONDITION);
        assert_non_null(strstr(err.message, "what of it takes effect once"));
        idem_server_free(server);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_open_says_what_the_method_is),
        cmocka_unit_test(an_open_has_the_key_of_its_first_message),
        cmocka_unit_test(the_watermark_is_told),
        cmocka_unit_test(duplicates_of_a_message_are_one_effect),
        cmocka_unit_test(
            an_acknowledgement_of_what_is_still_to_come_is_refused),
        cmocka_unit_test(a_message_that_cannot_be_read_ends_the_stream_at_it),
        cmocka_unit_test(a_stream_with_a_mode_and_no_unit_is_refused),
    };

    return cmocka_run_group_tests(tests, up, down);
}
