#include "store_postgres_group.h"

#include "store_postgres_batch.h"
#include "store_postgres_durable.h"
#include "store_postgres_idle.h"
#include "store_postgres_session.h"

#include <idem/burst.h>
#include <idem/call.h>

#include <stddef.h>
#include <stdlib.h>

#define WAITING_MAX (8 * BATCH_MAX)

/* --- What waits; all under the store's lock --- */

/* One wake a batch: who is woken takes what has come until then, and wakes
 * another for what it leaves. */
static void
wake_one(struct pg_store *postgres)
{
    struct pg_session *session =
        postgres->group_waking ? NULL : pg_idle_find(postgres, PG_GROUP);

    if (!session)
        return;
    postgres->group_waking = true;
    pg_idle_wake(session);
}

/* For a mark, whose thread waits for it (step.c), and may be the one of the
 * session that is on its way. */
static void
wake_now(struct pg_store *postgres)
{
    postgres->group_waking = false;
    wake_one(postgres);
}

/* Behind all that a thread posts in one go: a session that is woken by the
 * first of it would send that one alone. */
static void
wake_later(void *with)
{
    struct pg_store *postgres = with;

    pthread_mutex_lock(&postgres->lock);
    if (postgres->grouped.size > 0)
        wake_one(postgres);
    pthread_mutex_unlock(&postgres->lock);
}

/* What ends a claim or keeps it is never refused: it frees. */
void
pg_group_post(struct pg_store *postgres, struct idem_ticket *ticket)
{
    if (ticket->op == OPERATION_CLAIM &&
        postgres->grouped.size >= WAITING_MAX) {
        pg_queue_push(&postgres->refused, ticket);
        pthread_cond_signal(&postgres->keeper_wake);
        return;
    }
    pg_queue_push(&postgres->grouped, ticket);
    if (ticket->op == OPERATION_MARK)
        wake_now(postgres);
    else if (!idem_burst_put_off(wake_later, postgres))
        wake_one(postgres);
}

/* A handler on that thread is long: another session takes what waits. */
static void
pass_on(struct idem_host *host)
{
    struct pg_session *session =
        (struct pg_session *)((char *)host - offsetof(struct pg_session, host));
    struct pg_store *postgres = session->postgres;

    pthread_mutex_lock(&postgres->lock);
    if (session->hosts)
        postgres->group_waking = false;
    session->hosts = false;
    if (postgres->grouped.size > 0)
        wake_one(postgres);
    pthread_mutex_unlock(&postgres->lock);
}

bool
pg_group_init(struct pg_session *session)
{
    session->host.stuck = pass_on;
    session->batch = calloc(1, sizeof(*session->batch));
    return session->batch != NULL;
}

void
pg_group_fini(struct pg_session *session)
{
    if (session->batch)
        pg_arrays_fini(&session->batch->arrays);
    free(session->batch);
    session->batch = NULL;
}

static unsigned
share_of(const struct pg_store *postgres)
{
    unsigned share = pg_idle_share(postgres, PG_GROUP, postgres->grouped.size);

    return share < BATCH_LEAST ? BATCH_LEAST : share;
}

struct picking {
    struct pg_store *postgres;
    struct pg_batch *batch;
    unsigned most;
    size_t bytes;
};

static enum pg_pick
pick(void *with, struct idem_ticket *ticket)
{
    struct picking *picking = with;
    struct pg_batch *batch = picking->batch;
    struct pg_slot *slot = &batch->slots[batch->n];

    if (batch->n >= picking->most || picking->bytes > BATCH_BYTES)
        return PG_STOP;
    if (!pg_busy_begin(&picking->postgres->busy, ticket->id.digest,
                       &slot->place))
        return PG_LEAVE;
    slot->ticket = ticket;
    picking->bytes += ticket->answer.reply.size;
    batch->n++;
    return PG_PICK;
}

static void
pick_share(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    struct picking picking = {.postgres = postgres,
                              .batch = session->batch,
                              .most = session->batch->n + share_of(postgres)};

    if (picking.most > BATCH_MAX)
        picking.most = BATCH_MAX;
    pg_queue_pick(&postgres->grouped, pick, &picking);
    if (postgres->grouped.size > 0)
        wake_one(postgres);
}

/* Fill the batch up, waiting while it is empty. It stays empty when it is time
 * to connect. False: time to stop. */
