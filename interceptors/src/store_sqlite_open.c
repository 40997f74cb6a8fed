#include "store_sqlite.h"

#include <stdio.h>

static int64_t
busy_ms(const struct sqlite_store *store, int64_t deadline_ns)
{
    int64_t left_ns;

    if (deadline_ns == INT64_MAX)
        return store->busy_ms;
    left_ns = deadline_ns - store->clock->monotonic_ns(store->clock);
    return left_ns / 1000000 < store->busy_ms ? left_ns / 1000000
                                              : store->busy_ms;
}

bool
sqlite_begin(struct sqlite_store *store, int64_t deadline_ns,
             struct idem_error *err)
{
    sqlite_db_set_busy(&store->db, busy_ms(store, deadline_ns));
    return sqlite_db_run(&store->db, "BEGIN IMMEDIATE", err) == IDEM_OK;
}

/* Past the claim: what the handler writes is undone to here when it fails for
 * good, and when this is gone the handler has ended the transaction itself. */
static bool
open_savepoint(struct sqlite_store *store, struct idem_error *err)
{
    char sql[96];

    snprintf(sql, sizeof sql, "SAVEPOINT %s", store->savepoint);
    return sqlite_db_run(&store->db, sql, err) == IDEM_OK;
}

static bool
claim(struct sqlite_store *store, struct idem_ticket *ticket)
{
    if (!sqlite_begin(store, ticket->deadline_ns, &ticket->error) ||
        !sqlite_op_run(store, ticket))
        return false;
    if (ticket->verdict != IDEM_VERDICT_MINE)
        return sqlite_db_run(&store->db, "COMMIT", &ticket->error) == IDEM_OK;
    return open_savepoint(store, &ticket->error);
}

void
sqlite_transaction_begin(struct sqlite_store *store, struct idem_ticket *ticket)
{
    if (!claim(store, ticket)) {
        sqlite_db_rollback(&store->db);
        ticket->verdict = IDEM_VERDICT_FAILED;
    }
    if (ticket->verdict != IDEM_VERDICT_MINE)
        return;
    sqlite_tx_init(&store->tx, &store->db, store->clock, ticket->arena,
                   ticket->deadline_ns);
    ticket->tx = &store->tx.base;
}
