/* effects_server: the service of effects.proto as a process that a test may
 * kill. Prints "listening on ADDRESS" and serves until SIGTERM.
 *
 *   effects_server ADDRESS PUSH_LOG sqlite FILE
 *   effects_server ADDRESS PUSH_LOG postgres CONNINFO [REDIS_URL]
 *
 * EFFECTS_OUTSIDE in the environment: Add makes its effect outside its
 * transaction. EFFECTS_CLOCK: the file that its clock is stepped by
 * (stepped_clock.h). EFFECTS_FEW: as few connections to PostgreSQL as will do,
 * for what starts it again and again.
 */
#include "effects.h"
#include "stepped_clock.h"

#include <idem/postgres.h>
#include <idem/shield.h>
#include <idem/sqlite.h>
#include <idem/standard.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct effects effects;
static struct stepped_clock stepped;

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status == IDEM_OK)
        return;
    fprintf(stderr, "effects_server: %s\n", err->message);
    exit(1);
}

/* NULL: the system's. */
static const struct idem_clock *
open_clock(void)
{
    const char *path = getenv("EFFECTS_CLOCK");

    if (!path)
        return NULL;
    stepped_clock_open(&stepped, path);
    return &stepped.clock;
}

static struct idem_store *
open_store(const char *kind, const char *where, const struct idem_clock *clock)
{
    const struct idem_sqlite_options sqlite = {
        .path = where, .schema = EFFECTS_SCHEMA, .clock = clock};
    const bool few = getenv("EFFECTS_FEW") != NULL;
    const struct idem_postgres_options postgres = {
        .conninfo = where,
        .connections = few ? 2 : 0,
        .group_connections = few ? 1 : 0,
        .statement_connections = few ? 1 : 0,
        .clock = clock};
    struct idem_store *store;
    struct idem_error err;

    if (strcmp(kind, "sqlite") == 0)
        must(idem_sqlite_open(&store, &sqlite, &err), &err);
    else
        must(idem_postgres_open(&store, &postgres, &err), &err);
    return store;
}

static struct idem_shield *
open_shield(const char *url, const struct idem_clock *clock)
{
    const struct idem_redis_options options = {
        .url = url,
        .secret = idem_bytes_of("sixteen bytes and more"),
        .clock = clock,
    };
    struct idem_shield *shield;
    struct idem_error err;

    must(idem_redis_new(&shield, &options, &err), &err);
    return shield;
}

static struct idem_server *
open_server(int argc, char **argv)
{
    const struct idem_clock *clock = open_clock();
    const struct idem_server_options options = {.clock = clock};
    struct idem_store *store = open_store(argv[3], argv[4], clock);
    struct idem_once_options once = {.clock = clock};
    struct idem_server *server;
    struct idem_error err;

    if (argc > 5)
        once.shield = open_shield(argv[5], clock);
    must(idem_server_open(&server, store, &options, &once, &err), &err);
    must(effects_register(server, &effects_handlers, &effects, &err), &err);
    must(idem_server_listen(server, argv[1], &err), &err);
    must(idem_server_start(server, &err), &err);
    return server;
}

int
main(int argc, char **argv)
{
    struct idem_server *server;
    sigset_t end;
    int signal;

    if (argc < 5) {
        fprintf(stderr, "effects_server ADDRESS PUSH_LOG KIND WHERE [REDIS]\n");
        return 64;
    }
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &end, NULL);
    effects_init(&effects, argv[2]);
    effects.outside = getenv("EFFECTS_OUTSIDE") != NULL;
    server = open_server(argc, argv);
    printf("listening on %s\n", idem_server_address(server, 0));
    fflush(stdout);
    sigwait(&end, &signal);
    idem_server_free(server);
    stepped_clock_close(&stepped);
    effects_fini(&effects);
    return 0;
}
