/* Ours, with the whole default chain on both sides and a store behind it.
 * How: "pool" (the handler on a worker), "inline", "blocking" (a thread for
 * each call in flight, stubs that wait), "talk" and "watch" (so many streams in
 * callbacks), "idle" (connections that have made one
 * call and are kept; says "kept"). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idem/sqlite.h>

#include "calls.h"
#include "service.h"
#include "side.h"
#include "talks.h"

static void
serve(const char *address, const char *how)
{
    char path[128];
    const struct idem_sqlite_options options = {.path = path,
                                                .schema = BENCH_SCHEMA_SQLITE};
    struct idem_store *store = NULL;
    struct idem_error err;
    const struct idem_server *server;
    char certificate[128], key[128];
    const struct idem_tls_options tls = {.certificate_file = certificate,
                                         .key_file = key};

    (void)how;
    snprintf(path, sizeof path, "%s", side_file("once.db"));
    snprintf(certificate, sizeof certificate, "%s",
             side_file(SIDE_CERTIFICATE));
    snprintf(key, sizeof key, "%s", side_file(SIDE_KEY));
    if (idem_sqlite_open(&store, &options, &err) != IDEM_OK)
        side_die(path, err.message);
    server =
        bench_serve(store, NULL, side_is_tls(address) ? &tls : NULL, address);
    side_ready(idem_server_address(server, 0));
    for (;;)
        pause();
}

static struct idem_channel *
open_channel(const char *address)
{
    const struct idem_tls_options tls = {.authority_file =
                                             side_file(SIDE_CERTIFICATE)};
    const struct idem_channel_options options = {
        .tls = side_is_tls(address) ? &tls : NULL};
    struct idem_channel *channel = NULL;
    struct idem_error err;

    if (idem_client_open(&channel, address, &options, &err) != IDEM_OK)
        side_die(address, err.message);
    return channel;
}

struct caller {
    struct idem_channel *channel;
    const struct side_options *options;
    struct tally *tally;
};

static void
call_and_wait(const struct caller *caller)
{
    struct idem_outcome outcome;
    bench_reply *reply = NULL;
    const struct side_options *side = caller->options;

    if (calls_wait(caller->channel, &reply, &outcome) != IDEM_OK)
        side_die(outcome.reason, outcome.message);
    if (reply->body.len != side->bytes ||
        memcmp(reply->body.data, side->body, side->bytes) != 0)
        side_die("call", "another body came back");
    bench_reply_free(reply);
}

static void *
call_on(void *with)
{
    struct caller *caller = with;
    int64_t since_ns;

    do {
        since_ns = now_ns();
        call_and_wait(caller);
    } while (tally_add(caller->tally, since_ns));
    free(caller);
    return NULL;
}

static void
start_threads(struct idem_channel *const *channels,
              const struct side_options *options, struct tally *tally)
{
    for (unsigned i = 0; i < options->in_flight; i++) {
        struct caller *caller = malloc(sizeof *caller);
        pthread_t thread;

        if (!caller)
            side_die("memory", "out");
        *caller =
            (struct caller){channels[i % options->connections], options, tally};
        if (pthread_create(&thread, NULL, call_on, caller) != 0)
            side_die("thread", "none");
        pthread_detach(thread);
    }
}

static void
call_once_each(struct idem_channel *const *channels,
               const struct side_options *options)
{
    for (unsigned i = 0; i < options->connections; i++)
        call_and_wait(&(struct caller){channels[i], options, NULL});
    puts("kept");
    fflush(stdout);
}

static void
call(const struct side_options *options, struct tally *tally)
{
    struct idem_channel **channels =
        calloc(options->connections, sizeof(struct idem_channel *));
    struct loop_options loop = {channels, options->connections,
                                options->in_flight, call_echo};

    if (!channels)
        side_die("memory", "out");
    for (unsigned i = 0; i < options->connections; i++)
        channels[i] = open_channel(options->address);
    calls_prepare(options->body, options->bytes, 0);
    if (strcmp(options->how, "inline") == 0)
        loop.start = call_echo_inline;
    if (strcmp(options->how, "blocking") == 0)
        start_threads(channels, options, tally);
    else if (strcmp(options->how, "talk") == 0)
        talks_start(channels, options, tally);
    else if (strcmp(options->how, "watch") == 0)
        talks_start_watching(channels, options, tally);
    else if (strcmp(options->how, "idle") == 0)
        call_once_each(channels, options);
    else
        loop_start(&loop, tally); /* lives as long as the process */
}

int
main(int argc, char **argv)
{
    static const struct side side = {serve, call};

    return side_main(argc, argv, &side);
}
