#include "store_postgres_operation.h"

#include "fault.h"
#include "store_postgres_error.h"

#include <libpq-fe.h>

/* Mode LEASED (semantics.md 4.3): each arrow is one conditional statement with
 * a commit of its own. */

#define CHANGES_MAX 10 /* of a record under one claim */

/* A claim in steps; each may end it. */
struct claim {
    struct pg_session *session;
    struct idem_ticket *ticket;
    struct row_key key;
    bool again; /* a row with our owner is ours */
    bool over;
};

static void
tell_mine(struct claim *claim, int64_t token, unsigned executions)
{
    claim->ticket->verdict = IDEM_VERDICT_MINE;
    claim->ticket->token = token;
    claim->ticket->executions = executions;
    claim->over = true;
}

static enum pg_end
insert(struct claim *claim)
{
    struct pg_arguments arguments;
    struct pg_query query;
    enum pg_end end;

    pg_identity_arguments(&arguments, &claim->key, claim->ticket);
    pg_arguments_int(&arguments, claim->session->owner);
    pg_arguments_int(&arguments, claim->ticket->lease_ms);
    pg_arguments_int(&arguments, claim->ticket->steps);
    query = pg_session_query(claim->session, SQL_CLAIM, claim->key.opaque,
                             &arguments);
    end = pg_session_run(claim->session, &query, 1);
    if (end != PG_OK)
        return end;
    if (pg_query_ok(&query) && pg_query_rows(&query) == 1) {
        tell_mine(claim, 1, 1);
    } else if (!pg_query_ok(&query)) {
        claim->over = true;
        claim->ticket->verdict = pg_result_is_unrouted(query.result)
                                     ? IDEM_VERDICT_EXPIRED
                                     : IDEM_VERDICT_FAILED;
        (void)pg_fail_result(&claim->ticket->error, query.result);
    }
    pg_queries_clear(&query, 1);
    return PG_OK;
}

/* Released, or its lease is over: compare and set on what was just read. */
static enum pg_end
take_over(struct claim *claim, const struct record *record)
{
    struct pg_arguments arguments;
    struct pg_query query;
    enum pg_end end;

    pg_take_arguments(&arguments, &claim->key, record, claim->ticket,
                      claim->session->owner, claim->ticket->lease_ms);
    query = pg_session_query(claim->session, SQL_TAKE, claim->key.opaque,
                             &arguments);
    end = pg_session_run(claim->session, &query, 1);
    if (end != PG_OK)
        return end;
    if (!pg_query_ok(&query)) {
        claim->over = true;
        claim->ticket->verdict = IDEM_VERDICT_FAILED;
        (void)pg_fail_result(&claim->ticket->error, query.result);
    } else if (pg_query_rows(&query) == 1) {
        tell_mine(claim, pg_value_int(query.result, 0),
                  (unsigned)pg_value_int(query.result, 1));
    }
    pg_queries_clear(&query, 1);
    return PG_OK;
}

static enum pg_end
move(struct claim *claim, const struct record *record)
{
    switch (record_claim(record, claim->ticket)) {
    case RECORD_TAKE:
        return record->state == RECORD_ABSENT ? insert(claim)
                                              : take_over(claim, record);
    case RECORD_HOLD:
        return pg_hold(claim->session, claim->ticket, record, &claim->over);
    case RECORD_ABANDON:
        return pg_write_abandoned(claim->session, claim->ticket, record,
                                  &claim->over);
    case RECORD_KEEP:
    case RECORD_SETTLE:
        break;
    }
    claim->over = true;
    return PG_OK;
}

/* Our own claim, whose answer was lost: its lease begins now. */
static enum pg_end
resume(struct claim *claim, const struct record *record)
{
    struct pg_arguments arguments;
    long changed;
    enum pg_end end;

    pg_fence_arguments(&arguments, &claim->key, record->token);
    pg_arguments_int(&arguments, claim->ticket->lease_ms);
    end = pg_change(claim->session, claim->ticket, SQL_RENEW, claim->key.opaque,
                    &arguments, &changed);
    if (changed == 1)
        tell_mine(claim, record->token, record->executions);
    claim->over = changed != 0;
    return end;
}

static enum pg_end
look_and_move(struct claim *claim)
{
    struct record record;
    int64_t owner;
    bool found;
    enum pg_end end =
        pg_find(claim->session, claim->ticket, &record, &owner, &found);

    if (end != PG_OK)
        return end;
    if (!found) {
        claim->over = true;
        return PG_OK;
    }
    if (claim->again && record.state == RECORD_RUNNING &&
        owner == claim->session->owner)
        return resume(claim, &record);
    return move(claim, &record);
}

enum pg_end
pg_leased_claim(struct pg_session *session, struct idem_ticket *ticket,
                bool again)
{
    struct claim claim = {session, ticket, .again = again};
    enum pg_end end;

    pg_row_key_of(&claim.key, &ticket->id);
    if (IDEM_FAULT("postgres.claim.before"))
        pg_session_close(session);
    end = pg_note_window(session, ticket);
    if (end == PG_OK && !ticket->repeat && !again)
        end = insert(&claim);
    for (int i = 0; end == PG_OK && !claim.over && i < CHANGES_MAX; i++)
        end = look_and_move(&claim);
    if (IDEM_FAULT("postgres.claim.after") && end == PG_OK && !again) {
        pg_session_close(session);
        return PG_LOST;
    }
    if (end == PG_OK && !claim.over)
        pg_ticket_fail(ticket, IDEM_ABORTED, "", "the record keeps changing");
    return end;
}

