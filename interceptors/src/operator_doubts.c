#include <idem/operator.h>

#include "tx.h"

#include <string.h>

/* The list of dead letters, by each authority's own words. */

/* The numbers of UNKNOWN and INTERNAL. */
#define FAILED "state = 'DONE' AND status IN (2, 13)"

#define POSTGRES_PART(table)                                                   \
    "SELECT CASE state WHEN 'DONE' THEN 'FAILED' WHEN 'RUNNING' THEN "         \
    "'LAPSED' ELSE state END, tenant, scope, key_text, coalesce(step, ''), "   \
    "executions::bigint, floor(extract(epoch FROM first_at) * 1000)::bigint "  \
    "AS first FROM " table " WHERE state = 'DOUBT' OR " FAILED                 \
    " OR state = 'RUNNING' AND lease_until <= clock_timestamp()"

#define SQLITE_PART(table)                                                     \
    "SELECT CASE state WHEN 'DONE' THEN 'FAILED' WHEN 'RUNNING' THEN "         \
    "'LAPSED' ELSE state END, tenant, scope, CAST(key AS TEXT), "              \
    "coalesce(step, ''), executions, first_at AS first FROM " table            \
    " WHERE state = 'DOUBT' OR " FAILED                                        \
    " OR state = 'RUNNING' AND lease_until <= $2"

#define UNION(part)                                                            \
    part("idem_record") " UNION ALL " part(                                    \
        "idem_record_opaque") " ORDER BY first LIMIT $1"

static enum idem_status
ask(struct idem_store *store, struct idem_tx *tx, unsigned limit,
    struct idem_rows **rows, struct idem_error *err)
{
    const struct idem_clock *clock = idem_clock_system();

    if (strcmp(store->ops->name, "postgres") == 0)
        return idem_sql(tx, rows, err, UNION(POSTGRES_PART),
                        IDEM_VALUES(idem_int((int64_t)limit + 1)));
    return idem_sql(tx, rows, err, UNION(SQLITE_PART),
                    IDEM_VALUES(idem_int((int64_t)limit + 1),
                                idem_int(clock->wall_ms(clock))));
}

static struct idem_operator_doubt
doubt_of(const struct idem_rows *rows, size_t row)
{
    return (struct idem_operator_doubt){
        .state = idem_rows_text(rows, row, 0),
        .tenant = idem_rows_bytes(rows, row, 1),
        .scope = idem_rows_text(rows, row, 2),
        .key = idem_rows_text(rows, row, 3),
        .step = idem_rows_text(rows, row, 4),
        .executions = idem_rows_int(rows, row, 5),
        .first_at_ms = idem_rows_int(rows, row, 6),
    };
}

enum idem_status
idem_operator_doubts(struct idem_store *store, unsigned limit,
                     idem_doubt_fn *tell, void *with, bool *more,
                     struct idem_error *err)
{
    struct idem_arena *arena = idem_arena_new();
    struct idem_tx *tx;
    struct idem_rows *rows;
    enum idem_status status;

    if (!arena)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    tx = store->ops->begin_read(store, arena, INT64_MAX, err);
    status = tx ? ask(store, tx, limit, &rows, err) : IDEM_UNAVAILABLE;
    for (size_t i = 0; status == IDEM_OK && i < idem_rows_count(rows); i++) {
        struct idem_operator_doubt doubt = doubt_of(rows, i);

        if (i < limit)
            tell(with, &doubt);
    }
    if (status == IDEM_OK && more)
        *more = idem_rows_count(rows) > limit;
    if (tx)
        store->ops->end_read(store, tx);
    idem_arena_free(arena);
    return status;
}
