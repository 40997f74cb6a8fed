#include "store_postgres_fill.h"

#include "store_postgres_maintain.h"

#include <inttypes.h>
#include <stdio.h>

/* As the statistics of PostgreSQL count, which a crash clears. Fewer than a
 * tenth of the records changed: no room. Fewer than 19 of 20 changes found room
 * in their page: more room. Else $1. Asked of the newest day with a thousand
 * records. */
#define WANTED                                                                 \
    "SELECT CASE WHEN s.n_tup_upd * 10 < s.n_tup_ins THEN 100 "                \
    "WHEN s.n_tup_hot_upd * 20 < s.n_tup_upd * 19 THEN 25 ELSE "               \
    "$1::bigint END FROM pg_inherits AS i JOIN pg_stat_all_tables AS s ON "    \
    "s.relid = i.inhrelid WHERE i.inhparent = 'idem_record'::regclass AND "    \
    "s.n_tup_ins >= 1000 ORDER BY s.relname DESC LIMIT 1"

/* $1: what is wanted. A day that has it not. */
#define OTHER                                                                  \
    "SELECT d.day::bigint FROM idem_day AS d JOIN pg_class AS c ON c.relname " \
    "= 'idem_record_' || to_char(date '1970-01-01' + d.day, 'YYYYMMDD') "      \
    "JOIN pg_inherits AS i ON i.inhrelid = c.oid AND i.inhparent = "           \
    "'idem_record'::regclass WHERE d.open AND d.day >= " PG_NOW_MS             \
    " / 86400000 AND NOT coalesce(c.reloptions, '{}') @> "                     \
    "ARRAY['fillfactor=' || $1::bigint::text] ORDER BY d.day LIMIT 1"

/* Waits for no reader or writer, and they not for it. */
static enum idem_status
fill_day(struct pg_link *link, int64_t day, int64_t percent,
         struct idem_error *err)
{
    char name[PG_DAY_NAME_MAX], sql[128];

    pg_name_day(name, sizeof(name), day);
    snprintf(sql, sizeof(sql),
             "ALTER TABLE idem_record_%s SET (fillfactor = %" PRId64 ")", name,
             percent);
    return pg_do(link, sql, err);
}

enum idem_status
pg_fill_days(struct pg_link *link, struct idem_error *err)
{
    const int64_t usual = PG_FILL_NEW;
    int64_t wanted = 0, day = 0;
    enum idem_status status = pg_ask(link, WANTED, 1, &usual, &wanted, err);

    if (status != IDEM_OK || wanted == 0)
        return status;
    do {
        status = pg_ask(link, OTHER, 1, &wanted, &day, err);
        if (status == IDEM_OK && day != 0)
            status = fill_day(link, day, wanted, err);
    } while (status == IDEM_OK && day != 0);
    return status;
}
