#include "journal_writer.h"

#include "journal.h"

#include <idem/session.h>
#include <idem/standard.h>

#include <stdio.h>

static const journal_entry *
entry_of(int64_t number)
{
    static _Thread_local journal_entry entry;

    entry = (journal_entry)JOURNAL_ENTRY_INIT;
    entry.number = number;
    return &entry;
}

static void *
read_answers(void *with)
{
    struct journal_writer *writer = with;
    const journal_answer *answer;

    while ((answer = journal_ask_next(writer->stream))) {
        writer->strange |= answer->number != ++writer->read;
        if (writer->read <= JOURNAL_COUNT)
            snprintf(writer->words[writer->read - 1], sizeof writer->words[0],
                     "%s", answer->word);
    }
    return NULL;
}

static void
write_all(struct journal_writer *writer,
          enum idem_status (*write)(struct idem_stream *stream,
                                    const struct ProtobufCMessage *message))
{
    for (int64_t i = 1; i <= writer->count; i++) {
        if (write(writer->stream, &entry_of(i)->base) != IDEM_OK)
            return;
        if (writer->at)
            writer->at(writer, i);
    }
}

static void
talk(struct journal_writer *writer, struct idem_channel *channel)
{
    static const struct idem_method *const methods[] = {
        &journal_write_method, &journal_push_method, &journal_ask_method};
    const struct idem_call_options options = {.timeout_ms = JOURNAL_CALL_MS,
                                              .wait_for_ready = true};
    struct ProtobufCMessage *reply = NULL;

    writer->stream =
        idem_stream_open(channel, methods[writer->kind], NULL, &options);
    if (writer->kind == JOURNAL_ASK)
        pthread_create(&writer->reader, NULL, read_answers, writer);
    write_all(writer, idem_stream_write);
    if (writer->kind == JOURNAL_ASK) {
        idem_stream_end(writer->stream);
        pthread_join(writer->reader, NULL);
        idem_stream_finish(writer->stream, NULL, &writer->outcome);
    } else if (idem_stream_finish(writer->stream, &reply, &writer->outcome) ==
               IDEM_OK) {
        writer->entries = ((journal_receipt *)reply)->entries;
        journal_receipt_free((journal_receipt *)reply);
    }
}

static void *
run(void *with)
{
    struct journal_writer *writer = with;
    const struct idem_channel_options options = {.connect_backoff_ms = 10};
    struct idem_channel *channel;
    struct idem_error err;

    if (idem_client_open(&channel, writer->target, &options, &err) == IDEM_OK) {
        talk(writer, channel);
        idem_channel_close(channel);
    }
    atomic_store(&writer->over, true);
    return NULL;
}

void
journal_writer_start(struct journal_writer *writer)
{
    assert_int_equal(pthread_create(&writer->thread, NULL, run, writer), 0);
}

static const char *
session_of(const struct journal_writer *writer)
{
    static char session[IDEM_SESSION_MAX];
    int64_t number;

    assert_true(idem_session_split(idem_bytes_of(writer->outcome.key), session,
                                   &number));
    assert_int_equal(number, writer->count + 1);
    return session;
}

static void
assert_answers(const struct journal_site *site,
               const struct journal_writer *writer, const char *session)
{
    assert_int_equal(writer->read, writer->count);
    assert_false(writer->strange);
    for (int64_t i = 0; i < writer->count && i < JOURNAL_COUNT; i += 10)
        assert_int_equal(
            journal_site_ask(site,
                             "SELECT count(*) FROM journal WHERE session = "
                             "'%s' AND number = %lld AND word = '%s'",
                             session, (long long)i + 1, writer->words[i]),
            1);
}

/* The keys of each entry, and of the end. */
static void
tell(struct checker *checker, const struct journal_writer *writer,
     const char *session)
{
    checker_session(
        checker, session,
        writer->kind == JOURNAL_PUSH ? CHECKER_RUN_AGAIN : CHECKER_RUN_ONCE,
        writer->count + 1, writer->count + (writer->kind != JOURNAL_ASK));
}

void
assert_journal_written(struct journal_site *site,
                       const struct journal_writer *writer)
{
    const char *session;

    if (writer->outcome.status != IDEM_OK)
        fail_msg("%s after %lld, %u attempts: %s",
                 idem_status_name(writer->outcome.status),
                 (long long)writer->outcome.watermark, writer->outcome.attempts,
                 writer->outcome.message);
    assert_int_equal(writer->outcome.watermark, writer->count);
    session = session_of(writer);
    tell(site->checker, writer, session);
    if (writer->kind == JOURNAL_PUSH) {
        assert_journal_lines(site, session, writer->count);
        return;
    }
    assert_journal_rows(site, session, writer->count,
                        writer->kind == JOURNAL_WRITE);
    if (writer->kind == JOURNAL_ASK)
        assert_answers(site, writer, session);
    else
        assert_int_equal(writer->entries, writer->count);
}
