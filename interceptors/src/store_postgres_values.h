#ifndef STORE_POSTGRES_VALUES_H
#define STORE_POSTGRES_VALUES_H

#include <idem/arena.h>
#include <idem/tx.h>

/* Parameters and rows of the SQL of handlers, as libpq has them. */

struct pg_result;

/* Values as text without a type, so that PostgreSQL takes what the place wants;
 * bytes as they are. */
struct pg_values {
    int n;
    unsigned *types; /* 0 or that of bytes */
    const char **values;
    int *sizes;
    int *formats;
};

/* Everything lives in the arena. INVALID_ARGUMENT: a text with a NUL. */
enum idem_status pg_values_fill(struct pg_values *parameters,
                                struct idem_arena *arena,
                                const struct idem_value *values, size_t n,
                                struct idem_error *err) IDEM_MUST_CHECK;

/* A result in text format, copied. NULL: the arena is full. */
struct idem_rows *pg_rows_read(struct idem_arena *arena,
                               const struct pg_result *result);

#endif
