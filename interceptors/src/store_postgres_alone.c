#include "store_postgres_operation.h"

#include "statements.h"

/* transaction: STATEMENT for one call in a transaction of its own, step by step
 * as a handler would go: where it cannot share one (store_postgres_share.h). */

/* What the second half says is done: the verdict is filled. */
static void
end(struct pg_session *session, struct idem_ticket *ticket,
    const struct idem_rows *const *rows, const struct idem_error *failed)
{
    if (!rows && failed->status == IDEM_ABORTED) {
        pg_transaction_release(session, ticket);
        if (ticket->verdict == IDEM_VERDICT_MINE)
            ticket->verdict = IDEM_VERDICT_CONFLICT;
    } else if (ticket->conclude(ticket, rows, rows ? NULL : failed)) {
        pg_transaction_complete(session, ticket);
    } else {
        pg_transaction_release(session, ticket);
    }
}

/* A session's number that was acknowledged: the claim is given back. */
static enum pg_end
check_number(struct pg_session *session, struct idem_ticket *ticket)
{
    enum pg_end end = PG_OK;
    enum idem_verdict verdict;

    if (ticket->id.key.sequence > 0)
        end = pg_watermark(session, ticket, false);
    verdict = ticket->verdict;
    if (end == PG_OK && verdict != IDEM_VERDICT_MINE) {
        pg_transaction_release(session, ticket);
        ticket->verdict = verdict;
    }
    return end;
}

enum pg_end
pg_statement_alone(struct pg_session *session, struct idem_ticket *ticket,
                   bool again)
{
    struct idem_error failed = {.status = IDEM_OK};
    const struct idem_rows *const *rows;
    enum pg_end claimed = pg_transaction_claim(session, ticket, again);

    if (claimed != PG_OK || ticket->verdict != IDEM_VERDICT_MINE)
        return claimed;
    session->pinned = false; /* it ends before this returns */
    claimed = check_number(session, ticket);
    if (claimed != PG_OK || ticket->verdict != IDEM_VERDICT_MINE)
        return claimed;
    rows = statements_run(ticket->statements, &session->tx, &failed);
    end(session, ticket, rows, &failed);
    return PG_OK;
}
