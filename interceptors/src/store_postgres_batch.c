#include "store_postgres_batch.h"

#include "store_postgres_columns.h"
#include "store_postgres_error.h"

#include <stdlib.h>
#include <string.h>

#define STATEMENTS (SLOT_STEPS * 2)
#define REPEATS 3 /* after a deadlock or the like */

static const enum statement statements[SLOT_STEPS] = {
    [SLOT_LOOK] = SQL_EACH_LOOK,         [SLOT_CLAIM] = SQL_EACH_CLAIM,
    [SLOT_COMPLETE] = SQL_EACH_COMPLETE, [SLOT_RELEASE] = SQL_EACH_RELEASE,
    [SLOT_DOUBT] = SQL_EACH_DOUBT,       [SLOT_RENEW] = SQL_EACH_RENEW,
    [SLOT_MARK] = SQL_EACH_MARK,
};

/* Where each result tells its key. */
static const unsigned char key_columns[SLOT_STEPS] = {[SLOT_LOOK] = 18};

/* Some slots as one transaction. */
struct trip {
    struct pg_session *session;
    struct pg_batch *batch;
    struct pg_slot *slots;
    unsigned n, n_queries;
    bool plain; /* claims of minted keys: no record is expected */
    struct pg_chosen chosen[STATEMENTS]; /* by query */
    struct pg_query queries[STATEMENTS];
    struct pg_arguments arguments[STATEMENTS];
};

static int
compare_keys(const void *a, const void *b)
{
    const struct pg_slot *left = a, *right = b;

    return memcmp(left->key.bytes, right->key.bytes, sizeof(left->key.bytes));
}

static bool
is_waiting(const struct pg_slot *slot)
{
    return slot->ticket && slot->step != SLOT_OVER;
}

/* --- Out --- */

/* What goes through here most, and is a third cheaper without arrays. */
static bool
may_go_alone(enum slot_step step)
{
    return step == SLOT_CLAIM || step == SLOT_COMPLETE;
}

static enum statement
statement_of(const struct trip *trip, const struct pg_chosen *chosen)
{
    bool plain = trip->plain && !chosen->opaque;

    if (chosen->step == SLOT_CLAIM && chosen->alone)
        return plain ? SQL_ONE_CLAIM_NEW : SQL_ONE_CLAIM;
    if (chosen->step == SLOT_CLAIM && plain)
        return SQL_EACH_CLAIM_NEW;
    return chosen->alone ? SQL_ONE_COMPLETE : statements[chosen->step];
}

static void
add_query(struct trip *trip, enum slot_step step, bool opaque, unsigned n)
{
    unsigned at = trip->n_queries++;
    struct pg_chosen *chosen = &trip->chosen[at];

    *chosen = (struct pg_chosen){trip->slots, trip->n, step, opaque,
                                 n == 1 && may_go_alone(step)};
    pg_columns(&trip->arguments[at], &trip->batch->arrays, chosen);
    trip->queries[at] =
        pg_session_query(trip->session, statement_of(trip, chosen), opaque,
                         &trip->arguments[at]);
}

/* A statement for each step and table that has slots, always in this order. */
static void
add_queries(struct trip *trip)
{
    unsigned wanted[SLOT_STEPS + 1][2] = {0};

    for (unsigned i = 0; i < trip->n; i++) {
        struct pg_slot *slot = &trip->slots[i];

        slot->sent = is_waiting(slot) ? slot->step : SLOT_OVER;
        wanted[slot->sent][slot->key.opaque]++;
    }
    trip->n_queries = 0;
    for (int step = 0; step < SLOT_STEPS; step++)
        for (int opaque = 0; opaque < 2; opaque++)
            if (wanted[step][opaque])
                add_query(trip, (enum slot_step)step, opaque == 1,
                          wanted[step][opaque]);
}

/* --- While it is under way --- */

/* When the first of them is late; INT64_MIN: nobody waits. */
static int64_t
first_late_ns(const struct trip *trip)
{
    int64_t first_ns = INT64_MAX;
    bool some = false;

    for (unsigned i = 0; i < trip->n; i++) {
        const struct pg_slot *slot = &trip->slots[i];

        if (!is_waiting(slot))
            continue;
        some = true;
        if (slot->until_ns < first_ns)
            first_ns = slot->until_ns;
    }
    return some ? first_ns : INT64_MIN;
}

