#include "fuzz.h"

#include "fuzz_flow.h"
#include "fuzz_peer.h"
#include "fuzz_steps.h"

#include <idem/server.h>

#include <stdlib.h>

/* A server's streams: a peer opens some of each kind and says on them what the
 * input says, then PING. The server keeps to the credit that it has, says END
 * once and last, and answers the PING or closes the connection. */

#define ADDRESS "inproc://fuzz_stream"
#define WINDOW 512

static struct idem_server *server;

static void
stop_server(void)
{
    idem_server_free(server);
}

static void
start_server(void)
{
    const struct idem_server_options options = {
        .workers = 4,
        .max_message = 8192,
        .stream_window = 1024,
        .max_pings = 1U << 30,
        .drain_ms = 1000,
        .compression = {.codec = IDEM_CODEC_ZSTD, .threshold = 64},
    };

    IDEM_ASSERT(idem_server_new(&server, &options, NULL) == IDEM_OK);
    IDEM_ASSERT(flow_register(server, &fuzz_flow_handlers, NULL, NULL) ==
                IDEM_OK);
    IDEM_ASSERT(idem_server_listen(server, ADDRESS, NULL) == IDEM_OK);
    IDEM_ASSERT(idem_server_start(server, NULL) == IDEM_OK);
    atexit(stop_server);
}

static void
listen_to_server(struct fuzz_peer *peer, struct fuzz_steps *steps)
{
    struct frame frame;

    while (fuzz_peer_next(peer, &frame)) {
        if (fuzz_is_pong(&frame))
            return;
        fuzz_steps_check(steps, &frame);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[FUZZ_HELLO_MAX + FUZZ_STEPS_MAX + FUZZ_PING_MAX];
    size_t hello = fuzz_put_hello(bytes, WINDOW);
    struct fuzz_steps steps = {.input = {data, size},
                               .client = true,
                               .window = WINDOW,
                               .first = 1,
                               .bytes = bytes + hello};
    struct fuzz_peer peer;

    if (!server)
        start_server();
    fuzz_steps_write(&steps);
    steps.size += fuzz_put_ping(steps.bytes + steps.size);
    fuzz_peer_connect(&peer, ADDRESS);
    (void)fuzz_peer_send(&peer, (struct idem_bytes){bytes, hello + steps.size});
    listen_to_server(&peer, &steps);
    fuzz_peer_close(&peer);
    return 0;
}
