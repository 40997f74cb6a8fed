#include "store_sqlite_record.h"

#include <sqlite3.h>
#include <string.h>

#define OPAQUE_WINDOW_MS INT64_C(86400000) /* when the ticket states none */

/* Parameters 1 and 2 are the record's place everywhere. */
#define AT " WHERE minted_ms = ?1 AND digest = ?2"
#define OWNED AT " AND token = ?3 AND state IN ('RUNNING', 'DOUBT')"

#define COLUMNS                                                                \
    "(minted_ms, digest, state, lease_until, done_at, executions, first_at,"   \
    " tenant, scope, key, raw, canonical, version, begun, token"
#define VALUES "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 1"

/* A minted key's record has its place in an open day, or has none: that and no
 * clock decides whether a key is forgotten. */
#define INSERT_MINTED                                                          \
    "INSERT INTO idem_record " COLUMNS ") SELECT " VALUES                      \
    " FROM idem_day WHERE day = ?1 / 86400000 AND open = 1"                    \
    " ON CONFLICT DO NOTHING"
#define INSERT_OPAQUE                                                          \
    "INSERT INTO idem_record_opaque " COLUMNS ", reap_at, gone_at)"            \
    " VALUES (" VALUES ", ?7 + ?15, ?7 + max(?15, 400 * 86400000))"            \
    " ON CONFLICT DO NOTHING"

#define TEXTS(table, insert_text)                                              \
    {                                                                          \
        .read = "SELECT state, token, executions, lease_until, first_at,"      \
                " tenant = ?3 AND scope = ?4 AND key = ?5, raw, canonical,"    \
                " version, status, message, reason, reply, trailers, begun"    \
                " FROM " table AT,                                             \
        .insert = insert_text,                                                 \
        .take = "UPDATE " table " SET state = 'RUNNING', token = token + 1,"   \
                " executions = executions + 1, lease_until = ?4,"              \
                " begun = ?6, step = NULL" AT                                  \
                " AND token = ?3 AND (state = 'RELEASED'"                      \
                " OR (state = 'DOUBT' AND ?8 = 1) OR"                          \
                " (state = 'RUNNING' AND lease_until <= ?5 AND begun = ?7))",  \
        .abandon =                                                             \
            "UPDATE " table " SET state = 'ABANDONED', done_at = ?4,"          \
            " lease_until = NULL, token = token + 1" AT                        \
            " AND token = ?3 AND (state = 'RELEASED' OR (state = 'RUNNING'"    \
            " AND lease_until <= ?4 AND begun = 0))",                          \
        .finish = "UPDATE " table " SET state = 'DONE', lease_until = NULL,"   \
                  " done_at = ?4, status = ?5, message = ?6, reason = ?7,"     \
                  " reply = ?8, trailers = ?9" OWNED,                          \
        .release = "UPDATE " table                                             \
                   " SET state = 'RELEASED', lease_until = NULL" OWNED,        \
        .doubt =                                                               \
            "UPDATE " table " SET state = 'DOUBT', lease_until = NULL" OWNED,  \
        .renew = "UPDATE " table " SET lease_until = ?4" AT                    \
                 " AND token = ?3 AND state = 'RUNNING'",                      \
        .mark = "UPDATE " table " SET begun = 1, step = ?5" AT                 \
                " AND token = ?3 AND state = 'RUNNING' AND lease_until > ?4",  \
    }

struct texts {
    const char *read, *insert, *take, *abandon, *finish, *release, *doubt,
        *renew, *mark;
};

static const struct texts minted = TEXTS("idem_record", INSERT_MINTED);
static const struct texts opaque = TEXTS("idem_record_opaque", INSERT_OPAQUE);

static const struct texts *
texts_of(const struct idem_ticket *ticket)
{
    return ticket->id.key.minted ? &minted : &opaque;
}

/* A statement with the record's place bound. */
static sqlite3_stmt *
use(struct sqlite_db *db, const char *sql, struct idem_ticket *ticket)
{
    sqlite3_stmt *statement = sqlite_db_use(db, sql, &ticket->error);

    if (!statement)
        return NULL;
    sqlite3_bind_int64(statement, 1, ticket->id.key.minted_ms);
    sqlite3_bind_blob(statement, 2, ticket->id.digest, sizeof ticket->id.digest,
                      SQLITE_STATIC);
    return statement;
}

static enum record_state
state_of(const char *name)
{
    static const char *const names[] = {
        [RECORD_RUNNING] = "RUNNING",     [RECORD_RELEASED] = "RELEASED",
        [RECORD_DONE] = "DONE",           [RECORD_DOUBT] = "DOUBT",
        [RECORD_ABANDONED] = "ABANDONED",
    };
    enum record_state state = RECORD_RUNNING;

    while (state < RECORD_ABANDONED && strcmp(names[state], name) != 0)
        state++;
    return state;
}

/* Copy a column; false: the arena is full. */
static bool
take_bytes(sqlite3_stmt *row, int column, struct idem_bytes *bytes,
           struct idem_arena *arena)
{
    const void *data = sqlite3_column_blob(row, column);
    struct idem_bytes view = {data, (size_t)sqlite3_column_bytes(row, column)};

