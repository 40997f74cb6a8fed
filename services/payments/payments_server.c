/* The payments service as a program. */
#include <signal.h>
#include <stdio.h>

#include <idem/auth.h>
#include <idem/standard.h>

#include "authority.h"
#include "forget.h"
#include "handlers.h"
#include "server_options.h"

#define BACK_DOOR "inproc://payments" /* for the accounts of the beginning */

/* The server with its chain; it owns store and shield from here. */
static enum idem_status
build(struct idem_server **server, const struct server_options *options,
      struct idem_error *err)
{
    const struct idem_auth_options auth = {.token_file = options->tokens};
    const struct idem_server_options asking = {.auth = options->tokens ? &auth
                                                                       : NULL};
    struct idem_once_options once = {0};
    struct idem_store *store;
    struct idem_interceptor *forget;
    enum idem_status status;

    status = authority_open(&store, &once.shield, options, err);
    if (status != IDEM_OK)
        return status;
    status = idem_server_open(server, store, &asking, &once, err);
    if (status != IDEM_OK || !options->no_once)
        return status;
    forget = forget_new();
    if (!forget)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    return idem_server_add(*server, forget, err);
}

static enum idem_status
start(struct idem_server *server, const struct server_options *options,
      struct payments_house *house, struct idem_error *err)
{
    enum idem_status status;

    if ((status = payments_register(server, &payments_house_handlers, house,
                                    err)) != IDEM_OK ||
        (status = idem_server_listen(server, options->listen, err)) !=
            IDEM_OK ||
        (status = idem_server_listen(server, BACK_DOOR, err)) != IDEM_OK)
        return status;
    return idem_server_start(server, err);
}

/* An account that exists is fine: the server was here before. */
static enum idem_status
create_account(struct idem_channel *channel, unsigned number, int64_t balance,
               struct idem_error *err)
{
    payments_open_account_request request = PAYMENTS_OPEN_ACCOUNT_REQUEST_INIT;
    struct idem_outcome outcome;
    char name[32];

    snprintf(name, sizeof name, "account-%u", number);
    request.account = name;
    request.balance = balance;
    if (payments_open_account(channel, &request, NULL, NULL, &outcome) ==
            IDEM_OK ||
        outcome.status == IDEM_ALREADY_EXISTS)
        return IDEM_OK;
    return idem_fail(err, outcome.status, "account \"%s\": %s", name,
                     outcome.message);
}

static enum idem_status
create_accounts(const struct server_options *options, struct idem_error *err)
{
    struct idem_channel *channel = NULL;
    enum idem_status status;

    if (options->accounts == 0)
        return IDEM_OK;
    status = idem_client_open(&channel, BACK_DOOR, NULL, err);
    for (unsigned i = 0; status == IDEM_OK && i < options->accounts; i++)
        status = create_account(channel, i, options->balance, err);
    idem_channel_close(channel);
    return status;
}

/* Serve until somebody asks for an end. */
static void
serve(struct idem_server *server, const sigset_t *ends)
{
    int received;

    printf("listening on %s\n", idem_server_address(server, 0));
    fflush(stdout);
    sigwait(ends, &received);
    printf("draining\n");
    fflush(stdout);
}

int
main(int argc, char **argv)
{
    struct server_options options;
    struct payments_house house = {0};
    struct idem_server *server = NULL;
    struct idem_error err;
    sigset_t ends;

    switch (server_options_parse(&options, argc, argv)) {
    case SERVER_OPTIONS_HELP:
        return 0;
    case SERVER_OPTIONS_WRONG:
        return 2;
    case SERVER_OPTIONS_RUN:
        break;
    }

    /* Before any thread: all of them leave these signals to sigwait. */
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);

    house.provider = options.provider;
    if (build(&server, &options, &err) != IDEM_OK ||
        start(server, &options, &house, &err) != IDEM_OK ||
        create_accounts(&options, &err) != IDEM_OK) {
        fprintf(stderr, "payments_server: %s\n", err.message);
        idem_server_free(server);
        return 1;
    }
    serve(server, &ends);
    idem_server_free(server); /* calls in flight end first */
    return 0;
}
