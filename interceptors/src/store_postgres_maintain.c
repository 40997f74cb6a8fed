#include "store_postgres_maintain.h"

#include "fault.h"
#include "store_postgres_drop.h"
#include "store_postgres_error.h"
#include "store_postgres_fill.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <time.h>

#define STATEMENT_NS INT64_C(60000000000)
#define DAY_MS INT64_C(86400000)
#define REAP_BATCH 1000
#define REAP_BATCHES 100 /* a turn, so that a turn ends */

#define TOMORROW                                                               \
    "SELECT count(*) FROM idem_day AS d JOIN pg_class AS c ON c.relname = "    \
    "'idem_record_' || to_char(date '1970-01-01' + d.day, 'YYYYMMDD') "        \
    "JOIN pg_inherits AS i ON i.inhrelid = c.oid AND i.inhparent = "           \
    "'idem_record'::regclass WHERE d.open AND d.day = " PG_NOW_MS              \
    " / 86400000 + 1"

enum idem_status
pg_ask(struct pg_link *link, const char *sql, int n, const int64_t *values,
       int64_t *number, struct idem_error *err)
{
    const struct idem_clock *clock = link->options->clock;
    struct pg_arguments arguments = {0};
    struct pg_query query = {.text = sql, .arguments = &arguments};
    enum idem_status status = IDEM_OK;

    for (int i = 0; i < n; i++)
        pg_arguments_int(&arguments, values[i]);
    if (pg_link_run(link, &query, 1,
                    clock->monotonic_ns(clock) + STATEMENT_NS) != PG_OK ||
        !pg_query_ok(&query))
        status = pg_fail_result(err, query.result);
    else if (number && PQntuples(query.result) > 0)
        *number = pg_value_int(query.result, 0);
    else if (number)
        *number = PQnfields(query.result) > 0 ? 0 : pg_query_rows(&query);
    pg_queries_clear(&query, 1);
    return status;
}

enum idem_status
pg_do(struct pg_link *link, const char *sql, struct idem_error *err)
{
    return pg_ask(link, sql, 0, NULL, NULL, err);
}

/* Begin a transaction of upkeep; *mine is false when another process is at it,
 * and then there is no transaction. */
static enum idem_status
begin(struct pg_link *link, bool *mine, struct idem_error *err)
{
    int64_t lock = PG_MAINTAIN_LOCK, got = 0;
    enum idem_status status = pg_do(link, "BEGIN", err);

    if (status == IDEM_OK)
        status = pg_do(link, "SET LOCAL lock_timeout = '500ms'", err);
    if (status == IDEM_OK)
        status =
            pg_ask(link, "SELECT pg_try_advisory_xact_lock($1)::int::bigint", 1,
                   &lock, &got, err);
    *mine = status == IDEM_OK && got == 1;
    if (!*mine && pg_link_is_up(link))
        (void)!pg_do(link, "ROLLBACK", NULL);
    return status;
}

/* Commit when all went well, else roll back. */
static enum idem_status
end(struct pg_link *link, enum idem_status status, struct idem_error *err)
{
    if (status == IDEM_OK)
        return pg_do(link, "COMMIT", err);
    if (pg_link_is_up(link))
        (void)!pg_do(link, "ROLLBACK", NULL);
    return status;
}

void
pg_name_day(char *text, size_t size, int64_t day)
{
    time_t seconds = (time_t)(day * (DAY_MS / 1000));
    struct tm date;

    gmtime_r(&seconds, &date);
    strftime(text, size, "%Y%m%d", &date);
}

/* The smallest key of a day, as a UUID. */
static void
bound_day(char *text, size_t size, int64_t day)
{
    uint64_t ms = (uint64_t)(day * DAY_MS);

    snprintf(text, size, "%08" PRIx64 "-%04" PRIx64 "-0000-0000-000000000000",
             ms >> 16, ms & 0xffff);
}

/* Made beside and attached: CREATE … PARTITION OF would lock out every claim.
 */
static enum idem_status
make_day(struct pg_link *link, int64_t day, struct idem_error *err)
{
    char name[PG_DAY_NAME_MAX], from[48], to[48], sql[512];
    enum idem_status status;

    pg_name_day(name, sizeof(name), day);
    bound_day(from, sizeof(from), day);
    bound_day(to, sizeof(to), day + 1);
    snprintf(sql, sizeof(sql),
             "CREATE TABLE idem_record_%s (LIKE idem_record INCLUDING DEFAULTS "
             "INCLUDING CONSTRAINTS) WITH (fillfactor = %d, "
             "autovacuum_vacuum_scale_factor = 0.05, "
             "autovacuum_vacuum_insert_scale_factor = 0.2)",
             name, PG_FILL_NEW);
    status = pg_do(link, sql, err);
    if (status != IDEM_OK)
        return status;
    snprintf(sql, sizeof(sql),
             "ALTER TABLE idem_record ATTACH PARTITION idem_record_%s "
             "FOR VALUES FROM ('%s') TO ('%s')",
             name, from, to);
    status = pg_do(link, sql, err);
    if (status != IDEM_OK)
        return status;
    return pg_ask(link, "INSERT INTO idem_day (day) VALUES ($1::bigint)", 1,
                  &day, NULL, err);
}

