#include "store_sqlite.h"

#include "statements.h"
#include "store_sqlite_record.h"

/* transaction: STATEMENT. A call among others of the writer's transaction: its
 * record, then what its statements write, each behind a savepoint, so that
 * either can be undone without its neighbours. */

#define CALL "idem_call"     /* in front of the record */
#define EFFECT "idem_effect" /* in front of the first statement */

static bool
sql(struct sqlite_store *store, struct idem_ticket *ticket, const char *text)
{
    return sqlite_db_run(&store->db, text, &ticket->error) == IDEM_OK;
}

static const struct idem_rows *const *
run_all(struct sqlite_store *store, struct idem_ticket *ticket,
        struct idem_error *failed)
{
    const struct idem_rows *const *rows;
    struct sqlite_tx tx;

    sqlite_tx_init(&tx, &store->db, store->clock, ticket->arena,
                   ticket->deadline_ns);
    rows = statements_run(ticket->statements, &tx.base, failed);
    sqlite_tx_fini(&tx);
    return rows;
}

/* The answer is in the ticket: record it, with the effect or without. */
static bool
record(struct sqlite_store *store, struct idem_ticket *ticket, int64_t now_ms)
{
    if (ticket->answer.status != IDEM_OK &&
        !sql(store, ticket, "ROLLBACK TO " EFFECT))
        return false;
    if (sqlite_record_finish(&store->db, ticket, now_ms) != 1) {
        (void)idem_fail(&ticket->error, IDEM_INTERNAL,
                        "sqlite: the call's own record is not there any more");
        return false;
    }
    ticket->answer.first_at_ms = now_ms;
    return sql(store, ticket, "RELEASE " CALL);
}

static bool
undo(struct sqlite_store *store, struct idem_ticket *ticket,
     enum idem_verdict verdict)
{
    ticket->verdict = verdict;
    return sql(store, ticket, "ROLLBACK TO " CALL "; RELEASE " CALL);
}

/* What ended badly leaves a record that tells how often. */
static bool
count_badly(struct sqlite_store *store, struct idem_ticket *ticket)
{
    ticket->verdict = IDEM_VERDICT_MINE;
    return sql(store, ticket, "ROLLBACK TO " EFFECT) &&
           sqlite_record_release(&store->db, ticket) == 1 &&
           sql(store, ticket, "RELEASE " CALL);
}

static bool
run_mine(struct sqlite_store *store, struct idem_ticket *ticket, int64_t now_ms)
{
    struct idem_error failed = {.status = IDEM_OK};
    const struct idem_rows *const *rows = run_all(store, ticket, &failed);

    if (!sqlite_db_in_transaction(&store->db)) {
        ticket->error = failed; /* sqlite has rolled all of it back by itself */
        return false;
    }
    if (failed.status == IDEM_ABORTED)
        return undo(store, ticket, IDEM_VERDICT_CONFLICT);
    if (ticket->conclude(ticket, rows, rows ? NULL : &failed))
        return record(store, ticket, now_ms);
    return ticket->counts ? count_badly(store, ticket)
                          : undo(store, ticket, IDEM_VERDICT_MINE);
}

/* A session's number may have been acknowledged and its record be gone. There
 * is one writer, so that nothing moves before the commit. False: SQL failed. */
static bool
check_number(struct sqlite_store *store, struct idem_ticket *ticket)
{
    return ticket->id.key.sequence == 0 || sqlite_watermark(&store->db, ticket);
}

bool
sqlite_statement_run(struct sqlite_store *store, struct idem_ticket *ticket,
                     int64_t now_ms)
{
    if (!sql(store, ticket, "SAVEPOINT " CALL) ||
        !sqlite_op_claim(store, ticket, now_ms))
        return false;
    if (ticket->verdict != IDEM_VERDICT_MINE)
        return sql(store, ticket, "RELEASE " CALL);
    if (!check_number(store, ticket))
        return false;
    if (ticket->verdict != IDEM_VERDICT_MINE)
        return undo(store, ticket, ticket->verdict);
    return sql(store, ticket, "SAVEPOINT " EFFECT) &&
           run_mine(store, ticket, now_ms);
}
