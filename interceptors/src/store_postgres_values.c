#include "store_postgres_values.h"

#include "rows.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#define OID_BOOL 16
#define OID_BYTEA 17
#define OID_INT8 20
#define OID_INT2 21
#define OID_INT4 23
#define OID_OID 26

static bool
values_init(struct pg_values *parameters, struct idem_arena *arena, size_t n)
{
    parameters->n = (int)n;
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

enum idem_status
pg_values_fill(struct pg_values *parameters, struct idem_arena *arena,
               const struct idem_value *values, size_t n,
               struct idem_error *err)
{
    if (!values_init(parameters, arena, n))
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

/* libpq asks for a result that it could change and does not. */
static const char *
tag_of(const PGresult *result)
{
    return PQcmdStatus((PGresult *)(uintptr_t)result);
}

static int64_t
affected(const PGresult *result)
{
    return strtoll(PQcmdTuples((PGresult *)(uintptr_t)result), NULL, 10);
}

struct idem_rows *
pg_rows_read(struct idem_arena *arena, const PGresult *result)
{
    int columns = PQnfields(result), n = PQntuples(result);
    struct idem_rows *rows = rows_new(arena, (unsigned)columns);

    if (!rows)
        return NULL;
    rows->affected = PQresultStatus(result) == PGRES_COMMAND_OK ||
                             strncmp(tag_of(result), "SELECT", 6) != 0
                         ? affected(result)
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
