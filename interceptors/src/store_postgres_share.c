#include "store_postgres_share.h"

#include "statements.h"
#include "store_postgres_error.h"
#include "store_postgres_operation.h"
#include "store_postgres_statement.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

/* What is to be done about a transaction. */
enum way {
    WAY_DONE,  /* each is OVER or ALONE */
    WAY_AGAIN, /* rolled back: those that are IN once more */
    WAY_HALVE, /* … one of them is to blame, and nobody knows which */
    WAY_PART,  /* … each alone */
};

static bool
is_one_of(const char *sqlstate, const char *const *states)
{
    while (*states && strcmp(sqlstate, *states) != 0)
        states++;
    return *states != NULL;
}

/* Rolled back, and the same may work now. */
static bool
is_passing(const char *sqlstate)
{
    static const char *const states[] = {"40001", "40P01", "55P03", "57014",
                                         NULL};

    return is_one_of(sqlstate, states);
}

/* --- Behind the first round trip --- */

static void
note_plans(struct pg_share *share)
{
    for (unsigned i = 0; i < share->n_queries; i++)
        if (share->about[i].plan)
            pg_plan_prepared(share->about[i].plan, share->queries[i].result);
}

/* Who it is by, leaves. */
static enum way
part_failed(struct pg_share *share, unsigned failed)
{
    const char *sqlstate = pg_query_sqlstate(&share->queries[failed]);
    int owner = share->about[failed].owner;

    share->conflict = is_passing(sqlstate);
    if (owner >= 0)
        share->calls[owner].place = SHARED_ALONE;
    if (pg_result_is_outgrown(share->queries[failed].result))
        pg_session_outgrow(share->session);
    pg_share_roll_back(share);
    return owner >= 0 || share->conflict ? WAY_AGAIN : WAY_PART;
}

/* NULL: the call's memory is full. */
static const struct idem_rows *const *
read_rows(struct pg_share *share, unsigned owner)
{
    struct shared_call *call = &share->calls[owner];
    unsigned n = call->ticket->statements->n;
    struct idem_rows **rows;

    if (statements_need_no_rows(call->ticket->statements))
        return statements_no_rows(call->ticket->statements);
    rows = idem_arena_zalloc(call->ticket->arena, (n + 1) * sizeof(*rows));
    for (unsigned i = call->first; rows && i < share->n_queries; i++) {
        const struct shared_query *about = &share->about[i];

        if (about->owner != (int)owner)
            break;
        if (about->statement < 0)
            continue;
        rows[about->statement] =
            pg_rows_read(call->ticket->arena, share->queries[i].result);
        if (!rows[about->statement])
            return NULL;
    }
    return (const struct idem_rows *const *)rows;
}

/* A "no" that is recorded undoes what the call wrote, and so cannot share; one
 * that leaves nothing is done when all is rolled back. */
static enum shared_place
place_of(const struct idem_ticket *ticket, bool kept)
{
    if (!kept)
        return ticket->counts ? SHARED_ALONE : SHARED_OVER;
    if (ticket->answer.status != IDEM_OK && ticket->statements->n > 0)
        return SHARED_ALONE;
    return SHARED_IN;
}

static void
conclude(struct pg_share *share, unsigned i)
{
    struct shared_call *call = &share->calls[i];
    struct idem_ticket *ticket = call->ticket;
    const struct idem_rows *const *rows = read_rows(share, i);
    bool kept;

    if (!rows) {
        call->place = SHARED_ALONE;
        return;
    }
    ticket->token = 1;
    ticket->executions = 1;
    ticket->verdict = IDEM_VERDICT_MINE;
    kept = ticket->conclude(ticket, rows, NULL);
    call->place = place_of(ticket, kept);
}

static void
conclude_each(struct pg_share *share)
{
    for (unsigned i = 0; i < share->n; i++)
        if (share->calls[i].place == SHARED_IN)
            conclude(share, i);
}

static enum way
conclude_all(struct pg_share *share)
{
    unsigned before = pg_share_count(share);

    pg_share_note_begun(share);
    conclude_each(share);
    if (pg_share_count(share) == before)
        return WAY_DONE;
    pg_share_roll_back(share);
    return WAY_AGAIN;
}

static enum way
judge_open(struct pg_share *share)
{
    unsigned failed = pg_share_failed(share), before = pg_share_count(share);

    note_plans(share);
    if (failed < share->n_queries)
        return part_failed(share, failed);
    pg_share_part_known(share);
    if (pg_share_count(share) == before)
        return conclude_all(share);
    pg_share_roll_back(share);
    return WAY_AGAIN;
}

/* --- Behind the second --- */

/* A rival was first, or a window is over, or a day gone: a look tells whose. */
static bool
is_known(const char *sqlstate)
{
    static const char *const states[] = {"23505", "22012", "23514", NULL};

    return is_one_of(sqlstate, states);
}

static enum way
judge_failed(struct pg_share *share, unsigned failed)
{
    const char *sqlstate = pg_query_sqlstate(&share->queries[failed]);
    bool committing = failed + 1 == share->n_queries;
    bool known = !committing && is_known(sqlstate);

    share->conflict = is_passing(sqlstate);
    share->look = share->look || known;
    pg_share_roll_back(share);
    return known || share->conflict ? WAY_AGAIN : WAY_HALVE;
}

/* COMMIT of a failed transaction is answered with the tag ROLLBACK and no error
 * (semantics.md M4). */
