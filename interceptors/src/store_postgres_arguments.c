#include "store_postgres_arguments.h"

#include <endian.h>
#include <libpq-fe.h>
#include <string.h>

#define EPOCH_US INT64_C(946684800000000) /* PostgreSQL counts from 2000 */

static void
add(struct pg_arguments *arguments, const void *value, size_t size)
{
    int n = arguments->n++;

    IDEM_ASSERT(n < ARGUMENTS_MAX);
    arguments->values[n] = value;
    arguments->sizes[n] = (int)size;
    arguments->formats[n] = 1;
}

void
pg_arguments_bytes(struct pg_arguments *arguments, struct idem_bytes bytes)
{
    add(arguments, bytes.data ? (const char *)bytes.data : "", bytes.size);
}

void
pg_arguments_int(struct pg_arguments *arguments, int64_t number)
{
    uint64_t wire = htobe64((uint64_t)number);
    uint8_t *at = arguments->numbers[arguments->n];

    memcpy(at, &wire, sizeof(wire));
    add(arguments, at, sizeof(wire));
}

void
pg_arguments_null(struct pg_arguments *arguments)
{
    add(arguments, NULL, 0);
}

struct idem_bytes
pg_row_bytes(const PGresult *result, int row, int column)
{
    return (struct idem_bytes){(const uint8_t *)PQgetvalue(result, row, column),
                               (size_t)PQgetlength(result, row, column)};
}

int64_t
pg_row_int(const PGresult *result, int row, int column)
{
    struct idem_bytes bytes = pg_row_bytes(result, row, column);
    uint64_t wide;
    uint32_t narrow;

    if (bytes.size == sizeof(wide)) {
        memcpy(&wide, bytes.data, sizeof(wide));
        return (int64_t)be64toh(wide);
    }
    if (bytes.size != sizeof(narrow))
        return 0;
    memcpy(&narrow, bytes.data, sizeof(narrow));
    return (int32_t)be32toh(narrow);
}

bool
pg_row_bool(const PGresult *result, int row, int column)
{
    struct idem_bytes bytes = pg_row_bytes(result, row, column);

    return bytes.size == 1 && bytes.data[0] != 0;
}

int64_t
pg_row_time_ms(const PGresult *result, int row, int column)
{
    return (pg_row_int(result, row, column) + EPOCH_US) / 1000;
}

bool
pg_row_null(const PGresult *result, int row, int column)
{
    return PQgetisnull(result, row, column) != 0;
}

int64_t
pg_value_int(const PGresult *result, int column)
{
    return pg_row_int(result, 0, column);
}

bool
pg_value_bool(const PGresult *result, int column)
{
    return pg_row_bool(result, 0, column);
}

struct idem_bytes
pg_value_bytes(const PGresult *result, int column)
{
    return pg_row_bytes(result, 0, column);
}
