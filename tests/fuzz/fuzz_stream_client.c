#include "fuzz.h"

#include "fuzz_client.h"

#include <pthread.h>

#include "flow.idem.h"

/* A client's streams, one of each kind: its server says on them what the input
 * says, then PING. The client keeps to the credit that it has, says nothing
 * after its end, answers the PING or closes the connection; and whatever came,
 * each stream ends once. */

#define STREAMS 3
#define WRITES 6

static struct idem_channel *channel;

/* --- Its streams --- */

/* Those of one run. */
struct run {
    pthread_mutex_t lock; /* guards ended */
    pthread_cond_t change;
    unsigned ended;
    bool takes; /* false: no message is taken */
    unsigned written[STREAMS];
};

static struct run run;

static void
end_one(const struct idem_outcome *outcome)
{
    IDEM_ASSERT(outcome->status <= IDEM_UNAUTHENTICATED);
    pthread_mutex_lock(&run.lock);
    run.ended++;
    pthread_cond_signal(&run.change);
    pthread_mutex_unlock(&run.lock);
}

static bool
take_count(struct flow_count_stream *stream, const flow_note *note)
{
    (void)stream;
    (void)note;
    return run.takes;
}

static void
end_count(struct flow_count_stream *stream, const struct idem_outcome *outcome)
{
    (void)stream;
    end_one(outcome);
}

static void
write_sum(struct flow_sum_stream *stream)
{
    flow_note note = FLOW_NOTE_INIT;

    for (; run.written[1] < WRITES; run.written[1]++)
        if (flow_sum_write(stream, &note) != IDEM_OK)
            return;
    flow_sum_end(stream);
}

static void
end_sum(struct flow_sum_stream *stream, const flow_sum_reply *reply,
        const struct idem_outcome *outcome)
{
    (void)stream;
    IDEM_ASSERT(!reply || outcome->status == IDEM_OK);
    end_one(outcome);
}

static void
write_chat(struct flow_chat_stream *stream)
{
    static uint8_t body[200];
    flow_note note = FLOW_NOTE_INIT;

    note.body.data = body;
    note.body.len = sizeof body;
    for (; run.written[2] < WRITES; run.written[2]++)
        if (flow_chat_write(stream, &note) != IDEM_OK)
            return;
    flow_chat_end(stream);
}

static bool
take_chat(struct flow_chat_stream *stream, const flow_note *note)
{
    (void)stream;
    (void)note;
    return run.takes;
}

static void
end_chat(struct flow_chat_stream *stream, const struct idem_outcome *outcome)
{
    (void)stream;
    end_one(outcome);
}

static const struct flow_count_callbacks count_callbacks = {
    .message = take_count, .end = end_count};
static const struct flow_sum_callbacks sum_callbacks = {.writable = write_sum,
                                                        .end = end_sum};
static const struct flow_chat_callbacks chat_callbacks = {
    .message = take_chat, .writable = write_chat, .end = end_chat};

struct streams {
    struct flow_count_stream *count;
    struct flow_sum_stream *sum;
    struct flow_chat_stream *chat;
};

static struct streams
start_streams(bool takes)
{
    const struct idem_call_options options = {.wait_for_ready = true,
                                              .timeout_ms = INT64_MAX};
    flow_count_request request = FLOW_COUNT_REQUEST_INIT;
    struct streams streams;

    run = (struct run){.takes = takes};
    pthread_mutex_init(&run.lock, NULL);
    pthread_cond_init(&run.change, NULL);
    streams.count =
        flow_count_start(channel, &request, &options, &count_callbacks);
    streams.sum = flow_sum_start(channel, &options, &sum_callbacks);
    streams.chat = flow_chat_start(channel, &options, &chat_callbacks);
    write_sum(streams.sum); /* writable goes on */
    write_chat(streams.chat);
    return streams;
}

/* Each ends once: those that the peer has not ended are given up. */
static void
end_streams(struct streams *streams)
{
    flow_count_cancel(streams->count);
    flow_sum_cancel(streams->sum);
    flow_chat_cancel(streams->chat);
    pthread_mutex_lock(&run.lock);
    while (run.ended < STREAMS)
        pthread_cond_wait(&run.change, &run.lock);
    IDEM_ASSERT(run.ended == STREAMS);
    pthread_mutex_unlock(&run.lock);
    flow_count_release(streams->count);
    flow_sum_release(streams->sum);
    flow_chat_release(streams->chat);
    pthread_cond_destroy(&run.change);
    pthread_mutex_destroy(&run.lock);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_steps steps = {.input = {data, size}};
    struct streams streams;

    channel = fuzz_client_channel(NULL);
    streams = start_streams(fuzz_take_byte(&steps.input) & 1);
    fuzz_client_talk(&steps, STREAMS);
    end_streams(&streams);
    fuzz_client_settle();
    return 0;
}
