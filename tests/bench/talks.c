#include "talks.h"

#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS 60000 /* of a stream: the whole measurement */

static const struct idem_call_metadata token = {
    SIDE_TOKEN_NAME,
    {(const uint8_t *)SIDE_TOKEN, sizeof SIDE_TOKEN - 1},
};

static enum idem_status
check_token(struct idem_context *context)
{
    struct idem_bytes value;

    if (idem_metadata_get(idem_context_metadata(context), SIDE_TOKEN_NAME,
                          &value) &&
        value.size == strlen(SIDE_TOKEN))
        return IDEM_OK;
    return idem_context_fail(context, IDEM_UNAUTHENTICATED, "no token");
}

/* --- The server's --- */

static bool
send_back(struct bench_talk_server_stream *stream, const bench_request *message)
{
    bench_reply reply = BENCH_REPLY_INIT;

    reply.body = message->body;
    return bench_talk_send(stream, &reply) != IDEM_UNAVAILABLE;
}

static void
end_talk(struct bench_talk_server_stream *stream, enum idem_status status)
{
    bench_talk_close(stream, status);
}

static const struct bench_talk_server_callbacks talk_callbacks = {
    .message = send_back,
    .end = end_talk,
};

enum idem_status
talks_serve(struct idem_context *context,
            struct bench_talk_server_stream *stream)
{
    bench_talk_serve(stream, &talk_callbacks, NULL);
    return check_token(context);
}

static void
send_on(struct bench_watch_server_stream *stream)
{
    const bench_request *request = bench_watch_server_user(stream);
    bench_reply reply = BENCH_REPLY_INIT;

    reply.body = request->body;
    while (bench_watch_send(stream, &reply) == IDEM_OK)
        ;
}

static void
end_watch(struct bench_watch_server_stream *stream, enum idem_status status)
{
    bench_watch_close(stream, status);
}

static const struct bench_watch_server_callbacks watch_callbacks = {
    .writable = send_on,
    .end = end_watch,
};

enum idem_status
talks_watch(struct idem_context *context, const bench_request *request,
            struct bench_watch_server_stream *stream)
{
    bench_request *kept = idem_context_alloc(context, sizeof *kept);
    enum idem_status status = check_token(context);

    *kept = *request; /* lives as long as the call */
    bench_watch_serve(stream, &watch_callbacks, kept);
    if (status == IDEM_OK)
        send_on(stream);
    return status;
}

/* --- The client's --- */

struct talk {
    const struct side_options *options;
    struct tally *tally;
    int64_t since_ns;
};

static struct talk *
talk_new(const struct side_options *options, struct tally *tally)
{
    struct talk *talk = malloc(sizeof *talk);

    if (!talk)
        side_die("memory", "out");
    *talk = (struct talk){options, tally, now_ns()};
    return talk;
}

static void
check_body(const struct talk *talk, const bench_reply *reply)
{
    if (reply->body.len != talk->options->bytes ||
        memcmp(reply->body.data, talk->options->body, reply->body.len) != 0)
        side_die("stream", "another body came back");
}

static bench_request
request_of(const struct side_options *options)
{
    bench_request request = BENCH_REQUEST_INIT;
    /* protobuf-c has no const bytes. */
    request.body.data = (uint8_t *)(uintptr_t)options->body;
    request.body.len = options->bytes;
    return request;
}

static void
speak(struct bench_talk_stream *stream, struct talk *talk)
{
    bench_request request = request_of(talk->options);
    enum idem_status status;

    talk->since_ns = now_ns();
    status = bench_talk_write(stream, &request);
    if (status != IDEM_OK && status != IDEM_UNAVAILABLE)
        side_die("write", idem_status_name(status));
}

static bool
answer(struct bench_talk_stream *stream, const bench_reply *reply)
{
    struct talk *talk = bench_talk_user(stream);

    check_body(talk, reply);
    if (tally_add(talk->tally, talk->since_ns))
        speak(stream, talk);
    return true;
}

static void
say_first(struct bench_talk_stream *stream)
{
    speak(stream, bench_talk_user(stream));
}

static void
fail_talk(struct bench_talk_stream *stream, const struct idem_outcome *outcome)
{
    (void)stream;
    side_die("stream", outcome->message);
}

static const struct bench_talk_callbacks speakers = {
    .message = answer,
    .writable = say_first,
    .end = fail_talk,
};

void
talks_start(struct idem_channel *const *channels,
            const struct side_options *options, struct tally *tally)
{
    for (unsigned i = 0; i < options->in_flight; i++) {
        struct talk *talk = talk_new(options, tally);
        const struct idem_call_options how = {.user = talk,
                                              .timeout_ms = TIMEOUT_MS,
                                              .metadata = &token,
                                              .n_metadata = 1};

        speak(bench_talk_start(channels[i % options->connections], &how,
                               &speakers),
              talk);
    }
}

static bool
note_message(struct bench_watch_stream *stream, const bench_reply *reply)
{
    struct talk *talk = bench_watch_user(stream);

    check_body(talk, reply);
    if (talk->tally && !tally_add(talk->tally, talk->since_ns)) {
        talk->tally = NULL;
        bench_watch_cancel(stream);
    }
    talk->since_ns = now_ns();
    return true;
}

static void
end_note(struct bench_watch_stream *stream, const struct idem_outcome *outcome)
{
    struct talk *talk = bench_watch_user(stream);

    if (talk->tally)
        side_die("stream", outcome->message);
}

static const struct bench_watch_callbacks watchers = {
    .message = note_message,
    .end = end_note,
};

void
talks_start_watching(struct idem_channel *const *channels,
                     const struct side_options *options, struct tally *tally)
{
    const bench_request request = request_of(options);

    for (unsigned i = 0; i < options->in_flight; i++) {
        const struct idem_call_options how = {.user = talk_new(options, tally),
                                              .timeout_ms = TIMEOUT_MS,
                                              .metadata = &token,
                                              .n_metadata = 1};

        (void)bench_watch_start(channels[i % options->connections], &request,
                                &how, &watchers);
    }
}
