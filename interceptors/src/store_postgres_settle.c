#include "store_postgres_operation.h"

#include "fault.h"

#define WINDOW_MS INT64_C(86400000) /* when the ticket states none */

/* What an operator says of a record in doubt: one statement that writes the
 * audit too. */

static void
no_answer(struct pg_arguments *arguments)
{
    for (int i = 0; i < 5; i++)
        pg_arguments_null(arguments);
}

/* An opaque key's answer is kept for a window from here, though the one of its
 * first call may be over. */
static int64_t
kept_ms(const struct idem_ticket *ticket)
{
    return ticket->window_ms > 0 ? ticket->window_ms : WINDOW_MS;
}

/* *done is false when the record has changed meanwhile. */
static enum pg_end
write_settled(struct pg_session *session, struct idem_ticket *ticket,
              bool *done)
{
    const struct idem_settlement *settlement = ticket->settlement;
    struct pg_arguments arguments;
    struct row_key key;
    long changed;
    enum pg_end end;

    pg_row_key_of(&key, &ticket->id);
    pg_fence_arguments(&arguments, &key, ticket->token);
    if (settlement->took_effect) {
        pg_arguments_bytes(&arguments, idem_bytes_of("DONE"));
        pg_answer_arguments(&arguments, &ticket->answer);
    } else {
        pg_arguments_bytes(&arguments, idem_bytes_of("RELEASED"));
        no_answer(&arguments);
    }
    pg_arguments_bytes(&arguments, settlement->by);
    pg_arguments_bytes(&arguments, settlement->why);
    if (key.opaque)
        pg_arguments_int(&arguments, kept_ms(ticket));
    end = pg_change(session, ticket, SQL_SETTLE, key.opaque, &arguments,
                    &changed);
    *done = changed != 0;
    return end;
}

static enum pg_end
settle_once(struct pg_session *session, struct idem_ticket *ticket, bool *done)
{
    struct record record;
    int64_t owner;
    bool found;
    enum pg_end end = pg_find(session, ticket, &record, &owner, &found);

    *done = true;
    if (end == PG_OK && found &&
        record_settle(&record, ticket) == RECORD_SETTLE)
        end = write_settled(session, ticket, done);
    return end;
}

enum pg_end
pg_settle(struct pg_session *session, struct idem_ticket *ticket, bool again)
{
    bool done = false;
    enum pg_end end = PG_OK;

    (void)again; /* record_settle knows its own doing */
    if (IDEM_FAULT("postgres.settle.before"))
        pg_session_close(session);
    while (end == PG_OK && !done)
        end = settle_once(session, ticket, &done);
    if (end == PG_OK && !again && IDEM_FAULT("postgres.settle.after")) {
        pg_session_close(session);
        return PG_LOST;
    }
    return end;
}
