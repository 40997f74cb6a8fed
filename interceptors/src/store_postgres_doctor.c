#include "store_postgres.h"
#include "store_postgres_maintain.h"

#include <libpq-fe.h>
#include <stdio.h>

/* Is the database one that a server can work on? */

#define OLDEST_VERSION 140000

struct checkup {
    struct pg_link link;
    idem_finding_fn *tell;
    void *with;
    bool healthy;
};

static void
find(struct checkup *checkup, bool ok, const char *what)
{
    checkup->tell(checkup->with, ok, what);
    checkup->healthy = checkup->healthy && ok;
}

/* Questions whose answer is to be 1. */
static const struct {
    const char *sql, *good, *bad;
} questions[] = {
    {"SELECT (current_setting('fsync') = 'on')::int", "fsync is on",
     "fsync is off: a crash of the machine forgets what was acknowledged"},
    {"SELECT (current_setting('full_page_writes') = 'on')::int",
     "full_page_writes is on",
     "full_page_writes is off: a crash may tear pages"},
    {"SELECT count(*)::int FROM idem_meta", "idem_meta has its row",
     "idem_meta has lost its row"},
    {"SELECT count(*)::int FROM idem_day WHERE open AND day = floor(extract("
     "epoch FROM clock_timestamp()) / 86400)",
     "today's partition is there",
     "today's partition is missing: all new keys are refused; run idemctl "
     "maintain"},
    {"SELECT count(*)::int FROM idem_day WHERE open AND day = floor(extract("
     "epoch FROM clock_timestamp()) / 86400) + 1",
     "tomorrow's partition is there",
     "tomorrow's partition is missing: from midnight UTC all new keys are "
     "refused; run idemctl maintain"},
    {"SELECT (count(*) = 0)::int FROM idem_day AS d WHERE d.open AND NOT "
     "EXISTS (SELECT FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = "
     "i.inhrelid WHERE i.inhparent = 'idem_record'::regclass AND c.relname = "
     "'idem_record_' || to_char(date '1970-01-01' + d.day, 'YYYYMMDD'))",
     "every open day has its partition",
     "an open day has no partition: its keys are refused"},
};

static enum idem_status
ask_all(struct checkup *checkup, struct idem_error *err)
{
    enum idem_status status = IDEM_OK;

    for (size_t i = 0;
         i < sizeof(questions) / sizeof(questions[0]) && status == IDEM_OK;
         i++) {
        int64_t answer = 0;

        status =
            pg_ask(&checkup->link, questions[i].sql, 0, NULL, &answer, err);
        if (status == IDEM_OK)
            find(checkup, answer == 1,
                 answer == 1 ? questions[i].good : questions[i].bad);
    }
    return status;
}

static void
look_at_server(struct checkup *checkup)
{
    int version = PQserverVersion(checkup->link.conn);
    char what[96];

    snprintf(what, sizeof(what), "PostgreSQL %d.%d, needed is %d or later",
             version / 10000, version % 10000, OLDEST_VERSION / 10000);
    find(checkup, version >= OLDEST_VERSION, what);
}

static enum idem_status
look_at_schema(struct checkup *checkup, bool *there, struct idem_error *err)
{
    int64_t found = 0;
    char what[96];
    enum idem_status status = pg_schema_version(&checkup->link, &found, err);

    snprintf(what, sizeof(what), "schema %lld, needed is %d%s",
             (long long)found, POSTGRES_SCHEMA_VERSION,
             found < POSTGRES_SCHEMA_VERSION ? ": run idemctl migrate" : "");
    if (status == IDEM_OK)
        find(checkup, found == POSTGRES_SCHEMA_VERSION, what);
    *there = found > 0;
    return status;
}

enum idem_status
idem_postgres_doctor(const char *conninfo, idem_finding_fn *tell, void *with,
                     struct idem_error *err)
{
    const struct pg_link_options options = pg_tool_options(conninfo);
    struct checkup checkup = {.link = {.options = &options},
                              .tell = tell,
                              .with = with,
                              .healthy = true};
    enum idem_status status = pg_link_open(&checkup.link, err);
    bool there = false;

    if (status == IDEM_OK) {
        look_at_server(&checkup);
        status = look_at_schema(&checkup, &there, err);
    }
    if (status == IDEM_OK && there)
        status = ask_all(&checkup, err);
    pg_link_close(&checkup.link);
    if (status == IDEM_OK && !checkup.healthy)
        return idem_fail(err, IDEM_FAILED_PRECONDITION,
                         "the database is not fit");
    return status;
}
