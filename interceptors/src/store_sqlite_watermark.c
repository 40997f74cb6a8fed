#include "store_sqlite.h"
#include "watermark.h"

#include <sqlite3.h>

#define TEXT_OF(number) #number
#define STEP_OF(number) TEXT_OF(number)
#define STEP STEP_OF(WATERMARK_STEP)

/* A statement with the session bound as ?1; digest outlives it. */
static sqlite3_stmt *
use(struct sqlite_db *db, const char *sql, struct idem_ticket *ticket,
    uint8_t digest[32])
{
    sqlite3_stmt *statement = sqlite_db_use(db, sql, &ticket->error);

    watermark_digest(&ticket->id, digest);
    if (statement)
        sqlite3_bind_blob(statement, 1, digest, 32, SQLITE_STATIC);
    return statement;
}

/* False: SQL failed. A session that is not there has acknowledged nothing. */
static bool
read_acked(struct sqlite_db *db, struct idem_ticket *ticket, int64_t *acked)
{
    uint8_t digest[32];
    sqlite3_stmt *statement =
        use(db, "SELECT acked FROM idem_session WHERE session = ?1", ticket,
            digest);
    int code;

    if (!statement)
        return false;
    code = sqlite3_step(statement);
    *acked = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 1;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        (void)sqlite_db_fail(db, &ticket->error);
    sqlite_db_done(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

bool
sqlite_watermark(struct sqlite_db *db, struct idem_ticket *ticket)
{
    int64_t acked;

    if (!read_acked(db, ticket, &acked))
        return false;
    ticket->verdict = acked > ticket->id.key.sequence ? IDEM_VERDICT_EXPIRED
                                                      : IDEM_VERDICT_MINE;
    return true;
}

/* 1: it has moved; 0: it was there before; -1: SQL failed. */
static int
move(struct sqlite_db *db, struct idem_ticket *ticket)
{
    uint8_t digest[32];
    sqlite3_stmt *statement =
        use(db,
            "INSERT INTO idem_session (session, acked, gone_at)"
            " VALUES (?1, min(?2, 1 + " STEP "), ?3) ON CONFLICT (session)"
            " DO UPDATE SET acked = min(?2, acked + " STEP ") WHERE acked < ?2",
            ticket, digest);

    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 2, watermark_bounded(ticket));
    sqlite3_bind_int64(statement, 3, watermark_gone_ms(&ticket->id));
    return sqlite_db_change(db, statement, &ticket->error);
}

static bool
forget(struct sqlite_db *db, struct idem_ticket *ticket, int64_t sequence)
{
    uint8_t digest[32];
    sqlite3_stmt *statement =
        sqlite_db_use(db,
                      "DELETE FROM idem_record WHERE minted_ms = ?1"
                      " AND digest = ?2 AND state = 'DONE'",
                      &ticket->error);

    if (!statement)
        return false;
    watermark_record(&ticket->id, sequence, digest);
    sqlite3_bind_int64(statement, 1, ticket->id.key.minted_ms);
    sqlite3_bind_blob(statement, 2, digest, sizeof digest, SQLITE_STATIC);
    return sqlite_db_change(db, statement, &ticket->error) >= 0;
}

/* All in the writer's transaction: the watermark and the records that go with
 * it become visible at once. */
bool
sqlite_acknowledge(struct sqlite_db *db, struct idem_ticket *ticket)
{
    int64_t acked = 1, first;
    int moved = watermark_bounded(ticket) > 1 ? move(db, ticket) : 0;

    ticket->verdict = IDEM_VERDICT_MINE;
    if (moved <= 0)
        return moved == 0;
    if (!read_acked(db, ticket, &acked))
        return false;
    first = acked > WATERMARK_STEP ? acked - WATERMARK_STEP : 1;
    while (first < acked && forget(db, ticket, first))
        first++;
    return first == acked;
}
