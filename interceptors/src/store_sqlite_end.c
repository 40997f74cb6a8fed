#include "store_sqlite.h"

#include "store_sqlite_record.h"

#include <sqlite3.h>
#include <stdio.h>

/* The end of a handler's transaction. Its record is RUNNING inside it, seen by
 * nobody; here it becomes what the handler's answer says, and both commit. */

enum left { INTACT, ENDED_ITSELF, BROKEN };

/* Close the handler's part: keep what it wrote, or undo it. */
static enum left
close_savepoint(struct sqlite_store *store, bool keep, struct idem_error *err)
{
    char sql[192];

    if (keep)
        snprintf(sql, sizeof sql, "RELEASE %s", store->savepoint);
    else
        snprintf(sql, sizeof sql, "ROLLBACK TO %s; RELEASE %s",
                 store->savepoint, store->savepoint);
    if (sqlite_db_run(&store->db, sql, err) == IDEM_OK)
        return INTACT;
    /* "no such savepoint" has no code of its own. */
    return sqlite3_errcode(store->db.handle) == SQLITE_ERROR ? ENDED_ITSELF
                                                             : BROKEN;
}

static void
roll_back(struct sqlite_store *store, struct idem_ticket *ticket,
          enum idem_status status, const char *why)
{
    sqlite_db_rollback(&store->db);
    sqlite_ticket_fail(ticket, status, why);
}

static bool
claim_again(struct sqlite_store *store, struct idem_ticket *ticket)
{
    unsigned char op = ticket->op;
    bool claimed;

    ticket->op = SQLITE_OP_CLAIM;
    claimed = sqlite_op_run(store, ticket);
    ticket->op = op;
    return claimed;
}

static bool
write_doubt(struct sqlite_store *store, struct idem_ticket *ticket)
{
    int changed = sqlite_record_doubt(&store->db, ticket);

    if (changed != 0)
        return changed > 0;
    return claim_again(store, ticket) &&
           (ticket->verdict != IDEM_VERDICT_MINE ||
            sqlite_record_doubt(&store->db, ticket) == 1);
}

/* The handler has committed or rolled back by itself, so what it wrote may
 * stand and a retry must not repeat it. When it committed, the record that says
 * RUNNING is there too, under our token, with a lease that is over: should this
 * fail, the next claim finds that and holds it all the same. */
static void
hold_what_ended_itself(struct sqlite_store *store, struct idem_ticket *ticket)
{
    sqlite_db_rollback(&store->db);
    if (!sqlite_begin(store, INT64_MAX, &ticket->error) ||
        !write_doubt(store, ticket) ||
        sqlite_db_run(&store->db, "COMMIT", &ticket->error) != IDEM_OK)
        sqlite_db_rollback(&store->db);
    ticket->verdict = IDEM_VERDICT_DOUBT;
}

/* A disk that fails during COMMIT has perhaps written it. */
static void
commit(struct sqlite_store *store, struct idem_ticket *ticket)
{
    int code;

    if (sqlite_db_run(&store->db, "COMMIT", &ticket->error) == IDEM_OK) {
        ticket->verdict = IDEM_VERDICT_MINE;
        return;
    }
    code = sqlite3_errcode(store->db.handle) & 0xFF;
    sqlite_db_rollback(&store->db);
    ticket->verdict =
        code == SQLITE_IOERR ? IDEM_VERDICT_UNKNOWN : IDEM_VERDICT_FAILED;
}

static void
record_and_commit(struct sqlite_store *store, struct idem_ticket *ticket)
{
    int64_t now_ms = store->clock->wall_ms(store->clock);

    if (sqlite_op_fault(ticket, "released"))
        roll_back(store, ticket, IDEM_UNAVAILABLE, "injected");
    else if (sqlite_record_finish(&store->db, ticket, now_ms) != 1)
        roll_back(store, ticket, IDEM_INTERNAL,
                  "the call's own record is not there any more");
    else if (sqlite_op_fault(ticket, "written"))
        roll_back(store, ticket, IDEM_UNAVAILABLE, "injected");
    else
        commit(store, ticket);
}

