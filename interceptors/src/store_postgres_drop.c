#include "store_postgres_drop.h"

#include "fault.h"

#include <stdio.h>

#define DAY_MS INT64_C(86400000)

/* A day that has seen no key may see one yet that was minted on it. */
#define WINDOW_FLOOR_MS (DAY_MS + INT64_C(3600000))

/* Which table is a day's. */
#define NAME "'idem_record_' || to_char(date '1970-01-01' + d.day, 'YYYYMMDD')"
#define TABLES                                                                 \
    "FROM idem_day AS d JOIN pg_class AS c ON c.relname = " NAME               \
    " AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = "    \
    "'idem_record'::regclass) LEFT JOIN pg_inherits AS i ON i.inhrelid = "     \
    "c.oid WHERE NOT d.open AND "

/* How far a day has gone. */
enum left {
    LEFT_APART,    /* no partition any more: a table of its own */
    LEFT_ATTACHED, /* a partition */
    LEFT_PENDING,  /* it was being detached when that was broken off */
};

/* Days whose longest window is over. A claim that tells a longer window
 * meanwhile either comes first, and keeps its day, or finds it closed. */
static enum idem_status
close_days(struct pg_link *link, struct idem_error *err)
{
    const int64_t floor_ms = WINDOW_FLOOR_MS;

    return pg_ask(link,
                  "UPDATE idem_day SET open = false WHERE open AND (day + 1) * "
                  "86400000::bigint + greatest(max_window_ms, $1::bigint) "
                  "< " PG_NOW_MS,
                  1, &floor_ms, NULL, err);
}

/* The first closed day after a given one that has a table; 0: none. */
static enum idem_status
next_closed(struct pg_link *link, int64_t after, int64_t *day,
            struct idem_error *err)
{
    return pg_ask(link,
                  "SELECT coalesce(min(d.day), 0)::bigint " TABLES
                  "d.day > $1::bigint",
                  1, &after, day, err);
}

static enum idem_status
look(struct pg_link *link, int64_t day, int64_t *left, struct idem_error *err)
{
    return pg_ask(link,
                  "SELECT CASE WHEN i.inhrelid IS NULL THEN 0 WHEN "
                  "i.inhdetachpending THEN 2 ELSE 1 END::bigint " TABLES
                  "d.day = $1::bigint",
                  1, &day, left, err);
}

/* Waits for the transactions that have used the partition, with no lock that
 * others would wait for. */
static enum idem_status
detach(struct pg_link *link, const char *name, enum left left,
       struct idem_error *err)
{
    char sql[128];

    snprintf(sql, sizeof(sql),
             "ALTER TABLE idem_record DETACH PARTITION idem_record_%s %s", name,
             left == LEFT_PENDING ? "FINALIZE" : "CONCURRENTLY");
    return pg_do(link, sql, err);
}

static enum idem_status
drop_day(struct pg_link *link, int64_t day, struct idem_error *err)
{
    char name[PG_DAY_NAME_MAX], sql[64];
    int64_t left = LEFT_APART;
    enum idem_status status = look(link, day, &left, err);

    pg_name_day(name, sizeof(name), day);
    (void)IDEM_FAULT("postgres.maintain.drop");
    if (status == IDEM_OK && left != LEFT_APART)
        status = detach(link, name, (enum left)left, err);
    if (status != IDEM_OK)
        return status;
    snprintf(sql, sizeof(sql), "DROP TABLE IF EXISTS idem_record_%s", name);
    return pg_do(link, sql, err);
}

static enum idem_status
drop_closed(struct pg_link *link, struct idem_error *err)
{
    int64_t day = 0;
    enum idem_status status = next_closed(link, day, &day, err);

    while (status == IDEM_OK && day > 0) {
        status = drop_day(link, day, err);
        if (status == IDEM_OK)
            status = next_closed(link, day, &day, err);
    }
    return status;
}

enum idem_status
pg_drop_over(struct pg_link *link, struct idem_error *err)
{
    const int64_t lock = PG_MAINTAIN_LOCK;
    int64_t mine = 0;
    enum idem_status status;

    /* The lock goes with the connection, should this fail. */
    status = pg_ask(link, "SELECT pg_try_advisory_lock($1)::int::bigint", 1,
                    &lock, &mine, err);
    if (status != IDEM_OK || mine != 1)
        return status;
    status = close_days(link, err);
    if (status == IDEM_OK)
        status = pg_do(link, "SET statement_timeout = '5s'", err);
    if (status == IDEM_OK)
        status = drop_closed(link, err);
    /* A long transaction is in the way: the next turn goes on. */
    if (status == IDEM_ABORTED || status == IDEM_DEADLINE_EXCEEDED)
        status = IDEM_OK;
    if (status == IDEM_OK)
        status = pg_do(link, "RESET statement_timeout", err);
    if (status == IDEM_OK)
        status = pg_ask(link, "SELECT pg_advisory_unlock($1)::int::bigint", 1,
                        &lock, &mine, err);
    return status;
}
