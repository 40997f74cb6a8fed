/* What a server may not say of a stream whose messages take effect once each,
 * and what its client makes of it, by hand. docs/wire.md, 9. */
#include "journal_peer.h"

#include "loopback.h"
#include "stream.h"

#include <idem/key.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LONG 100000 /* twice as much is over half a window */

/* One that has the OPEN of a stream and its first entry on the way. */
struct strange {
    int listener;
    struct wire wire;
    struct idem_channel *channel;
    struct journal_write_stream *writes; /* either … */
    struct journal_ask_stream *asks;     /* … or */
};

static void
invite(struct strange *strange, bool asks)
{
    char address[64];
    unsigned port;
    struct idem_error err;
    const struct idem_call_options options = {.timeout_ms = 20000,
                                              .wait_for_ready = true};

    *strange = (struct strange){.listener = loopback_listen(&port)};
    snprintf(address, sizeof address, "tcp://127.0.0.1:%u", port);
    assert_int_equal(idem_client_open(&strange->channel, address, NULL, &err),
                     IDEM_OK);
    if (asks)
        strange->asks = journal_ask_open(strange->channel, &options);
    else
        strange->writes = journal_write_open(strange->channel, &options);
    wire_accept(&strange->wire, strange->listener);
    strange->wire.stream_window = 65536;
    wire_hello(&strange->wire, 0);
    assert_int_equal(wire_await_open(&strange->wire), 1);
    assert_int_equal(
        asks ? journal_ask_write(strange->asks, journal_entry_of(1))
             : journal_write_write(strange->writes, journal_entry_of(1)),
        IDEM_OK);
}

static struct idem_outcome
part(struct strange *strange)
{
    struct idem_outcome outcome;

    if (strange->asks)
        journal_ask_finish(strange->asks, &outcome);
    else
        journal_write_finish(strange->writes, NULL, &outcome);
    idem_channel_close(strange->channel);
    wire_close(&strange->wire);
    close(strange->listener);
    return outcome;
}

/* More than was sent took effect? Nobody can know what did. */
static void
a_watermark_above_what_was_sent_fails_the_stream(void **state)
{
    uint8_t header[32];
    const struct header_window window = {.watermark = 7};
    struct frame frame = {
        .type = FRAME_WINDOW, .stream = 1, .header = {header, 0}};
    struct strange strange;
    struct idem_outcome outcome;

    (void)state;
    invite(&strange, false);
    frame.header.size = header_window_write(header, sizeof header, &window);
    wire_send(&strange.wire, &frame);
    outcome = part(&strange);
    assert_int_equal(outcome.status, IDEM_INTERNAL);
    assert_int_equal(outcome.effect, IDEM_EFFECT_IN_DOUBT);
    assert_non_null(strstr(outcome.message, "watermark is 7"));
    assert_int_equal(outcome.watermark, 0);
}

/* OK says that all took effect: one that says so and less is not believed. */
static void
an_ok_for_less_than_was_written_is_none(void **state)
{
    (void)state;
    for (int asks = 0; asks <= 1; asks++) {
        const struct header_end end = {
            .status = IDEM_OK, .effect = IDEM_EFFECT_COMMITTED, .final = true};
        struct strange strange;
        struct idem_outcome outcome;
        struct frame frame;

        invite(&strange, asks);
        if (asks)
            journal_ask_end(strange.asks);
        else
            journal_write_end(strange.writes);
        do
            wire_await(&strange.wire, FRAME_MESSAGE, &frame);
        while (!(frame.flags & FRAME_FLAG_LAST));
        wire_answer(&strange.wire, 1, &end, idem_bytes_of(""));
        outcome = part(&strange);
        assert_int_equal(outcome.status, IDEM_INTERNAL);
        assert_int_equal(outcome.effect, IDEM_EFFECT_IN_DOUBT);
        assert_non_null(strstr(outcome.message, "message 1"));
        assert_int_equal(outcome.watermark, 0);
    }
}

/* So it is when the writer has not even ended. */
static void
an_ok_before_the_end_was_said_is_none(void **state)
{
    const struct header_end end = {.status = IDEM_OK,
                                   .effect = IDEM_EFFECT_COMMITTED,
                                   .final = true,
                                   .watermark = 1};
    struct strange strange;
    struct idem_outcome outcome;
    struct frame frame;

    (void)state;
    invite(&strange, false);
    wire_await(&strange.wire, FRAME_MESSAGE, &frame);
    wire_answer(&strange.wire, 1, &end, idem_bytes_of(""));
    while (journal_write_write(strange.writes, journal_entry_of(2)) == IDEM_OK)
        ; /* until the END has come */
    outcome = part(&strange);
    assert_int_equal(outcome.status, IDEM_INTERNAL);
    assert_int_equal(outcome.effect, IDEM_EFFECT_IN_DOUBT);
}

