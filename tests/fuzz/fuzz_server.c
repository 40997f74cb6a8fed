#include "fuzz.h"

#include "feed.h"
#include "header.h"
#include "io.h"

#include <idem/context.h>
#include <idem/server.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "echo.idem.h"
#include "flow.idem.h"

/* A server's whole way in: a peer that says hello, then anything, then PING
 * (case B089). The server answers the PING or has closed the connection; none
 * of it hurts the peers that come after. */

#define ADDRESS "inproc://fuzz"
#define MAX_MESSAGE 32768
#define INPUT_MAX 65536
#define PAD_MAX (2 * MAX_MESSAGE) /* zeros that make the last frame whole */

static const char marker[] = "are you there";

/* --- The server --- */

static enum idem_status
echo(struct idem_context *context, const echo_echo_request *request,
     echo_echo_reply *reply)
{
    reply->body = request->body;
    reply->number = request->number;
    reply->key = idem_context_printf(context, "%s", idem_context_key(context));
    reply->attempt = idem_context_attempt(context);
    return IDEM_OK;
}

static enum idem_status
fail(struct idem_context *context, const echo_fail_request *request,
     echo_echo_reply *reply)
{
    (void)reply;
    return idem_context_fail(context, (enum idem_status)request->status, "%s",
                             request->message);
}

static enum idem_status
grow(struct idem_context *context, const echo_grow_request *request,
     echo_echo_reply *reply)
{
    (void)context;
    reply->number = request->size;
    return IDEM_OK;
}

static const struct echo_handlers handlers = {
    .echo = echo,
    .echo_inline = echo,
    .fail = fail,
    .block = echo,
    .grow = grow,
};

/* --- Streams: they take what comes, and send it back --- */

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
chat(struct idem_context *context, struct flow_chat_async_server_stream *stream)
{
    static const struct flow_chat_async_server_callbacks callbacks = {
        .message = send_back, .end = end_chat};

    (void)context;
    flow_chat_async_serve(stream, &callbacks, NULL);
    return IDEM_OK;
}

static void
end_sum(struct flow_sum_async_server_stream *stream, enum idem_status status)
{
    flow_sum_async_close(stream, status);
}

static enum idem_status
sum(struct idem_context *context, struct flow_sum_async_server_stream *stream,
    flow_sum_reply *reply)
{
    static const struct flow_sum_async_server_callbacks callbacks = {
        .end = end_sum};

    (void)context;
    (void)reply;
    flow_sum_async_serve(stream, &callbacks, NULL);
    return IDEM_OK;
}

static enum idem_status
count(struct idem_context *context, const flow_count_request *request,
      struct flow_count_server_stream *stream)
{
    flow_note note = FLOW_NOTE_INIT;
    enum idem_status status = IDEM_OK;

    (void)context;
    for (uint64_t i = 0; i < request->count % 64 && status == IDEM_OK; i++)
        status = flow_count_send(stream, &note);
    return status;
}

static const struct flow_handlers flow_handlers = {
    .chat_async = chat,
    .sum_async = sum,
    .count = count,
};

static struct idem_server *server;

static void
stop_server(void)
{
    idem_server_free(server);
}

static void
start_server(void)
{
    const struct idem_server_options options = {.workers = 2,
                                                .max_message = MAX_MESSAGE,
                                                .max_streams = 100,
                                                .max_streaming = 50,
                                                .stream_window = 2048,
                                                .max_pings = 1u << 30,
                                                .drain_ms = 1000};

    IDEM_ASSERT(idem_server_new(&server, &options, NULL) == IDEM_OK);
    IDEM_ASSERT(echo_register(server, &handlers, NULL, NULL) == IDEM_OK);
    IDEM_ASSERT(flow_register(server, &flow_handlers, NULL, NULL) == IDEM_OK);
    IDEM_ASSERT(idem_server_listen(server, ADDRESS, NULL) == IDEM_OK);
    IDEM_ASSERT(idem_server_start(server, NULL) == IDEM_OK);
    atexit(stop_server);
}

/* --- Its peer: one operation at a time, waited for --- */

struct peer {
    struct io_stream *stream;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t change;
    bool done;
    enum idem_status result;
    size_t size;
};

static void
note(struct peer *peer, enum idem_status result, size_t size)
{
    pthread_mutex_lock(&peer->lock);
    peer->done = true;
    peer->result = result;
    peer->size = size;
    pthread_cond_signal(&peer->change);
    pthread_mutex_unlock(&peer->lock);
}

static void
finished(void *with, enum idem_status result, size_t size)
{
    note(with, result, size);
}

static void
opened(void *with, struct io_stream *stream, const struct idem_error *err)
{
    struct peer *peer = with;

    IDEM_ASSERT(stream || err->message[0]);
    peer->stream = stream;
    note(peer, IDEM_OK, 0);
}

/* Bytes; 0: the connection is closed. */
static size_t
await(struct peer *peer, bool taken)
{
    size_t size;

    if (!taken)
        return 0;
    pthread_mutex_lock(&peer->lock);
    while (!peer->done)
        pthread_cond_wait(&peer->change, &peer->lock);
    peer->done = false;
    size = peer->result == IDEM_OK ? peer->size : 0;
    pthread_mutex_unlock(&peer->lock);
    return size;
}

