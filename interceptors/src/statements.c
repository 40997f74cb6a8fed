#include "statements.h"

#include "rows.h"
#include "sql.h"
#include "tx.h"

#include <idem/context_once.h>

#include <string.h>

#define FIRST_ROOM 4

void
statements_begin(struct idem_statements *statements, struct idem_arena *arena)
{
    *statements = (struct idem_statements){.arena = arena};
}

/* One failure is kept: the first. */
static void
fail(struct idem_statements *statements, enum idem_status status,
     const char *why, const char *sql)
{
    if (statements->error.status == IDEM_OK)
        (void)idem_fail(&statements->error, status, "%s: %.60s", why, sql);
}

static bool
make_room(struct idem_statements *statements)
{
    unsigned room = statements->room ? statements->room * 2 : FIRST_ROOM;
    struct handler_statement *at;

    if (statements->n < statements->room)
        return true;
    at = idem_arena_alloc(statements->arena, room * sizeof(*at));
    if (!at)
        return false;
    if (statements->n > 0)
        memcpy(at, statements->at, statements->n * sizeof(*at));
    statements->at = at;
    statements->room = room;
    return true;
}

static const struct idem_value *
copy_values(struct idem_arena *arena, const struct idem_value *values, size_t n)
{
    struct idem_value *copy =
        idem_arena_alloc(arena, (n > 0 ? n : 1) * sizeof(*copy));

    if (copy && n > 0)
        memcpy(copy, values, n * sizeof(*copy));
    return copy;
}

/* Many calls share the connection, and the transaction with those that change
 * nothing of it. */
static bool
may_be_run(struct idem_statements *statements, const char *sql)
{
    bool changes = sql_changes_transaction(sql);

    if (sql_is_transaction_command(sql))
        fail(statements, IDEM_INTERNAL,
             "a handler does not end its transaction", sql);
    else if ((changes && sql_changes_session(sql)) ||
             sql_changes_connection(sql))
        fail(statements, IDEM_INTERNAL,
             "the connection is not this call's alone", sql);
    statements->alone |= changes;
    return statements->error.status == IDEM_OK;
}

void
idem_statement_add(struct idem_statements *statements, const char *sql,
                   const struct idem_value *values, size_t n)
{
    const struct idem_value *copy;

    if (!may_be_run(statements, sql))
        return;
    copy = copy_values(statements->arena, values, n);
    if (copy && make_room(statements))
        statements->at[statements->n++] =
            (struct handler_statement){sql, copy, n};
    else
        fail(statements, IDEM_RESOURCE_EXHAUSTED, "the call's memory is full",
             sql);
}

void
idem_statements_reply_first(struct idem_statements *statements)
{
    statements->reply_first = true;
}

/* A server without once has no slot; it refuses to start with such a method. */
struct idem_statements *
idem_context_statements(struct idem_context *context)
{
    struct tx_slot *slot = idem_context_slot(context);

    return &slot->statements;
}

const struct idem_rows *const *
idem_context_rows(struct idem_context *context)
{
    const struct tx_slot *slot = idem_context_slot(context);

    return slot->rows;
}

bool
statements_need_no_rows(const struct idem_statements *statements)
{
    return statements->reply_first || statements->n == 0;
}

const struct idem_rows *const *
statements_no_rows(const struct idem_statements *statements)
{
    struct idem_rows *none = rows_new(statements->arena, 0);
    struct idem_rows **rows = idem_arena_zalloc(
        statements->arena, (statements->n + 1) * sizeof(*rows));

    for (unsigned i = 0; none && rows && i < statements->n; i++)
        rows[i] = none;
    return none ? (const struct idem_rows *const *)rows : NULL;
}

static const struct idem_rows *const *
fail_full(struct idem_error *failed)
{
    (void)idem_fail(failed, IDEM_RESOURCE_EXHAUSTED,
                    "the call's memory is full");
    return NULL;
}

const struct idem_rows *const *
statements_run(const struct idem_statements *statements, struct idem_tx *tx,
               struct idem_error *failed)
{
    unsigned n = statements->n;
    const struct idem_rows *const *none = statements_no_rows(statements);
    struct idem_rows **rows =
        idem_arena_zalloc(tx->arena, (n > 0 ? n : 1) * sizeof(*rows));

    if (!rows || !none)
        return fail_full(failed);
    for (unsigned i = 0; i < n; i++) {
        const struct handler_statement *at = &statements->at[i];

        if (idem_sql(tx, &rows[i], failed, at->sql, at->values, at->n_values) !=
            IDEM_OK)
            return NULL;
    }
    return statements->reply_first ? none
                                   : (const struct idem_rows *const *)rows;
}