/* A day that was there is never made again: its records may be gone. The first
 * time yesterday's too, for keys that are under way. */
static enum idem_status
make_missing(struct pg_link *link, unsigned days_ahead, struct idem_error *err)
{
    int64_t today = 0, first = 0;
    enum idem_status status =
        pg_ask(link, "SELECT " PG_NOW_MS " / 86400000", 0, NULL, &today, err);

    if (status == IDEM_OK)
        status =
            pg_ask(link,
                   "SELECT greatest(coalesce(max(day), $1::bigint - 1) + 1, "
                   "$1::bigint)::bigint FROM idem_day",
                   1, &(int64_t){today - 1}, &first, err);
    for (int64_t day = first; status == IDEM_OK && day <= today + days_ahead;
         day++)
        status = make_day(link, day, err);
    return status;
}

enum idem_status
pg_make_days(struct pg_link *link, unsigned days_ahead, struct idem_error *err)
{
    bool mine;
    enum idem_status status = begin(link, &mine, err);

    if (!mine)
        return status;
    return end(link, make_missing(link, days_ahead, err), err);
}

/* It speeds up what works without it, so who finds a partition busy leaves it
 * to the next turn. */
static enum idem_status
fill_days(struct pg_link *link, struct idem_error *err)
{
    bool mine;
    enum idem_status status = begin(link, &mine, err);

    if (!mine)
        return status;
    status = end(link, pg_fill_days(link, err), err);
    return status == IDEM_ABORTED ? IDEM_OK : status;
}

static const char *const reaps[] = {
    /* Sessions none of whose keys is taken any more. */
    "DELETE FROM idem_session WHERE session IN (SELECT session FROM "
    "idem_session WHERE gone_at < clock_timestamp() LIMIT $1 FOR UPDATE SKIP "
    "LOCKED)",
    /* What is past even its tombstone. */
    "DELETE FROM idem_record_opaque WHERE key IN (SELECT key FROM "
    "idem_record_opaque WHERE reap_at < clock_timestamp() AND "
    "gone_at < clock_timestamp() ORDER BY reap_at LIMIT $1 FOR UPDATE SKIP "
    "LOCKED)",
    /* The answer goes, the record stays. A key that is not done yet may still
     * get an answer, which is not to be called dropped. */
    "UPDATE idem_record_opaque SET reap_at = gone_at, message = NULL, "
    "reason = NULL, reply = NULL, trailers = NULL WHERE key IN (SELECT key "
    "FROM idem_record_opaque WHERE reap_at < clock_timestamp() AND "
    "reap_at < gone_at AND state = 'DONE' ORDER BY reap_at LIMIT $1 FOR UPDATE "
    "SKIP LOCKED)",
};

static enum idem_status
reap(struct pg_link *link, struct idem_error *err)
{
    const int64_t batch = REAP_BATCH;
    enum idem_status status = IDEM_OK;

    for (size_t i = 0; i < sizeof(reaps) / sizeof(reaps[0]); i++) {
        int64_t reaped = batch;

        for (int n = 0; n < REAP_BATCHES && status == IDEM_OK; n++) {
            if (reaped < batch)
                break;
            status = pg_ask(link, reaps[i], 1, &batch, &reaped, err);
        }
    }
    return status;
}

/* A key of a day without a partition is refused, so that all new keys would be
 * from midnight UTC (semantics.md, trap 7). failed: what upkeep came to. */
static enum idem_status
check_tomorrow(struct pg_link *link, enum idem_status failed,
               struct idem_error *err)
{
    struct idem_error why = {.status = IDEM_OK};
    int64_t there = 0;

    if (failed != IDEM_OK && err)
        why = *err;
    if (!pg_link_is_up(link) ||
        pg_ask(link, TOMORROW, 0, NULL, &there, err) != IDEM_OK || there > 0)
        return failed;
    return idem_fail(err, IDEM_FAILED_PRECONDITION,
                     "tomorrow's partition is missing: from midnight UTC all "
                     "new keys are refused%s%s",
                     why.message[0] ? ": " : "", why.message);
}

enum idem_status
pg_maintain(const struct pg_link_options *options, unsigned days_ahead,
            struct idem_error *err)
{
    struct pg_link link = {.options = options};
    enum idem_status status = pg_link_open(&link, err);

    (void)IDEM_FAULT("postgres.maintain.before");
    if (status == IDEM_OK)
        status = pg_make_days(&link, days_ahead, err);
    if (status == IDEM_OK)
        status = fill_days(&link, err);
    if (status == IDEM_OK)
        status = pg_drop_over(&link, err);
    if (status == IDEM_OK)
        status = reap(&link, err);
    status = check_tomorrow(&link, status, err);
    pg_link_close(&link);
    return status;
}
