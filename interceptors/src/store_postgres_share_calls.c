#include "store_postgres_share.h"

#include "fault.h"
#include "statements.h"
#include "store_postgres_durable.h"
#include "store_postgres_operation.h"
#include "store_postgres_session.h"

#include <idem/call.h>

#include <stdlib.h>
#include <string.h>

/* The calls of a shared transaction: who is in it, who leaves. */

static int
compare_keys(const void *a, const void *b)
{
    const struct shared_call *left = a, *right = b;

    return memcmp(left->key.bytes, right->key.bytes, sizeof(left->key.bytes));
}

static bool
is_alone(const struct idem_ticket *ticket)
{
    return ticket->statements && ticket->statements->alone;
}

void
pg_share_begin(struct pg_share *share)
{
    for (unsigned i = 0; i < share->n_all; i++) {
        struct shared_call *call = &share->all[i];

        pg_row_key_of(&call->key, &call->ticket->id);
        call->place = is_alone(call->ticket) ? SHARED_ALONE : SHARED_IN;
        call->values = NULL;
        call->leaves = false;
        call->counts = false;
    }
    qsort(share->all, share->n_all, sizeof(share->all[0]), compare_keys);
    share->calls = share->all;
    share->n = share->n_all;
    share->conflict = false;
}

unsigned
pg_share_count(const struct pg_share *share)
{
    unsigned n = 0;

    for (unsigned i = 0; i < share->n; i++)
        n += share->calls[i].place == SHARED_IN;
    return n;
}

void
pg_share_move(struct pg_share *share, enum shared_place place)
{
    for (unsigned i = 0; i < share->n; i++)
        if (share->calls[i].place == SHARED_IN)
            share->calls[i].place = place;
}

void
pg_share_note_begun(struct pg_share *share)
{
    if (share->date >= share->n_queries)
        return;
    share->begun_ms = pg_row_time_ms(share->queries[share->date].result, 0, 0);
    share->dated = true;
}

void
pg_share_commit(struct pg_share *share)
{
    for (unsigned i = 0; i < share->n; i++)
        if (share->calls[i].place == SHARED_IN)
            share->calls[i].ticket->answer.first_at_ms = share->begun_ms;
    pg_share_tell(share, IDEM_VERDICT_MINE);
}

void
pg_share_tell(struct pg_share *share, enum idem_verdict verdict)
{
    for (unsigned i = 0; i < share->n; i++)
        if (share->calls[i].place == SHARED_IN)
            share->calls[i].ticket->verdict = verdict;
    pg_share_move(share, SHARED_OVER);
}

void
pg_share_refuse(struct pg_share *share)
{
    for (unsigned i = 0; i < share->n; i++)
        if (share->calls[i].place == SHARED_IN)
            pg_session_refuse(share->session, share->calls[i].ticket);
    pg_share_move(share, SHARED_OVER);
}

void
pg_share_clear(struct pg_share *share)
{
    pg_queries_clear(share->queries, share->n_queries);
    share->n_queries = 0;
}

void
pg_share_roll_back(struct pg_share *share)
{
    struct pg_query query = pg_text_query("ROLLBACK");

    if (pg_session_run(share->session, &query, 1) == PG_OK &&
        !pg_query_ok(&query))
        pg_session_close(share->session);
    pg_queries_clear(&query, 1);
}

unsigned
pg_share_failed(const struct pg_share *share)
{
    unsigned i = 0;

    while (i < share->n_queries && !pg_query_sqlstate(&share->queries[i])[0])
        i++;
    return i;
}

bool
pg_share_reach(const struct pg_share *share, const char *point)
{
    bool fault = false;

    for (unsigned i = 0; i < share->n; i++)
        if (share->calls[i].place == SHARED_IN)
            fault = IDEM_FAULT(point) || fault;
    return fault;
}

bool
pg_share_is(const struct pg_share *share, unsigned i, enum shared_kind kind)
{
    const struct shared_call *call = &share->calls[i];

    if (call->place != SHARED_IN)
        return false;
    switch (kind) {
    case SHARED_MINTED:
        return !call->key.opaque;
    case SHARED_OPAQUE:
        return call->key.opaque;
    case SHARED_NUMBERED:
        return call->ticket->id.key.sequence > 0;
    case SHARED_BOTH:
    case SHARED_KINDS:
        break;
    }
    return true;
}

