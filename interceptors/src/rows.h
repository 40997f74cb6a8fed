#ifndef ROWS_H
#define ROWS_H

#include <idem/arena.h>
#include <idem/tx.h>

/* The rows of one statement, as an authority builds them: all in the arena of
 * the call, so that nothing is freed singly. One thread: the handler's. */
struct idem_rows {
    struct idem_arena *arena;
    unsigned columns;
    size_t count;
    size_t room;
    struct rows_cell **at; /* one array of cells a row */
    int64_t affected;
};

/* Zeroed is NULL. */
struct rows_cell {
    enum idem_value_type type; /* NULL, INT, TEXT or BYTES; a number that is
                                * no integer comes as TEXT */
    int64_t integer;
    struct idem_bytes bytes; /* TEXT, BYTES: with a NUL behind, not counted */
};

/* NULL: the arena is full. */
struct idem_rows *rows_new(struct idem_arena *arena, unsigned columns);

/* The cells of one more row, all NULL yet. NULL: the arena is full. */
struct rows_cell *rows_add(struct idem_rows *rows);

/* Copy a value into the arena. False: it is full. */
bool rows_set_bytes(struct idem_rows *rows, struct rows_cell *cell,
                    enum idem_value_type type, struct idem_bytes bytes)
    IDEM_MUST_CHECK;
void rows_set_int(struct rows_cell *cell, int64_t integer);

#endif
