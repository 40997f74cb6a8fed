#include "fault.h"
#include "migration.h"
#include "store_postgres.h"
#include "store_postgres_error.h"
#include "store_postgres_maintain.h"

#include <inttypes.h>
#include <libpq-fe.h>

/* The numbered migrations, each in a transaction of its own under a lock, so
 * that two may migrate at once. */

#define MIGRATE_LOCK INT64_C(0x6964656d6d696772) /* "idemmigr" */
#define DAYS_AHEAD 2
#define SCRIPT_NS INT64_C(600000000000)

static unsigned
last_version(void)
{
    unsigned version = 0;

    for (const struct migration *at = postgres_migrations; at->text; at++)
        version = at->version;
    return version;
}

/* By the snapshot: to_regclass would answer from a cache that is older than the
 * lock that was waited for. */
static const char there_sql[] =
    "SELECT count(*)::int FROM pg_class WHERE relname = 'idem_meta' AND "
    "pg_table_is_visible(oid)";

enum idem_status
pg_schema_version(struct pg_link *link, int64_t *version,
                  struct idem_error *err)
{
    int64_t there = 0;
    enum idem_status status = pg_ask(link, there_sql, 0, NULL, &there, err);

    *version = 0;
    if (status != IDEM_OK || there == 0)
        return status;
    return pg_ask(link, "SELECT version FROM idem_meta", 0, NULL, version, err);
}

/* Many statements at once, as only the simple protocol takes them. */
static enum idem_status
run_text(struct pg_link *link, const char *text, struct idem_error *err)
{
    const struct idem_clock *clock = link->options->clock;
    int64_t until_ns = clock->monotonic_ns(clock) + SCRIPT_NS;
    enum idem_status status = IDEM_OK;
    PGresult *result = NULL;

    if (!PQsendQuery(link->conn, text))
        return pg_fail_result(err, NULL);
    do {
        PQclear(result);
        if (pg_link_wait(link, until_ns, &result) != PG_OK)
            status = pg_fail_result(err, result);
        else if (result && PQresultStatus(result) == PGRES_FATAL_ERROR)
            status = pg_fail_result(err, result);
    } while (result && pg_link_is_up(link));
    PQclear(result);
    return status;
}

static enum idem_status
apply(struct pg_link *link, const struct migration *migration, bool *applied,
      struct idem_error *err)
{
    const int64_t lock = MIGRATE_LOCK, version = migration->version;
    int64_t found;
    enum idem_status status =
        pg_ask(link, "SELECT pg_advisory_xact_lock($1)", 1, &lock, NULL, err);

    *applied = false;
    if (status == IDEM_OK)
        status = pg_schema_version(link, &found, err);
    if (status != IDEM_OK || found >= version)
        return status;
    status = run_text(link, migration->text, err);
    (void)IDEM_FAULT("postgres.migrate.before");
    *applied = true;
    if (status != IDEM_OK)
        return status;
    return pg_ask(link, "UPDATE idem_meta SET version = $1::bigint", 1,
                  &version, NULL, err);
}

static enum idem_status
apply_alone(struct pg_link *link, const struct migration *migration,
            unsigned *applied, struct idem_error *err)
{
    bool done = false;
    enum idem_status status = pg_do(link, "BEGIN", err);

    if (status == IDEM_OK)
        status = apply(link, migration, &done, err);
    if (status == IDEM_OK)
        status = pg_do(link, "COMMIT", err);
    else if (pg_link_is_up(link))
        (void)!pg_do(link, "ROLLBACK", NULL);
    if (status == IDEM_OK && done)
        ++*applied;
    return status;
}

static enum idem_status
migrate(struct pg_link *link, unsigned *applied, struct idem_error *err)
{
    int64_t version;
    enum idem_status status = pg_schema_version(link, &version, err);

    if (status == IDEM_OK && version > last_version())
        return idem_fail(err, IDEM_FAILED_PRECONDITION,
                         "the database has schema %" PRId64
                         ", this library knows %u: it is older than the "
                         "database",
                         version, last_version());
    for (const struct migration *at = postgres_migrations;
         status == IDEM_OK && at->text; at++)
        status = apply_alone(link, at, applied, err);
    if (status == IDEM_OK)
        status = pg_make_days(link, DAYS_AHEAD, err);
    return status;
}

struct pg_link_options
pg_tool_options(const char *conninfo)
{
    return (struct pg_link_options){
        .conninfo = conninfo,
        .clock = idem_clock_system(),
        .connect_timeout_ms = 10000,
        .silence_ms = 60000,
        .stop_fd = -1,
    };
}

enum idem_status
idem_postgres_migrate(const char *conninfo, unsigned *applied,
                      struct idem_error *err)
{
    const struct pg_link_options options = pg_tool_options(conninfo);
    struct pg_link link = {.options = &options};
    unsigned count = 0;
    enum idem_status status = pg_link_open(&link, err);

    if (status == IDEM_OK)
        status = migrate(&link, &count, err);
    pg_link_close(&link);
    if (status == IDEM_OK && applied)
        *applied = count;
    return status;
}

/* Days are dropped by the rules of one schema: never on another. */
static enum idem_status
expect_last_version(const struct pg_link_options *options,
                    struct idem_error *err)
{
    struct pg_link link = {.options = options};
    int64_t version = 0;
    enum idem_status status = pg_link_open(&link, err);

    if (status == IDEM_OK)
        status = pg_schema_version(&link, &version, err);
    pg_link_close(&link);
    if (status == IDEM_OK && version != last_version())
        return idem_fail(
            err, IDEM_FAILED_PRECONDITION,
            "the database has schema %" PRId64 ", this library needs %u: %s",
            version, last_version(),
            version < last_version() ? "run idemctl migrate"
                                     : "it is older than the database");
    return status;
}

enum idem_status
idem_postgres_maintain(const char *conninfo, unsigned days_ahead,
                       struct idem_error *err)
{
    const struct pg_link_options options = pg_tool_options(conninfo);
    enum idem_status status = expect_last_version(&options, err);

    if (status != IDEM_OK)
        return status;
    return pg_maintain(&options, days_ahead ? days_ahead : DAYS_AHEAD, err);
}
