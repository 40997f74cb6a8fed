/* relay_server: the Pass of relay.proto as a process that a test may kill: a
 * link of a chain. Prints "listening on ADDRESS" and serves until SIGTERM.
 *
 *   relay_server ADDRESS CONNINFO TABLE [NEXT]
 *
 * Pass writes its key and its amount into the table and calls the link at NEXT.
 */
#include "postgres.h"
#include "relay.idem.h"

#include <idem/postgres.h>
#include <idem/standard.h>
#include <idem/tx.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct link {
    char insert[128];
    struct idem_channel *next; /* NULL: it is the last */
};

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status == IDEM_OK)
        return;
    fprintf(stderr, "relay_server: %s\n", err->message);
    exit(1);
}

static enum idem_status
write_effect(const struct link *link, struct idem_context *context,
             const relay_pass_request *request)
{
    struct timespec hold = {request->hold_ms / 1000,
                            request->hold_ms % 1000 * 1000000};
    struct idem_error err;
    struct idem_tx *tx = idem_context_tx(context, &err);

    if (!tx || idem_sql(tx, NULL, &err, link->insert,
                        IDEM_VALUES(idem_text(idem_context_key(context)),
                                    idem_int(request->amount))) != IDEM_OK)
        return idem_context_fail_with(context, &err);
    nanosleep(&hold, NULL);
    return IDEM_OK;
}

/* The key follows from the call that is being answered. */
static enum idem_status
pass_on(const struct link *link, struct idem_context *context,
        const relay_pass_request *request, relay_pass_reply *reply)
{
    const struct idem_call_options options = {.wait_for_ready = true};
    struct idem_outcome outcome;
    relay_pass_reply *below;

    if (relay_pass(link->next, request, &below, &options, &outcome) != IDEM_OK)
        return idem_context_fail(context, outcome.status, "%s",
                                 outcome.message);
    reply->repeats = below->repeats + outcome.attempts - 1;
    relay_pass_reply_free(below);
    return IDEM_OK;
}

static enum idem_status
pass(struct idem_context *context, const relay_pass_request *request,
     relay_pass_reply *reply)
{
    const struct link *link = idem_context_user(context);
    enum idem_status status = write_effect(link, context, request);

    if (status != IDEM_OK || !link->next)
        return status;
    return pass_on(link, context, request, reply);
}

static struct idem_server *
open_server(struct link *link, char **argv)
{
    static const struct relay_handlers handlers = {.pass = pass};
    const struct idem_postgres_options postgres = {
        .conninfo = argv[2], .connections = POSTGRES_FEW_CONNECTIONS};
    struct idem_store *store;
    struct idem_server *server;
    struct idem_error err;

    must(idem_postgres_open(&store, &postgres, &err), &err);
    must(idem_server_open(&server, store, NULL, NULL, &err), &err);
    must(relay_register(server, &handlers, link, &err), &err);
    must(idem_server_listen(server, argv[1], &err), &err);
    must(idem_server_start(server, &err), &err);
    return server;
}

int
main(int argc, char **argv)
{
    struct link link = {.next = NULL};
    struct idem_server *server;
    struct idem_error err;
    sigset_t end;
    int signal;

    if (argc < 4) {
        fprintf(stderr, "relay_server ADDRESS CONNINFO TABLE [NEXT]\n");
        return 64;
    }
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &end, NULL);
    snprintf(link.insert, sizeof link.insert,
             "INSERT INTO %s (key, amount) VALUES ($1, $2)", argv[3]);
    if (argc > 4)
        must(idem_client_open(&link.next, argv[4], NULL, &err), &err);
    server = open_server(&link, argv);
    printf("listening on %s\n", idem_server_address(server, 0));
    fflush(stdout);
    sigwait(&end, &signal);
    idem_server_free(server);
    idem_channel_close(link.next);
    return 0;
}
