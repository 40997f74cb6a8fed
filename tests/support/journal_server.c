/* journal_server: the service of journal.proto as a process.
 *
 *   journal_server ADDRESS PUSH_LOG sqlite FILE
 *   journal_server ADDRESS PUSH_LOG postgres CONNINFO [REDIS]
 */
#include "journal.h"
#include "postgres.h"

#include <idem/postgres.h>
#include <idem/shield.h>
#include <idem/sqlite.h>
#include <idem/standard.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status == IDEM_OK)
        return;
    fprintf(stderr, "journal_server: %s\n", err->message);
    exit(1);
}

static struct idem_store *
open_store(const char *kind, const char *where)
{
    const struct idem_sqlite_options sqlite = {.path = where,
                                               .schema = JOURNAL_SCHEMA};
    const struct idem_postgres_options postgres = {
        .conninfo = where, .connections = POSTGRES_FEW_CONNECTIONS};
    struct idem_store *store;
    struct idem_error err;

    if (strcmp(kind, "sqlite") == 0)
        must(idem_sqlite_open(&store, &sqlite, &err), &err);
    else
        must(idem_postgres_open(&store, &postgres, &err), &err);
    return store;
}

static struct idem_shield *
open_shield(const char *url)
{
    const struct idem_redis_options options = {
        .url = url, .secret = idem_bytes_of("sixteen bytes and more")};
    struct idem_shield *shield = NULL;
    struct idem_error err;

    if (url)
        must(idem_redis_new(&shield, &options, &err), &err);
    return shield;
}

int
main(int argc, char **argv)
{
    struct idem_once_options once = {0};
    struct idem_server *server;
    struct journal journal;
    struct idem_error err;
    sigset_t ends;
    int signal;

    if (argc < 5) {
        fprintf(stderr, "journal_server ADDRESS PUSH_LOG KIND WHERE [REDIS]\n");
        return 64;
    }
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    journal_init(&journal, argv[2]);
    once.shield = open_shield(argc > 5 ? argv[5] : NULL);
    must(idem_server_open(&server, open_store(argv[3], argv[4]), NULL, &once,
                          &err),
         &err);
    must(journal_register(server, &journal_handlers, &journal, &err), &err);
    must(idem_server_listen(server, argv[1], &err), &err);
    must(idem_server_start(server, &err), &err);
    printf("listening on %s\n", idem_server_address(server, 0));
    fflush(stdout);
    sigwait(&ends, &signal);
    idem_server_free(server);
    journal_fini(&journal);
    return 0;
}
