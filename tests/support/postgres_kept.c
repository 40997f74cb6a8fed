#include "support.h"

#include "postgres_inside.h"

#include <libpq-fe.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct postgres_kept {
    pid_t owner;             /* a forked child may not speak on it */
    PGconn *_Atomic between; /* NULL: none, or somebody has it */
};

struct postgres_kept *
postgres_kept_new(void)
{
    struct postgres_kept *kept = calloc(1, sizeof(*kept));

    assert_non_null(kept);
    kept->owner = getpid();
    return kept;
}

void
postgres_kept_close(struct postgres_kept *kept)
{
    if (kept->owner == getpid())
        PQfinish(atomic_exchange(&kept->between, NULL));
}

void
postgres_kept_free(struct postgres_kept *kept)
{
    postgres_kept_close(kept);
    free(kept);
}

/* Has nobody ended its backend, or the server? */
static bool
lives(PGconn *conn)
{
    return PQconsumeInput(conn) == 1 && PQstatus(conn) == CONNECTION_OK;
}

PGconn *
postgres_take(const struct postgres *postgres)
{
    struct postgres_kept *kept = postgres->kept;
    PGconn *conn =
        kept->owner == getpid() ? atomic_exchange(&kept->between, NULL) : NULL;

    if (lives(conn))
        return conn;
    PQfinish(conn);
    return PQconnectdb(postgres_conninfo(postgres));
}

/* What these set shows in sessions that begin later. */
static bool
is_of_later_sessions(const char *sql)
{
    return strstr(sql, "ALTER DATABASE") || strstr(sql, "ALTER ROLE");
}

static bool
forgets(PGconn *conn)
{
    PGresult *result = PQexec(conn, "DISCARD ALL");
    bool forgot = PQresultStatus(result) == PGRES_COMMAND_OK;

    PQclear(result);
    return forgot;
}

void
postgres_give_back(const struct postgres *postgres, PGconn *conn,
                   const char *sql)
{
    struct postgres_kept *kept = postgres->kept;

    if (kept->owner == getpid() && !is_of_later_sessions(sql) && forgets(conn))
        conn = atomic_exchange(&kept->between, conn);
    PQfinish(conn);
}
