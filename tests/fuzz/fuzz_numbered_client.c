#include "fuzz.h"

#include "fuzz_client.h"

#include <idem/clock.h>
#include <idem/key.h>
#include <idem/retry.h>

#include <pthread.h>

#include "feed.idem.h"
#include "journal.idem.h"

/* A client's streams that go on at another attempt: two whose messages take
 * effect once each, and one that resumes from its marks. Their server says on
 * them what the input says, watermarks, marks and ENDs too, then PING. The
 * client keeps to what fuzz_stream_client asks for, acknowledges no number
 * above its own, says OK only of what took effect whole, and each stream ends
 * once. */

#define STREAMS 3
#define WRITES 6

/* Those of one run. */
static struct run {
    pthread_mutex_t lock; /* guards ended */
    pthread_cond_t change;
    unsigned ended;
    bool takes; /* false: no message is taken */
    int64_t written[2];
} run;

static void
end_one(const struct idem_outcome *outcome)
{
    IDEM_ASSERT(outcome->status <= IDEM_UNAUTHENTICATED);
    pthread_mutex_lock(&run.lock);
    run.ended++;
    pthread_cond_signal(&run.change);
    pthread_mutex_unlock(&run.lock);
}

static void
end_numbered(const struct idem_outcome *outcome, int64_t written)
{
    IDEM_ASSERT(outcome->watermark <= written);
    IDEM_ASSERT(outcome->status != IDEM_OK ||
                (outcome->watermark == written && written == WRITES));
    end_one(outcome);
}

/* --- Written --- */

static void
write_on(struct journal_write_stream *stream)
{
    journal_entry entry = JOURNAL_ENTRY_INIT;

    for (; run.written[0] < WRITES; run.written[0]++)
        if (journal_write_write(stream, &entry) != IDEM_OK)
            return;
    journal_write_end(stream);
}

static void
end_write(struct journal_write_stream *stream, const journal_receipt *receipt,
          const struct idem_outcome *outcome)
{
    (void)stream;
    IDEM_ASSERT(!receipt || outcome->status == IDEM_OK);
    end_numbered(outcome, run.written[0]);
}

/* --- Asked --- */

static void
ask_on(struct journal_ask_stream *stream)
{
    static uint8_t padding[200];
    journal_entry entry = JOURNAL_ENTRY_INIT;

    entry.padding.data = padding;
    entry.padding.len = sizeof padding;
    for (; run.written[1] < WRITES; run.written[1]++)
        if (journal_ask_write(stream, &entry) != IDEM_OK)
            return;
    journal_ask_end(stream);
}

static bool
take_answer(struct journal_ask_stream *stream, const journal_answer *answer)
{
    (void)stream;
    (void)answer;
    return run.takes;
}

static void
end_ask(struct journal_ask_stream *stream, const struct idem_outcome *outcome)
{
    (void)stream;
    end_numbered(outcome, run.written[1]);
}

/* --- Followed --- */

static bool
take_event(struct feed_follow_marked_stream *stream, const feed_event *event)
{
    (void)stream;
    (void)event;
    return run.takes;
}

static void
end_follow(struct feed_follow_marked_stream *stream,
           const struct idem_outcome *outcome)
{
    (void)stream;
    end_one(outcome);
}

/* --- A run --- */

struct streams {
    struct journal_write_stream *write;
    struct journal_ask_stream *ask;
    struct feed_follow_marked_stream *follow;
};

/* Each in a session of its own. */
static struct idem_call_options
options_with(char key[IDEM_KEY_MAX + 1])
{
    char session[IDEM_SESSION_MAX];

    idem_session_mint(session, idem_clock_system(), 0, 60000);
    idem_key_of_session(key, session, 1);
    return (struct idem_call_options){
        .key = key, .wait_for_ready = true, .timeout_ms = INT64_MAX};
}

static struct streams
start_streams(struct idem_channel *channel, bool takes)
{
    static const struct journal_write_callbacks write_callbacks = {
        .writable = write_on, .end = end_write};
    static const struct journal_ask_callbacks ask_callbacks = {
        .message = take_answer, .writable = ask_on, .end = end_ask};
    static const struct feed_follow_marked_callbacks follow_callbacks = {
        .message = take_event, .end = end_follow};
    feed_follow_request request = FEED_FOLLOW_REQUEST_INIT;
    char keys[STREAMS][IDEM_KEY_MAX + 1];
    struct idem_call_options options[STREAMS];
    struct streams streams;

    run = (struct run){.takes = takes};
    pthread_mutex_init(&run.lock, NULL);
    pthread_cond_init(&run.change, NULL);
    for (unsigned i = 0; i < STREAMS; i++)
        options[i] = options_with(keys[i]);
    streams.write = journal_write_start(channel, &options[0], &write_callbacks);
    streams.ask = journal_ask_start(channel, &options[1], &ask_callbacks);
    streams.follow = feed_follow_marked_start(channel, &request, &options[2],
                                              &follow_callbacks);
    write_on(streams.write); /* writable goes on */
    ask_on(streams.ask);
    return streams;
}

static void
end_streams(struct streams *streams)
{
    journal_write_cancel(streams->write);
    journal_ask_cancel(streams->ask);
    feed_follow_marked_cancel(streams->follow);
    pthread_mutex_lock(&run.lock);
    while (run.ended < STREAMS)
        pthread_cond_wait(&run.change, &run.lock);
    IDEM_ASSERT(run.ended == STREAMS);
    pthread_mutex_unlock(&run.lock);
    journal_write_release(streams->write);
    journal_ask_release(streams->ask);
    feed_follow_marked_release(streams->follow);
    pthread_cond_destroy(&run.change);
    pthread_mutex_destroy(&run.lock);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_steps steps = {.input = {data, size}, .marks = true};
    struct streams streams = start_streams(fuzz_client_channel(idem_retry_new),
                                           fuzz_take_byte(&steps.input) & 1);

    fuzz_client_talk(&steps, STREAMS);
    end_streams(&streams);
    fuzz_client_settle();
    return 0;
}