/* Who is late is told so now, and the others go on waiting. */
static void
dismiss_late(struct trip *trip)
{
    const struct idem_clock *clock = trip->session->postgres->clock;
    int64_t now_ns = clock->monotonic_ns(clock);

    for (unsigned i = 0; i < trip->n; i++) {
        struct pg_slot *slot = &trip->slots[i];
        struct idem_ticket *ticket = slot->ticket;

        if (!is_waiting(slot) || slot->until_ns > now_ns)
            continue;
        pg_slot_expire(slot, trip->session);
        slot->ticket = NULL;
        ticket->done(ticket);
    }
}

static enum pg_end
send_and_collect(struct trip *trip)
{
    struct pg_link *link = &trip->session->link;
    enum pg_end end = PG_LOST;
    int64_t until_ns = first_late_ns(trip);

    if (!pg_link_send(link, trip->queries, trip->n_queries))
        return PG_LOST;
    do {
        if (end == PG_LATE)
            dismiss_late(trip);
        until_ns = first_late_ns(trip);
        if (until_ns == INT64_MIN)
            return PG_LATE;
        end = pg_link_collect(link, trip->queries, trip->n_queries, until_ns);
    } while (end == PG_LATE);
    return end;
}

/* --- In --- */

static struct pg_slot *
find_slot(const struct trip *trip, const struct pg_chosen *chosen,
          struct idem_bytes key)
{
    struct pg_slot wanted, *found;

    if (key.size != sizeof(wanted.key.bytes))
        return NULL;
    memcpy(wanted.key.bytes, key.data, sizeof(wanted.key.bytes));
    found =
        bsearch(&wanted, trip->slots, trip->n, sizeof(wanted), compare_keys);
    return found && pg_chosen_has(chosen, found) && !found->answered ? found
                                                                     : NULL;
}

/* Each row to its slot, by its key; then the slots that got none. */
static void
share_rows(struct trip *trip, unsigned query)
{
    const struct pg_chosen chosen = trip->chosen[query];
    struct pg_row row = {.of = trip->queries[query].result};
    long rows = pg_query_rows(&trip->queries[query]);
    unsigned column = key_columns[chosen.step];

    for (unsigned i = 0; i < trip->n; i++)
        trip->slots[i].answered =
            !pg_chosen_has(&chosen, &trip->slots[i]) || !trip->slots[i].ticket;
    for (row.at = 0; row.at < rows; row.at++) {
        struct pg_slot *slot =
            find_slot(trip, &chosen, pg_row_bytes(row.of, row.at, (int)column));

        if (!slot)
            continue;
        slot->answered = true;
        pg_slot_answer(slot, trip->session, &row);
    }
    for (unsigned i = 0; i < trip->n; i++)
        if (!trip->slots[i].answered)
            pg_slot_miss(&trip->slots[i]);
}

static void
share_out(struct trip *trip)
{
    for (unsigned i = 0; i < trip->n_queries; i++)
        share_rows(trip, i);
    for (unsigned i = 0; i < trip->n; i++) {
        struct pg_slot *slot = &trip->slots[i];

        if (slot->sent != SLOT_OVER && slot->ticket && slot->step == SLOT_OVER)
            pg_slot_pass_fault(slot, trip->session);
    }
}

/* --- Errors --- */

static const struct pg_query *
failed_query(const struct trip *trip)
{
    for (unsigned i = 0; i < trip->n_queries; i++)
        if (pg_query_sqlstate(&trip->queries[i])[0])
            return &trip->queries[i];
    return NULL;
}

static bool
begins_with_one_of(const char *sqlstate, const char *const *prefixes)
{
    for (; *prefixes; prefixes++)
        if (strncmp(sqlstate, *prefixes, strlen(*prefixes)) == 0)
            return true;
    return false;
}

/* One row may be to blame: its data, a constraint, a limit. */
static bool
is_poison(const char *sqlstate)
{
    static const char *const prefixes[] = {"22", "23", "54", NULL};

    return begins_with_one_of(sqlstate, prefixes);
}

