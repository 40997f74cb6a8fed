#ifndef STORE_POSTGRES_ARGUMENTS_H
#define STORE_POSTGRES_ARGUMENTS_H

#include <idem/base.h>

/* Binary parameters of a prepared statement, and binary values of its rows. */

struct pg_result;

#define ARGUMENTS_MAX 20

struct pg_arguments {
    int n;
    const char *values[ARGUMENTS_MAX];
    int sizes[ARGUMENTS_MAX];
    int formats[ARGUMENTS_MAX];
    uint8_t numbers[ARGUMENTS_MAX][8];
};

/* The bytes are not copied. */
void pg_arguments_bytes(struct pg_arguments *arguments,
                        struct idem_bytes bytes);
void pg_arguments_int(struct pg_arguments *arguments, int64_t number);
void pg_arguments_null(struct pg_arguments *arguments);

/* Values by row and column; NULL reads as 0, false or empty. */
int64_t pg_row_int(const struct pg_result *result, int row,
                   int column); /* int4, int8 */
bool pg_row_bool(const struct pg_result *result, int row, int column);
int64_t pg_row_time_ms(const struct pg_result *result, int row,
                       int column); /* timestamptz: since 1970 */
bool pg_row_null(const struct pg_result *result, int row, int column);
struct idem_bytes pg_row_bytes(const struct pg_result *result, int row,
                               int column);

/* Of row 0. */
int64_t pg_value_int(const struct pg_result *result, int column);
bool pg_value_bool(const struct pg_result *result, int column);
struct idem_bytes pg_value_bytes(const struct pg_result *result, int column);

#endif
