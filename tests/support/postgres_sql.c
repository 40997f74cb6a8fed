#include "support.h"

#include "child.h"
#include "postgres_inside.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Write the first value of the last result. */
static void
ask(PGconn *conn, const char *sql, char *text, unsigned size)
{
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    snprintf(text, size, "%s",
             PQntuples(result) > 0 && PQnfields(result) > 0
                 ? PQgetvalue(result, 0, 0)
                 : "");
    PQclear(result);
}

static int64_t
number_of(const char *text)
{
    return strcmp(text, "t") == 0 ? 1 : strtoll(text, NULL, 10);
}

static char *__attribute__((format(printf, 1, 0)))
format_sql(const char *format, va_list arguments)
{
    char *sql = NULL;

    assert_true(vasprintf(&sql, format, arguments) >= 0);
    return sql;
}

int64_t
postgres_sql(const struct postgres *postgres, const char *format, ...)
{
    PGconn *conn = postgres_take(postgres);
    char text[64], *sql;
    va_list arguments;

    va_start(arguments, format);
    sql = format_sql(format, arguments);
    va_end(arguments);
    ask(conn, sql, text, sizeof(text));
    postgres_give_back(postgres, conn, sql);
    free(sql);
    return number_of(text);
}

struct question {
    const struct postgres *postgres;
    const char *sql;
};

static bool
is_true(void *with)
{
    const struct question *question = with;
    PGconn *conn = postgres_take(question->postgres);
    char text[64];

    ask(conn, question->sql, text, sizeof(text));
    postgres_give_back(question->postgres, conn, question->sql);
    return number_of(text) != 0;
}

bool
postgres_wait(const struct postgres *postgres, int timeout_ms, const char *sql)
{
    struct question question = {postgres, sql};

    return child_wait_until(is_true, &question, timeout_ms);
}

/* What the columns of a record have to do with one another. */
#define RULES                                                                  \
    "ADD CHECK (state IN ('RUNNING', 'RELEASED', 'DONE', 'DOUBT', "            \
    "'ABANDONED')), ADD CHECK (token > 0), "                                   \
    "ADD CHECK ((state = 'RUNNING') = (lease_until IS NOT NULL)), "            \
    "ADD CHECK ((state IN ('DONE', 'ABANDONED')) = (done_at IS NOT NULL)), "   \
    "ADD CHECK ((state = 'DONE') = (status IS NOT NULL))"

void
postgres_strict(const struct postgres *postgres)
{
    postgres_sql(postgres, "ALTER TABLE idem_record " RULES
                           "; ALTER TABLE idem_record_opaque " RULES);
}
