#include "store_postgres_operation.h"

#include "sql.h"
#include "store_postgres_error.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The SQL of handlers, on the session's connection and the handler's thread. */

#define OID_BOOL 16
#define OID_BYTEA 17
#define OID_INT8 20
#define OID_INT2 21
#define OID_INT4 23
#define OID_OID 26

struct parameters {
    Oid *types;
    const char **values;
    int *sizes;
    int *formats;
};

static bool
parameters_init(struct parameters *parameters, struct idem_arena *arena,
                size_t n)
{
    n = n ? n : 1;
    parameters->types = idem_arena_zalloc(arena, n * sizeof(Oid));
    parameters->values = idem_arena_zalloc(arena, n * sizeof(char *));
    parameters->sizes = idem_arena_zalloc(arena, n * sizeof(int));
    parameters->formats = idem_arena_zalloc(arena, n * sizeof(int));
    return parameters->types && parameters->values && parameters->sizes &&
           parameters->formats;
}

/* As text without a type, so that PostgreSQL takes what the place wants; bytes
 * as they are. NULL: out of memory. */
static const char *
value_text(struct idem_arena *arena, const struct idem_value *value)
{
    switch (value->type) {
    case IDEM_VALUE_INT:
        return idem_arena_printf(arena, "%" PRId64, value->integer);
    case IDEM_VALUE_DOUBLE:
        return idem_arena_printf(arena, "%.17g", value->number);
    case IDEM_VALUE_TEXT:
        return (const char *)idem_arena_copy(arena, value->bytes);
    case IDEM_VALUE_NULL:
    case IDEM_VALUE_BYTES:
        break;
    }
    return value->bytes.data ? (const char *)value->bytes.data : "";
}

static bool
has_nul(const struct idem_value *value)
{
    return value->type == IDEM_VALUE_TEXT && value->bytes.size > 0 &&
           memchr(value->bytes.data, 0, value->bytes.size);
}

static enum idem_status
fill(struct parameters *parameters, struct idem_arena *arena,
     const struct idem_value *values, size_t n, struct idem_error *err)
{
    if (!parameters_init(parameters, arena, n))
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "the arena is full");
    for (size_t i = 0; i < n; i++) {
        if (has_nul(&values[i]))
            return idem_fail(err, IDEM_INVALID_ARGUMENT,
                             "parameter %zu: a NUL in a text", i + 1);
        if (values[i].type == IDEM_VALUE_NULL)
            continue;
        parameters->values[i] = value_text(arena, &values[i]);
        if (!parameters->values[i])
            return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "the arena is full");
        if (values[i].type != IDEM_VALUE_BYTES)
            continue;
        parameters->types[i] = OID_BYTEA;
        parameters->formats[i] = 1;
        parameters->sizes[i] = (int)values[i].bytes.size;
    }
    return IDEM_OK;
}

static bool
set_bytes(struct idem_rows *rows, struct rows_cell *cell, const char *text)
{
    size_t size = 0;
    unsigned char *bytes = PQunescapeBytea((const unsigned char *)text, &size);
    bool ok = bytes && rows_set_bytes(rows, cell, IDEM_VALUE_BYTES,
                                      (struct idem_bytes){bytes, size});

    PQfreemem(bytes);
    return ok;
}

static bool
set_cell(struct idem_rows *rows, struct rows_cell *cell, const PGresult *result,
         int row, int column)
{
    const char *text = PQgetvalue(result, row, column);

    if (PQgetisnull(result, row, column))
        return true;
    switch (PQftype(result, column)) {
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
    case OID_OID:
        rows_set_int(cell, strtoll(text, NULL, 10));
        return true;
    case OID_BOOL:
        rows_set_int(cell, text[0] == 't');
        return true;
    case OID_BYTEA:
        return set_bytes(rows, cell, text);
    default:
        return rows_set_bytes(rows, cell, IDEM_VALUE_TEXT, idem_bytes_of(text));
    }
}

