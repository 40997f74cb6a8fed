#include "store_sqlite.h"

#include <sqlite3.h>

#define DAY_MS INT64_C(86400000)
#define BATCH 500 /* records a step: bounds how long others wait */

#define TEXT_OF(number) #number
#define LIMIT(number) " LIMIT " TEXT_OF(number)

/* From the last day that was made, or dropped, to the days ahead: also those on
 * which nothing ran, because their keys may still come. Never a day again that
 * was dropped, whatever the clock says. A new file also takes the keys that
 * were minted just before midnight. */
#define MAKE                                                                   \
    "WITH RECURSIVE"                                                           \
    " begin (day) AS (SELECT max("                                             \
    "coalesce((SELECT max(day) FROM idem_day), ?1 - 2) + 1,"                   \
    " coalesce((SELECT value FROM idem_meta WHERE name = 'dropped'), 0) + 1,"  \
    " ?1 - 400)),"                                                             \
    " ahead (day) AS (SELECT day FROM begin WHERE day <= ?1 + ?2"              \
    " UNION ALL SELECT day + 1 FROM ahead WHERE day < ?1 + ?2)"                \
    " INSERT INTO idem_day (day) SELECT day FROM ahead WHERE true"             \
    " ON CONFLICT DO NOTHING"

/* The longest window that was seen on the day is over for its last key, and at
 * least a day has gone. From here its keys are refused. */
#define CLOSE                                                                  \
    "UPDATE idem_day SET open = 0 WHERE open = 1 AND"                          \
    " (day + 1) * 86400000 + max(max_window, 86400000) <= ?1"
#define NOTE_DROPPED                                                           \
    "INSERT INTO idem_meta (name, value)"                                      \
    " SELECT 'dropped', max(day) FROM idem_day WHERE open = 0"                 \
    " GROUP BY 1 ON CONFLICT (name)"                                           \
    " DO UPDATE SET value = max(value, excluded.value)"

#define DROP_RECORDS                                                           \
    "DELETE FROM idem_record WHERE (minted_ms, digest) IN"                     \
    " (SELECT minted_ms, digest FROM idem_record, idem_day"                    \
    " WHERE open = 0 AND minted_ms >= day * 86400000"                          \
    " AND minted_ms < (day + 1) * 86400000" LIMIT(BATCH) ")"
#define DROP_DAYS                                                              \
    "DELETE FROM idem_day WHERE open = 0 AND NOT EXISTS"                       \
    " (SELECT 1 FROM idem_record WHERE minted_ms >= day * 86400000"            \
    " AND minted_ms < (day + 1) * 86400000)"

#define DUE                                                                    \
    " WHERE digest IN (SELECT digest FROM idem_record_opaque"                  \
    " WHERE reap_at <= ?1 AND "

/* The answer goes, the record stays: done, but not kept. */
#define TRIM                                                                   \
    "UPDATE idem_record_opaque SET reap_at = gone_at, message = NULL,"         \
    " reason = NULL, reply = NULL, trailers = NULL" DUE                        \
    "reap_at < gone_at" LIMIT(BATCH) ")"

/* What may have had half an effect stays until somebody resolves it. */
#define KEEP                                                                   \
    "UPDATE idem_record_opaque SET reap_at = ?1 + 86400000,"                   \
    " gone_at = ?1 + 86400000" DUE                                             \
    "reap_at = gone_at AND state IN ('RUNNING', 'DOUBT')" LIMIT(BATCH) ")"
#define REAP                                                                   \
    "DELETE FROM idem_record_opaque" DUE                                       \
    "reap_at = gone_at AND state IN ('DONE', 'ABANDONED', 'RELEASED')" LIMIT(  \
        BATCH) ")"

#define END_SESSIONS                                                           \
    "DELETE FROM idem_session WHERE session IN (SELECT session FROM"           \
    " idem_session WHERE gone_at <= ?1" LIMIT(BATCH) ")"

/* Rows changed; -1: it failed. */
static int
change(struct sqlite_db *db, const char *sql, int64_t first, int64_t second,
       struct idem_error *err)
{
    sqlite3_stmt *statement = sqlite_db_use(db, sql, err);

    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 1, first);
    sqlite3_bind_int64(statement, 2, second);
    return sqlite_db_change(db, statement, err);
}

static bool
turn_days(struct sqlite_db *db, int64_t now_ms, unsigned days_ahead,
          struct idem_error *err)
{
    return change(db, MAKE, now_ms / DAY_MS, days_ahead, err) >= 0 &&
           change(db, CLOSE, now_ms, 0, err) >= 0 &&
           change(db, NOTE_DROPPED, 0, 0, err) >= 0;
}

enum idem_status
sqlite_days_run(struct sqlite_store *store, bool *more, struct idem_error *err)
{
    int64_t now_ms = store->clock->wall_ms(store->clock);
    struct idem_error why;

    *more = false;
    if (sqlite_begin(store, INT64_MAX, &why) &&
        sqlite_days_maintain(&store->db, now_ms, store->days_ahead, more,
                             &why) &&
        sqlite_db_run(&store->db, "COMMIT", &why) == IDEM_OK)
        return IDEM_OK;
    sqlite_db_rollback(&store->db);
    return idem_fail(err, why.status, "%s", why.message);
}

bool
sqlite_days_maintain(struct sqlite_db *db, int64_t now_ms, unsigned days_ahead,
                     bool *more, struct idem_error *err)
{
    static const char *const batches[] = {DROP_RECORDS, DROP_DAYS,   TRIM, KEEP,
                                          REAP,         END_SESSIONS};

    *more = false;
    if (!turn_days(db, now_ms, days_ahead, err))
        return false;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        int changed = change(db, batches[i], now_ms, 0, err);

        if (changed < 0)
            return false;
        if (changed >= BATCH)
            *more = true;
    }
    return true;
}
