#include "store_postgres_durable.h"

#include "store_postgres_operation.h"

#include <idem/reason.h>

/* A transaction that writes something, so that its commit waits as any other:
 * when a standby has it, it has all that was committed before. */
static const char barrier_sql[] =
    "SELECT pg_logical_emit_message(true, 'idem', '')";

static bool
pass_barrier(struct pg_session *session)
{
    struct pg_query query = pg_text_query(barrier_sql);
    bool passed;

    session->link.doubtful_sync = false;
    passed = pg_session_run(session, &query, 1) == PG_OK &&
             pg_query_ok(&query) && !session->link.doubtful_sync;
    pg_queries_clear(&query, 1);
    return passed;
}

/* Does the verdict say that something stands? */
static bool
is_word(const struct idem_ticket *ticket)
{
    switch ((int)ticket->verdict) {
    case IDEM_VERDICT_MINE:
        return ticket->op != OPERATION_RELEASE && ticket->op != OPERATION_RENEW;
    case IDEM_VERDICT_DONE:
    case IDEM_VERDICT_ABANDONED:
        return true;
    default:
        return false;
    }
}

/* Does the operation end in the commit of what a handler wrote? */
static bool
commits_effects(const struct idem_ticket *ticket)
{
    return ticket->mode == IDEM_MODE_TRANSACTION &&
           (ticket->op == OPERATION_COMPLETE || ticket->op == OPERATION_RUN ||
            ticket->op == OPERATION_SHARE);
}

/* It may stand or not: a transaction's commit is asked about again, all else is
 * as if the answer had been lost. */
static void
take_back(struct idem_ticket *ticket)
{
    if (commits_effects(ticket))
        ticket->verdict = IDEM_VERDICT_UNKNOWN;
    else
        pg_ticket_fail(ticket, IDEM_UNAVAILABLE, IDEM_STORE_AWAY,
                       "PostgreSQL: no standby has confirmed a commit");
}

static bool
any_word(struct idem_ticket *const *tickets, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (is_word(tickets[i]))
            return true;
    return false;
}

/* One barrier for all of them, within the time of the first. */
bool
pg_durable_check(struct pg_session *session, struct idem_ticket *const *tickets,
                 unsigned n)
{
    struct pg_store *postgres = session->postgres;
    unsigned doubts = atomic_load(&postgres->doubts);

    if (doubts == atomic_load(&postgres->doubts_settled) || session->pinned ||
        !any_word(tickets, n))
        return true;
    session->until_ns =
        pg_store_until(postgres, tickets[0]->deadline_ns, GRACE_NS);
    if (pg_link_is_up(&session->link) && pass_barrier(session)) {
        atomic_store(&postgres->doubts_settled, doubts);
        return true;
    }
    for (unsigned i = 0; i < n; i++)
        if (is_word(tickets[i]))
            take_back(tickets[i]);
    return false;
}