    *bytes = (struct idem_bytes){NULL, view.size};
    if (view.size > 0)
        bytes->data = idem_arena_copy(arena, view);
    return view.size == 0 || bytes->data;
}

static bool
take_answer(sqlite3_stmt *row, struct record *record, struct idem_arena *arena)
{
    struct idem_answer *answer = &record->answer;

    record->dropped = sqlite3_column_type(row, 12) == SQLITE_NULL;
    answer->status = (enum idem_status)sqlite3_column_int(row, 9);
    return take_bytes(row, 10, &answer->message, arena) &&
           take_bytes(row, 11, &answer->reason, arena) &&
           take_bytes(row, 12, &answer->reply, arena) &&
           take_bytes(row, 13, &answer->trailers, arena);
}

static void
take_hash(sqlite3_stmt *row, int column, uint8_t hash[32])
{
    if (sqlite3_column_bytes(row, column) == 32)
        memcpy(hash, sqlite3_column_blob(row, column), 32);
}

static bool
take_record(sqlite3_stmt *row, struct record *record, struct idem_arena *arena,
            int64_t now_ms)
{
    record->state = state_of((const char *)sqlite3_column_text(row, 0));
    record->token = sqlite3_column_int64(row, 1);
    record->executions = (unsigned)sqlite3_column_int(row, 2);
    record->lease_left_ms = sqlite3_column_int64(row, 3) - now_ms;
    record->answer.first_at_ms = sqlite3_column_int64(row, 4);
    record->same_key = sqlite3_column_int(row, 5);
    record->has_fingerprint = sqlite3_column_type(row, 6) != SQLITE_NULL;
    take_hash(row, 6, record->fingerprint.raw);
    take_hash(row, 7, record->fingerprint.canonical);
    record->fingerprint.version = (unsigned)sqlite3_column_int(row, 8);
    record->unbegun = sqlite3_column_int(row, 14) == 0;
    return record->state != RECORD_DONE || !arena ||
           take_answer(row, record, arena);
}

static bool
read_row(struct sqlite_db *db, sqlite3_stmt *statement, struct record *record,
         struct idem_ticket *ticket, int64_t now_ms)
{
    switch (sqlite3_step(statement)) {
    case SQLITE_DONE:
        return true;
    case SQLITE_ROW:
        if (take_record(statement, record, ticket->arena, now_ms))
            return true;
        (void)idem_fail(&ticket->error, IDEM_RESOURCE_EXHAUSTED,
                        "the call's memory is full");
        return false;
    default:
        (void)sqlite_db_fail(db, &ticket->error);
        return false;
    }
}

static bool
window_over(const struct idem_key *key, int64_t now_ms)
{
    return key->minted && key->minted_ms + key->window_ms < now_ms;
}

bool
sqlite_record_read(struct sqlite_db *db, struct record *record,
                   struct idem_ticket *ticket, int64_t now_ms)
{
    sqlite3_stmt *statement = use(db, texts_of(ticket)->read, ticket);
    bool ok;

    memset(record, 0, sizeof *record);
    record->window_over = window_over(&ticket->id.key, now_ms);
    if (!statement)
        return false;
    sqlite_bind_bytes(statement, 3, ticket->id.tenant);
    sqlite3_bind_text(statement, 4, ticket->id.scope, -1, SQLITE_STATIC);
    sqlite_bind_bytes(statement, 5, ticket->id.key.text);
    ok = read_row(db, statement, record, ticket, now_ms);
    sqlite_db_done(statement);
    return ok;
}

static void
bind_fingerprint(sqlite3_stmt *statement, const struct idem_ticket *ticket)
{
    const struct idem_fingerprint *fingerprint = &ticket->fingerprint;

    if (fingerprint->version == 0)
        return; /* NULL: abandoned by its key alone */
    sqlite3_bind_blob(statement, 11, fingerprint->raw, 32, SQLITE_STATIC);
    sqlite3_bind_blob(statement, 12, fingerprint->canonical, 32, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 13, fingerprint->version);
}

static void
bind_new(sqlite3_stmt *statement, const struct idem_ticket *ticket,
         int64_t now_ms)
{
    sqlite3_bind_int64(statement, 7, now_ms);
    sqlite_bind_bytes(statement, 8, ticket->id.tenant);
    sqlite3_bind_text(statement, 9, ticket->id.scope, -1, SQLITE_STATIC);
    sqlite_bind_bytes(statement, 10, ticket->id.key.text);
    bind_fingerprint(statement, ticket);
    if (!ticket->id.key.minted)
        sqlite3_bind_int64(statement, 15,
                           ticket->window_ms > 0 ? ticket->window_ms
                                                 : OPAQUE_WINDOW_MS);
}

/* A day is kept until the longest window of its keys is over. */
static int
widen_day(struct sqlite_db *db, struct idem_ticket *ticket)
{
    sqlite3_stmt *statement =
        sqlite_db_use(db,
                      "UPDATE idem_day SET max_window = ?2"
                      " WHERE day = ?1 / 86400000 AND max_window < ?2",
                      &ticket->error);

    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 1, ticket->id.key.minted_ms);
    sqlite3_bind_int64(statement, 2, ticket->id.key.window_ms);
    return sqlite_db_change(db, statement, &ticket->error);
}