/* Rolled back, and the same may work now. */
static bool
is_passing(const char *sqlstate)
{
    static const char *const prefixes[] = {"40001", "40P01", "55P03", "57014",
                                           NULL};

    return begins_with_one_of(sqlstate, prefixes);
}

/* A key has a record already. Only a plain claim says so. */
static bool
met_record(const struct trip *trip, const char *sqlstate)
{
    return trip->plain && strcmp(sqlstate, "23505") == 0;
}

static void
be_wary(struct trip *trip)
{
    struct pg_batch *batch = trip->batch;
    unsigned wary =
        batch->next_wary > WARY_LEAST ? batch->next_wary : WARY_LEAST;

    trip->plain = false;
    batch->wary = wary;
    batch->next_wary = 2 * wary < WARY_MOST ? 2 * wary : WARY_MOST;
}

static void
be_less_wary(struct trip *trip)
{
    if (trip->plain)
        trip->batch->next_wary /= 2;
}

static void
fail_all(struct trip *trip, const struct pg_query *query)
{
    for (unsigned i = 0; i < trip->n; i++)
        if (is_waiting(&trip->slots[i]))
            pg_slot_fail(&trip->slots[i], query);
}

static void
lose_all(struct trip *trip)
{
    pg_session_close(trip->session);
    for (unsigned i = 0; i < trip->n; i++)
        if (is_waiting(&trip->slots[i]))
            pg_slot_lose(&trip->slots[i], trip->session);
}

static void
refuse_all(struct trip *trip)
{
    struct idem_error why = {0};

    (void)idem_fail(&why, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    for (unsigned i = 0; i < trip->n; i++)
        if (is_waiting(&trip->slots[i]))
            pg_slot_refuse(&trip->slots[i], trip->session, &why);
}

/* What is to be done about a transaction that came back. */
enum way {
    WAY_DONE,  /* the slots know what came of it */
    WAY_AGAIN, /* rolled back: the same once more */
    WAY_HALVE, /* rolled back: find the row that is to blame */
};

static enum way
judge(struct trip *trip, bool last)
{
    const struct pg_query *failed = failed_query(trip);
    const char *sqlstate = failed ? pg_query_sqlstate(failed) : "";

    if (!failed) {
        be_less_wary(trip);
        share_out(trip);
        return WAY_DONE;
    }
    if (met_record(trip, sqlstate)) {
        be_wary(trip);
        return WAY_AGAIN;
    }
    if (is_passing(sqlstate) && !last)
        return WAY_AGAIN;
    if (is_poison(sqlstate) && trip->n > 1)
        return WAY_HALVE;
    fail_all(trip, failed);
    return WAY_DONE;
}

static enum way
travel(struct trip *trip, bool last)
{
    enum way way = WAY_DONE;

    if (!pg_arrays_reserve(&trip->batch->arrays,
                           pg_columns_room(trip->slots, trip->n))) {
        refuse_all(trip);
        return WAY_DONE;
    }
    add_queries(trip);
    if (trip->n_queries == 0)
        return WAY_DONE;
    if (send_and_collect(trip) == PG_OK)
        way = judge(trip, last);
    else
        lose_all(trip);
    pg_queries_clear(trip->queries, trip->n_queries);
    return way;
}

/* Ends: halves get smaller, repeats are counted. */
static void
send_slots(struct pg_session *session, struct pg_batch *batch,
           struct pg_slot *slots, unsigned n)
{
    struct trip trip = {.session = session,
                        .batch = batch,
                        .slots = slots,
                        .n = n,
                        .plain = batch->wary == 0};
    enum way way = WAY_AGAIN;

    for (int i = 1; way == WAY_AGAIN; i++)
        way = travel(&trip, i == REPEATS);
    if (way == WAY_DONE)
        return;
    send_slots(session, batch, slots, n / 2);
    send_slots(session, batch, slots + n / 2, n - n / 2);
}

void
pg_batch_round(struct pg_session *session, struct pg_batch *batch)
{
    for (unsigned i = 0; i < batch->n; i++)
        pg_slot_begin(&batch->slots[i], session);
    if (batch->wary > 0)
        batch->wary--;
    qsort(batch->slots, batch->n, sizeof(batch->slots[0]), compare_keys);
    send_slots(session, batch, batch->slots, batch->n);
}
