#include "fuzz_flow.h"

#define COUNT_MAX 64

/* --- On workers --- */

static enum idem_status
count(struct idem_context *context, const flow_count_request *request,
      struct flow_count_server_stream *stream)
{
    flow_note note = FLOW_NOTE_INIT;
    enum idem_status status = IDEM_OK;

    (void)context;
    for (uint64_t i = 0; i < request->count % COUNT_MAX && status == IDEM_OK;
         i++)
        status = flow_count_send(stream, &note);
    return status;
}

static enum idem_status
sum(struct idem_context *context, struct flow_sum_server_stream *stream,
    flow_sum_reply *reply)
{
    (void)context;
    while (flow_sum_receive(stream))
        reply->count++;
    return IDEM_OK;
}

static enum idem_status
chat(struct idem_context *context, struct flow_chat_server_stream *stream)
{
    enum idem_status status = IDEM_OK;
    const flow_note *note;

    (void)context;
    while (status == IDEM_OK && (note = flow_chat_receive(stream)))
        status = flow_chat_send(stream, note);
    return status;
}

/* --- In callbacks --- */

static void
send_counted(struct flow_count_async_server_stream *stream)
{
    uint64_t *left = flow_count_async_server_user(stream);
    flow_note note = FLOW_NOTE_INIT;

    for (; *left > 0; --*left)
        if (flow_count_async_send(stream, &note) != IDEM_OK)
            return;
    flow_count_async_close(stream, IDEM_OK);
}

static void
end_count(struct flow_count_async_server_stream *stream,
          enum idem_status status)
{
    flow_count_async_close(stream, status);
}

static enum idem_status
count_async(struct idem_context *context, const flow_count_request *request,
            struct flow_count_async_server_stream *stream)
{
    static const struct flow_count_async_server_callbacks callbacks = {
        .writable = send_counted, .end = end_count};
    uint64_t *left = idem_context_alloc(context, sizeof *left);

    *left = request->count % COUNT_MAX;
    flow_count_async_serve(stream, &callbacks, left);
    send_counted(stream);
    return IDEM_OK;
}

static void
end_sum(struct flow_sum_async_server_stream *stream, enum idem_status status)
{
    flow_sum_async_close(stream, status);
}

static enum idem_status
sum_async(struct idem_context *context,
          struct flow_sum_async_server_stream *stream, flow_sum_reply *reply)
{
    static const struct flow_sum_async_server_callbacks callbacks = {
        .end = end_sum};

    (void)context;
    (void)reply;
    flow_sum_async_serve(stream, &callbacks, NULL);
    return IDEM_OK;
}

static void
end_chat(struct flow_chat_async_server_stream *stream, enum idem_status status)
{
    flow_chat_async_close(stream, status);
}

static bool
send_back(struct flow_chat_async_server_stream *stream, const flow_note *note)
{
    return flow_chat_async_send(stream, note) != IDEM_UNAVAILABLE;
}

static enum idem_status
chat_async(struct idem_context *context,
           struct flow_chat_async_server_stream *stream)
{
    static const struct flow_chat_async_server_callbacks callbacks = {
        .message = send_back, .end = end_chat};

    (void)context;
    flow_chat_async_serve(stream, &callbacks, NULL);
    return IDEM_OK;
}

const struct flow_handlers fuzz_flow_handlers = {
    .count = count,
    .sum = sum,
    .chat = chat,
    .count_async = count_async,
    .sum_async = sum_async,
    .chat_async = chat_async,
};
