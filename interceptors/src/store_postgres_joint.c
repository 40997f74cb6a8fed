#include "store_postgres_joint.h"

#include "fault.h"
#include "store_postgres_idle.h"
#include "store_postgres_operation.h"
#include "store_postgres_session.h"
#include "store_postgres_share.h"

#include <libpq-fe.h>
#include <string.h>

#define JOINT_LEAST 8 /* that are not split over sessions */

/* --- Who waits; all under the store's lock --- */

void
pg_joint_wake(struct pg_store *postgres)
{
    struct pg_joining *joining = &postgres->joining;

    if (joining->queue.size > 0 && !joining->waking &&
        joining->at_work < joining->most)
        joining->waking = pg_store_wake(postgres, true);
}

void
pg_joint_post(struct pg_store *postgres, struct idem_ticket *ticket)
{
    pg_queue_push(&postgres->joining.queue, ticket);
    pg_joint_wake(postgres);
}

/* What waits, over the sessions that may take of it. */
static unsigned
share_of(const struct pg_joining *joining)
{
    unsigned free_ones = joining->most - joining->at_work;
    unsigned share = (joining->queue.size + free_ones - 1) / free_ones;

    if (share > SHARE_MAX)
        return SHARE_MAX;
    return share < JOINT_LEAST ? JOINT_LEAST : share;
}

struct picking {
    struct pg_joining *joining;
    struct pg_share *share;
    unsigned most;
};

static enum pg_pick
pick(void *with, struct idem_ticket *ticket)
{
    struct picking *picking = with;
    struct pg_share *share = picking->share;
    struct shared_call *call = &share->all[share->n_all];

    if (ticket->group < picking->most)
        picking->most =
            ticket->group > share->n_all ? ticket->group : share->n_all;
    if (share->n_all >= picking->most)
        return PG_STOP;
    if (!pg_busy_begin(&picking->joining->busy, ticket->id.digest, &call->busy))
        return PG_LEAVE;
    call->ticket = ticket;
    share->n_all++;
    return PG_PICK;
}

/* Its turn and that of others change off. */
static bool
may_pick(struct pg_session *session)
{
    const struct pg_store *postgres = session->postgres;
    bool turn = !session->joined || postgres->queue.size == 0;

    session->joined = false;
    return turn && session->role == PG_LONG && postgres->joining.queue.size > 0;
}

bool
pg_joint_pick(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    struct pg_joining *joining = &postgres->joining;
    struct picking picking = {joining, session->share, 0};

    if (!may_pick(session) || joining->at_work >= joining->most)
        return false;
    picking.most = share_of(joining);
    pg_queue_pick(&joining->queue, pick, &picking);
    if (session->share->n_all == 0)
        return false;
    session->joined = true;
    joining->at_work++;
    pg_joint_wake(postgres);
    return true;
}

bool
pg_joint_is_picked(const struct pg_session *session)
{
    return session->role == PG_LONG && session->share->n_all > 0;
}

/* Their keys are free, and so is the session for what came meanwhile. */
static void
leave(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    struct pg_joining *joining = &postgres->joining;
    const struct pg_share *share = session->share;

    pthread_mutex_lock(&postgres->lock);
    for (unsigned i = 0; i < share->n_all; i++)
        pg_busy_end(&joining->busy, share->all[i].busy);
    joining->at_work--;
    pg_joint_wake(postgres);
    pthread_mutex_unlock(&postgres->lock);
}

/* --- The transaction begins --- */

static enum pg_end
open_once(struct pg_share *share)
{
    enum pg_end end = PG_OK;

    if (pg_share_reach(share, "postgres.claim.before"))
        pg_session_close(share->session);
    for (unsigned i = 0; i < share->n && end == PG_OK; i++)
        end = pg_note_window(share->session, share->calls[i].ticket);
    if (end != PG_OK)
        return end;
    if (pg_share_head(share))
        return pg_share_travel(share);
    pg_session_close(share->session);
    return PG_LATE;
}

/* True: those that are IN may run. */
static bool
judge_open(struct pg_share *share)
{
    if (pg_share_failed(share) < share->n_queries) {
        pg_share_move(share, SHARED_ALONE);
    } else {
        pg_share_note_begun(share);
        pg_share_part_known(share);
    }
    pg_share_clear(share);
    if (pg_share_count(share) > 0)
        return true;
    pg_share_roll_back(share);
    return false;
}

/* As above; nothing has run, so that a lost connection is no loss. */
static bool
open_transaction(struct pg_share *share)
{
    enum pg_end end = PG_LOST;

    for (int i = 0; i < POSTGRES_TRIES && end == PG_LOST; i++) {
        if (!pg_session_is_ready(share->session) &&
            !pg_session_reconnect(share->session)) {
            pg_share_refuse(share);
            return false;
        }
        pg_share_clear(share);
        end = open_once(share);
    }
    if (end != PG_OK) {
        pg_share_clear(share);
        pg_share_move(share, SHARED_ALONE);
        return false;
    }
    if (!judge_open(share))
        return false;
    if (pg_share_reach(share, "postgres.begin.after"))
        pg_link_close(&share->session->link);
    return true;
}

/* --- A handler --- */

