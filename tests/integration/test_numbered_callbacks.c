/* Streams whose messages take effect once each, in callback style, on each
 * authority.
 *
 *    test_numbered_callbacks sqlite|postgres */
#include "numbered_story.h"

#define COUNT 100

/* --- Written --- */

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
    stream = journal_write_start(numbered_world.channel, &options, &callbacks);
    go_on(stream);
    pthread_mutex_lock(&writing.lock);
    while (!writing.over)
        pthread_cond_wait(&writing.ended, &writing.lock);
    pthread_mutex_unlock(&writing.lock);
    journal_write_release(stream);
    assert_int_equal(writing.outcome.status, IDEM_OK);
    assert_int_equal(writing.outcome.watermark, writing.last);
    assert_int_equal(writing.entries, writing.last);
    assert_journal(&numbered_world, writing.outcome.key, writing.last, true);
    pthread_cond_destroy(&writing.ended);
    pthread_mutex_destroy(&writing.lock);
}

/* --- Asked --- */

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
    journal_fail(&numbered_world.journal, 2, IDEM_UNAVAILABLE);
    stream = journal_ask_start(numbered_world.channel, &options, &callbacks);
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
    assert_journal(&numbered_world, asking.outcome.key, COUNT, false);
    pthread_cond_destroy(&asking.ended);
    pthread_mutex_destroy(&asking.lock);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_callbacks_more_is_written_than_is_kept),
        cmocka_unit_test(in_callbacks_each_entry_is_answered_in_order),
    };

    numbered_choose(argc, argv);
    return cmocka_run_group_tests(tests, numbered_up, numbered_down);
}
