#include "fuzz.h"

#include "fuzz_talk.h"
#include "fuzz_wire.h"
#include "header.h"
#include "journal.h"
#include "server.h"
#include "tempdir.h"

#include <idem/digest.h>
#include <idem/sqlite.h>
#include <idem/standard.h>

#include <stdlib.h>

/* A server's streams whose messages take effect once each: a peer opens some,
 * all in one session, says on them what the input says, then PING. The server
 * keeps to what fuzz_stream asks for, and its watermark is never above what was
 * sent, nor, where each message is answered, above its answers. */

static struct journal journal;
static struct tempdir dir;
static struct idem_server *server;

static void
stop_server(void)
{
    idem_server_free(server);
    journal_fini(&journal);
    tempdir_close(&dir);
}

static void
start_server(void)
{
    char books[TEMPDIR_MAX + 32];
    const struct idem_sqlite_options sqlite = {
        .path = (tempdir_open(&dir),
                 tempdir_file(&dir, "books", books, sizeof books)),
        .schema = JOURNAL_SCHEMA};
    const struct idem_server_options options = {
        .workers = 4,
        .max_message = 8192,
        .stream_window = 1024,
        .max_pings = 1U << 30,
        .drain_ms = 1000,
    };
    uint8_t hash[IDEM_SHA256_SIZE];
    struct idem_store *store;

    /* At exit the server still hashes: what libcrypto has to clean up then is
     * registered before stop_server, and so runs after it. */
    idem_sha256_of(idem_bytes_of(""), hash);
    journal_init(&journal, NULL);
    IDEM_ASSERT(idem_sqlite_open(&store, &sqlite, NULL) == IDEM_OK);
    IDEM_ASSERT(idem_server_open(&server, store, &options, NULL, NULL) ==
                IDEM_OK);
    IDEM_ASSERT(journal_register(server, &journal_handlers, &journal, NULL) ==
                IDEM_OK);
    IDEM_ASSERT(server_listen_with_io(server, &fuzz_wire_io, FUZZ_WIRE_ADDRESS,
                                      NULL) == IDEM_OK);
    IDEM_ASSERT(idem_server_start(server, NULL) == IDEM_OK);
    atexit(stop_server);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct fuzz_kind kinds[] = {
        {JOURNAL_WRITE_METHOD, IDEM_STREAMS_CLIENT | HEADER_EACH},
        {JOURNAL_ASK_METHOD, IDEM_STREAMS_BOTH | HEADER_EACH}};

    if (!server)
        start_server();
    fuzz_talk((struct idem_bytes){data, size}, kinds, 2);
    return 0;
}