static struct idem_rows *
read_rows(struct idem_arena *arena, PGresult *result)
{
    int columns = PQnfields(result), n = PQntuples(result);
    struct idem_rows *rows = rows_new(arena, (unsigned)columns);

    if (!rows)
        return NULL;
    rows->affected = PQresultStatus(result) == PGRES_COMMAND_OK ||
                             strncmp(PQcmdStatus(result), "SELECT", 6) != 0
                         ? strtoll(PQcmdTuples(result), NULL, 10)
                         : 0;
    for (int i = 0; i < n; i++) {
        struct rows_cell *cells = rows_add(rows);

        if (!cells)
            return NULL;
        for (int j = 0; j < columns; j++)
            if (!set_cell(rows, &cells[j], result, i, j))
                return NULL;
    }
    return rows;
}

static enum idem_status
judge(struct pg_session *session, PGresult *result, struct idem_rows **rows,
      struct idem_error *err)
{
    ExecStatusType status = PQresultStatus(result);

    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
        *rows = read_rows(session->tx.arena, result);
        if (*rows)
            return IDEM_OK;
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                         "the rows are over the call's memory");
    }
    if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT ||
        status == PGRES_COPY_BOTH) {
        session->link.broken = true;
        return idem_fail(err, IDEM_INTERNAL,
                         "COPY needs the connection itself");
    }
    return pg_fail_result(err, result);
}

/* A failure to wait leaves the connection for complete to discard. */
static enum idem_status
answer(struct pg_session *session, struct idem_rows **rows,
       struct idem_error *err)
{
    PGresult *result, *rest = NULL;
    enum pg_end end = pg_link_wait(&session->link, session->until_ns, &result);
    enum idem_status status;

    if (end == PG_LATE) {
        session->link.broken = true;
        return idem_fail(err, IDEM_DEADLINE_EXCEEDED,
                         "PostgreSQL did not answer in time");
    }
    status = judge(session, result, rows, err);
    PQclear(result);
    if (end == PG_OK && !session->link.broken)
        end = pg_link_wait(&session->link, session->until_ns, &rest);
    PQclear(rest);
    if (end != PG_OK)
        session->link.broken = true;
    return status;
}

static enum idem_status
tx_exec(struct idem_tx *tx, struct idem_rows **rows, struct idem_error *err,
        const char *sql, const struct idem_value *values, size_t n)
{
    struct pg_session *session = (struct pg_session *)tx;
    PGconn *conn = session->link.conn;
    struct parameters parameters;
    enum idem_status status = fill(&parameters, tx->arena, values, n, err);

    if (status != IDEM_OK)
        return status;
    if (!pg_link_is_up(&session->link))
        return idem_fail(err, IDEM_UNAVAILABLE, "the connection is lost");
    session->until_ns =
        pg_store_until(session->postgres, tx->deadline_ns, GRACE_NS);
    session->soiled |= sql_changes_session(sql);
    PQsetnonblocking(conn, 1);
    if (!PQsendQueryParams(conn, sql, (int)n, parameters.types,
                           parameters.values, parameters.sizes,
                           parameters.formats, 0)) {
        session->link.broken = true;
        return idem_fail(err, IDEM_UNAVAILABLE, "PostgreSQL: %.200s",
                         PQerrorMessage(conn));
    }
    return answer(session, rows, err);
}

/* Handed over as libpq gives it, blocking. */
static struct pg_conn *
tx_postgres(struct idem_tx *tx)
{
    struct pg_session *session = (struct pg_session *)tx;

    session->soiled = true;
    PQsetnonblocking(session->link.conn, 0);
    return session->link.conn;
}

static struct sqlite3 *
tx_sqlite(struct idem_tx *tx)
{
    (void)tx;
    return NULL;
}

static const struct tx_ops ops = {tx_exec, tx_postgres, tx_sqlite};

void
pg_tx_begin(struct pg_session *session, struct idem_ticket *ticket)
{
    session->pinned = true;
    session->tx = (struct idem_tx){
        .ops = &ops,
        .arena = ticket->arena,
        .clock = session->postgres->clock,
        .deadline_ns = ticket->deadline_ns,
    };
    ticket->tx = &session->tx;
}