/* An answer that did not come is asked for again, whatever the END says. */
static void
the_answers_are_the_watermark_of_a_bidirectional_one(void **state)
{
    const struct header_end end = {.status = IDEM_UNAVAILABLE,
                                   .effect = IDEM_EFFECT_IN_DOUBT,
                                   .watermark = 1};
    char session[IDEM_SESSION_MAX];
    struct strange strange;
    struct idem_outcome outcome;
    struct header_open open;
    struct frame frame;
    int64_t first;

    (void)state;
    invite(&strange, true);
    wire_await(&strange.wire, FRAME_MESSAGE, &frame);
    wire_answer(&strange.wire, 1, &end, idem_bytes_of(""));
    wire_await(&strange.wire, FRAME_OPEN, &frame);
    assert_true(header_open_read(frame.header, &open));
    assert_true(idem_session_split(open.key, session, &first));
    assert_int_equal(first, 1);
    journal_ask_cancel(strange.asks);
    outcome = part(&strange);
    assert_int_equal(outcome.watermark, 0);
}

/* An answer whose word is so long, of the entry of that number. */
static void
answer_with(struct strange *strange, uint32_t stream, int64_t number)
{
    static uint8_t answer[LONG + 6];
    const struct frame frame = {.type = FRAME_MESSAGE,
                                .flags = FRAME_FLAG_MESSAGE,
                                .stream = stream,
                                .payload = {answer, sizeof answer}};

    memset(answer, 'w', sizeof answer);
    memcpy(answer,
           (uint8_t[]){0x08, (uint8_t)number, 0x12, (LONG & 0x7f) | 0x80,
                       (LONG >> 7 & 0x7f) | 0x80, LONG >> 14},
           6);
    wire_send(&strange->wire, &frame);
}

/* What was read of an attempt that is over gives no credit to the next one: its
 * server has had a window of its own. */
static void
credit_is_for_what_came_in_its_attempt(void **state)
{
    const struct header_end end = {.status = IDEM_UNAVAILABLE,
                                   .effect = IDEM_EFFECT_REFUSED};
    const journal_answer *answer;
    struct header_window window;
    struct strange strange;
    struct frame frame;

    (void)state;
    invite(&strange, true);
    for (uint32_t i = 1; i <= 2; i++) {
        wire_await(&strange.wire, FRAME_MESSAGE, &frame);
        answer_with(&strange, i, i);
        answer = journal_ask_next(strange.asks);
        assert_non_null(answer);
        assert_int_equal(answer->number, i);
        if (i == 1) {
            assert_int_equal(
                journal_ask_write(strange.asks, journal_entry_of(2)), IDEM_OK);
            wire_answer(&strange.wire, 1, &end, idem_bytes_of(""));
            wire_await(&strange.wire, FRAME_OPEN, &frame);
        }
    }
    wire_await(&strange.wire, FRAME_WINDOW, &frame);
    assert_int_equal(frame.stream, 2);
    assert_true(header_window_read(frame.header, &window));
    assert_int_equal(window.credit, LONG + 6 + STREAM_COST);
    journal_ask_cancel(strange.asks);
    (void)part(&strange);
}

/* A server from before: its method is another kind, and it says so. */
static void
a_server_that_knows_no_such_streams_is_unimplemented(void **state)
{
    const struct header_end end = {.status = IDEM_UNIMPLEMENTED,
                                   .effect = IDEM_EFFECT_REFUSED,
                                   .message = idem_bytes_of("another kind")};
    struct strange strange;
    struct idem_outcome outcome;

    (void)state;
    invite(&strange, false);
    wire_answer(&strange.wire, 1, &end, idem_bytes_of(""));
    outcome = part(&strange);
    assert_int_equal(outcome.status, IDEM_UNIMPLEMENTED);
    assert_string_equal(outcome.message, "another kind");
    assert_int_equal(outcome.watermark, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_watermark_above_what_was_sent_fails_the_stream),
        cmocka_unit_test(an_ok_for_less_than_was_written_is_none),
        cmocka_unit_test(an_ok_before_the_end_was_said_is_none),
        cmocka_unit_test(the_answers_are_the_watermark_of_a_bidirectional_one),
        cmocka_unit_test(credit_is_for_what_came_in_its_attempt),
        cmocka_unit_test(a_server_that_knows_no_such_streams_is_unimplemented),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