/* A statement fenced by the token: MINE when it changed the row. */
static enum pg_end
fenced(struct pg_session *session, struct idem_ticket *ticket,
       enum statement statement, const struct pg_arguments *arguments)
{
    long changed;
    enum pg_end end = pg_change(session, ticket, statement,
                                !ticket->id.key.minted, arguments, &changed);

    if (end == PG_OK && changed >= 0)
        ticket->verdict =
            changed == 1 ? IDEM_VERDICT_MINE : IDEM_VERDICT_FENCED;
    return end;
}

/* Asked again and fenced: it may have been our own doing before, whose answer
 * was lost on the way to us or to the call. */
static enum pg_end
recognize(struct pg_session *session, struct idem_ticket *ticket,
          enum record_state ours)
{
    struct record record;
    int64_t owner;
    bool found;
    enum pg_end end = pg_find(session, ticket, &record, &owner, &found);

    if (end != PG_OK || !found)
        return end;
    if (record.state != ours || record.token != ticket->token)
        return PG_OK;
    ticket->verdict = IDEM_VERDICT_MINE;
    ticket->answer.first_at_ms = record.answer.first_at_ms;
    return PG_OK;
}

enum pg_end
pg_leased_complete(struct pg_session *session, struct idem_ticket *ticket,
                   bool again)
{
    struct pg_arguments arguments;
    struct pg_query query;
    struct row_key key;
    enum pg_end end;

    pg_row_key_of(&key, &ticket->id);
    pg_fence_arguments(&arguments, &key, ticket->token);
    pg_answer_arguments(&arguments, &ticket->answer);
    if (IDEM_FAULT("postgres.complete.before"))
        pg_session_close(session);
    query = pg_session_query(session, SQL_COMPLETE, key.opaque, &arguments);
    end = pg_session_run(session, &query, 1);
    if (end != PG_OK)
        return end;
    ticket->verdict = IDEM_VERDICT_FENCED;
    if (!pg_query_ok(&query)) {
        ticket->verdict = IDEM_VERDICT_FAILED;
        (void)pg_fail_result(&ticket->error, query.result);
    } else if (pg_query_rows(&query) == 1) {
        ticket->verdict = IDEM_VERDICT_MINE;
        ticket->answer.first_at_ms = pg_value_int(query.result, 0);
    }
    pg_queries_clear(&query, 1);
    if (IDEM_FAULT("postgres.complete.after") && !again) {
        pg_session_close(session);
        return PG_LOST;
    }
    if (ticket->verdict == IDEM_VERDICT_FENCED)
        return recognize(session, ticket, RECORD_DONE);
    return PG_OK;
}

static enum pg_end
let_go(struct pg_session *session, struct idem_ticket *ticket, bool again,
       enum statement statement, enum record_state state)
{
    struct pg_arguments arguments;
    struct row_key key;
    enum pg_end end;

    pg_row_key_of(&key, &ticket->id);
    pg_fence_arguments(&arguments, &key, ticket->token);
    end = fenced(session, ticket, statement, &arguments);
    if (end == PG_OK && again && ticket->verdict == IDEM_VERDICT_FENCED)
        return recognize(session, ticket, state);
    return end;
}

enum pg_end
pg_leased_release(struct pg_session *session, struct idem_ticket *ticket,
                  bool again)
{
    if (IDEM_FAULT("postgres.release.before"))
        pg_session_close(session);
    return let_go(session, ticket, again, SQL_RELEASE, RECORD_RELEASED);
}

enum pg_end
pg_leased_doubt(struct pg_session *session, struct idem_ticket *ticket,
                bool again)
{
    if (IDEM_FAULT("postgres.doubt.before"))
        pg_session_close(session);
    return let_go(session, ticket, again, SQL_DOUBT, RECORD_DOUBT);
}

enum pg_end
pg_leased_renew(struct pg_session *session, struct idem_ticket *ticket,
                bool again)
{
    struct pg_arguments arguments;
    struct row_key key;

    (void)again;
    pg_row_key_of(&key, &ticket->id);
    pg_fence_arguments(&arguments, &key, ticket->token);
    pg_arguments_int(&arguments, ticket->lease_ms);
    if (IDEM_FAULT("postgres.renew.before"))
        pg_session_close(session);
    return fenced(session, ticket, SQL_RENEW, &arguments);
}

/* Asked again it says the same: the mark is the owner's. */
enum pg_end
pg_leased_mark(struct pg_session *session, struct idem_ticket *ticket,
               bool again)
{
    struct pg_arguments arguments;
    struct row_key key;
    enum pg_end end;

    pg_row_key_of(&key, &ticket->id);
    pg_fence_arguments(&arguments, &key, ticket->token);
    pg_arguments_bytes(&arguments, idem_bytes_of(ticket->step));
    if (IDEM_FAULT("postgres.mark.before"))
        pg_session_close(session);
    end = fenced(session, ticket, SQL_MARK, &arguments);
    if (IDEM_FAULT("postgres.mark.after") && end == PG_OK && !again) {
        pg_session_close(session);
        return PG_LOST;
    }
    return end;
}
