#include "rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct idem_rows *
rows_new(struct idem_arena *arena, unsigned columns)
{
    struct idem_rows *rows = idem_arena_zalloc(arena, sizeof *rows);

    if (!rows)
        return NULL;
    rows->arena = arena;
    rows->columns = columns;
    return rows;
}

/* Doubles: what the arena cannot take back is at most as much again. */
static bool
make_room(struct idem_rows *rows)
{
    size_t room = rows->room ? rows->room * 2 : 8;
    struct rows_cell **at;

    if (rows->count < rows->room)
        return true;
    at = idem_arena_alloc(rows->arena, room * sizeof(struct rows_cell *));
    if (!at)
        return false;
    if (rows->count > 0)
        memcpy(at, rows->at, rows->count * sizeof(struct rows_cell *));
    rows->at = at;
    rows->room = room;
    return true;
}

struct rows_cell *
rows_add(struct idem_rows *rows)
{
    size_t size = rows->columns * sizeof(struct rows_cell);
    struct rows_cell *cells;

    if (!make_room(rows))
        return NULL;
    cells = idem_arena_zalloc(rows->arena, size > 0 ? size : 1);
    if (cells)
        rows->at[rows->count++] = cells;
    return cells;
}

bool
rows_set_bytes(struct idem_rows *rows, struct rows_cell *cell,
               enum idem_value_type type, struct idem_bytes bytes)
{
    uint8_t *copy = idem_arena_copy(rows->arena, bytes);

    if (!copy)
        return false;
    cell->type = type;
    cell->bytes = (struct idem_bytes){copy, bytes.size};
    return true;
}

void
rows_set_int(struct rows_cell *cell, int64_t integer)
{
    cell->type = IDEM_VALUE_INT;
    cell->integer = integer;
}

size_t
idem_rows_count(const struct idem_rows *rows)
{
    return rows->count;
}

int64_t
idem_rows_affected(const struct idem_rows *rows)
{
    return rows->affected;
}

static struct rows_cell *
cell_at(const struct idem_rows *rows, size_t row, unsigned column)
{
    IDEM_ASSERT(row < rows->count);
    IDEM_ASSERT(column < rows->columns);
    return &rows->at[row][column];
}

bool
idem_rows_null(const struct idem_rows *rows, size_t row, unsigned column)
{
    return cell_at(rows, row, column)->type == IDEM_VALUE_NULL;
}

int64_t
idem_rows_int(const struct idem_rows *rows, size_t row, unsigned column)
{
    const struct rows_cell *cell = cell_at(rows, row, column);

    if (cell->type == IDEM_VALUE_TEXT)
        return strtoll((const char *)cell->bytes.data, NULL, 10);
    return cell->integer;
}

/* An integer that is asked for as text is written out once. */
static void
write_out(const struct idem_rows *rows, struct rows_cell *cell)
{
    char *text = idem_arena_printf(rows->arena, "%" PRId64, cell->integer);

    if (text)
        cell->bytes = idem_bytes_of(text);
}

struct idem_bytes
idem_rows_bytes(const struct idem_rows *rows, size_t row, unsigned column)
{
    struct rows_cell *cell = cell_at(rows, row, column);

    if (cell->type == IDEM_VALUE_INT && cell->bytes.size == 0)
        write_out(rows, cell);
    return cell->bytes;
}

const char *
idem_rows_text(const struct idem_rows *rows, size_t row, unsigned column)
{
    struct idem_bytes bytes = idem_rows_bytes(rows, row, column);

    return bytes.size > 0 ? (const char *)bytes.data : "";
}