static void
connect_peer(struct peer *peer)
{
    struct io_dialer *dialer;

    *peer = (struct peer){.stream = NULL};
    pthread_mutex_init(&peer->lock, NULL);
    pthread_cond_init(&peer->change, NULL);
    IDEM_ASSERT(io_inproc.dialer(&io_inproc, ADDRESS, &dialer, NULL) ==
                IDEM_OK);
    (void)await(peer, dialer->ops->dial(dialer, opened, peer));
    IDEM_ASSERT(peer->stream);
    dialer->ops->free(dialer);
}

static void
close_peer(struct peer *peer)
{
    peer->stream->ops->close(peer->stream);
    peer->stream->ops->free(peer->stream);
    pthread_cond_destroy(&peer->change);
    pthread_mutex_destroy(&peer->lock);
}

/* --- What it says --- */

/* What the server's frame reader makes of it. */
static void
cut(struct feed *feed)
{
    enum inbox_next next;
    struct frame frame;

    do
        next = inbox_next(&feed->inbox, &frame);
    while (next == INBOX_FRAME);
    feed->broken = next == INBOX_BROKEN;
}

/* Zeros that make the last frame whole; PAD_MAX: too many. */
static size_t
missing(struct idem_bytes bytes)
{
    struct feed mirror = {.cut = cut};
    size_t pad;

    IDEM_ASSERT(inbox_init(&mirror.inbox, MAX_MESSAGE));
    feed_bytes(&mirror, bytes, SIZE_MAX);
    pad = feed_zeros(&mirror, PAD_MAX);
    inbox_fini(&mirror.inbox);
    return pad;
}

static size_t
put_hello(uint8_t *bytes)
{
    const struct header_settings mine = {
        .version = 1, .max_streams = 100, .stream_window = 512};
    uint8_t *header = bytes + FRAME_PREFACE + FRAME_HEAD;
    struct frame frame = {.type = FRAME_SETTINGS};

    frame.header.size = header_settings_write(header, 64, &mine);
    frame_preface_write(bytes);
    frame_head_write(bytes + FRAME_PREFACE, &frame);
    return FRAME_PREFACE + FRAME_HEAD + frame.header.size;
}

static size_t
put_ping(uint8_t *bytes)
{
    const struct frame frame = {
        .type = FRAME_PING,
        .payload = {(const uint8_t *)marker, sizeof marker}};

    frame_head_write(bytes, &frame);
    memcpy(bytes + FRAME_HEAD, marker, sizeof marker);
    return FRAME_HEAD + sizeof marker;
}

/* The preface is not a frame. */
static bool
skip_preface(struct inbox *inbox, bool *greeted)
{
    if (!*greeted)
        *greeted = inbox_preface(inbox) == INBOX_FRAME;
    return *greeted;
}

static bool
is_pong(const struct frame *frame)
{
    return frame->type == FRAME_PONG && frame->payload.size == sizeof marker &&
           memcmp(frame->payload.data, marker, sizeof marker) == 0;
}

/* Until the server has answered the PING, or closed. It speaks our language. */
static void
listen_to_server(struct peer *peer)
{
    struct inbox inbox;
    struct frame frame;
    bool greeted = false, answered = false;
    enum inbox_next next = INBOX_MORE;

    IDEM_ASSERT(inbox_init(&inbox, 0xffffffff));
    while (!answered) {
        size_t room, size;
        uint8_t *space = inbox_space(&inbox, &room);

        size = await(peer, peer->stream->ops->recv(peer->stream, space, room,
                                                   finished, peer));
        if (size == 0)
            break;
        inbox_filled(&inbox, size);
        if (!skip_preface(&inbox, &greeted))
            continue;
        while (!answered && (next = inbox_next(&inbox, &frame)) == INBOX_FRAME)
            answered = is_pong(&frame);
        IDEM_ASSERT(next != INBOX_BROKEN);
    }
    inbox_fini(&inbox);
}

static void
visit(struct idem_bytes input, size_t pad)
{
    uint8_t *bytes = calloc(1, 256 + input.size + pad);
    struct idem_bytes all = {bytes, 0};
    struct peer peer;

    IDEM_ASSERT(bytes);
    all.size = put_hello(bytes);
    if (input.size > 0)
        memcpy(bytes + all.size, input.data, input.size);
    all.size += input.size + pad;
    all.size += put_ping(bytes + all.size);
    connect_peer(&peer);
    (void)await(&peer,
                peer.stream->ops->send(peer.stream, &all, 1, finished, &peer));
    if (pad < PAD_MAX) /* else it hangs up in the middle of a frame */
        listen_to_server(&peer);
    close_peer(&peer);
    free(bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_bytes input = {data, size};
    size_t pad = missing(input);

    if (!server)
        start_server();
    if (size <= INPUT_MAX)
        visit(input, pad);
    return 0;
}