static bool
gather(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    struct pg_batch *batch = session->batch;
    bool go_on;

    pthread_mutex_lock(&postgres->lock);
    if (session->hosts)
        postgres->group_waking = false;
    session->hosts = false;
    for (;;) {
        if (pg_idle_may_pick(session))
            pick_share(session);
        if (batch->n > 0 || postgres->stopping ||
            (!pg_link_is_up(&session->link) && !pg_session_must_wait(session)))
            break;
        if (pg_idle_sleep(session))
            postgres->group_waking = false;
    }
    go_on = batch->n > 0 || !postgres->stopping;
    pthread_mutex_unlock(&postgres->lock);
    return go_on;
}

/* --- A round --- */

static void
begin_new(struct pg_session *session, unsigned first)
{
    const struct idem_clock *clock = session->postgres->clock;
    struct pg_batch *batch = session->batch;
    int64_t owners[BATCH_MAX];

    if (first == batch->n)
        return;
    clock->random(clock, owners, (batch->n - first) * sizeof(owners[0]));
    for (unsigned i = first; i < batch->n; i++)
        pg_slot_init(&batch->slots[i], session, batch->slots[i].ticket,
                     owners[i - first]);
}

static void
refuse_all(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    struct pg_batch *batch = session->batch;
    struct idem_error why;

    pthread_mutex_lock(&postgres->lock);
    why = postgres->away;
    pthread_mutex_unlock(&postgres->lock);
    for (unsigned i = 0; i < batch->n; i++)
        pg_slot_refuse(&batch->slots[i], session, &why);
}

/* A claim that is taken back may stand: the next one knows it by its owner. */
static void
confirm(struct pg_session *session, struct idem_ticket *const *over,
        const int64_t *owners, unsigned n)
{
    if (pg_durable_check(session, over, n))
        return;
    for (unsigned i = 0; i < n; i++)
        if (over[i]->op == OPERATION_CLAIM && !over[i]->probe &&
            over[i]->verdict == IDEM_VERDICT_FAILED)
            pg_lost_remember(&session->postgres->lost, over[i]->id.digest,
                             owners[i]);
}

struct answered {
    struct idem_ticket *tickets[BATCH_MAX];
    int64_t owners[BATCH_MAX];
    unsigned n;
    bool hosted; /* this thread runs their handlers */
};

/* Handlers run on this thread when another session can go on meanwhile, and
 * nothing is left for the next round. What they complete wakes nobody: this
 * session takes all of it. With the lock. */
static bool
begin_to_host(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;

    session->hosts = session->batch->n == 0 && postgres->up[PG_GROUP] > 1;
    if (session->hosts)
        postgres->group_waking = true;
    return session->hosts;
}

/* Those that are over leave; the rest stays for the next round. */
static void
take_answered(struct pg_session *session, struct answered *over)
{
    struct pg_store *postgres = session->postgres;
    struct pg_batch *batch = session->batch;
    unsigned kept = 0;

    over->n = 0;
    pthread_mutex_lock(&postgres->lock);
    for (unsigned i = 0; i < batch->n; i++) {
        struct pg_slot *slot = &batch->slots[i];

        if (slot->ticket && slot->step != SLOT_OVER) {
            batch->slots[kept++] = *slot;
            continue;
        }
        pg_busy_end(&postgres->busy, slot->place);
        if (!slot->ticket)
            continue;
        over->owners[over->n] = slot->owner;
        over->tickets[over->n++] = slot->ticket;
    }
    batch->n = kept;
    over->hosted = begin_to_host(session);
    pthread_mutex_unlock(&postgres->lock);
}

static void
tell_all(void *with)
{
    const struct answered *over = with;

    for (unsigned i = 0; i < over->n; i++)
        over->tickets[i]->done(over->tickets[i]);
}

static void
answer(struct pg_session *session)
{
    struct answered over;

    take_answered(session, &over);
    session->lone = over.n == 1;
    confirm(session, over.tickets, over.owners, over.n);
    if (over.hosted)
        idem_call_resume_all_here(tell_all, &over, &session->host);
    else
        idem_call_resume_all(tell_all, &over);
}

static void
serve(struct pg_session *session)
{
    if (pg_link_is_up(&session->link) || pg_session_reconnect(session))
        pg_batch_round(session, session->batch);
    else
        refuse_all(session);
    answer(session);
}

void *
pg_group_run(void *with)
{
    struct pg_session *session = with;
    unsigned kept = 0;

    while (gather(session)) {
        begin_new(session, kept);
        if (session->batch->n > 0)
            serve(session);
        else
            (void)pg_session_reconnect(session);
        kept = session->batch->n;
    }
    pg_session_close(session);
    return NULL;
}
