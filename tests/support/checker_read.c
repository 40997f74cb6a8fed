#include "checker.h"

#include <idem/base.h>

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_SIZE 512

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
checker_read_postgres(struct checker *checker, const char *conninfo)
{
    PGconn *conn = PQconnectdb(conninfo);
    PGresult *rows;

    read_records(checker, conn);
    rows = ask(conn, "SELECT key FROM effects");
    for (int i = 0; i < PQntuples(rows); i++)
        checker_effect(checker, PQgetvalue(rows, i, 0), INT64_MIN);
    PQclear(rows);
    PQfinish(conn);
}
