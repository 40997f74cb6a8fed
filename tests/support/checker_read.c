#include "checker.h"

#include <idem/base.h>

#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_SIZE 512
#define BUSY_MS 10000

void
checker_read_log(struct checker *checker, const char *path)
{
    char line[LINE_MAX_SIZE];
    FILE *file = fopen(path, "re");

    if (!file)
        return;
    while (fgets(line, sizeof(line), file)) {
        IDEM_ASSERT(strchr(line, '\n') && strchr(line, ' '));
        *strchr(line, ' ') = '\0';
        checker_effect(checker, line, INT64_MIN);
    }
    fclose(file);
}

static PGresult *
ask(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);

    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        fprintf(stderr, "checker: %s", PQerrorMessage(conn));
    IDEM_ASSERT(PQresultStatus(result) == PGRES_TUPLES_OK);
    return result;
}

static void
read_records(struct checker *checker, PGconn *conn)
{
    static const char sql[] =
        "SELECT key_text, state, coalesce(status, 0), executions, "
        "coalesce(ceil(extract(epoch FROM lease_until - clock_timestamp()) * "
        "1000)::bigint, 0) FROM (SELECT key_text, state, status, executions, "
        "lease_until FROM idem_record UNION ALL SELECT key_text, state, "
        "status, executions, lease_until FROM idem_record_opaque) AS r";
    PGresult *rows = ask(conn, sql);

    for (int i = 0; i < PQntuples(rows); i++) {
        const struct checker_record record = {
            .key = PQgetvalue(rows, i, 0),
            .state = PQgetvalue(rows, i, 1),
            .status = (enum idem_status)atoi(PQgetvalue(rows, i, 2)),
            .executions = (unsigned)atoi(PQgetvalue(rows, i, 3)),
            .lease_left_ms = atoll(PQgetvalue(rows, i, 4)),
        };

        checker_record(checker, &record);
    }
    PQclear(rows);
}

void
checker_read_postgres(struct checker *checker, const char *conninfo,
                      const char *effects)
{
    PGconn *conn = PQconnectdb(conninfo);
    PGresult *rows;

    read_records(checker, conn);
    rows = ask(conn, effects);
    for (int i = 0; i < PQntuples(rows); i++)
        checker_effect(checker, PQgetvalue(rows, i, 0), INT64_MIN);
    PQclear(rows);
    PQfinish(conn);
}

/* --- sqlite --- */

static const char *
text_at(sqlite3_stmt *row, int column)
{
    return (const char *)sqlite3_column_text(row, column);
}

static void
take_record(struct checker *checker, sqlite3_stmt *row)
{
    const struct checker_record record = {
        .key = text_at(row, 0),
        .state = text_at(row, 1),
        .status = (enum idem_status)sqlite3_column_int(row, 2),
        .executions = (unsigned)sqlite3_column_int(row, 3),
        .lease_left_ms = sqlite3_column_int64(row, 4),
    };

    checker_record(checker, &record);
}

static void
take_effect(struct checker *checker, sqlite3_stmt *row)
{
    checker_effect(checker, text_at(row, 0), INT64_MIN);
}

static void
each_row(struct checker *checker, sqlite3 *db, const char *sql,
         void (*take)(struct checker *checker, sqlite3_stmt *row))
{
    sqlite3_stmt *row;
    int rc = sqlite3_prepare_v2(db, sql, -1, &row, NULL);

    while (rc == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
        take(checker, row);
    if (rc != SQLITE_OK || sqlite3_finalize(row) != SQLITE_OK)
        fprintf(stderr, "checker: %s\n", sqlite3_errmsg(db));
    IDEM_ASSERT(sqlite3_errcode(db) == SQLITE_OK);
}

void
checker_read_sqlite(struct checker *checker, const char *path,
                    const char *effects)
{
    static const char records[] =
        "SELECT CAST(key AS TEXT), state, coalesce(status, 0), executions, "
        "coalesce(lease_until - CAST((julianday('now') - 2440587.5) * 86400000 "
        "AS INTEGER), 0) FROM "
        "(SELECT key, state, status, executions, lease_until FROM idem_record "
        "UNION ALL SELECT key, state, status, executions, lease_until FROM "
        "idem_record_opaque)";
    sqlite3 *db;

    IDEM_ASSERT(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, BUSY_MS);
    each_row(checker, db, records, take_record);
    each_row(checker, db, effects, take_effect);
    sqlite3_close(db);
}