static enum way
judge_close(struct pg_share *share)
{
    unsigned failed = pg_share_failed(share);
    PGresult *commit = share->queries[share->n_queries - 1].result;

    if (failed < share->n_queries)
        return judge_failed(share, failed);
    if (strcmp(PQcmdStatus(commit), "COMMIT") != 0)
        return WAY_HALVE;
    pg_share_note_begun(share);
    pg_share_commit(share);
    return WAY_DONE;
}

/* It was sent, and may stand or not: whoever asks again finds out, because its
 * record cannot be written beside the one of now. */
static enum way
tell_unknown(struct pg_share *share)
{
    pg_share_tell(share, IDEM_VERDICT_UNKNOWN);
    return WAY_DONE;
}

/* What was sent in one trip. */
static enum way
judge_whole(struct pg_share *share)
{
    unsigned failed = pg_share_failed(share);

    note_plans(share);
    if (failed < share->closing)
        return part_failed(share, failed);
    return judge_close(share);
}

/* --- A transaction --- */

/* Nothing is open yet. */
static enum way
give_up(struct pg_share *share, enum way way)
{
    pg_session_close(share->session);
    return way;
}

/* False: the connection is lost. */
static bool
begin(struct pg_share *share)
{
    enum pg_end end = PG_OK;

    for (unsigned i = 0; i < share->n && end == PG_OK; i++)
        if (share->calls[i].place == SHARED_IN)
            end = pg_note_window(share->session, share->calls[i].ticket);
    return end == PG_OK && !pg_share_reach(share, "postgres.run.before");
}

/* Nothing stands of it when this says anything but DONE. */
static enum way
open_transaction(struct pg_share *share)
{
    enum pg_end end;
    enum way way;

    if (!begin(share))
        return give_up(share, WAY_AGAIN);
    if (!pg_share_open(share))
        return give_up(share, WAY_PART);
    end = pg_share_travel(share);
    if (end == PG_OK)
        way = judge_open(share);
    else
        way = end == PG_LATE ? WAY_PART : WAY_AGAIN;
    pg_share_clear(share);
    return way;
}

static enum way
close_transaction(struct pg_share *share)
{
    enum way way;

    if (pg_share_reach(share, "postgres.run.concluded"))
        return give_up(share, WAY_AGAIN);
    if (!pg_share_close(share))
        return give_up(share, WAY_PART);
    way = pg_share_travel(share) == PG_OK ? judge_close(share)
                                          : tell_unknown(share);
    pg_share_clear(share);
    return way;
}

/* Each answer can be made before anything runs, and no key is asked about. */
static bool
is_foretold(const struct pg_share *share)
{
    bool foretold = !share->look && !share->lock;

    for (unsigned i = 0; i < share->n; i++)
        if (share->calls[i].place == SHARED_IN &&
            !statements_need_no_rows(share->calls[i].ticket->statements))
            foretold = false;
    return foretold;
}

static enum way
run_whole(struct pg_share *share)
{
    enum way way;

    if (!begin(share))
        return give_up(share, WAY_AGAIN);
    conclude_each(share);
    if (pg_share_count(share) == 0)
        return WAY_DONE;
    if (pg_share_reach(share, "postgres.run.concluded"))
        return give_up(share, WAY_AGAIN);
    if (!pg_share_whole(share))
        return give_up(share, WAY_PART);
    way = pg_share_travel(share) == PG_OK ? judge_whole(share)
                                          : tell_unknown(share);
    pg_share_clear(share);
    return way;
}

static enum way
attempt(struct pg_share *share)
{
    enum way way;

    share->conflict = false;
    if (!pg_session_is_ready(share->session) &&
        !pg_session_reconnect(share->session)) {
        pg_share_refuse(share);
        return WAY_DONE;
    }
    if (is_foretold(share))
        return run_whole(share);
    way = open_transaction(share);
    return way == WAY_DONE ? close_transaction(share) : way;
}

/* Some of the calls, in one transaction if they can be. */
static void
run(struct pg_share *share, struct shared_call *calls, unsigned n)
{
    enum way way = WAY_AGAIN;

    share->calls = calls;
    share->n = n;
    for (int i = 0; i < SHARE_ROUNDS && way == WAY_AGAIN; i++) {
        if (pg_share_count(share) == 0)
            return;
        if (share->conflict)
            pg_statement_narrow(share->session);
        way = attempt(share);
    }
    if (way == WAY_HALVE && n > 1) {
        run(share, calls, n / 2);
        run(share, calls + n / 2, n - n / 2);
    } else if (way != WAY_DONE) {
        pg_share_move(share, SHARED_ALONE);
    }
}

static bool
wants_look(const struct pg_share *share)
{
    for (unsigned i = 0; i < share->n_all; i++)
        if (share->all[i].ticket->repeat)
            return true;
    return share->lock;
}

/* Nobody may do a number of a session, be acknowledged and be forgotten behind
 * the snapshot of the others. */
static bool
wants_lock(const struct pg_share *share)
{
    return share->session->postgres->isolation != IDEM_READ_COMMITTED &&
           pg_share_has(share, SHARED_NUMBERED);
}

void
pg_share_run(struct pg_share *share)
{
    pg_share_begin(share);
    share->lock = wants_lock(share);
    share->look = wants_look(share);
    share->conflict = false;
    run(share, share->all, share->n_all);
}
