#include "books.h"

#include "support.h"

#include <sqlite3.h>

int64_t
books_ask(const char *path, const char *sql)
{
    sqlite3_stmt *statement;
    sqlite3 *db;
    int64_t value;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}
