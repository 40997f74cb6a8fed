#include "store_sqlite_db.h"

#include "sql.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define STATEMENTS_MAX 128 /* compiled ones kept a connection */

struct sqlite_statement {
    sqlite3_stmt *compiled;
    UT_hash_handle hh;
    char sql[];
};

/* What SQL does wrong is the caller's; what the disk does is the store's. */
static enum idem_status
status_of_constraint(int code)
{
    switch (code) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
        return IDEM_ALREADY_EXISTS;
    default:
        return IDEM_FAILED_PRECONDITION;
    }
}

static enum idem_status
status_of(int code)
{
    switch (code & 0xFF) {
    case SQLITE_CONSTRAINT:
        return status_of_constraint(code);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return code == SQLITE_BUSY_SNAPSHOT ? IDEM_ABORTED : IDEM_UNAVAILABLE;
    case SQLITE_INTERRUPT:
        return IDEM_DEADLINE_EXCEEDED;
    case SQLITE_NOMEM:
        return IDEM_RESOURCE_EXHAUSTED;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return IDEM_DATA_LOSS;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_PROTOCOL:
    case SQLITE_READONLY:
        return IDEM_UNAVAILABLE;
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
        return IDEM_INVALID_ARGUMENT;
    default:
        return IDEM_INTERNAL; /* the SQL, or a table that is not there */
    }
}

/* "UNIQUE constraint failed: accounts.id" → "accounts.id" */
static const char *
constraint_name(const char *message)
{
    const char *name = strstr(message, "constraint failed: ");

    return name ? name + strlen("constraint failed: ") : "";
}

enum idem_status
sqlite_db_fail(struct sqlite_db *db, struct idem_error *err)
{
    int code = sqlite3_extended_errcode(db->handle);
    const char *message = sqlite3_errmsg(db->handle);

    return idem_fail_reason(err, status_of(code), constraint_name(message),
                            "sqlite: %s", message);
}

enum idem_status
sqlite_db_run(struct sqlite_db *db, const char *sql, struct idem_error *err)
{
    if (sqlite3_exec(db->handle, sql, NULL, NULL, NULL) != SQLITE_OK)
        return sqlite_db_fail(db, err);
    return IDEM_OK;
}

static enum idem_status
set_up(struct sqlite_db *db, bool reader, int64_t busy_ms,
       struct idem_error *err)
{
    static const char *const writes = "PRAGMA journal_mode = WAL;"
                                      "PRAGMA synchronous = FULL;"
                                      "PRAGMA foreign_keys = ON;";

    sqlite_db_set_busy(db, busy_ms);
    if (reader)
        return sqlite_db_run(db, "PRAGMA query_only = ON", err);
    return sqlite_db_run(db, writes, err);
}

enum idem_status
sqlite_db_open(struct sqlite_db *db, const char *path, bool reader,
               int64_t busy_ms, struct idem_error *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                SQLITE_OPEN_EXRESCODE | (reader ? 0 : SQLITE_OPEN_CREATE);
    int code = sqlite3_open_v2(path, &db->handle, flags, NULL);
    enum idem_status status;

    if (code != SQLITE_OK)
        status = idem_fail(err, IDEM_UNAVAILABLE, "%s: %s", path,
                           sqlite3_errstr(code));
    else
        status = set_up(db, reader, busy_ms, err);
    if (status != IDEM_OK)
        sqlite_db_close(db);
    return status;
}

static void
forget(struct sqlite_db *db, struct sqlite_statement *statement)
{
    HASH_DEL(db->statements, statement);
    sqlite3_finalize(statement->compiled);
    free(statement);
}

void
sqlite_db_close(struct sqlite_db *db)
{
    while (db->statements)
        forget(db, db->statements);
    sqlite3_close_v2(db->handle);
    db->handle = NULL;
}

void
sqlite_db_set_busy(struct sqlite_db *db, int64_t busy_ms)
{
    int ms = busy_ms < 0 ? 0 : busy_ms > 3600000 ? 3600000 : (int)busy_ms;

    sqlite3_busy_timeout(db->handle, ms);
}

static enum idem_status
compile(struct sqlite_db *db, struct sqlite_statement *statement,
        struct idem_error *err)
{
    const char *tail;

    if (sqlite3_prepare_v3(db->handle, statement->sql, -1,
                           SQLITE_PREPARE_PERSISTENT, &statement->compiled,
                           &tail) != SQLITE_OK)
        return sqlite_db_fail(db, err);
    if (statement->compiled && sql_is_blank(tail))
        return IDEM_OK;
    sqlite3_finalize(statement->compiled);
    return idem_fail(err, IDEM_INTERNAL, "not one statement: %.60s",
                     statement->sql);
}

static struct sqlite_statement *
add(struct sqlite_db *db, const char *sql, size_t size, struct idem_error *err)
{
    struct sqlite_statement *statement =
        calloc(1, sizeof *statement + size + 1);

    if (!statement) {
        (void)idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
        return NULL;
    }
    memcpy(statement->sql, sql, size);
    if (compile(db, statement, err) != IDEM_OK) {
        free(statement);
        return NULL;
    }
    if (HASH_COUNT(db->statements) >= STATEMENTS_MAX)
        forget(db, db->statements);
    HASH_ADD_KEYPTR(hh, db->statements, statement->sql, size, statement);
    return statement;
}

struct sqlite3_stmt *
sqlite_db_use(struct sqlite_db *db, const char *sql, struct idem_error *err)
{
    size_t size = strlen(sql);
    struct sqlite_statement *statement;

    HASH_FIND(hh, db->statements, sql, size, statement);
    if (!statement) {
        statement = add(db, sql, size, err);
    } else {
        HASH_DEL(db->statements, statement); /* to the end: used last */
        HASH_ADD_KEYPTR(hh, db->statements, statement->sql, size, statement);
    }
    return statement ? statement->compiled : NULL;
}

void
sqlite_db_done(struct sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}

void
sqlite_bind_bytes(struct sqlite3_stmt *statement, int at,
                  struct idem_bytes bytes)
{
    if (bytes.size == 0)
        sqlite3_bind_zeroblob(statement, at, 0);
    else
        sqlite3_bind_blob64(statement, at, bytes.data, bytes.size,
                            SQLITE_STATIC);
}

int
sqlite_db_change(struct sqlite_db *db, struct sqlite3_stmt *statement,
                 struct idem_error *err)
{
    int changed = -1;

    if (sqlite3_step(statement) == SQLITE_DONE)
        changed = sqlite3_changes(db->handle);
    else
        (void)sqlite_db_fail(db, err);
    sqlite_db_done(statement);
    return changed;
}

void
sqlite_db_end_statements(struct sqlite_db *db)
{
    sqlite3_stmt *at = NULL;

    while ((at = sqlite3_next_stmt(db->handle, at)))
        if (sqlite3_stmt_busy(at))
            sqlite3_reset(at);
}

bool
sqlite_db_in_transaction(const struct sqlite_db *db)
{
    return !sqlite3_get_autocommit(db->handle);
}

void
sqlite_db_rollback(struct sqlite_db *db)
{
    /* sqlite ends it by itself after some failures. */
    if (sqlite_db_in_transaction(db))
        sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
}