static int
insert(struct sqlite_db *db, struct idem_ticket *ticket,
       sqlite3_stmt *statement, int64_t now_ms)
{
    int changed;

    bind_new(statement, ticket, now_ms);
    changed = sqlite_db_change(db, statement, &ticket->error);
    if (changed == 1 && ticket->id.key.minted && widen_day(db, ticket) < 0)
        return -1;
    return changed;
}

int
sqlite_record_start(struct sqlite_db *db, struct idem_ticket *ticket,
                    int64_t now_ms)
{
    sqlite3_stmt *statement = use(db, texts_of(ticket)->insert, ticket);

    if (!statement)
        return -1;
    sqlite3_bind_text(statement, 3, "RUNNING", -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 4, now_ms + ticket->lease_ms);
    sqlite3_bind_int(statement, 6, 1);
    sqlite3_bind_int(statement, 14, !ticket->steps);
    return insert(db, ticket, statement, now_ms);
}

int
sqlite_record_refuse(struct sqlite_db *db, struct idem_ticket *ticket,
                     int64_t now_ms)
{
    sqlite3_stmt *statement = use(db, texts_of(ticket)->insert, ticket);

    if (!statement)
        return -1;
    sqlite3_bind_text(statement, 3, "ABANDONED", -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 5, now_ms);
    sqlite3_bind_int(statement, 6, 0);
    sqlite3_bind_int(statement, 14, 1);
    return insert(db, ticket, statement, now_ms);
}

int
sqlite_record_take(struct sqlite_db *db, struct idem_ticket *ticket,
                   const struct record *read, int64_t now_ms)
{
    sqlite3_stmt *statement = use(db, texts_of(ticket)->take, ticket);

    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 3, read->token);
    sqlite3_bind_int64(statement, 4, now_ms + ticket->lease_ms);
    sqlite3_bind_int64(statement, 5, now_ms);
    sqlite3_bind_int(statement, 6, !ticket->steps || ticket->probe);
    sqlite3_bind_int(statement, 7, !read->unbegun);
    sqlite3_bind_int(statement, 8, ticket->probe);
    return sqlite_db_change(db, statement, &ticket->error);
}

int
sqlite_record_abandon(struct sqlite_db *db, struct idem_ticket *ticket,
                      const struct record *read, int64_t now_ms)
{
    sqlite3_stmt *statement = use(db, texts_of(ticket)->abandon, ticket);

    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 3, read->token);
    sqlite3_bind_int64(statement, 4, now_ms);
    return sqlite_db_change(db, statement, &ticket->error);
}

/* A statement fenced by the ticket's token. */
static sqlite3_stmt *
use_owned(struct sqlite_db *db, const char *sql, struct idem_ticket *ticket)
{
    sqlite3_stmt *statement = use(db, sql, ticket);

    if (statement)
        sqlite3_bind_int64(statement, 3, ticket->token);
    return statement;
}

int
sqlite_record_finish(struct sqlite_db *db, struct idem_ticket *ticket,
                     int64_t now_ms)
{
    const struct idem_answer *answer = &ticket->answer;
    sqlite3_stmt *statement = use_owned(db, texts_of(ticket)->finish, ticket);

    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 4, now_ms);
    sqlite3_bind_int(statement, 5, answer->status);
    sqlite_bind_bytes(statement, 6, answer->message);
    sqlite_bind_bytes(statement, 7, answer->reason);
    sqlite_bind_bytes(statement, 8, answer->reply);
    sqlite_bind_bytes(statement, 9, answer->trailers);
    return sqlite_db_change(db, statement, &ticket->error);
}

static int
change_owned(struct sqlite_db *db, const char *sql, struct idem_ticket *ticket)
{
    sqlite3_stmt *statement = use_owned(db, sql, ticket);

    return statement ? sqlite_db_change(db, statement, &ticket->error) : -1;
}

int
sqlite_record_release(struct sqlite_db *db, struct idem_ticket *ticket)
{
    return change_owned(db, texts_of(ticket)->release, ticket);
}

int
sqlite_record_doubt(struct sqlite_db *db, struct idem_ticket *ticket)
{
    return change_owned(db, texts_of(ticket)->doubt, ticket);
}

int
sqlite_record_renew(struct sqlite_db *db, struct idem_ticket *ticket,
                    int64_t now_ms)
{
    sqlite3_stmt *statement = use_owned(db, texts_of(ticket)->renew, ticket);

    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 4, now_ms + ticket->lease_ms);
    return sqlite_db_change(db, statement, &ticket->error);
}

int
sqlite_record_mark(struct sqlite_db *db, struct idem_ticket *ticket,
                   int64_t now_ms)
{
    sqlite3_stmt *statement = use_owned(db, texts_of(ticket)->mark, ticket);

    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 4, now_ms);
    sqlite3_bind_text(statement, 5, ticket->step, -1, SQLITE_STATIC);
    return sqlite_db_change(db, statement, &ticket->error);
}
