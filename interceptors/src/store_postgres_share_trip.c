#include "store_postgres_share.h"

#include "statements.h"
#include "store_postgres_share_columns.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Queries of ours: BEGIN, plans, the locks, two looks, the numbers, the limits;
 * two of records, the date, the numbers, COMMIT. */
#define HEAD_MAX 7
#define END_MAX 5

static const char *const begins[] = {
    [IDEM_READ_COMMITTED] = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
    [IDEM_REPEATABLE_READ] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE",
    [IDEM_SERIALIZABLE] = "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE",
};

int64_t
pg_share_statement_ms(const struct pg_store *postgres)
{
    return postgres->statement_ms < SHARE_STATEMENT_MS ? postgres->statement_ms
                                                       : SHARE_STATEMENT_MS;
}

static bool
make_room(struct pg_share *share, unsigned more)
{
    unsigned room = share->room ? share->room : 64;
    struct pg_query *queries;
    struct shared_query *about;

    while (room < share->n_queries + more)
        room *= 2;
    if (room == share->room)
        return true;
    queries = realloc(share->queries, room * sizeof(*queries));
    if (queries)
        share->queries = queries;
    about = realloc(share->about, room * sizeof(*about));
    if (about)
        share->about = about;
    if (!queries || !about)
        return false;
    share->room = room;
    return true;
}

/* There is room for it. */
static void
add(struct pg_share *share, struct pg_query query, struct shared_query about)
{
    share->queries[share->n_queries] = query;
    share->about[share->n_queries++] = about;
}

static void
add_ours(struct pg_share *share, struct pg_query query)
{
    add(share, query, (struct shared_query){.owner = -1, .statement = -1});
}

static size_t
bytes_of(const struct idem_ticket *ticket)
{
    const struct idem_answer *answer = &ticket->answer;

    return ticket->id.tenant.size + idem_bytes_of(ticket->id.scope).size +
           ticket->id.key.text.size + answer->message.size +
           answer->reason.size + answer->reply.size + answer->trailers.size;
}

/* For all columns of a trip. */
static bool
reserve(struct pg_share *share)
{
    size_t room = SHARED_KINDS * SHARED_COLUMNS * ARRAY_HEAD;

    for (unsigned i = 0; i < share->n; i++)
        room += SHARED_COLUMNS * pg_array_room(32) +
                bytes_of(share->calls[i].ticket);
    return pg_arrays_reserve(&share->arrays, room);
}

static void
add_many(struct pg_share *share, enum statement statement,
         const struct shared_column *column, enum shared_kind kind)
{
    struct pg_arguments *arguments = &share->arguments[1 + kind];

    arguments->n = 0;
    for (; column->put; column++) {
        pg_array_begin(&share->arrays, column->element);
        for (unsigned i = 0; i < share->n; i++)
            if (pg_share_is(share, i, kind))
                column->put(&share->arrays, &share->calls[i]);
        if (statement >= SQL_ONE)
            pg_array_end_one(&share->arrays, arguments);
        else
            pg_array_end(&share->arrays, arguments);
    }
    add_ours(share, pg_session_query(share->session, statement,
                                     kind == SHARED_OPAQUE, arguments));
}

static void
add_both(struct pg_share *share, enum statement statement,
         const struct shared_column *columns)
{
    if (pg_share_has(share, SHARED_MINTED))
        add_many(share, statement, columns, SHARED_MINTED);
    if (pg_share_has(share, SHARED_OPAQUE))
        add_many(share, statement, columns, SHARED_OPAQUE);
}

static void
add_numbers(struct pg_share *share, enum statement statement)
{
    if (pg_share_has(share, SHARED_NUMBERED))
        add_many(share, statement, shared_number_columns, SHARED_NUMBERED);
}

/* --- Statements of the calls --- */

/* The next query tells when the transaction began. */
static void
date(struct pg_share *share)
{
    share->date = share->n_queries;
}

static void
add_begin(struct pg_share *share)
{
    struct pg_arguments *limits = &share->arguments[0];

    limits->n = 0;
    pg_arguments_int(limits, pg_share_statement_ms(share->session->postgres));
    pg_arguments_int(limits, SHARE_LOCK_MS);
    date(share);
    add_ours(share,
             pg_session_query(share->session, SQL_SHARE_BEGIN, false, limits));
}

/* What is asked of keys, planned key by key. A session for statements has the
 * limits and the plans of what comes then by itself. */