/* How its handler has ended. True: what it wrote stands, if anything does. */
static bool
end_one(struct pg_share *share, struct shared_call *call,
        struct idem_ticket *ticket)
{
    ticket->tx = NULL;
    if (ticket->op == OPERATION_RELEASE) {
        ticket->verdict = IDEM_VERDICT_MINE;
        call->counts = ticket->counts;
    } else if (pg_is_swallowed(share->session, ticket)) {
        pg_tell_swallowed(share->session, ticket);
    } else {
        return ticket->answer.status == IDEM_OK;
    }
    call->place = SHARED_OVER;
    return false;
}

/* In front of the savepoint: there is no way back but to the beginning. */
static bool
has_failed_outside(const struct pg_session *session)
{
    return session->in_front &&
           PQtransactionStatus(session->link.conn) == PQTRANS_INERROR;
}

/* What it wrote lies behind a savepoint of its own, on top of those before. The
 * savepoint goes with its first statement; without one there is nothing to
 * undo. */
static void
run_one(struct pg_share *share, struct shared_call *call)
{
    struct pg_session *session = share->session;
    struct idem_ticket *ticket = call->ticket;
    bool kept;

    session->front = share->undo ? SQL_UNDO : SQL_SAVE;
    session->in_front = true;
    ticket->verdict = IDEM_VERDICT_MINE;
    ticket->token = 1;
    ticket->executions = 1;
    pg_tx_begin(session, ticket);
    session->joint = true;
    ticket->done(ticket);
    ticket = pg_session_stay(session);
    session->joint = false;
    kept = ticket && end_one(share, call, ticket);
    if (!ticket || has_failed_outside(session))
        pg_session_close(session); /* or the store is freed under it */
    else if (!session->in_front)
        share->undo = !kept;
    session->in_front = false;
}

/* One that is late while it waits for its turn. */
static bool
is_late(const struct pg_share *share, struct shared_call *call)
{
    const struct idem_clock *clock = share->session->postgres->clock;

    if (clock->monotonic_ns(clock) < call->ticket->deadline_ns)
        return false;
    pg_ticket_fail(call->ticket, IDEM_DEADLINE_EXCEEDED, "",
                   "its turn did not come before the deadline");
    call->place = SHARED_OVER;
    return true;
}

/* One that cannot be run any more goes alone: the connection is lost, or one
 * before it has changed what it would meet. */
static void
run_all(struct pg_share *share)
{
    struct pg_session *session = share->session;

    session->changed = false;
    share->undo = false;
    for (unsigned i = 0; i < share->n; i++) {
        struct shared_call *call = &share->calls[i];

        if (call->place != SHARED_IN || is_late(share, call))
            continue;
        if (session->changed || !pg_link_is_up(&session->link))
            call->place = SHARED_ALONE;
        else
            run_one(share, call);
    }
}

/* --- The transaction ends --- */

/* COMMIT of a failed transaction is answered with the tag ROLLBACK and no error
 * (semantics.md M4). */
static bool
is_committed(const struct pg_share *share)
{
    const struct pg_query *commit = &share->queries[share->n_queries - 1];

    return pg_share_failed(share) == share->n_queries &&
           strcmp(PQcmdStatus(commit->result), "COMMIT") == 0;
}

static void
commit(struct pg_share *share)
{
    if (pg_share_travel(share) != PG_OK) {
        pg_share_tell(share, IDEM_VERDICT_UNKNOWN);
    } else if (is_committed(share)) {
        pg_share_commit(share);
    } else {
        pg_share_roll_back(share);
        pg_share_tell(share, IDEM_VERDICT_CONFLICT);
    }
    pg_share_clear(share);
}

static void
close_transaction(struct pg_share *share)
{
    struct pg_session *session = share->session;

    if (pg_share_reach(share, "postgres.commit.before"))
        pg_session_close(session);
    if (!pg_link_is_up(&session->link) || !pg_share_close(share)) {
        pg_session_close(session);
        pg_share_tell(share, IDEM_VERDICT_CONFLICT);
    } else if (pg_share_count(share) == 0) {
        share->n_queries = 0;
        pg_share_roll_back(share);
    } else {
        commit(share);
    }
}

/* That they ran and ended badly stays, if it can be written. */
static void
count_bad(struct pg_share *share)
{
    struct pg_arguments arguments;
    long changed;

    for (unsigned i = 0; i < share->n; i++) {
        struct shared_call *call = &share->calls[i];

        if (!call->counts || !pg_link_is_up(&share->session->link))
            continue;
        pg_identity_arguments(&arguments, &call->key, call->ticket);
        (void)pg_change(share->session, call->ticket, SQL_COUNT,
                        call->key.opaque, &arguments, &changed);
        call->ticket->verdict = IDEM_VERDICT_MINE;
    }
}

void
pg_joint_serve(struct pg_session *session)
{
    struct pg_share *share = session->share;

    share->lock = true;
    share->look = true;
    pg_share_begin(share);
    if (open_transaction(share)) {
        run_all(share);
        close_transaction(share);
        count_bad(share);
    }
    leave(session);
    pg_share_part(share, OPERATION_CLAIM_ALONE);
    pg_share_answer(share, "postgres.commit.after");
    share->n_all = 0;
    pg_session_clean(session);
}
