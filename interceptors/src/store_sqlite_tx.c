#include "store_sqlite.h"

#include "sql.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_EVERY                                                             \
    1000 /* steps of sqlite's machine between looks at the time */

static enum idem_status
bind(sqlite3_stmt *statement, int at, const struct idem_value *value,
     struct idem_error *err)
{
    struct idem_bytes bytes = value->bytes;

    switch (value->type) {
    case IDEM_VALUE_NULL:
        sqlite3_bind_null(statement, at);
        return IDEM_OK;
    case IDEM_VALUE_INT:
        sqlite3_bind_int64(statement, at, value->integer);
        return IDEM_OK;
    case IDEM_VALUE_DOUBLE:
        sqlite3_bind_double(statement, at, value->number);
        return IDEM_OK;
    case IDEM_VALUE_BYTES:
        sqlite_bind_bytes(statement, at, bytes);
        return IDEM_OK;
    case IDEM_VALUE_TEXT:
        break;
    }
    if (bytes.size > 0 && memchr(bytes.data, '\0', bytes.size))
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "parameter $%d: text with a NUL", at);
    sqlite3_bind_text64(statement, at,
                        bytes.size ? (const char *)bytes.data : "", bytes.size,
                        SQLITE_STATIC, SQLITE_UTF8);
    return IDEM_OK;
}

/* sqlite counts $2 by where it stands, PostgreSQL by its number: we too. */
static size_t
number_of(sqlite3_stmt *statement, int at)
{
    const char *name = sqlite3_bind_parameter_name(statement, at);

    return name && name[0] == '$' ? strtoul(name + 1, NULL, 10) : 0;
}

static enum idem_status
bind_all(sqlite3_stmt *statement, const struct idem_value *values, size_t n,
         struct idem_error *err)
{
    int count = sqlite3_bind_parameter_count(statement);
    enum idem_status status = IDEM_OK;
    size_t highest = 0;

    for (int at = 1; at <= count && status == IDEM_OK; at++) {
        size_t number = number_of(statement, at);

        if (number < 1 || number > n)
            return idem_fail(err, IDEM_INTERNAL,
                             "parameter %d of the statement has no value", at);
        if (number > highest)
            highest = number;
        status = bind(statement, at, &values[number - 1], err);
    }
    if (status == IDEM_OK && highest != n)
        return idem_fail(err, IDEM_INTERNAL,
                         "the statement takes %zu parameters, not %zu", highest,
                         n);
    return status;
}

static bool
take_number(struct idem_rows *rows, struct rows_cell *cell, double number)
{
    char text[32];

    snprintf(text, sizeof text, "%.17g", number);
    return rows_set_bytes(rows, cell, IDEM_VALUE_TEXT, idem_bytes_of(text));
}

static bool
take_cell(struct idem_rows *rows, struct rows_cell *cell, sqlite3_stmt *row,
          int column)
{
    int type = sqlite3_column_type(row, column);
    struct idem_bytes bytes;

    switch (type) {
    case SQLITE_NULL:
        return true;
    case SQLITE_INTEGER:
        rows_set_int(cell, sqlite3_column_int64(row, column));
        return true;
    case SQLITE_FLOAT:
        return take_number(rows, cell, sqlite3_column_double(row, column));
    default:
        bytes.data = sqlite3_column_blob(row, column);
        bytes.size = (size_t)sqlite3_column_bytes(row, column);
        return rows_set_bytes(
            rows, cell,
            type == SQLITE_TEXT ? IDEM_VALUE_TEXT : IDEM_VALUE_BYTES, bytes);
    }
}

static bool
take_row(struct idem_rows *rows, sqlite3_stmt *row)
{
    struct rows_cell *cells = rows_add(rows);

    for (unsigned at = 0; cells && at < rows->columns; at++)
        if (!take_cell(rows, &cells[at], row, (int)at))
            return false;
    return cells;
}

static enum idem_status
out_of_memory(struct idem_error *err)
{
    return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "the call's memory is full");
}

static enum idem_status
step_all(struct sqlite_tx *tx, sqlite3_stmt *statement, struct idem_rows *rows,
         struct idem_error *err)
{
    int before = sqlite3_total_changes(tx->db->handle);
    int code;

    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        if (!take_row(rows, statement))
            return out_of_memory(err);
    if (code != SQLITE_DONE)
        return sqlite_db_fail(tx->db, err);
    if (sqlite3_total_changes(tx->db->handle) != before)
        rows->affected = sqlite3_changes(tx->db->handle);
    return IDEM_OK;
}

static enum idem_status
run(struct sqlite_tx *tx, sqlite3_stmt *statement, struct idem_rows **rows,
    struct idem_error *err, const struct idem_value *values, size_t n)
{
    struct idem_rows *made =
        rows_new(tx->base.arena, (unsigned)sqlite3_column_count(statement));
    enum idem_status status;

    if (!made)
        return out_of_memory(err);
    status = bind_all(statement, values, n, err);
    if (status == IDEM_OK)
        status = step_all(tx, statement, made, err);
    if (status == IDEM_OK)
        *rows = made;
    return status;
}

static enum idem_status
exec(struct idem_tx *base, struct idem_rows **rows, struct idem_error *err,
     const char *sql, const struct idem_value *values, size_t n)
{
    struct sqlite_tx *tx = (struct sqlite_tx *)base;
    struct idem_error unwanted;
    sqlite3_stmt *statement;
    enum idem_status status;

    if (sql_changes_connection(sql))
        return idem_fail(err, IDEM_INTERNAL,
                         "the connection is not this call's alone: %.60s", sql);
    statement = sqlite_db_use(tx->db, sql, err ? err : &unwanted);
    if (!statement)
        return err ? err->status : unwanted.status;
    status = run(tx, statement, rows, err, values, n);
    sqlite_db_done(statement);
    if (status != IDEM_OK && !sqlite_db_in_transaction(tx->db))
        tx->gone = true;
    return status;
}

static struct pg_conn *
postgres(struct idem_tx *tx)
{
    (void)tx;
    return NULL;
}

static struct sqlite3 *
sqlite(struct idem_tx *tx)
{
    struct sqlite_tx *ours = (struct sqlite_tx *)tx;

    ours->lent = true;
    return ours->db->handle;
}

static const struct tx_ops ops = {exec, postgres, sqlite};

/* True stops the statement. */
static int
is_late(void *with)
{
    const struct idem_tx *tx = with;

    return tx->clock->monotonic_ns(tx->clock) >= tx->deadline_ns;
}

void
sqlite_tx_init(struct sqlite_tx *tx, struct sqlite_db *db,
               const struct idem_clock *clock, struct idem_arena *arena,
               int64_t deadline_ns)
{
    *tx = (struct sqlite_tx){
        .base = {.ops = &ops,
                 .arena = arena,
                 .clock = clock,
                 .deadline_ns = deadline_ns},
        .db = db,
    };
    sqlite3_progress_handler(db->handle, LOOK_EVERY, is_late, &tx->base);
}

void
sqlite_tx_fini(struct sqlite_tx *tx)
{
    sqlite3_progress_handler(tx->db->handle, 0, NULL, NULL);
    if (tx->lent)
        sqlite_db_end_statements(tx->db);
}
