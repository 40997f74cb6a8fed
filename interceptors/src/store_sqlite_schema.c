#include "store_sqlite.h"

#include "migration.h"

#include <sqlite3.h>

/* One number of the store's own; false and err: it cannot be read. */
static bool
read_number(struct sqlite_db *db, const char *sql, int64_t *number,
            struct idem_error *err)
{
    sqlite3_stmt *statement = sqlite_db_use(db, sql, err);
    int code;

    if (!statement)
        return false;
    code = sqlite3_step(statement);
    *number = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        (void)sqlite_db_fail(db, err);
    sqlite_db_done(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

/* 0: a file that is not ours yet. */
static bool
read_version(struct sqlite_db *db, int64_t *version, struct idem_error *err)
{
    int64_t tables;

    *version = 0;
    if (!read_number(db,
                     "SELECT count(*) FROM sqlite_master"
                     " WHERE type = 'table' AND name = 'idem_meta'",
                     &tables, err))
        return false;
    return tables == 0 ||
           read_number(db, "SELECT value FROM idem_meta WHERE name = 'schema'",
                       version, err);
}

static bool
write_version(struct sqlite_db *db, unsigned version, struct idem_error *err)
{
    sqlite3_stmt *statement = sqlite_db_use(
        db,
        "INSERT INTO idem_meta (name, value) VALUES ('schema', ?1)"
        " ON CONFLICT (name) DO UPDATE SET value = ?1",
        err);

    if (!statement)
        return false;
    sqlite3_bind_int64(statement, 1, version);
    return sqlite_db_change(db, statement, err) == 1;
}

static enum idem_status
migrate(struct sqlite_db *db, struct idem_error *err)
{
    const struct migration *at = sqlite_migrations;
    int64_t version;

    if (!read_version(db, &version, err))
        return err->status;
    for (; at->text; at++) {
        if (at->version <= version)
            continue;
        if (sqlite_db_run(db, at->text, err) != IDEM_OK ||
            !write_version(db, at->version, err))
            return err->status;
        version = at->version;
    }
    if (at > sqlite_migrations && version > at[-1].version)
        return idem_fail(err, IDEM_FAILED_PRECONDITION,
                         "the file has schema %d, this library knows %u",
                         (int)version, at[-1].version);
    return IDEM_OK;
}

/* All in one transaction: of two processes that open a new file at once, one
 * waits and finds it done. */
enum idem_status
sqlite_schema_apply(struct sqlite_db *db, const char *service,
                    struct idem_error *err)
{
    struct idem_error why;
    enum idem_status status = sqlite_db_run(db, "BEGIN IMMEDIATE", &why);

    if (status == IDEM_OK)
        status = migrate(db, &why);
    if (status == IDEM_OK && service)
        status = sqlite_db_run(db, service, &why);
    if (status == IDEM_OK)
        status = sqlite_db_run(db, "COMMIT", &why);
    if (status == IDEM_OK)
        return IDEM_OK;
    sqlite_db_rollback(db);
    return idem_fail(err, status, "%s", why.message);
}