bool
pg_share_has(const struct pg_share *share, enum shared_kind kind)
{
    for (unsigned i = 0; i < share->n; i++)
        if (pg_share_is(share, i, kind))
            return true;
    return false;
}

static void
note_nth(struct pg_share *share, enum shared_kind kind, int64_t nth)
{
    for (unsigned i = 0; i < share->n; i++)
        if (pg_share_is(share, i, kind) && --nth == 0)
            share->calls[i].leaves = true;
}

/* The rows of a query are the places of calls among those of that kind. */
static void
note_found(struct pg_share *share, const struct pg_query *query,
           enum shared_kind kind)
{
    for (long row = pg_query_rows(query); row-- > 0;)
        note_nth(share, kind, pg_row_int(query->result, (int)row, 0));
}

static void
part_noted(struct pg_share *share)
{
    for (unsigned i = 0; i < share->n; i++) {
        struct shared_call *call = &share->calls[i];

        if (call->leaves)
            call->place = SHARED_ALONE;
        call->leaves = false;
    }
}

void
pg_share_part_known(struct pg_share *share)
{
    static const enum shared_kind looks[] = {SHARED_MINTED, SHARED_OPAQUE,
                                             SHARED_NUMBERED};
    const struct pg_query *query = &share->queries[share->asked];

    if (share->lock)
        note_found(share, query++, SHARED_BOTH);
    for (unsigned i = 0; share->look && i < sizeof looks / sizeof *looks; i++)
        if (pg_share_has(share, looks[i]))
            note_found(share, query++, looks[i]);
    part_noted(share);
}

/* As long as the most patient of them waits. */
static int64_t
until_ns(const struct pg_share *share)
{
    int64_t last_ns = INT64_MIN;

    for (unsigned i = 0; i < share->n; i++) {
        const struct shared_call *call = &share->calls[i];

        if (call->place == SHARED_IN && call->ticket->deadline_ns > last_ns)
            last_ns = call->ticket->deadline_ns;
    }
    return pg_store_until(share->session->postgres, last_ns, COMMIT_GRACE_NS);
}

enum pg_end
pg_share_travel(struct pg_share *share)
{
    share->session->until_ns = until_ns(share);
    return pg_session_try(share->session, share->queries, share->n_queries);
}

/* A ticket is not touched any more once it is posted. */
void
pg_share_part(const struct pg_share *share, enum operation operation)
{
    for (unsigned i = 0; i < share->n_all; i++)
        if (share->all[i].place == SHARED_ALONE)
            pg_store_post(share->session->postgres, share->all[i].ticket,
                          operation);
}

struct told {
    struct idem_ticket *tickets[SHARE_MAX];
    unsigned n;
};

static void
tell_all(void *with)
{
    const struct told *told = with;

    for (unsigned i = 0; i < told->n; i++)
        told->tickets[i]->done(told->tickets[i]);
}

static bool
was_committed(const struct idem_ticket *ticket)
{
    return ticket->verdict == IDEM_VERDICT_MINE &&
           ticket->op != OPERATION_RELEASE;
}

void
pg_share_answer(struct pg_share *share, const char *point)
{
    struct told told = {.n = 0};

    for (unsigned i = 0; i < share->n_all; i++)
        if (share->all[i].place == SHARED_OVER)
            told.tickets[told.n++] = share->all[i].ticket;
    if (told.n == 0)
        return;
    (void)pg_durable_check(share->session, told.tickets, told.n);
    for (unsigned i = 0; i < told.n; i++)
        if (was_committed(told.tickets[i]) && IDEM_FAULT(point))
            told.tickets[i]->verdict = IDEM_VERDICT_UNKNOWN;
    idem_call_resume_all(tell_all, &told);
}

void
pg_share_fini(struct pg_share *share)
{
    pg_arrays_fini(&share->arrays);
    free(share->queries);
    free(share->about);
}
