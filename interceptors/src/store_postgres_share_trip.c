#include "store_postgres_share.h"

#include "statements.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS 13 /* of SQL_SHARE_RECORD */

static const char *const begins[] = {
    [IDEM_READ_COMMITTED] = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
    [IDEM_REPEATABLE_READ] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE",
    [IDEM_SERIALIZABLE] = "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE",
};

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

/* Which calls a statement is for. */
enum table { MINTED, OPAQUE, BOTH };

static bool
is_in(const struct pg_share *share, unsigned i, enum table table)
{
    const struct shared_call *call = &share->calls[i];

    return call->place == SHARED_IN &&
           (table == BOTH || call->key.opaque == (table == OPAQUE));
}

static bool
has(const struct pg_share *share, enum table table)
{
    for (unsigned i = 0; i < share->n; i++)
        if (is_in(share, i, table))
            return true;
    return false;
}

/* --- Columns: an array a parameter --- */

typedef void put_fn(struct pg_arrays *arrays, const struct shared_call *call);

static void
put_key(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(
        arrays, (struct idem_bytes){call->key.bytes, sizeof(call->key.bytes)});
}

static void
put_lock(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_int(arrays, pg_row_lock_of(&call->ticket->id));
}

static void
put_tenant(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(arrays, call->ticket->id.tenant);
}

static void
put_scope(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(arrays, idem_bytes_of(call->ticket->id.scope));
}

static void
put_text(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(arrays, call->ticket->id.key.text);
}

static void
put_hash(struct pg_arrays *arrays, const struct shared_call *call,
         const uint8_t hash[32])
{
    if (call->ticket->fingerprint.version == 0)
        pg_array_null(arrays);
    else
        pg_array_bytes(arrays, (struct idem_bytes){hash, 32});
}

static void
put_raw(struct pg_arrays *arrays, const struct shared_call *call)
{
    put_hash(arrays, call, call->ticket->fingerprint.raw);
}

static void
put_canonical(struct pg_arrays *arrays, const struct shared_call *call)
{
    put_hash(arrays, call, call->ticket->fingerprint.canonical);
}

static void
put_version(struct pg_arrays *arrays, const struct shared_call *call)
{
    if (call->ticket->fingerprint.version == 0)
        pg_array_null(arrays);
    else
        pg_array_int(arrays, call->ticket->fingerprint.version);
}

static void
put_window(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_int(arrays, pg_window_of(&call->key, call->ticket));
}

/* An opaque key's window does not end before its record is there. */
static void
put_ends(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_int(arrays,
                 call->key.opaque ? 0 : pg_window_of(&call->key, call->ticket));
}

static void
put_day(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_int(arrays, call->key.day);
}

static void
put_status(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_int(arrays, call->ticket->answer.status);
}

static void
put_message(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(arrays, call->ticket->answer.message);
}

static void
put_reason(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(arrays, call->ticket->answer.reason);
}

static void
put_reply(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(arrays, call->ticket->answer.reply);
}

static void
put_trailers(struct pg_arrays *arrays, const struct shared_call *call)
{
    pg_array_bytes(arrays, call->ticket->answer.trailers);
}

struct column {
    enum pg_element element; /* 0: no more columns */
    put_fn *put;
};

static const struct column look_columns[] = {
    {PG_ELEMENT_UUID, put_key},
    {PG_ELEMENT_INT, put_ends},
    {PG_ELEMENT_INT, put_day},
    {0, NULL},
};

static const struct column lock_columns[] = {
    {PG_ELEMENT_INT, put_lock},
    {0, NULL},
};

static const struct column record_columns[] = {
    {PG_ELEMENT_UUID, put_key},       {PG_ELEMENT_BYTES, put_tenant},
    {PG_ELEMENT_TEXT, put_scope},     {PG_ELEMENT_TEXT, put_text},
    {PG_ELEMENT_BYTES, put_raw},      {PG_ELEMENT_BYTES, put_canonical},
    {PG_ELEMENT_INT, put_version},    {PG_ELEMENT_INT, put_window},
    {PG_ELEMENT_INT, put_status},     {PG_ELEMENT_BYTES, put_message},
    {PG_ELEMENT_BYTES, put_reason},   {PG_ELEMENT_BYTES, put_reply},
    {PG_ELEMENT_BYTES, put_trailers}, {0, NULL},
};

static size_t
bytes_of(const struct idem_ticket *ticket)
{
    const struct idem_answer *answer = &ticket->answer;

    return ticket->id.tenant.size + idem_bytes_of(ticket->id.scope).size +
           ticket->id.key.text.size + answer->message.size +
           answer->reason.size + answer->reply.size + answer->trailers.size;
}

/* For all columns of a statement, of both tables. */
static bool
reserve(struct pg_share *share)
{
    size_t room = SHARE_TABLES * COLUMNS * ARRAY_HEAD;

    for (unsigned i = 0; i < share->n; i++)
        room += COLUMNS * pg_array_room(32) + bytes_of(share->calls[i].ticket);
    return pg_arrays_reserve(&share->arrays, room);
}

static void
add_many(struct pg_share *share, enum statement statement,
         const struct column *column, enum table table)
{
    struct pg_arguments *arguments = &share->arguments[1 + table];

    arguments->n = 0;
    for (; column->put; column++) {
        pg_array_begin(&share->arrays, column->element);
        for (unsigned i = 0; i < share->n; i++)
            if (is_in(share, i, table))
                column->put(&share->arrays, &share->calls[i]);
        pg_arguments_bytes(arguments, pg_array_end(&share->arrays));
    }
    add_ours(share, pg_session_query(share->session, statement, table == OPAQUE,
                                     arguments));
}

static void
add_both(struct pg_share *share, enum statement statement,
         const struct column *columns)
{
    if (has(share, MINTED))
        add_many(share, statement, columns, MINTED);
    if (has(share, OPAQUE))
        add_many(share, statement, columns, OPAQUE);
}

/* --- Statements of the calls --- */

static void
add_begin(struct pg_share *share)
{
    const struct pg_store *postgres = share->session->postgres;
    struct pg_arguments *limits = &share->arguments[0];
    int64_t statement_ms = postgres->statement_ms < SHARE_STATEMENT_MS
                               ? postgres->statement_ms
                               : SHARE_STATEMENT_MS;

    limits->n = 0;
    pg_arguments_int(limits, statement_ms);
    pg_arguments_int(limits, SHARE_LOCK_MS);
    share->begun = share->n_queries;
    add_ours(share,
             pg_session_query(share->session, SQL_SHARE_BEGIN, false, limits));
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
    if (!make_room(share, 3 + SHARE_TABLES) || !reserve(share))
        return false;
    add_ours(share, pg_text_query(begins[isolation]));
    if (share->lock)
        add_many(share, SQL_SHARE_LOCK, lock_columns, BOTH);
    if (share->look)
        add_both(share, SQL_SHARE_LOOK, look_columns);
    add_begin(share);
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

/* There is room for them. */
static void
add_end(struct pg_share *share)
{
    add_both(share, SQL_SHARE_RECORD, record_columns);
    add_ours(share, pg_text_query("COMMIT"));
}

bool
pg_share_close(struct pg_share *share)
{
    share->n_queries = 0;
    if (!make_room(share, 2 + SHARE_TABLES) || !reserve(share))
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
    if (!pg_share_open(share) || !make_room(share, 1 + SHARE_TABLES))
        return false;
    share->closing = share->n_queries;
    add_end(share);
    return true;
}