/* A failed statement made sqlite roll back by itself (INSERT OR ROLLBACK, a
 * full disk), and the handler's final "no" is still to be recorded. */
static void
record_anew(struct sqlite_store *store, struct idem_ticket *ticket)
{
    struct idem_answer answer = ticket->answer;

    if (!sqlite_begin(store, INT64_MAX, &ticket->error) ||
        !claim_again(store, ticket)) {
        sqlite_db_rollback(&store->db);
        ticket->verdict = IDEM_VERDICT_FAILED;
    } else if (ticket->verdict == IDEM_VERDICT_MINE) {
        ticket->answer = answer;
        record_and_commit(store, ticket);
    } else if (ticket->verdict == IDEM_VERDICT_DONE) {
        sqlite_db_rollback(&store->db);
    } else {
        roll_back(store, ticket, IDEM_ABORTED, "another call has the key");
    }
}

/* B074: never commit what a failed statement is part of. */
static void
refuse(struct sqlite_store *store, struct idem_ticket *ticket)
{
    bool conflict = store->tx.base.failed == IDEM_ABORTED;

    roll_back(store, ticket, conflict ? IDEM_ABORTED : IDEM_INTERNAL,
              "a statement failed, but the handler said OK: rolled back");
    if (conflict)
        ticket->verdict = IDEM_VERDICT_CONFLICT;
}

static void
close_and_record(struct sqlite_store *store, struct idem_ticket *ticket,
                 bool keep)
{
    switch (close_savepoint(store, keep, &ticket->error)) {
    case INTACT:
        record_and_commit(store, ticket);
        break;
    case ENDED_ITSELF:
        hold_what_ended_itself(store, ticket);
        break;
    case BROKEN:
        sqlite_db_rollback(&store->db);
        ticket->verdict = IDEM_VERDICT_FAILED;
        break;
    }
}

static void
complete(struct sqlite_store *store, struct idem_ticket *ticket)
{
    bool ok = ticket->answer.status == IDEM_OK;

    if (ok && store->tx.base.failed != IDEM_OK)
        refuse(store, ticket);
    else if (store->tx.gone)
        record_anew(store, ticket);
    else
        close_and_record(store, ticket, ok);
}

/* The record, RUNNING inside the transaction, stays RELEASED with its count. */
static bool
commit_count(struct sqlite_store *store, struct idem_ticket *ticket)
{
    return ticket->counts && sqlite_record_release(&store->db, ticket) == 1 &&
           sqlite_db_run(&store->db, "COMMIT", &ticket->error) == IDEM_OK;
}

static void
release(struct sqlite_store *store, struct idem_ticket *ticket)
{
    enum left left = BROKEN;

    if (!store->tx.gone)
        left = close_savepoint(store, false, &ticket->error);
    if (left == ENDED_ITSELF) {
        hold_what_ended_itself(store, ticket);
        return;
    }
    if (left != INTACT || !commit_count(store, ticket))
        sqlite_db_rollback(&store->db);
    ticket->verdict = IDEM_VERDICT_MINE;
}

void
sqlite_transaction_end(struct sqlite_store *store, struct idem_ticket *ticket)
{
    sqlite_tx_fini(&store->tx);
    if (sqlite_op_fault(ticket, "before"))
        roll_back(store, ticket, IDEM_UNAVAILABLE, "injected");
    else if (ticket->op == SQLITE_OP_RELEASE)
        release(store, ticket);
    else
        complete(store, ticket);
    if (sqlite_op_fault(ticket, "after") &&
        ticket->verdict == IDEM_VERDICT_MINE)
        ticket->verdict = IDEM_VERDICT_UNKNOWN;
}
