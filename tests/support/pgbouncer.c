#include "support.h"

#include "child.h"
#include "loopback.h"
#include "pgbouncer.h"
#include "postgres_inside.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define PROGRAM "/usr/sbin/pgbouncer"
#define READY_MS 20000

struct pgbouncer {
    struct tempdir dir;
    pid_t pid;
    unsigned port;
    char conf[POSTGRES_PATH_SIZE], log[POSTGRES_PATH_SIZE];
    char conninfo[160];
};

static void
write_conf(const struct pgbouncer *pgbouncer, unsigned port)
{
    FILE *file = fopen(pgbouncer->conf, "w");

    assert_non_null(file);
    fprintf(file,
            "[databases]\n* = host=127.0.0.1 port=%u user=idem\n"
            "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %u\n"
            "unix_socket_dir =\nauth_type = any\npool_mode = transaction\n"
            "default_pool_size = %d\nmin_pool_size = %d\n"
            "server_round_robin = 1\nmax_client_conn = 400\n",
            port, pgbouncer->port, PGBOUNCER_POOL, PGBOUNCER_POOL);
    fclose(file);
}

static bool
accepts(void *with)
{
    const struct pgbouncer *pgbouncer = with;

    return PQping(pgbouncer->conninfo) == PQPING_OK;
}

/* Like PostgreSQL it refuses to run as root. */
static void
launch(struct pgbouncer *pgbouncer)
{
    const struct child_options options = {.user = postgres_user(),
                                          .log = pgbouncer->log};
    const char *const arguments[] = {PROGRAM, pgbouncer->conf, NULL};

    pgbouncer->pid = child_start(&options, arguments);
    if (child_wait_until(accepts, pgbouncer, READY_MS))
        return;
    child_show(pgbouncer->log);
    fail_msg("PgBouncer does not start");
}

struct pgbouncer *
pgbouncer_start(unsigned port)
{
    struct pgbouncer *pgbouncer = calloc(1, sizeof(*pgbouncer));

    assert_non_null(pgbouncer);
    tempdir_open(&pgbouncer->dir);
    postgres_give(pgbouncer->dir.path);
    tempdir_file(&pgbouncer->dir, "pgbouncer.ini", pgbouncer->conf,
                 sizeof(pgbouncer->conf));
    tempdir_file(&pgbouncer->dir, "log", pgbouncer->log,
                 sizeof(pgbouncer->log));
    pgbouncer->port = loopback_free_port();
    snprintf(pgbouncer->conninfo, sizeof(pgbouncer->conninfo),
             "host=127.0.0.1 port=%u user=idem dbname=postgres",
             pgbouncer->port);
    write_conf(pgbouncer, port);
    launch(pgbouncer);
    return pgbouncer;
}

void
pgbouncer_free(struct pgbouncer *pgbouncer)
{
    if (!pgbouncer)
        return;
    child_stop(pgbouncer->pid, SIGTERM);
    tempdir_close(&pgbouncer->dir);
    free(pgbouncer);
}

const char *
pgbouncer_conninfo(const struct pgbouncer *pgbouncer)
{
    return pgbouncer->conninfo;
}
