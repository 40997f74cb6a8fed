#include "store_sqlite.h"

#include "fault.h"
#include "store_sqlite_record.h"

#include <stdio.h>

#ifdef IDEM_FAULTS

bool
sqlite_op_fault(const struct idem_ticket *ticket, const char *step)
{
    static const char *const names[] = {
        [SQLITE_OP_CLAIM] = "claim",
        [SQLITE_OP_COMPLETE] = "complete",
        [SQLITE_OP_RELEASE] = "release",
        [SQLITE_OP_DOUBT] = "doubt",
        [SQLITE_OP_RENEW] = "renew",
        [SQLITE_OP_MARK] = "mark",
        [SQLITE_OP_ABANDON] = "abandon",
        [SQLITE_OP_LOOK] = "look",
        [SQLITE_OP_SETTLE] = "settle",
        [SQLITE_OP_MAINTAIN] = "maintain",
        [SQLITE_OP_WATERMARK] = "watermark",
        [SQLITE_OP_ACKNOWLEDGE] = "acknowledge",
        [SQLITE_OP_RUN] = "run",
    };
    char point[64];

    snprintf(point, sizeof point, "sqlite.%s.%s", names[ticket->op], step);
    return IDEM_FAULT(point);
}

#else

bool
sqlite_op_fault(const struct idem_ticket *ticket, const char *step)
{
    (void)ticket;
    (void)step;
    return false;
}

#endif

static bool
say(struct idem_ticket *ticket, enum idem_verdict verdict)
{
    ticket->verdict = verdict;
    return true;
}

/* Who may write the record's next state? changed is what its statement said. */
static bool
say_owner(struct idem_ticket *ticket, int changed)
{
    return changed >= 0 &&
           say(ticket, changed ? IDEM_VERDICT_MINE : IDEM_VERDICT_FENCED);
}

static bool
mine(struct idem_ticket *ticket, int64_t token, unsigned executions)
{
    ticket->token = token;
    ticket->executions = executions;
    return say(ticket, IDEM_VERDICT_MINE);
}

static bool
start(struct sqlite_store *store, struct idem_ticket *ticket, int64_t now_ms,
      int *changed)
{
    *changed = sqlite_record_start(&store->db, ticket, now_ms);
    return *changed >= 0 && (*changed == 0 || mine(ticket, 1, 1));
}

static bool
take(struct sqlite_store *store, struct idem_ticket *ticket,
     const struct record *record, int64_t now_ms)
{
    int changed;

    if (record->state == RECORD_ABSENT)
        return start(store, ticket, now_ms, &changed) &&
               (changed || say(ticket, IDEM_VERDICT_EXPIRED));
    changed = sqlite_record_take(&store->db, ticket, record, now_ms);
    if (changed == 0)
        return say(ticket, IDEM_VERDICT_RUNNING);
    return changed > 0 &&
           mine(ticket, record->token + 1, record->executions + 1);
}

static bool
hold(struct sqlite_store *store, struct idem_ticket *ticket,
     const struct record *record)
{
    ticket->token = record->token;
    return sqlite_record_doubt(&store->db, ticket) >= 0;
}

static bool
move(struct sqlite_store *store, struct idem_ticket *ticket,
     const struct record *record, enum record_move to, int64_t now_ms)
{
    switch (to) {
    case RECORD_KEEP:
        return true;
    case RECORD_TAKE:
        return take(store, ticket, record, now_ms);
    case RECORD_HOLD:
        return hold(store, ticket, record);
    case RECORD_SETTLE:
        return sqlite_record_settle(&store->db, ticket, now_ms) >= 0;
    case RECORD_ABANDON:
        break;
    }
    if (record->state != RECORD_ABSENT)
        return sqlite_record_abandon(&store->db, ticket, record, now_ms) >= 0;

    int changed = sqlite_record_refuse(&store->db, ticket, now_ms);

    return changed > 0 || (changed == 0 && say(ticket, IDEM_VERDICT_EXPIRED));
}

/* A first attempt inserts first; who comes again looks first, which writes
 * nothing. Never one statement for both: see semantics.md M5. */
