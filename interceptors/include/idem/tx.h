#ifndef IDEM_TX_H
#define IDEM_TX_H

#include <idem/context.h>

/* The database transaction of a call, in which its record commits with what
 * the handler writes. The same SQL runs on both authorities when it keeps to
 * what they share: $1, $2 … for parameters, RETURNING, ON CONFLICT.
 *
 * A handler does not commit or roll back: such a statement is refused. An error
 * of a statement makes the transaction fail at its end whatever the handler
 * answers (case B074), as PostgreSQL has it.
 *
 * What a statement leaves in a PostgreSQL session beyond the transaction (SET
 * without LOCAL, a temporary table, a session's lock) ends with the call: the
 * connection is closed behind it, which costs the next call a new one. On
 * sqlite, whose connection all calls share, a PRAGMA that sets, ATTACH and
 * temporary tables are refused. */
struct idem_tx;
struct idem_rows;

enum idem_value_type {
    IDEM_VALUE_NULL,
    IDEM_VALUE_INT,
    IDEM_VALUE_DOUBLE,
    IDEM_VALUE_TEXT,
    IDEM_VALUE_BYTES,
};

/* A parameter: idem_int(7), idem_text("alice"). Views are not copied. */
struct idem_value {
    enum idem_value_type type;
    int64_t integer;
    double number;
    struct idem_bytes bytes; /* TEXT, BYTES */
};

IDEM_BEGIN_DECLS

/* The transaction of the handler's call. Mode TRANSACTION: where its effect
 * belongs. Mode NONE: a read-only one, opened at first use. Mode LEASED: NULL.
 * NULL also when the store is away; err says which. */
IDEM_API struct idem_tx *idem_context_tx(struct idem_context *context,
                                         struct idem_error *err);

static inline struct idem_value
idem_null(void)
{
    struct idem_value value = {IDEM_VALUE_NULL, 0, 0, {NULL, 0}};
    return value;
}

static inline struct idem_value
idem_int(int64_t integer)
{
    struct idem_value value = {IDEM_VALUE_INT, integer, 0, {NULL, 0}};
    return value;
}

static inline struct idem_value
idem_double(double number)
{
    struct idem_value value = {IDEM_VALUE_DOUBLE, 0, number, {NULL, 0}};
    return value;
}

/* NULL text is SQL's NULL. */
IDEM_API struct idem_value idem_text(const char *text);
IDEM_API struct idem_value idem_blob(struct idem_bytes bytes);

/**
 * Run one statement.
 *
 * @param rows  receives its rows when not NULL; they live until the call ends
 *
 * @retval IDEM_OK
 * @retval IDEM_ALREADY_EXISTS       a unique or exclusion constraint;
 * err.reason is the constraint's name where it is known
 * @retval IDEM_FAILED_PRECONDITION  another constraint
 * @retval IDEM_INVALID_ARGUMENT     a value that the column or cast refuses
 * @retval IDEM_INTERNAL             the SQL, its parameters, or a table that is
 *                                   not there: a fault of the program or of its
 *                                   deployment, and so never a final answer
 * @retval IDEM_ABORTED              serialization failure or deadlock: return
 *                                   it, the framework runs the handler again
 * @retval IDEM_UNAVAILABLE          the connection is lost
 * @retval IDEM_DEADLINE_EXCEEDED    the call's time is over
 */
IDEM_API enum idem_status idem_sql(struct idem_tx *tx, struct idem_rows **rows,
                                   struct idem_error *err, const char *sql,
                                   const struct idem_value *values, size_t n)
    IDEM_MUST_CHECK;

/* idem_sql(tx, &rows, err, "… $1 … $2", IDEM_VALUES(idem_int(7), …)) */
#define IDEM_VALUES(...)                                                       \
    (const struct idem_value[]){__VA_ARGS__},                                  \
        sizeof((const struct idem_value[]){__VA_ARGS__}) /                     \
            sizeof(struct idem_value)
#define IDEM_NO_VALUES NULL, 0

IDEM_API size_t idem_rows_count(const struct idem_rows *rows);

/* Rows that an INSERT, UPDATE or DELETE changed. */
IDEM_API int64_t idem_rows_affected(const struct idem_rows *rows);

/* Values by row and column, from 0. A NULL reads as 0 or "". Asking past the
 * end is a broken promise. Text lives as long as the rows. */
IDEM_API bool idem_rows_null(const struct idem_rows *rows, size_t row,
                             unsigned column);
IDEM_API int64_t idem_rows_int(const struct idem_rows *rows, size_t row,
                               unsigned column);
IDEM_API const char *idem_rows_text(const struct idem_rows *rows, size_t row,
                                    unsigned column);
IDEM_API struct idem_bytes idem_rows_bytes(const struct idem_rows *rows,
                                           size_t row, unsigned column);

/* The connection itself, for what SQL through idem_sql cannot do; NULL when the
 * authority is another one, for a method with a group, and when a statement of
 * the call has failed. On PostgreSQL it costs a round trip. Whoever commits on
 * it makes the call fail. That of PostgreSQL is closed behind the call: nobody
 * knows what was set on it. On that of sqlite statements that were left in the
 * middle are reset. */
struct pg_conn;
struct sqlite3;
IDEM_API struct pg_conn *idem_context_postgres(struct idem_context *context);
IDEM_API struct sqlite3 *idem_context_sqlite(struct idem_context *context);

IDEM_END_DECLS

#endif
