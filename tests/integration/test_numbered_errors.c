/* Streams whose messages take effect once each: what ends one early, and what a
 * client may not, on each authority.
 *
 *    test_numbered_errors sqlite|postgres */
#include "numbered_story.h"

#include <idem/reason.h>

/* --- What is not OK --- */

/* It is recorded: the stream ends with it, and so does a repeat of it. */
static void
a_final_error_ends_the_stream_at_its_entry(void **state)
{
    const struct idem_call_options options = {.timeout_ms = 20000};
    struct journal_write_stream *stream =
        journal_write_open(numbered_world.channel, &options);
    struct numbered written;

    (void)state;
    for (int64_t i = 1; i <= 20; i++) {
        journal_entry entry = *journal_entry_of(i);

        entry.status = i == 8 ? IDEM_NOT_FOUND : IDEM_OK;
        if (journal_write_write(stream, &entry) != IDEM_OK)
            break;
    }
    written = numbered_finish(stream);
    assert_int_equal(written.status, IDEM_NOT_FOUND);
    assert_string_equal(written.outcome.message, "as it was asked to");
    assert_int_equal(written.outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_true(written.outcome.final);
    assert_int_equal(written.outcome.watermark, 7);
    assert_journal(&numbered_world, written.outcome.key, 7, false);
}

/* The client goes on from there, by the method's policy. */
static void
an_error_that_is_not_final_is_repeated_from_its_entry(void **state)
{
    const struct idem_call_options options = {.timeout_ms = 20000};
    struct journal_write_stream *stream;
    unsigned before = journal_runs(&numbered_world.journal);
    struct numbered written;

    (void)state;
    journal_fail(&numbered_world.journal, 3, IDEM_UNAVAILABLE);
    stream = journal_write_open(numbered_world.channel, &options);
    for (int64_t i = 1; i <= 20; i++)
        assert_int_equal(journal_write_write(stream, journal_entry_of(i)),
                         IDEM_OK);
    written = numbered_finish(stream);
    assert_int_equal(written.status, IDEM_OK);
    assert_int_equal(written.outcome.attempts, 4);
    assert_int_equal(written.outcome.watermark, 20);
    assert_int_equal(journal_runs(&numbered_world.journal), before + 23);
    assert_journal(&numbered_world, written.outcome.key, 20, true);
}

/* As often as the policy says, for one entry; the rest has taken effect. */
static void
attempts_are_counted_for_an_entry_and_not_for_the_stream(void **state)
{
    const struct idem_call_options options = {.timeout_ms = 20000};
    struct journal_write_stream *stream =
        journal_write_open(numbered_world.channel, &options);
    struct numbered written;

    (void)state;
    for (int64_t i = 1; i <= 10; i++) {
        unsigned before = journal_runs(&numbered_world.journal);

        if (i % 3 == 0)
            journal_fail(&numbered_world.journal, 4, IDEM_UNAVAILABLE);
        assert_int_equal(journal_write_write(stream, journal_entry_of(i)),
                         IDEM_OK);
        journal_await_runs(&numbered_world.journal,
                           before + (i % 3 == 0 ? 5 : 1));
    }
    journal_fail(&numbered_world.journal, 1000, IDEM_UNAVAILABLE);
    (void)!journal_write_write(stream, journal_entry_of(11));
    written = numbered_finish(stream);
    journal_fail(&numbered_world.journal, 0, IDEM_OK);
    assert_int_equal(written.status, IDEM_UNAVAILABLE);
    assert_int_equal(written.outcome.stop, IDEM_STOP_ATTEMPTS);
    assert_int_equal(written.outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_false(written.outcome.final);
    assert_int_equal(written.outcome.watermark, 10);
    assert_journal(&numbered_world, written.outcome.key, 10, false);

    written = numbered_write(written.outcome.key, 11, 12);
    assert_int_equal(written.status, IDEM_OK);
    assert_int_equal(written.outcome.watermark, 12);
    assert_journal(&numbered_world, written.outcome.key, 12, true);
}

/* --- What a client may not --- */

static void
another_entry_under_a_number_is_refused(void **state)
{
    const char *session = numbered_session();
    struct numbered written = numbered_write(numbered_key(session, 1), 1, 10);

    (void)state;
    assert_int_equal(written.status, IDEM_OK);
    written = numbered_write(numbered_key(session, 4), 5, 6);
    assert_numbered_refused(&written, IDEM_INVALID_ARGUMENT, IDEM_KEY_REUSED);
    assert_int_equal(written.outcome.watermark, 3);
    assert_journal(&numbered_world, numbered_key(session, 1), 10, true);
}

/* The end is no entry, not even one without a field. */
static void
an_end_is_no_entry_and_an_entry_no_end(void **state)
{
    const char *session = numbered_session();
    struct numbered written = numbered_write(numbered_key(session, 1), 1, 10);

    (void)state;
    assert_int_equal(written.status, IDEM_OK);
    written = numbered_write(numbered_key(session, 11), 0, 0);
    assert_numbered_refused(&written, IDEM_INVALID_ARGUMENT, IDEM_KEY_REUSED);
    written = numbered_write(numbered_key(session, 5), 5, 8);
    assert_numbered_refused(&written, IDEM_INVALID_ARGUMENT, IDEM_KEY_REUSED);
    assert_journal(&numbered_world, numbered_key(session, 1), 10, true);
}

static void
a_gap_is_refused(void **state)
{
    const char *session = numbered_session();
    struct numbered written = numbered_write(numbered_key(session, 2), 2, 3);

    (void)state;
    assert_numbered_refused(&written, IDEM_FAILED_PRECONDITION, IDEM_KEY_GAP);
    assert_int_equal(written.outcome.effect, IDEM_EFFECT_REFUSED);
    written = numbered_write(numbered_key(session, 1), 1, 2);
    assert_int_equal(written.status, IDEM_OK);
    written = numbered_write(numbered_key(session, 5), 5, 6);
    assert_numbered_refused(&written, IDEM_FAILED_PRECONDITION, IDEM_KEY_GAP);
    assert_journal(&numbered_world, numbered_key(session, 1), 2, true);
}

static void
nothing_follows_a_final_error(void **state)
{
    const char *session = numbered_session();
    struct numbered written;

    (void)state;
    journal_fail(&numbered_world.journal, 1, IDEM_OUT_OF_RANGE);
    written = numbered_write(numbered_key(session, 1), 1, 1);
    assert_int_equal(written.status, IDEM_OUT_OF_RANGE);
    written = numbered_write(numbered_key(session, 2), 2, 2);
    assert_numbered_refused(&written, IDEM_FAILED_PRECONDITION, IDEM_KEY_GAP);
    written = numbered_write(numbered_key(session, 1), 1, 1);
    assert_int_equal(written.status, IDEM_OUT_OF_RANGE);
    assert_int_equal(written.outcome.effect, IDEM_EFFECT_REPLAYED);
}

static void
a_key_that_is_no_sessions_is_refused(void **state)
{
    struct numbered written = numbered_write("order-1", 1, 2);

    (void)state;
    assert_numbered_refused(&written, IDEM_INVALID_ARGUMENT, IDEM_KEY_FORMAT);
    assert_int_equal(written.outcome.effect, IDEM_EFFECT_NOT_SENT);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_final_error_ends_the_stream_at_its_entry),
        cmocka_unit_test(an_error_that_is_not_final_is_repeated_from_its_entry),
        cmocka_unit_test(
            attempts_are_counted_for_an_entry_and_not_for_the_stream),
        cmocka_unit_test(another_entry_under_a_number_is_refused),
        cmocka_unit_test(an_end_is_no_entry_and_an_entry_no_end),
        cmocka_unit_test(a_gap_is_refused),
        cmocka_unit_test(nothing_follows_a_final_error),
        cmocka_unit_test(a_key_that_is_no_sessions_is_refused),
    };

    numbered_choose(argc, argv);
    return cmocka_run_group_tests(tests, numbered_up, numbered_down);
}