static void
add_questions(struct pg_share *share)
{
    if (share->session->role == PG_STATEMENT)
        add_ours(share, pg_session_query(share->session, SQL_SHARE_BY_KEY,
                                         false, NULL));
    share->asked = share->n_queries;
    if (share->lock)
        add_many(share, SQL_SHARE_LOCK, shared_lock_columns, SHARED_BOTH);
    if (share->look) {
        add_both(share, SQL_SHARE_LOOK, shared_look_columns);
        add_numbers(share, SQL_SHARE_STALE);
    }
    add_begin(share);
}

static void
add_statement(struct pg_share *share, int owner, int statement)
{
    struct shared_call *call = &share->calls[owner];
    const char *sql = call->ticket->statements->at[statement].sql;
    struct pg_query queries[2];
    struct pg_plan *plan;
    unsigned n = pg_plans_run(&share->session->plans, sql,
                              &call->values[statement], queries, &plan);

    if (n == 2)
        add(share, queries[0], (struct shared_query){owner, -1, plan});
    add(share, queries[n - 1], (struct shared_query){owner, statement, NULL});
}

/* What cannot be sent goes alone, where it is told why. */
static bool
fill_values(struct shared_call *call)
{
    const struct idem_statements *statements = call->ticket->statements;
    struct idem_arena *arena = call->ticket->arena;

    if (call->values)
        return true;
    call->values =
        idem_arena_zalloc(arena, (statements->n + 1) * sizeof(*call->values));
    for (unsigned i = 0; call->values && i < statements->n; i++) {
        const struct handler_statement *at = &statements->at[i];

        if (pg_values_fill(&call->values[i], arena, at->values, at->n_values,
                           NULL) != IDEM_OK)
            return false;
    }
    return call->values != NULL;
}

static bool
add_statements(struct pg_share *share, unsigned i)
{
    struct shared_call *call = &share->calls[i];
    unsigned n = call->ticket->statements->n;

    if (!fill_values(call)) {
        call->place = SHARED_ALONE;
        return true;
    }
    if (!make_room(share, 2 * n))
        return false;
    call->first = share->n_queries;
    for (unsigned j = 0; j < n; j++)
        add_statement(share, (int)i, (int)j);
    return true;
}

bool
pg_share_head(struct pg_share *share)
{
    enum idem_isolation isolation = share->session->postgres->isolation;

    share->n_queries = 0;
    share->dated = false;
    share->date = UINT_MAX;
    if (!make_room(share, HEAD_MAX) || !reserve(share))
        return false;
    add_ours(share, pg_text_query(begins[isolation]));
    if (share->lock || share->look)
        add_questions(share);
    return true;
}

bool
pg_share_open(struct pg_share *share)
{
    if (!pg_share_head(share))
        return false;
    for (unsigned i = 0; i < share->n; i++)
        if (share->calls[i].place == SHARED_IN && !add_statements(share, i))
            return false;
    return true;
}

/* Of one alone, it tells when the transaction began as well. */
static void
add_records(struct pg_share *share)
{
    enum shared_kind kind =
        pg_share_has(share, SHARED_MINTED) ? SHARED_MINTED : SHARED_OPAQUE;

    if (pg_share_count(share) == 1) {
        date(share);
        add_many(share, SQL_ONE_RECORD, shared_record_columns, kind);
        return;
    }
    add_both(share, SQL_SHARE_RECORD, shared_record_columns);
    if (share->dated)
        return;
    date(share);
    add_ours(share,
             pg_session_query(share->session, SQL_SHARE_NOW, false, NULL));
}

/* There is room for them. */
static void
add_end(struct pg_share *share)
{
    add_records(share);
    add_numbers(share, SQL_SHARE_NUMBERS);
    add_ours(share, pg_text_query("COMMIT"));
}

bool
pg_share_close(struct pg_share *share)
{
    share->n_queries = 0;
    share->date = UINT_MAX;
    if (!make_room(share, 1 + END_MAX) || !reserve(share))
        return false;
    if (share->undo)
        add_ours(share,
                 pg_session_query(share->session, SQL_UNDO, false, NULL));
    add_end(share);
    return true;
}

/* Nothing is asked of the keys, so that the head has left the columns' room. */
bool
pg_share_whole(struct pg_share *share)
{
    IDEM_ASSERT(!share->lock && !share->look);
    if (!pg_share_open(share) || !make_room(share, END_MAX))
        return false;
    share->closing = share->n_queries;
    add_end(share);
    return true;
}
