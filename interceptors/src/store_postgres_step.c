#include "store_postgres_operation.h"

#include "store_postgres_error.h"

#include <libpq-fe.h>

/* Steps that several operations share. */

static void
fail_with(struct idem_ticket *ticket, const struct pg_query *query)
{
    ticket->verdict = IDEM_VERDICT_FAILED;
    (void)pg_fail_result(&ticket->error, query->result);
}

enum pg_end
pg_change(struct pg_session *session, struct idem_ticket *ticket,
          enum statement statement, bool opaque,
          const struct pg_arguments *arguments, long *changed)
{
    struct pg_query query =
        pg_session_query(session, statement, opaque, arguments);
    enum pg_end end = pg_session_run(session, &query, 1);

    *changed = -1;
    if (end != PG_OK)
        return end;
    if (pg_query_ok(&query))
        *changed = pg_query_rows(&query);
    else
        fail_with(ticket, &query);
    pg_queries_clear(&query, 1);
    return PG_OK;
}

enum pg_end
pg_note_window(struct pg_session *session, const struct idem_ticket *ticket)
{
    struct windows *windows = &session->postgres->windows;
    struct pg_arguments patience = {0}, arguments = {0};
    struct pg_query queries[2];
    struct row_key key;
    enum pg_end end;

    pg_row_key_of(&key, &ticket->id);
    if (key.opaque ||
        pg_windows_known(windows, key.day, ticket->id.key.window_ms))
        return PG_OK;
    pg_arguments_int(&patience, session->postgres->statement_ms);
    pg_arguments_int(&arguments, key.day);
    pg_arguments_int(&arguments, ticket->id.key.window_ms);
    queries[0] = pg_session_query(session, SQL_PATIENT, false, &patience);
    queries[1] = pg_session_query(session, SQL_NOTE_WINDOW, false, &arguments);
    end = pg_session_run(session, queries, 2);
    if (end == PG_OK && pg_query_ok(&queries[1]) &&
        pg_query_rows(&queries[1]) == 1)
        pg_windows_learn(windows, key.day, ticket->id.key.window_ms);
    pg_queries_clear(queries, 2);
    return end;
}

enum pg_end
pg_find(struct pg_session *session, struct idem_ticket *ticket,
        struct record *record, int64_t *owner, bool *found)
{
    struct pg_arguments arguments;
    struct pg_query query;
    struct row_key key;
    enum pg_end end;

    pg_row_key_of(&key, &ticket->id);
    pg_look_arguments(&arguments, &key, ticket);
    query = pg_session_query(session, SQL_LOOK, key.opaque, &arguments);
    end = pg_session_run(session, &query, 1);
    *found = false;
    if (end != PG_OK)
        return end;
    if (!pg_query_ok(&query))
        fail_with(ticket, &query);
    else if (!pg_record_read(record, owner, ticket, &query))
        pg_ticket_fail(ticket, IDEM_RESOURCE_EXHAUSTED, "",
                       "the recorded answer is over the call's memory");
    else
        *found = true;
    pg_queries_clear(&query, 1);
    return PG_OK;
}

void
pg_tell_running(struct idem_ticket *ticket)
{
    ticket->verdict = IDEM_VERDICT_RUNNING;
    ticket->wait_ms = 0;
}

bool
pg_is_open(const struct record *record)
{
    return record->state == RECORD_ABSENT || record->state == RECORD_RELEASED;
}

enum pg_end
pg_expire(struct pg_session *session, struct idem_ticket *ticket,
          const struct record *record, bool *expired)
{
    struct pg_arguments arguments;
    struct pg_query query;
    struct row_key key;
    enum pg_end end;

    *expired = true;
    if (record->state == RECORD_RELEASED && record->executions == 0)
        return PG_OK;
    pg_row_key_of(&key, &ticket->id);
    pg_identity_arguments(&arguments, &key, ticket);
    query = pg_session_query(session, SQL_EXPIRE, key.opaque, &arguments);
    end = pg_session_run(session, &query, 1);
    if (end != PG_OK)
        return end;
    if (pg_query_ok(&query))
        *expired = pg_query_rows(&query) == 1;
    else if (!pg_result_is_unrouted(query.result))
        fail_with(ticket, &query);
    pg_queries_clear(&query, 1);
    return PG_OK;
}

enum pg_end
pg_hold(struct pg_session *session, struct idem_ticket *ticket,
        const struct record *record, bool *held)
{
    struct pg_arguments arguments;
    struct row_key key;
    long changed;
    enum pg_end end;

    pg_row_key_of(&key, &ticket->id);
    pg_fence_arguments(&arguments, &key, record->token);
    end =
        pg_change(session, ticket, SQL_HOLD, key.opaque, &arguments, &changed);
    *held = changed != 0;
    return end;
}
