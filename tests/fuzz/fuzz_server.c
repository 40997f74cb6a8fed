#include "fuzz.h"

#include "feed.h"
#include "fuzz_flow.h"
#include "fuzz_peer.h"
#include "fuzz_wire.h"
#include "server.h"

#include <idem/context.h>

#include <stdlib.h>
#include <string.h>

#include "echo.idem.h"

/* A server's whole way in: a peer that says hello, then anything, then PING
 * (case B089). The server answers the PING or has closed the connection; none
 * of it hurts the peers that come after. */

#define ADDRESS "inproc://fuzz"
#define MAX_MESSAGE 32768
#define INPUT_MAX 65536
#define PAD_MAX (2 * MAX_MESSAGE) /* zeros that make the last frame whole */

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
    IDEM_ASSERT(flow_register(server, &fuzz_flow_handlers, NULL, NULL) ==
                IDEM_OK);
    IDEM_ASSERT(server_listen_with_io(server, &fuzz_wire_io, FUZZ_WIRE_ADDRESS,
                                      NULL) == IDEM_OK);
    IDEM_ASSERT(idem_server_start(server, NULL) == IDEM_OK);
    atexit(stop_server);
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

/* Until the server has answered the PING, or closed. It speaks our language. */
static void
listen_to_server(struct fuzz_peer *peer)
{
    struct frame frame;

    while (fuzz_peer_next(peer, &frame))
        if (fuzz_is_pong(&frame))
            return;
}

static void
visit(struct idem_bytes input, size_t pad)
{
    uint8_t *bytes =
        calloc(1, FUZZ_HELLO_MAX + FUZZ_PING_MAX + input.size + pad);
    struct idem_bytes all = {bytes, 0};
    struct fuzz_peer peer;

    IDEM_ASSERT(bytes);
    all.size = fuzz_put_hello(bytes, 512);
    if (input.size > 0)
        memcpy(bytes + all.size, input.data, input.size);
    all.size += input.size + pad;
    all.size += fuzz_put_ping(bytes + all.size);
    fuzz_peer_connect(&peer);
    (void)fuzz_peer_send(&peer, all);
    if (pad < PAD_MAX) /* else it hangs up in the middle of a frame */
        listen_to_server(&peer);
    fuzz_peer_close(&peer);
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
