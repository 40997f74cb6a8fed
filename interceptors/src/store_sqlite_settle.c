#include "store_sqlite_record.h"

#include <sqlite3.h>

/* What an operator says of a record in doubt, and the audit of it. */

#define SETTLE(table)                                                          \
    "UPDATE " table " SET state = ?4, token = token + 1, lease_until = NULL,"  \
    " done_at = ?5, status = ?6, message = ?7, reason = ?8, reply = ?9,"       \
    " trailers = ?10 WHERE minted_ms = ?1 AND digest = ?2 AND token = ?3"      \
    " AND state IN ('RUNNING', 'DOUBT')"

#define AUDIT                                                                  \
    "INSERT INTO idem_settlement (settled_at, tenant, scope, key, token,"      \
    " state, settled_by, why) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"

static const char *
state_of(const struct idem_ticket *ticket)
{
    return ticket->settlement->took_effect ? "DONE" : "RELEASED";
}

static void
bind_text(sqlite3_stmt *statement, int at, struct idem_bytes text)
{
    sqlite3_bind_text(statement, at, (const char *)text.data, (int)text.size,
                      SQLITE_STATIC);
}

static void
bind_answer(sqlite3_stmt *statement, const struct idem_answer *answer,
            int64_t now_ms)
{
    sqlite3_bind_int64(statement, 5, now_ms);
    sqlite3_bind_int(statement, 6, answer->status);
    sqlite_bind_bytes(statement, 7, answer->message);
    sqlite_bind_bytes(statement, 8, answer->reason);
    sqlite_bind_bytes(statement, 9, answer->reply);
    sqlite_bind_bytes(statement, 10, answer->trailers);
}

static int
write_state(struct sqlite_db *db, struct idem_ticket *ticket, int64_t now_ms)
{
    const char *sql = ticket->id.key.minted ? SETTLE("idem_record")
                                            : SETTLE("idem_record_opaque");
    sqlite3_stmt *statement = sqlite_db_use(db, sql, &ticket->error);

    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 1, ticket->id.key.minted_ms);
    sqlite3_bind_blob(statement, 2, ticket->id.digest, sizeof ticket->id.digest,
                      SQLITE_STATIC);
    sqlite3_bind_int64(statement, 3, ticket->token);
    sqlite3_bind_text(statement, 4, state_of(ticket), -1, SQLITE_STATIC);
    if (ticket->settlement->took_effect)
        bind_answer(statement, &ticket->answer, now_ms);
    return sqlite_db_change(db, statement, &ticket->error);
}

static int
write_audit(struct sqlite_db *db, struct idem_ticket *ticket, int64_t now_ms)
{
    sqlite3_stmt *statement = sqlite_db_use(db, AUDIT, &ticket->error);

    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 1, now_ms);
    sqlite_bind_bytes(statement, 2, ticket->id.tenant);
    sqlite3_bind_text(statement, 3, ticket->id.scope, -1, SQLITE_STATIC);
    sqlite_bind_bytes(statement, 4, ticket->id.key.text);
    sqlite3_bind_int64(statement, 5, ticket->token);
    sqlite3_bind_text(statement, 6, state_of(ticket), -1, SQLITE_STATIC);
    bind_text(statement, 7, ticket->settlement->by);
    bind_text(statement, 8, ticket->settlement->why);
    return sqlite_db_change(db, statement, &ticket->error);
}

int
sqlite_record_settle(struct sqlite_db *db, struct idem_ticket *ticket,
                     int64_t now_ms)
{
    int changed = write_state(db, ticket, now_ms);

    return changed == 1 ? write_audit(db, ticket, now_ms) : changed;
}
