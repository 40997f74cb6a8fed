#include "tx.h"

#include "sql.h"

#include <idem/context_once.h>

struct idem_value
idem_text(const char *text)
{
    struct idem_value value = {.type = text ? IDEM_VALUE_TEXT : IDEM_VALUE_NULL,
                               .bytes = idem_bytes_of(text)};

    return value;
}

struct idem_value
idem_blob(struct idem_bytes bytes)
{
    struct idem_value value = {.type = IDEM_VALUE_BYTES, .bytes = bytes};

    return value;
}

/* Nothing runs in a transaction that has failed, as PostgreSQL has it; the
 * first failure's status stays, so that a conflict is still told as one. */
static enum idem_status
may_run(const struct idem_tx *tx, const char *sql, struct idem_error *err)
{
    if (tx->failed != IDEM_OK)
        return idem_fail(err, tx->failed,
                         "an earlier statement of this call failed");
    if (sql_is_transaction_command(sql))
        return idem_fail(err, IDEM_INTERNAL,
                         "a handler does not end its transaction: %.60s", sql);
    if (tx->clock->monotonic_ns(tx->clock) >= tx->deadline_ns)
        return idem_fail(err, IDEM_DEADLINE_EXCEEDED,
                         "the call's time is over");
    return IDEM_OK;
}

enum idem_status
idem_sql(struct idem_tx *tx, struct idem_rows **rows, struct idem_error *err,
         const char *sql, const struct idem_value *values, size_t n)
{
    struct idem_rows *unwanted;
    enum idem_status status = may_run(tx, sql, err);

    if (status == IDEM_OK)
        status =
            tx->ops->exec(tx, rows ? rows : &unwanted, err, sql, values, n);
    if (tx->failed == IDEM_OK)
        tx->failed = status;
    return status;
}

struct idem_tx *
idem_context_tx(struct idem_context *context, struct idem_error *err)
{
    struct tx_slot *slot = idem_context_slot(context);

    if (!slot || !slot->store) {
        (void)idem_fail(err, IDEM_FAILED_PRECONDITION,
                        "the server has no store");
        return NULL;
    }
    if (slot->mode == IDEM_MODE_LEASED) {
        (void)idem_fail(err, IDEM_FAILED_PRECONDITION,
                        "a method of mode LEASED has no transaction");
        return NULL;
    }
    if (slot->states) {
        (void)idem_fail(err, IDEM_FAILED_PRECONDITION,
                        "a method of transaction STATEMENT adds its SQL with "
                        "idem_statement_add");
        return NULL;
    }
    if (!slot->tx && slot->mode == IDEM_MODE_NONE)
        slot->tx = slot->store->ops->begin_read(slot->store, slot->arena,
                                                slot->deadline_ns, err);
    return slot->tx;
}

void
tx_slot_end(struct tx_slot *slot)
{
    if (slot->mode == IDEM_MODE_NONE && slot->tx)
        slot->store->ops->end_read(slot->store, slot->tx);
    slot->tx = NULL;
}

/* Whoever commits on a connection that others share commits their work. */
static struct idem_tx *
find_own(struct idem_context *context)
{
    struct idem_tx *tx = idem_context_tx(context, NULL);
    const struct tx_slot *slot = idem_context_slot(context);

    return tx && !slot->grouped ? tx : NULL;
}

struct pg_conn *
idem_context_postgres(struct idem_context *context)
{
    struct idem_tx *tx = find_own(context);

    return tx ? tx->ops->postgres(tx) : NULL;
}

struct sqlite3 *
idem_context_sqlite(struct idem_context *context)
{
    struct idem_tx *tx = find_own(context);

    return tx ? tx->ops->sqlite(tx) : NULL;
}