bool
sqlite_op_claim(struct sqlite_store *store, struct idem_ticket *ticket,
                int64_t now_ms)
{
    const struct idem_key *key = &ticket->id.key;
    bool late = key->minted && key->minted_ms + key->window_ms < now_ms;
    struct record record;
    int changed = 0;

    if (!ticket->repeat && !late && !start(store, ticket, now_ms, &changed))
        return false;
    if (changed)
        return true;
    return sqlite_record_read(&store->db, &record, ticket, now_ms) &&
           move(store, ticket, &record, record_claim(&record, ticket), now_ms);
}

static bool
abandon(struct sqlite_store *store, struct idem_ticket *ticket, int64_t now_ms)
{
    struct record record;

    return sqlite_record_read(&store->db, &record, ticket, now_ms) &&
           move(store, ticket, &record, record_abandon(&record, ticket),
                now_ms);
}

static bool
settle(struct sqlite_store *store, struct idem_ticket *ticket, int64_t now_ms)
{
    struct record record;

    return sqlite_record_read(&store->db, &record, ticket, now_ms) &&
           move(store, ticket, &record, record_settle(&record, ticket), now_ms);
}

/* A completion that is repeated because its answer was lost finds its own
 * answer: the token tells. */
static bool
complete(struct sqlite_store *store, struct idem_ticket *ticket, int64_t now_ms)
{
    int changed = sqlite_record_finish(&store->db, ticket, now_ms);
    struct record record;

    if (changed != 0)
        return say_owner(ticket, changed);
    if (!sqlite_record_read(&store->db, &record, ticket, now_ms))
        return false;
    return say_owner(ticket, record.state == RECORD_DONE &&
                                 record.token == ticket->token);
}

static bool
maintain(struct sqlite_store *store, struct idem_ticket *ticket, int64_t now_ms)
{
    struct sqlite_maintenance *maintenance =
        (struct sqlite_maintenance *)ticket;

    return sqlite_days_maintain(&store->db, now_ms, store->days_ahead,
                                &maintenance->more, &ticket->error) &&
           say(ticket, IDEM_VERDICT_MINE);
}

static bool
run(struct sqlite_store *store, struct idem_ticket *ticket, int64_t now_ms)
{
    switch ((enum sqlite_op)ticket->op) {
    case SQLITE_OP_CLAIM:
        return sqlite_op_claim(store, ticket, now_ms);
    case SQLITE_OP_RUN:
        return sqlite_statement_run(store, ticket, now_ms);
    case SQLITE_OP_COMPLETE:
        return complete(store, ticket, now_ms);
    case SQLITE_OP_RELEASE:
        return say_owner(ticket, sqlite_record_release(&store->db, ticket));
    case SQLITE_OP_DOUBT:
        return say_owner(ticket, sqlite_record_doubt(&store->db, ticket));
    case SQLITE_OP_RENEW:
        return say_owner(ticket,
                         sqlite_record_renew(&store->db, ticket, now_ms));
    case SQLITE_OP_MARK:
        return say_owner(ticket,
                         sqlite_record_mark(&store->db, ticket, now_ms));
    case SQLITE_OP_ABANDON:
        return abandon(store, ticket, now_ms);
    case SQLITE_OP_SETTLE:
        return settle(store, ticket, now_ms);
    case SQLITE_OP_MAINTAIN:
        return maintain(store, ticket, now_ms);
    case SQLITE_OP_ACKNOWLEDGE:
        return sqlite_acknowledge(&store->db, ticket);
    case SQLITE_OP_WATERMARK:
    case SQLITE_OP_LOOK:
        break; /* never on the writer's thread */
    }
    return false;
}

static bool
injected(struct idem_ticket *ticket, const char *step)
{
    if (!sqlite_op_fault(ticket, step))
        return false;
    (void)idem_fail(&ticket->error, IDEM_UNAVAILABLE, "sqlite: injected");
    return true;
}

bool
sqlite_op_run(struct sqlite_store *store, struct idem_ticket *ticket)
{
    int64_t now_ms = store->clock->wall_ms(store->clock);

    return !injected(ticket, "before") && run(store, ticket, now_ms) &&
           !injected(ticket, "written");
}
