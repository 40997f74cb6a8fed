#include "fuzz.h"

#include "fuzz_flow.h"
#include "fuzz_talk.h"
#include "fuzz_wire.h"
#include "server.h"

#include <stdlib.h>

/* A server's streams: a peer opens some of each kind and says on them what the
 * input says, then PING. The server keeps to the credit that it has, says END
 * once and last, and answers the PING or closes the connection. */

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
    IDEM_ASSERT(server_listen_with_io(server, &fuzz_wire_io, FUZZ_WIRE_ADDRESS,
                                      NULL) == IDEM_OK);
    IDEM_ASSERT(idem_server_start(server, NULL) == IDEM_OK);
    atexit(stop_server);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!server)
        start_server();
    fuzz_talk((struct idem_bytes){data, size}, fuzz_flow_kinds,
              FUZZ_FLOW_KINDS);
    return 0;
}
