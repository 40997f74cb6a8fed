#include "support.h"

#include "child.h"
#include "pgbouncer.h"
#include "postgres.h"
#include "suite.h"
#include "tx.h"

#include <idem/postgres.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

/* The suite on PostgreSQL. Its clock cannot be moved: leases are moved back
 * instead, and short times are waited for. */

#define WAITED_MS 2000

struct world {
    struct postgres *postgres;
    struct pgbouncer *pooler; /* NULL: none */
};

static struct idem_store *
open_store(void *with)
{
    struct world *world = with;
    const struct idem_postgres_options options = {
        .conninfo = postgres_conninfo(world->postgres),
        .pooled_conninfo =
            world->pooler ? pgbouncer_conninfo(world->pooler) : NULL,
        .connections = 4,
        .maintain_every_ms = -1,
    };
    struct idem_store *store = NULL;
    struct idem_error err;

    if (idem_postgres_open(&store, &options, &err) != IDEM_OK)
        fail_msg("idem_postgres_open: %s", err.message);
    return store;
}

static int64_t
wall_ms(void *with)
{
    struct world *world = with;

    return postgres_sql(
        world->postgres,
        "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint");
}

static void
pass_ms(void *with, int64_t ms)
{
    struct world *world = with;
    char sql[160];

    if (ms <= WAITED_MS) {
        snprintf(sql, sizeof(sql),
                 "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) "
                 "> %lld",
                 (long long)(wall_ms(with) + ms));
        assert_true(postgres_wait(world->postgres, 20000, sql));
        return;
    }
    postgres_sql(world->postgres,
                 "UPDATE idem_record SET lease_until = lease_until - "
                 "%lld * interval '1 ms'; "
                 "UPDATE idem_record_opaque SET lease_until = lease_until - "
                 "%lld * interval '1 ms'",
                 (long long)ms, (long long)ms);
}

static void
tell(void *with, struct checker *checker)
{
    struct world *world = with;

    checker_read_postgres(checker, postgres_conninfo(world->postgres),
                          SUITE_EFFECTS);
}

static void
run_raw(struct idem_tx *tx, const char *sql)
{
    PGresult *result = PQexec(tx->ops->postgres(tx), sql);

    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
}

static void
commit_raw(struct idem_tx *tx)
{
    run_raw(tx, "COMMIT");
}

static void
roll_back_raw(struct idem_tx *tx)
{
    run_raw(tx, "ROLLBACK");
}

/* Argument "pooled": transactions and looks go through PgBouncer. */
int
main(int argc, char **argv)
{
    static const char *const before[] = {"claim.before", "begin.after",
                                         "commit.before", NULL};
    static const char *const after[] = {"commit.after", NULL};
    static const char *const before_run[] = {"run.before", "run.concluded",
                                             NULL};
    static const char *const after_run[] = {"run.after", NULL};
    const struct postgres_options options = {.settings = "fsync = off\n"};
    struct world world = {.postgres = postgres_start(&options)};
    struct suite_factory factory = {
        .name = "postgres",
        .with = &world,
        .open = open_store,
        .pass_ms = pass_ms,
        .wall_ms = wall_ms,
        .tell = tell,
        .commit_raw = commit_raw,
        .roll_back_raw = roll_back_raw,
        .clock = idem_clock_system(),
        .lease_ms = 10000,
        .before_commit = before,
        .after_commit = after,
        .lost_answer = "commit.after",
        .before_run_commit = before_run,
        .after_run_commit = after_run,
        .lost_run = "run.after",
    };
    struct idem_error err;
    int failed;

    if (idem_postgres_migrate(postgres_conninfo(world.postgres), NULL, &err) !=
        IDEM_OK)
        fail_msg("idem_postgres_migrate: %s", err.message);
    postgres_strict(world.postgres);
    postgres_sql(world.postgres,
                 "CREATE TABLE effects (key TEXT, amount BIGINT "
                 "CHECK (amount > -1000), id BIGINT UNIQUE, body BYTEA)");
    if (argc > 1 && strcmp(argv[1], "pooled") == 0)
        world.pooler = pgbouncer_start(postgres_port(world.postgres));
    failed = suite_run(&factory);
    pgbouncer_free(world.pooler);
    postgres_free(world.postgres);
    return failed;
}
