/* Streams whose messages take effect once each: what a client sees when all
 * goes well, when it goes on, and of what it has acknowledged, on each
 * authority (semantics.md 3.14; docs/streaming.md, "Once").
 *
 *    test_numbered sqlite|postgres */
#include "numbered_story.h"

#include <idem/reason.h>

#include <stdio.h>

#define COUNT 100

/* --- Well --- */

static void
each_entry_is_once_and_in_order(void **state)
{
    struct numbered written = numbered_write(NULL, 1, COUNT);

    (void)state;
    if (written.status != IDEM_OK)
        print_error("%s\n", written.outcome.message);
    assert_int_equal(written.status, IDEM_OK);
    assert_int_equal(written.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_true(written.outcome.final);
    assert_int_equal(written.outcome.watermark, COUNT);
    assert_int_equal(written.entries, COUNT);
    assert_journal(&numbered_world, written.outcome.key, COUNT, true);
}

static void
a_stream_of_no_entries_has_an_end(void **state)
{
    struct numbered written = numbered_write(NULL, 1, 0);

    (void)state;
    assert_int_equal(written.status, IDEM_OK);
    assert_int_equal(written.outcome.watermark, 0);
    assert_int_equal(written.entries, 0);
    assert_journal(&numbered_world, written.outcome.key, 0, true);
}

/* Of a LEASED one the effect is elsewhere. */
static void
a_leased_one_is_once_too(void **state)
{
    const struct idem_call_options options = {.timeout_ms = 20000};
    struct journal_push_stream *stream =
        journal_push_open(numbered_world.channel, &options);
    struct idem_outcome outcome;
    unsigned before = journal_runs(&numbered_world.journal);

    (void)state;
    for (int64_t i = 1; i <= 20; i++)
        assert_int_equal(journal_push_write(stream, journal_entry_of(i)),
                         IDEM_OK);
    assert_int_equal(journal_push_finish(stream, NULL, &outcome), IDEM_OK);
    assert_int_equal(outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(outcome.watermark, 20);
    assert_int_equal(journal_runs(&numbered_world.journal), before + 20);
}

/* Each entry is answered, once, also when it is written again. */
static void
a_bidirectional_one_answers_each_entry_the_same_again(void **state)
{
    char words[2][20][32];
    const char *session = numbered_session();

    (void)state;
    for (unsigned run = 0; run < 2; run++) {
        const struct idem_call_options options = {
            .key = numbered_key(session, 1), .timeout_ms = 20000};
        struct journal_ask_stream *stream =
            journal_ask_open(numbered_world.channel, &options);
        struct idem_outcome outcome;

        for (int i = 0; i < 20; i++) {
            const journal_answer *answer;

            assert_int_equal(journal_ask_write(stream, journal_entry_of(i + 1)),
                             IDEM_OK);
            answer = journal_ask_next(stream);
            assert_non_null(answer);
            assert_int_equal(answer->number, i + 1);
            assert_int_equal(journal_ask_watermark(stream), i + 1);
            snprintf(words[run][i], sizeof words[run][i], "%s", answer->word);
        }
        journal_ask_end(stream);
        assert_null(journal_ask_next(stream));
        assert_int_equal(journal_ask_finish(stream, &outcome), IDEM_OK);
        assert_int_equal(outcome.effect, IDEM_EFFECT_COMMITTED);
        assert_int_equal(outcome.watermark, 20);
    }
    for (int i = 0; i < 20; i++)
        assert_string_equal(words[0][i], words[1][i]);
    assert_journal(&numbered_world, numbered_key(session, 1), 20, false);
}

/* --- Going on --- */

/* A process that knows its session, and how far it was, or less. */
static void
a_session_goes_on_in_another_process(void **state)
{
    const char *session = numbered_session();
    const struct idem_call_options options = {.key = numbered_key(session, 1),
                                              .timeout_ms = 20000};
    struct journal_write_stream *stream =
        journal_write_open(numbered_world.channel, &options);
    unsigned before = journal_runs(&numbered_world.journal);
    struct numbered first, again;

    (void)state;
    for (int64_t i = 1; i <= 50; i++)
        assert_int_equal(journal_write_write(stream, journal_entry_of(i)),
                         IDEM_OK);
    journal_await_runs(&numbered_world.journal, before + 50);
    journal_write_cancel(stream);
    first = numbered_finish(stream);
    assert_int_equal(first.status, IDEM_CANCELLED);
    assert_true(first.outcome.watermark <= 50);

    again = numbered_write(numbered_key(session, 20), 20, 60);
    assert_int_equal(again.status, IDEM_OK);
    assert_int_equal(again.outcome.watermark, 60);
    assert_int_equal(again.entries, 60);
    assert_journal(&numbered_world, numbered_key(session, 1), 60, true);

    /* All of it once more, from the beginning: nothing runs. */
    before = journal_runs(&numbered_world.journal);
    first = again;
    again = numbered_write(numbered_key(session, 1), 1, 60);
    assert_int_equal(again.status, IDEM_OK);
    assert_int_equal(again.outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_string_equal(again.word, first.word);
    assert_int_equal(journal_runs(&numbered_world.journal), before);
    assert_journal(&numbered_world, numbered_key(session, 1), 60, true);
}

static void
the_key_behind_the_watermark_can_be_asked_for(void **state)
{
    const char *session = numbered_session();
    struct numbered written = numbered_write(numbered_key(session, 1), 1, 3);
    const struct idem_call_options options = {.key = numbered_key(session, 5),
                                              .timeout_ms = 20000};
    struct journal_ask_stream *stream;
    char key[IDEM_KEY_MAX + 1];

    (void)state;
    assert_int_equal(written.status, IDEM_OK); /* the end is number 4 */
    stream = journal_ask_open(numbered_world.channel, &options);
    assert_int_equal(journal_ask_write(stream, journal_entry_of(5)), IDEM_OK);
    assert_non_null(journal_ask_next(stream));
    assert_int_equal(journal_ask_watermark(stream), 5);
    assert_true(journal_ask_key(stream, key));
    assert_string_equal(key, numbered_key(session, 6));
    assert_int_equal(journal_ask_finish(stream, NULL), IDEM_OK);
}

/* --- What is forgotten --- */

/* The library's own session: its records go behind the watermark, and its
 * numbers never run again. */
static void
what_was_acknowledged_goes_and_is_refused(void **state)
{
    const struct idem_call_options options = {.timeout_ms = 60000};
    struct journal_write_stream *stream =
        journal_write_open(numbered_world.channel, &options);
    unsigned before = journal_runs(&numbered_world.journal);
    struct numbered written;

    (void)state;
    for (int64_t i = 1; i <= 400; i++) {
        assert_int_equal(journal_write_write(stream, journal_entry_of(i)),
                         IDEM_OK);
        if (i % 20 == 0) /* so that it is told of the entries before */
            journal_await_runs(&numbered_world.journal, before + (unsigned)i);
    }
    written = numbered_finish(stream);
    assert_int_equal(written.status, IDEM_OK);
    assert_true(journal_world_sql(&numbered_world,
                                  "SELECT count(*) FROM idem_session") > 0);
    written = numbered_write(
        numbered_key(journal_session_of(written.outcome.key), 1), 1, 1);
    assert_numbered_refused(&written, IDEM_FAILED_PRECONDITION, IDEM_KEY_STALE);
    assert_true(written.outcome.final);
    assert_journal(&numbered_world, written.outcome.key, 400, true);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_entry_is_once_and_in_order),
        cmocka_unit_test(a_stream_of_no_entries_has_an_end),
        cmocka_unit_test(a_leased_one_is_once_too),
        cmocka_unit_test(a_bidirectional_one_answers_each_entry_the_same_again),
        cmocka_unit_test(a_session_goes_on_in_another_process),
        cmocka_unit_test(the_key_behind_the_watermark_can_be_asked_for),
        cmocka_unit_test(what_was_acknowledged_goes_and_is_refused),
    };

    numbered_choose(argc, argv);
    return cmocka_run_group_tests(tests, numbered_up, numbered_down);
}
