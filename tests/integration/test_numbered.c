/* Streams whose messages take effect once each: what a client sees, on each
 * authority (semantics.md 3.14; docs/streaming.md, "Once").
 *
 *    test_numbered sqlite|postgres */
#include "journal_world.h"

#include <idem/key.h>
#include <idem/reason.h>

#include <stdio.h>
#include <string.h>

#define COUNT 100

static struct journal_world world;
static bool on_postgres;

static int
up(void **state)
{
    const struct journal_world_options options = {.postgres = on_postgres};

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

/* --- One stream of entries --- */

struct written {
    enum idem_status status;
    struct idem_outcome outcome;
    int64_t entries; /* that the receipt says */
    char word[32];
};

static struct written
finish(struct journal_write_stream *stream)
{
    struct written written = {.entries = -1};
    journal_receipt *receipt = NULL;

    written.status = journal_write_finish(stream, &receipt, &written.outcome);
    if (written.status == IDEM_OK) {
        written.entries = receipt->entries;
        snprintf(written.word, sizeof written.word, "%s", receipt->word);
        journal_receipt_free(receipt);
    }
    return written;
}

/* from to to, under the key of from; NULL: the library's own. */
static struct written
write_entries(const char *key, int64_t from, int64_t to)
{
    const struct idem_call_options options = {.key = key, .timeout_ms = 20000};
    struct journal_write_stream *stream =
        journal_write_open(world.channel, &options);

    for (int64_t i = from; i <= to; i++)
        if (journal_write_write(stream, journal_entry_of(i)) != IDEM_OK)
            break;
    return finish(stream);
}

static const char *
key_of(const char *session, int64_t number)
{
    static char key[IDEM_KEY_MAX + 1];

    idem_key_of_session(key, session, number);
    return key;
}

static const char *
new_session(void)
{
    static char session[IDEM_SESSION_MAX];

    idem_session_mint(session, idem_clock_system(), 0, 60000);
    return session;
}

static void
assert_refused(const struct written *written, enum idem_status status,
               const char *reason)
{
    if (written->status != status)
        print_error("%s: %s\n", idem_status_name(written->status),
                    written->outcome.message);
    assert_int_equal(written->status, status);
    assert_string_equal(written->outcome.reason, reason);
}

/* --- Well --- */

static void
each_entry_is_once_and_in_order(void **state)
{
    struct written written = write_entries(NULL, 1, COUNT);

    (void)state;
    if (written.status != IDEM_OK)
        print_error("%s\n", written.outcome.message);
    assert_int_equal(written.status, IDEM_OK);
    assert_int_equal(written.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_true(written.outcome.final);
    assert_int_equal(written.outcome.watermark, COUNT);
    assert_int_equal(written.entries, COUNT);
    assert_journal(&world, written.outcome.key, COUNT, true);
}

static void
a_stream_of_no_entries_has_an_end(void **state)
{
    struct written written = write_entries(NULL, 1, 0);

    (void)state;
    assert_int_equal(written.status, IDEM_OK);
    assert_int_equal(written.outcome.watermark, 0);
    assert_int_equal(written.entries, 0);
    assert_journal(&world, written.outcome.key, 0, true);
}

/* Of a LEASED one the effect is elsewhere. */
static void
a_leased_one_is_once_too(void **state)
{
    const struct idem_call_options options = {.timeout_ms = 20000};
    struct journal_push_stream *stream =
        journal_push_open(world.channel, &options);
    struct idem_outcome outcome;
    unsigned before = journal_runs(&world.journal);

    (void)state;
    for (int64_t i = 1; i <= 20; i++)
        assert_int_equal(journal_push_write(stream, journal_entry_of(i)),
                         IDEM_OK);
    assert_int_equal(journal_push_finish(stream, NULL, &outcome), IDEM_OK);
    assert_int_equal(outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(outcome.watermark, 20);
    assert_int_equal(journal_runs(&world.journal), before + 20);
}

/* Each entry is answered, once, also when it is written again. */
static void
a_bidirectional_one_answers_each_entry_the_same_again(void **state)
{
    char words[2][20][32];
    const char *session = new_session();

    (void)state;
    for (unsigned run = 0; run < 2; run++) {
        const struct idem_call_options options = {.key = key_of(session, 1),
                                                  .timeout_ms = 20000};
        struct journal_ask_stream *stream =
            journal_ask_open(world.channel, &options);
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
    assert_journal(&world, key_of(session, 1), 20, false);
}

/* --- In callbacks --- */

struct writing {
    int64_t next, last;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;
    struct idem_outcome outcome;
    int64_t entries;
};

static void
go_on(struct journal_write_stream *stream)
{
    struct writing *writing = journal_write_user(stream);

    for (; writing->next <= writing->last; writing->next++) {
        journal_entry entry = *journal_entry_of(writing->next);
        static uint8_t padding[1000];

        entry.padding.data = padding;
        entry.padding.len = sizeof padding;
        if (journal_write_write(stream, &entry) != IDEM_OK)
            return;
    }
    journal_write_end(stream);
}

static void
note_end(struct journal_write_stream *stream, const journal_receipt *receipt,
         const struct idem_outcome *outcome)
{
    struct writing *writing = journal_write_user(stream);

    pthread_mutex_lock(&writing->lock);
    writing->over = true;
    writing->outcome = *outcome;
    writing->entries = receipt ? receipt->entries : -1;
    pthread_cond_signal(&writing->ended);
    pthread_mutex_unlock(&writing->lock);
}

/* More than is kept: the writer is told to wait, and nothing is dropped. */
static void
in_callbacks_more_is_written_than_is_kept(void **state)
{
    static const struct journal_write_callbacks callbacks = {.writable = go_on,
                                                             .end = note_end};
    struct writing writing = {.next = 1, .last = 600};
    const struct idem_call_options options = {.timeout_ms = 60000,
                                              .user = &writing};
    struct journal_write_stream *stream;

    (void)state;
    pthread_mutex_init(&writing.lock, NULL);
    pthread_cond_init(&writing.ended, NULL);
    stream = journal_write_start(world.channel, &options, &callbacks);
    go_on(stream);
    pthread_mutex_lock(&writing.lock);
    while (!writing.over)
        pthread_cond_wait(&writing.ended, &writing.lock);
    pthread_mutex_unlock(&writing.lock);
    journal_write_release(stream);
    assert_int_equal(writing.outcome.status, IDEM_OK);
    assert_int_equal(writing.outcome.watermark, writing.last);
    assert_int_equal(writing.entries, writing.last);
    assert_journal(&world, writing.outcome.key, writing.last, true);
    pthread_cond_destroy(&writing.ended);
    pthread_mutex_destroy(&writing.lock);
}

struct asking {
    int64_t next, last, answered;
    bool refused; /* each answer once, before it is taken */
    bool strange;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;
    struct idem_outcome outcome;
};

static void
ask_on(struct journal_ask_stream *stream)
{
    struct asking *asking = journal_ask_user(stream);

    for (; asking->next <= asking->last; asking->next++)
        if (journal_ask_write(stream, journal_entry_of(asking->next)) !=
            IDEM_OK)
            return;
    journal_ask_end(stream);
}

static bool
take_answer(struct journal_ask_stream *stream, const journal_answer *answer)
{
    struct asking *asking = journal_ask_user(stream);

    asking->refused = !asking->refused;
    if (asking->refused) {
        journal_ask_resume(stream);
        return false;
    }
    asking->strange |= answer->number != ++asking->answered;
    return true;
}

static void
note_last(struct journal_ask_stream *stream, const struct idem_outcome *outcome)
{
    struct asking *asking = journal_ask_user(stream);

    pthread_mutex_lock(&asking->lock);
    asking->over = true;
    asking->outcome = *outcome;
    pthread_cond_signal(&asking->ended);
    pthread_mutex_unlock(&asking->lock);
}

static void
in_callbacks_each_entry_is_answered_in_order(void **state)
{
    static const struct journal_ask_callbacks callbacks = {
        .message = take_answer, .writable = ask_on, .end = note_last};
    struct asking asking = {.next = 1, .last = COUNT};
    const struct idem_call_options options = {.timeout_ms = 60000,
                                              .user = &asking};
    struct journal_ask_stream *stream;

    (void)state;
    pthread_mutex_init(&asking.lock, NULL);
    pthread_cond_init(&asking.ended, NULL);
    journal_fail(&world.journal, 2, IDEM_UNAVAILABLE);
    stream = journal_ask_start(world.channel, &options, &callbacks);
    ask_on(stream);
    pthread_mutex_lock(&asking.lock);
    while (!asking.over)
        pthread_cond_wait(&asking.ended, &asking.lock);
    pthread_mutex_unlock(&asking.lock);
    journal_ask_release(stream);
    assert_int_equal(asking.outcome.status, IDEM_OK);
    assert_int_equal(asking.outcome.attempts, 3);
    assert_int_equal(asking.outcome.watermark, COUNT);
    assert_int_equal(asking.answered, COUNT);
    assert_false(asking.strange);
    assert_journal(&world, asking.outcome.key, COUNT, false);
    pthread_cond_destroy(&asking.ended);
    pthread_mutex_destroy(&asking.lock);
}

/* --- What is not OK --- */

/* It is recorded: the stream ends with it, and so does a repeat of it. */
static void
a_final_error_ends_the_stream_at_its_entry(void **state)
{
    const struct idem_call_options options = {.timeout_ms = 20000};
    struct journal_write_stream *stream =
        journal_write_open(world.channel, &options);
    struct written written;

    (void)state;
    for (int64_t i = 1; i <= 20; i++) {
        journal_entry entry = *journal_entry_of(i);

        entry.status = i == 8 ? IDEM_NOT_FOUND : IDEM_OK;
        if (journal_write_write(stream, &entry) != IDEM_OK)
            break;
    }
    written = finish(stream);
    assert_int_equal(written.status, IDEM_NOT_FOUND);
    assert_string_equal(written.outcome.message, "as it was asked to");
    assert_int_equal(written.outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_true(written.outcome.final);
    assert_int_equal(written.outcome.watermark, 7);
    assert_journal(&world, written.outcome.key, 7, false);
}

/* The client goes on from there, by the method's policy. */
static void
an_error_that_is_not_final_is_repeated_from_its_entry(void **state)
{
    const struct idem_call_options options = {.timeout_ms = 20000};
    struct journal_write_stream *stream;
    unsigned before = journal_runs(&world.journal);
    struct written written;

    (void)state;
    journal_fail(&world.journal, 3, IDEM_UNAVAILABLE);
    stream = journal_write_open(world.channel, &options);
    for (int64_t i = 1; i <= 20; i++)
        assert_int_equal(journal_write_write(stream, journal_entry_of(i)),
                         IDEM_OK);
    written = finish(stream);
    assert_int_equal(written.status, IDEM_OK);
    assert_int_equal(written.outcome.attempts, 4);
    assert_int_equal(written.outcome.watermark, 20);
    assert_int_equal(journal_runs(&world.journal), before + 23);
    assert_journal(&world, written.outcome.key, 20, true);
}

/* As often as the policy says, for one entry; the rest has taken effect. */
static void
attempts_are_counted_for_an_entry_and_not_for_the_stream(void **state)
{
    const struct idem_call_options options = {.timeout_ms = 20000};
    struct journal_write_stream *stream =
        journal_write_open(world.channel, &options);
    struct written written;

    (void)state;
    for (int64_t i = 1; i <= 10; i++) {
        unsigned before = journal_runs(&world.journal);

        if (i % 3 == 0)
            journal_fail(&world.journal, 4, IDEM_UNAVAILABLE);
        assert_int_equal(journal_write_write(stream, journal_entry_of(i)),
                         IDEM_OK);
        journal_await_runs(&world.journal, before + (i % 3 == 0 ? 5 : 1));
    }
    journal_fail(&world.journal, 1000, IDEM_UNAVAILABLE);
    (void)!journal_write_write(stream, journal_entry_of(11));
    written = finish(stream);
    journal_fail(&world.journal, 0, IDEM_OK);
    assert_int_equal(written.status, IDEM_UNAVAILABLE);
    assert_int_equal(written.outcome.stop, IDEM_STOP_ATTEMPTS);
    assert_int_equal(written.outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_false(written.outcome.final);
    assert_int_equal(written.outcome.watermark, 10);
    assert_journal(&world, written.outcome.key, 10, false);

    written = write_entries(written.outcome.key, 11, 12);
    assert_int_equal(written.status, IDEM_OK);
    assert_int_equal(written.outcome.watermark, 12);
    assert_journal(&world, written.outcome.key, 12, true);
}

/* --- Going on --- */

/* A process that knows its session, and how far it was, or less. */
static void
a_session_goes_on_in_another_process(void **state)
{
    const char *session = new_session();
    const struct idem_call_options options = {.key = key_of(session, 1),
                                              .timeout_ms = 20000};
    struct journal_write_stream *stream =
        journal_write_open(world.channel, &options);
    unsigned before = journal_runs(&world.journal);
    struct written first, again;

    (void)state;
    for (int64_t i = 1; i <= 50; i++)
        assert_int_equal(journal_write_write(stream, journal_entry_of(i)),
                         IDEM_OK);
    journal_await_runs(&world.journal, before + 50);
    journal_write_cancel(stream);
    first = finish(stream);
    assert_int_equal(first.status, IDEM_CANCELLED);
    assert_true(first.outcome.watermark <= 50);

    again = write_entries(key_of(session, 20), 20, 60);
    assert_int_equal(again.status, IDEM_OK);
    assert_int_equal(again.outcome.watermark, 60);
    assert_int_equal(again.entries, 60);
    assert_journal(&world, key_of(session, 1), 60, true);

    /* All of it once more, from the beginning: nothing runs. */
    before = journal_runs(&world.journal);
    first = again;
    again = write_entries(key_of(session, 1), 1, 60);
    assert_int_equal(again.status, IDEM_OK);
    assert_int_equal(again.outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_string_equal(again.word, first.word);
    assert_int_equal(journal_runs(&world.journal), before);
    assert_journal(&world, key_of(session, 1), 60, true);
}

static void
the_key_behind_the_watermark_can_be_asked_for(void **state)
{
    const char *session = new_session();
    struct written written = write_entries(key_of(session, 1), 1, 3);
    const struct idem_call_options options = {.key = key_of(session, 5),
                                              .timeout_ms = 20000};
    struct journal_ask_stream *stream;
    char key[IDEM_KEY_MAX + 1];

    (void)state;
    assert_int_equal(written.status, IDEM_OK); /* the end is number 4 */
    stream = journal_ask_open(world.channel, &options);
    assert_int_equal(journal_ask_write(stream, journal_entry_of(5)), IDEM_OK);
    assert_non_null(journal_ask_next(stream));
    assert_int_equal(journal_ask_watermark(stream), 5);
    assert_true(journal_ask_key(stream, key));
    assert_string_equal(key, key_of(session, 6));
    assert_int_equal(journal_ask_finish(stream, NULL), IDEM_OK);
}

/* --- What a client may not --- */

static void
another_entry_under_a_number_is_refused(void **state)
{
    const char *session = new_session();
    struct written written = write_entries(key_of(session, 1), 1, 10);

    (void)state;
    assert_int_equal(written.status, IDEM_OK);
    written = write_entries(key_of(session, 4), 5, 6);
    assert_refused(&written, IDEM_INVALID_ARGUMENT, IDEM_KEY_REUSED);
    assert_int_equal(written.outcome.watermark, 3);
    assert_journal(&world, key_of(session, 1), 10, true);
}

/* The end is no entry, not even one without a field. */
static void
an_end_is_no_entry_and_an_entry_no_end(void **state)
{
    const char *session = new_session();
    struct written written = write_entries(key_of(session, 1), 1, 10);

    (void)state;
    assert_int_equal(written.status, IDEM_OK);
    written = write_entries(key_of(session, 11), 0, 0);
    assert_refused(&written, IDEM_INVALID_ARGUMENT, IDEM_KEY_REUSED);
    written = write_entries(key_of(session, 5), 5, 8);
    assert_refused(&written, IDEM_INVALID_ARGUMENT, IDEM_KEY_REUSED);
    assert_journal(&world, key_of(session, 1), 10, true);
}

static void
a_gap_is_refused(void **state)
{
    const char *session = new_session();
    struct written written = write_entries(key_of(session, 2), 2, 3);

    (void)state;
    assert_refused(&written, IDEM_FAILED_PRECONDITION, IDEM_KEY_GAP);
    assert_int_equal(written.outcome.effect, IDEM_EFFECT_REFUSED);
    written = write_entries(key_of(session, 1), 1, 2);
    assert_int_equal(written.status, IDEM_OK);
    written = write_entries(key_of(session, 5), 5, 6);
    assert_refused(&written, IDEM_FAILED_PRECONDITION, IDEM_KEY_GAP);
    assert_journal(&world, key_of(session, 1), 2, true);
}

static void
nothing_follows_a_final_error(void **state)
{
    const char *session = new_session();
    struct written written;

    (void)state;
    journal_fail(&world.journal, 1, IDEM_OUT_OF_RANGE);
    written = write_entries(key_of(session, 1), 1, 1);
    assert_int_equal(written.status, IDEM_OUT_OF_RANGE);
    written = write_entries(key_of(session, 2), 2, 2);
    assert_refused(&written, IDEM_FAILED_PRECONDITION, IDEM_KEY_GAP);
    written = write_entries(key_of(session, 1), 1, 1);
    assert_int_equal(written.status, IDEM_OUT_OF_RANGE);
    assert_int_equal(written.outcome.effect, IDEM_EFFECT_REPLAYED);
}

static void
a_key_that_is_no_sessions_is_refused(void **state)
{
    struct written written = write_entries("order-1", 1, 2);

    (void)state;
    assert_refused(&written, IDEM_INVALID_ARGUMENT, IDEM_KEY_FORMAT);
    assert_int_equal(written.outcome.effect, IDEM_EFFECT_NOT_SENT);
}

/* --- What is forgotten --- */

/* The library's own session: its records go behind the watermark, and its
 * numbers never run again. */
static void
what_was_acknowledged_goes_and_is_refused(void **state)
{
    const struct idem_call_options options = {.timeout_ms = 60000};
    struct journal_write_stream *stream =
        journal_write_open(world.channel, &options);
    unsigned before = journal_runs(&world.journal);
    struct written written;

    (void)state;
    for (int64_t i = 1; i <= 400; i++) {
        assert_int_equal(journal_write_write(stream, journal_entry_of(i)),
                         IDEM_OK);
        if (i % 20 == 0) /* so that it is told of the entries before */
            journal_await_runs(&world.journal, before + (unsigned)i);
    }
    written = finish(stream);
    assert_int_equal(written.status, IDEM_OK);
    assert_true(journal_world_sql(&world, "SELECT count(*) FROM idem_session") >
                0);
    written =
        write_entries(key_of(journal_session_of(written.outcome.key), 1), 1, 1);
    assert_refused(&written, IDEM_FAILED_PRECONDITION, IDEM_KEY_STALE);
    assert_true(written.outcome.final);
    assert_journal(&world, written.outcome.key, 400, true);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_entry_is_once_and_in_order),
        cmocka_unit_test(a_stream_of_no_entries_has_an_end),
        cmocka_unit_test(a_leased_one_is_once_too),
        cmocka_unit_test(a_bidirectional_one_answers_each_entry_the_same_again),
        cmocka_unit_test(in_callbacks_more_is_written_than_is_kept),
        cmocka_unit_test(in_callbacks_each_entry_is_answered_in_order),
        cmocka_unit_test(a_final_error_ends_the_stream_at_its_entry),
        cmocka_unit_test(an_error_that_is_not_final_is_repeated_from_its_entry),
        cmocka_unit_test(
            attempts_are_counted_for_an_entry_and_not_for_the_stream),
        cmocka_unit_test(a_session_goes_on_in_another_process),
        cmocka_unit_test(the_key_behind_the_watermark_can_be_asked_for),
        cmocka_unit_test(another_entry_under_a_number_is_refused),
        cmocka_unit_test(an_end_is_no_entry_and_an_entry_no_end),
        cmocka_unit_test(a_gap_is_refused),
        cmocka_unit_test(nothing_follows_a_final_error),
        cmocka_unit_test(a_key_that_is_no_sessions_is_refused),
        cmocka_unit_test(what_was_acknowledged_goes_and_is_refused),
    };

    on_postgres = argc > 1 && strcmp(argv[1], "postgres") == 0;
    return cmocka_run_group_tests(tests, up, down);
}
