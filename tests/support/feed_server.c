/* feed_server: the service of feed.proto as a process that dies when it is told
 * to: before event N of a stream if there is a file die.N in its folder, which
 * is removed first; before the end, if die.end is there. Its messages travel
 * compressed if there is a file compress when it starts.
 *
 *   feed_server ADDRESS FOLDER sqlite FILE
 *   feed_server ADDRESS FOLDER postgres CONNINFO
 */
#include "feed.idem.h"
#include "postgres.h"

#include <idem/postgres.h>
#include <idem/sqlite.h>
#include <idem/standard.h>
#include <idem/tx.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *folder;
static uint8_t padding[2048];

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status == IDEM_OK)
        return;
    fprintf(stderr, "feed_server: %s\n", err->message);
    exit(1);
}

static void
die_if_told(const char *when)
{
    char path[512];

    snprintf(path, sizeof path, "%s/die.%s", folder, when);
    if (unlink(path) == 0)
        raise(SIGKILL);
}

/* --- The effect --- */

static enum idem_status
keep_number(struct idem_context *context)
{
    const struct idem_clock *clock = idem_clock_system();
    struct idem_error err;
    uint64_t number;
    char text[32];

    clock->random(clock, &number, sizeof number);
    snprintf(text, sizeof text, "%llx", (unsigned long long)number);
    if (idem_context_keep(context, idem_bytes_of(text), &err) != IDEM_OK)
        return idem_context_fail_with(context, &err);
    return IDEM_OK;
}

static enum idem_status
follow(struct idem_context *context, const feed_follow_request *request)
{
    struct idem_error err;
    struct idem_tx *tx = idem_context_tx(context, &err);

    (void)request;
    if (!tx ||
        idem_sql(tx, NULL, &err, "INSERT INTO feed_effects (key) VALUES ($1)",
                 IDEM_VALUES(idem_text(idem_context_key(context)))) != IDEM_OK)
        return idem_context_fail_with(context, &err);
    return keep_number(context);
}

/* Its effect is a line in a file (checker_read_log). */
static enum idem_status
follow_marked(struct idem_context *context, const feed_follow_request *request)
{
    char path[512];
    FILE *file;

    (void)request;
    snprintf(path, sizeof path, "%s/effects", folder);
    file = fopen(path, "a");
    if (!file)
        return idem_context_fail(context, IDEM_INTERNAL, "no file");
    fprintf(file, "%s followed\n", idem_context_key(context));
    fclose(file);
    return keep_number(context);
}

/* --- The messages --- */

static const char *
text_of(struct idem_context *context, struct idem_bytes bytes)
{
    return idem_context_printf(context, "%.*s", (int)bytes.size,
                               (const char *)bytes.data);
}

static enum idem_status
end(struct idem_context *context, const feed_follow_request *request,
    enum idem_status status)
{
    if (status != IDEM_OK)
        return status;
    die_if_told("end");
    if (request->status != IDEM_OK)
        return idem_context_fail(context, (enum idem_status)request->status,
                                 "as it was asked to");
    return IDEM_OK;
}

static enum idem_status
follow_messages(struct idem_context *context,
                const feed_follow_request *request,
                struct feed_follow_server_stream *stream)
{
    const char *kept = text_of(context, feed_follow_kept(stream));
    enum idem_status status = IDEM_OK;

    for (uint32_t i = 1; i <= request->count && status == IDEM_OK; i++) {
        feed_event event = FEED_EVENT_INIT;
        char number[16];

        event.padding.data = padding;
        event.padding.len = sizeof padding;
        event.number = i;
        event.from = 1;
        event.kept = kept;
        snprintf(number, sizeof number, "%u", i);
        die_if_told(number);
        status = feed_follow_send(stream, &event);
    }
    return end(context, request, status);
}

static enum idem_status
follow_marked_messages(struct idem_context *context,
                       const feed_follow_request *request,
                       struct feed_follow_marked_server_stream *stream)
{
    const char *kept = text_of(context, feed_follow_marked_kept(stream));
    const char *at = text_of(context, feed_follow_marked_resumed_at(stream));
    uint32_t from = 1 + (uint32_t)strtoul(at, NULL, 10);
    enum idem_status status = IDEM_OK;

    for (uint32_t i = from; i <= request->count && status == IDEM_OK; i++) {
        feed_event event = FEED_EVENT_INIT;
        char number[16];

        event.padding.data = padding;
        event.padding.len = sizeof padding;
        event.number = i;
        event.from = from;
        event.kept = kept;
        snprintf(number, sizeof number, "%u", i);
        die_if_told(number);
        feed_follow_marked_mark(stream, idem_bytes_of(number));
        status = feed_follow_marked_send(stream, &event);
    }
    return end(context, request, status);
}

static const struct feed_handlers handlers = {
    .follow = follow,
    .follow_messages = follow_messages,
    .follow_marked = follow_marked,
    .follow_marked_messages = follow_marked_messages,
};

/* --- The server --- */

static struct idem_server_options
options_of_folder(void)
{
    struct idem_server_options options = {0};
    char path[512];

    snprintf(path, sizeof path, "%s/compress", folder);
    if (access(path, F_OK) == 0)
        options.compression = (struct idem_compression){
            .codec = IDEM_CODEC_ZSTD, .threshold = 64};
    return options;
}

static struct idem_store *
open_store(const char *kind, const char *where)
{
    const struct idem_sqlite_options sqlite = {
        .path = where,
        .schema = "CREATE TABLE IF NOT EXISTS feed_effects (key text)"};
    /* Its tests start it again and again, also on a machine that is busy: a
     * client would have made all its attempts by the usual time. */
    const struct idem_postgres_options postgres = {.conninfo = where,
                                                   .connections =
                                                       POSTGRES_FEW_CONNECTIONS,
                                                   .connect_timeout_ms = 30000};
    struct idem_store *store;
    struct idem_error err;

    if (strcmp(kind, "sqlite") == 0)
        must(idem_sqlite_open(&store, &sqlite, &err), &err);
    else
        must(idem_postgres_open(&store, &postgres, &err), &err);
    return store;
}

int
main(int argc, char **argv)
{
    struct idem_server_options options;
    struct idem_server *server;
    struct idem_error err;
    sigset_t ends;
    int signal;

    if (argc != 5) {
        fprintf(stderr, "feed_server ADDRESS FOLDER KIND WHERE\n");
        return 64;
    }
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    folder = argv[2];
    options = options_of_folder();
    must(idem_server_open(&server, open_store(argv[3], argv[4]), &options, NULL,
                          &err),
         &err);
    must(feed_register(server, &handlers, NULL, &err), &err);
    must(idem_server_listen(server, argv[1], &err), &err);
    must(idem_server_start(server, &err), &err);
    printf("listening on %s\n", idem_server_address(server, 0));
    fflush(stdout);
    sigwait(&ends, &signal);
    idem_server_free(server);
    return 0;
}
