/* Clients that mean it: what they do to a stream whose messages take effect
 * once each, by hand, and what stands afterwards. docs/wire.md, 9. */
#include "journal_peer.h"

#include <idem/key.h>
#include <idem/reason.h>

#define WINDOW 65536
#define MANY 200
#define DEADLINES 8
#define STATUSES 17 /* all, and one that is none */

static struct journal_world world;
static char session[IDEM_SESSION_MAX];

static void
set_up(const struct journal_world_options *options)
{
    journal_world_open(&world, options);
    idem_session_mint(session, idem_clock_system(), 0, 60000);
}

static int
up(void **state)
{
    const struct journal_world_options options = {
        .server = {.max_message = 4096}};

    (void)state;
    set_up(&options);
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

/* Of Ask or Write, from that number on. */
static void
open_at(struct wire *wire, uint32_t stream, int64_t first, bool asks,
        uint64_t timeout_us)
{
    const struct header_open open = {
        .method =
            idem_bytes_of(asks ? JOURNAL_ASK_METHOD : JOURNAL_WRITE_METHOD),
        .streams = asks ? JOURNAL_PEER_ASKS : JOURNAL_PEER_WRITES,
        .key = idem_bytes_of(key_of(first)),
        .has_timeout = timeout_us > 0,
        .timeout_us = timeout_us,
    };

    journal_peer_open(wire, stream, &open);
}

static int64_t
rows_of(int64_t number)
{
    return journal_world_sql(&world,
                             "SELECT count(*) FROM journal WHERE session = "
                             "'%s' AND number = %lld",
                             session, (long long)number);
}

/* How many answers came, and the END behind them. */
static struct header_end
count_answers(struct wire *wire, uint64_t *answers)
{
    struct header_end end;
    struct frame frame;

    *answers = 0;
    for (;;) {
        assert_true(wire_next(wire, &frame));
        *answers += frame.type == FRAME_MESSAGE;
        if (frame.type != FRAME_END)
            continue;
        assert_true(header_end_read(frame.header, &end));
        return end;
    }
}

/* --- Two at once --- */

/* The same session on one connection and on another, with other entries: one
 * of the two is the session, and the rest is refused. */
static void
two_writers_of_a_session_are_one_order(void **state)
{
    struct wire wires[2];
    unsigned ok = 0, reused = 0;

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        journal_peer_meet(&wires[i], &world, WINDOW, 0);
    for (int64_t n = 1; n <= 20; n++)
        for (unsigned i = 0; i < 4; i++) {
            if (n == 1)
                open_at(&wires[i / 2], 1 + i % 2, 1, false, 0);
            journal_peer_say(&wires[i / 2], 1 + i % 2,
                             journal_entry_of(n + (i == 3 ? 1000 : 0)), 0, 0);
        }
    for (unsigned i = 0; i < 4; i++)
        journal_peer_last(&wires[i / 2], 1 + i % 2);
    for (unsigned i = 0; i < 4; i++) {
        struct header_end end = wire_end(&wires[i / 2], 0);

        ok += end.status == IDEM_OK;
        reused += idem_bytes_equal(end.reason, idem_bytes_of(IDEM_KEY_REUSED));
    }
    assert_int_equal(ok + reused, 4);
    assert_true(ok == 3 || ok == 1);
    assert_int_equal(journal_world_sql(&world,
                                       "SELECT count(*) FROM journal WHERE "
                                       "session = '%s'",
                                       session),
                     21);
    for (unsigned i = 0; i < 2; i++)
        wire_close(&wires[i]);
}

/* --- What a handler says --- */

/* Whatever an entry's handler says but OK: nothing of it stands, and nothing
 * comes behind it. */
static void
no_entry_comes_behind_one_that_failed(void **state)
{
    struct wire wire;

    (void)state;
    journal_peer_meet(&wire, &world, WINDOW, 0);
    for (uint32_t status = 1; status <= STATUSES; status++) {
        journal_entry entry = *journal_entry_of(1);
        struct header_end end;

        idem_session_mint(session, idem_clock_system(), 0, 60000);
        entry.status = status;
        open_at(&wire, 2 * status - 1, 1, false, 0);
        journal_peer_say(&wire, 2 * status - 1, &entry, 0, 0);
        journal_peer_say(&wire, 2 * status - 1, journal_entry_of(2), 0,
                         FRAME_FLAG_LAST);
        end = wire_end(&wire, 2 * status - 1);
        assert_int_not_equal(end.status, IDEM_OK);
        assert_int_equal(end.watermark, 0);
        open_at(&wire, 2 * status, 2, false, 0);
        journal_peer_say(&wire, 2 * status, journal_entry_of(2), 0,
                         FRAME_FLAG_LAST);
        end = wire_end(&wire, 2 * status);
        assert_int_equal(end.status, IDEM_FAILED_PRECONDITION);
        assert_true(idem_bytes_equal(end.reason, idem_bytes_of(IDEM_KEY_GAP)));
        assert_int_equal(rows_of(1) + rows_of(2) + rows_of(0), 0);
    }
    wire_close(&wire);
}

/* --- Sizes --- */

static void
a_giant_is_refused_and_what_was_before_it_stands(void **state)
{
    static uint8_t padding[100000];
    journal_entry entry = *journal_entry_of(2);
    struct header_end end;
    struct frame frame;
    struct wire wire;

    (void)state;
    journal_peer_meet(&wire, &world, WINDOW, 0);
    open_at(&wire, 1, 1, true, 0);
    journal_peer_say(&wire, 1, journal_entry_of(1), 0, 0);
    wire_await(&wire, FRAME_MESSAGE, &frame);
    entry.padding.data = padding;
    entry.padding.len = sizeof padding;
    journal_peer_say(&wire, 1, &entry, 0, 0);
    end = wire_end(&wire, 1);
    assert_int_equal(end.status, IDEM_RESOURCE_EXHAUSTED);
    assert_true(
        idem_bytes_equal(end.reason, idem_bytes_of(IDEM_REQUEST_TOO_LARGE)));
    wire_ping(&wire);
    assert_int_equal(rows_of(1), 1);
    assert_int_equal(rows_of(2), 0);
    wire_close(&wire);
}

/* Entries of no bytes are entries, in order behind one another. */
static void
many_empty_entries_are_as_many(void **state)
{
    struct header_end end;
    struct wire wire;

    (void)state;
    journal_peer_meet(&wire, &world, WINDOW, 0);
    open_at(&wire, 1, 1, false, 0);
    for (unsigned i = 0; i < MANY; i++) /* within the server's first credit */
        journal_peer_say(&wire, 1, journal_entry_of(0), 0, 0);
    journal_peer_last(&wire, 1);
    end = wire_end(&wire, 1);
    assert_int_equal(end.status, IDEM_OK);
    assert_int_equal(end.watermark, MANY);
    assert_int_equal(rows_of(0), MANY + 1);
    wire_close(&wire);
}

/* --- Time --- */

static void
a_session_of_another_time_runs_nothing(void **state)
{
    static const int64_t firsts[] = {1, 5};
    struct wire wire;

    (void)state;
    idem_session_mint(session, idem_clock_system(), -3600000, 60000);
    journal_peer_meet(&wire, &world, WINDOW, 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct header_end end;

        open_at(&wire, i + 1, firsts[i], false, 0);
        journal_peer_say(&wire, i + 1, journal_entry_of(firsts[i]), 0,
                         FRAME_FLAG_LAST);
        end = wire_end(&wire, i + 1);
        assert_true(
            idem_bytes_equal(end.reason, idem_bytes_of(IDEM_KEY_EXPIRED)));
        assert_int_equal(end.effect, IDEM_EFFECT_REFUSED);
        assert_int_equal(rows_of(firsts[i]) + rows_of(0), 0);
    }
    wire_close(&wire);
}

/* Whatever stands of it is found again under its number. */
static void
assert_goes_on(struct wire *wire, uint32_t stream)
{
    struct header_end end;

    open_at(wire, stream, 1, false, 0);
    journal_peer_say(wire, stream, journal_entry_of(1), 0, 0);
    journal_peer_say(wire, stream, journal_entry_of(2), 0, FRAME_FLAG_LAST);
    end = wire_end(wire, stream);
    assert_int_equal(end.status, IDEM_OK);
    assert_int_equal(end.watermark, 2);
    assert_journal(&world, key_of(1), 2, true);
}

static void
a_stream_that_is_cancelled_inside_an_entry_goes_on_at_it(void **state)
{
    struct wire wire;

    (void)state;
    journal_peer_meet(&wire, &world, WINDOW, 0);
    journal_hold(&world.journal);
    open_at(&wire, 1, 1, false, 0);
    journal_peer_say(&wire, 1, journal_entry_of(1), 0, FRAME_FLAG_LAST);
    journal_await_inside(&world.journal, 1);
    wire_send(&wire, &(struct frame){.type = FRAME_CANCEL, .stream = 1});
    wire_ping(&wire);
    journal_open(&world.journal);
    assert_goes_on(&wire, 2);
    wire_close(&wire);
}

/* Deadlines that are over before, in and after each of its entries. */
static void
a_stream_whose_time_is_over_goes_on_where_it_was(void **state)
{
    struct wire wire;

    (void)state;
    journal_peer_meet(&wire, &world, WINDOW, 0);
    for (uint32_t i = 0; i < DEADLINES; i++) {
        struct header_end end;

        idem_session_mint(session, idem_clock_system(), 0, 60000);
        open_at(&wire, 2 * i + 1, 1, false, 1 + 600 * i);
        journal_peer_say(&wire, 2 * i + 1, journal_entry_of(1), 0, 0);
        journal_peer_say(&wire, 2 * i + 1, journal_entry_of(2), 0,
                         FRAME_FLAG_LAST);
        end = wire_end(&wire, 2 * i + 1);
        assert_true(end.status == IDEM_OK ||
                    end.status == IDEM_DEADLINE_EXCEEDED);
        assert_true(end.watermark <= 2);
        for (uint64_t n = 1; n <= end.watermark; n++)
            assert_int_equal(rows_of((int64_t)n), 1);
        assert_goes_on(&wire, 2 * i + 2);
    }
    wire_close(&wire);
}

/* --- Answers that nobody takes --- */

/* A server that stops while an answer waits for credit has not given it: the
 * watermark is below it, and it is not the last word of its entry. */
static void
an_answer_that_found_no_room_is_not_below_the_watermark(void **state)
{
    const struct journal_world_options options = {.server = {.drain_ms = 100}};
    struct header_end end;
    uint64_t answers;
    struct wire wire;

    (void)state;
    set_up(&options);
    journal_peer_meet(&wire, &world, 1, 0); /* room for one answer */
    open_at(&wire, 1, 1, true, 0);
    for (int64_t n = 1; n <= 3; n++)
        journal_peer_say(&wire, 1, journal_entry_of(n), 0, 0);
    journal_await_runs(&world.journal, 2);
    idem_server_stop(world.server);
    end = count_answers(&wire, &answers);
    assert_int_equal(answers, 1);
    assert_int_equal(end.watermark, 1);
    assert_int_equal(end.status, IDEM_UNAVAILABLE);
    assert_false(end.final);
    wire_close(&wire);
    journal_world_close(&world);
}

/* So is one that its client takes no answers of that size. */
static void
an_answer_that_is_too_large_is_not_below_the_watermark(void **state)
{
    struct header_end end;
    uint64_t answers;
    struct wire wire;

    (void)state;
    journal_peer_meet(&wire, &world, WINDOW, 2);
    open_at(&wire, 1, 1, true, 0);
    journal_peer_say(&wire, 1, journal_entry_of(1), 0, 0);
    end = count_answers(&wire, &answers);
    assert_int_equal(answers, 0);
    assert_int_equal(end.status, IDEM_RESOURCE_EXHAUSTED);
    assert_true(
        idem_bytes_equal(end.reason, idem_bytes_of(IDEM_REPLY_TOO_LARGE)));
    assert_int_equal(end.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(end.watermark, 0);
    assert_int_equal(rows_of(1), 1);
    wire_close(&wire);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_writers_of_a_session_are_one_order,
                                        up, down),
        cmocka_unit_test_setup_teardown(no_entry_comes_behind_one_that_failed,
                                        up, down),
        cmocka_unit_test_setup_teardown(
            a_giant_is_refused_and_what_was_before_it_stands, up, down),
        cmocka_unit_test_setup_teardown(many_empty_entries_are_as_many, up,
                                        down),
        cmocka_unit_test_setup_teardown(a_session_of_another_time_runs_nothing,
                                        up, down),
        cmocka_unit_test_setup_teardown(
            a_stream_that_is_cancelled_inside_an_entry_goes_on_at_it, up, down),
        cmocka_unit_test_setup_teardown(
            a_stream_whose_time_is_over_goes_on_where_it_was, up, down),
        cmocka_unit_test(
            an_answer_that_found_no_room_is_not_below_the_watermark),
        cmocka_unit_test_setup_teardown(
            an_answer_that_is_too_large_is_not_below_the_watermark, up, down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
