#include "store_postgres_statement.h"

#include "store_postgres_idle.h"
#include "store_postgres_keeper.h"
#include "store_postgres_session.h"
#include "store_postgres_share.h"

#include <idem/burst.h>

#include <stdlib.h>

#define NARROW_SHARES 64

void
pg_sharing_init(struct pg_sharing *sharing)
{
    pg_queue_init(&sharing->queue);
    pthread_cond_init(&sharing->fewer, NULL);
}

void
pg_sharing_fini(struct pg_sharing *sharing)
{
    pthread_cond_destroy(&sharing->fewer);
}

bool
pg_statement_init(struct pg_session *session)
{
    session->share = calloc(1, sizeof(*session->share));
    if (session->share)
        session->share->session = session;
    return session->share != NULL;
}

void
pg_statement_fini(struct pg_session *session)
{
    if (session->share)
        pg_share_fini(session->share);
    free(session->share);
    session->share = NULL;
}

/* --- What waits; all under the store's lock --- */

static bool
is_narrow(const struct pg_sharing *sharing)
{
    return sharing->narrow > 0 && sharing->at_work > 0;
}

/* One wake a share: who is woken takes what has come until then, and wakes
 * another for what it leaves. */
static void
wake_one(struct pg_store *postgres)
{
    struct pg_sharing *sharing = &postgres->sharing;
    struct pg_session *session = sharing->waking || is_narrow(sharing)
                                     ? NULL
                                     : pg_idle_find(postgres, PG_STATEMENT);

    if (!session)
        return;
    sharing->waking = true;
    pg_idle_wake(session);
}

/* Behind all that a thread posts in one go. */
static void
wake_later(void *with)
{
    struct pg_store *postgres = with;

    pthread_mutex_lock(&postgres->lock);
    if (postgres->sharing.queue.size > 0)
        wake_one(postgres);
    pthread_mutex_unlock(&postgres->lock);
}

void
pg_statement_post(struct pg_store *postgres, struct idem_ticket *ticket)
{
    ticket->op = OPERATION_SHARE;
    pthread_mutex_lock(&postgres->lock);
    pg_keeper_note(postgres, ticket);
    pg_queue_push(&postgres->sharing.queue, ticket);
    if (!idem_burst_put_off(wake_later, postgres))
        wake_one(postgres);
    pthread_mutex_unlock(&postgres->lock);
}

static unsigned
share_of(const struct pg_store *postgres)
{
    unsigned waiting = postgres->sharing.queue.size;
    unsigned share = postgres->sharing.narrow > 0
                         ? waiting
                         : pg_idle_share(postgres, PG_STATEMENT, waiting);

    if (share > SHARE_MAX)
        return SHARE_MAX;
    return share < SHARE_LEAST ? SHARE_LEAST : share;
}

struct picking {
    struct pg_sharing *sharing;
    struct pg_share *share;
    unsigned most;
};

static enum pg_pick
pick(void *with, struct idem_ticket *ticket)
{
    struct picking *picking = with;
    struct pg_share *share = picking->share;
    struct shared_call *call = &share->all[share->n_all];

    if (share->n_all >= picking->most)
        return PG_STOP;
    if (!pg_busy_begin(&picking->sharing->busy, ticket->id.digest, &call->busy))
        return PG_LEAVE;
    call->ticket = ticket;
    share->n_all++;
    return PG_PICK;
}

static void
pick_share(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    struct pg_sharing *sharing = &postgres->sharing;
    struct picking picking = {sharing, session->share, share_of(postgres)};

    if (is_narrow(sharing))
        return;
    pg_queue_pick(&sharing->queue, pick, &picking);
    if (session->share->n_all > 0)
        sharing->at_work++;
    if (sharing->queue.size > 0)
        wake_one(postgres);
}

/* Wait until some are picked. None: it is time to connect. False: time to stop.
 */
static bool
gather(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    struct pg_share *share = session->share;
    bool go_on;

    share->n_all = 0;
    pthread_mutex_lock(&postgres->lock);
    for (;;) {
        if (pg_idle_may_pick(session))
            pick_share(session);
        if (share->n_all > 0 || postgres->stopping ||
            (!pg_link_is_up(&session->link) && !pg_session_must_wait(session)))
            break;
        if (pg_idle_sleep(session))
            postgres->sharing.waking = false;
    }
    go_on = share->n_all > 0 || !postgres->stopping;
    pthread_mutex_unlock(&postgres->lock);
    return go_on;
}

/* --- A share --- */

void
pg_statement_narrow(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    struct pg_sharing *sharing = &postgres->sharing;

    pthread_mutex_lock(&postgres->lock);
    sharing->narrow = NARROW_SHARES;
    sharing->at_work--;
    pthread_cond_signal(&sharing->fewer);
    while (sharing->at_work > 0 && !postgres->stopping)
        postgres->clock->wait_until(postgres->clock, &sharing->fewer,
                                    &postgres->lock, INT64_MAX);
    sharing->at_work++;
    pthread_mutex_unlock(&postgres->lock);
}

/* Their keys are free, and so is the session for what came meanwhile. */
static void
end_share(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    struct pg_sharing *sharing = &postgres->sharing;
    const struct pg_share *share = session->share;

    pthread_mutex_lock(&postgres->lock);
    for (unsigned i = 0; i < share->n_all; i++)
        pg_busy_end(&sharing->busy, share->all[i].busy);
    sharing->at_work--;
    if (sharing->narrow > 0)
        sharing->narrow--;
    pthread_cond_signal(&sharing->fewer);
    if (sharing->queue.size > 0)
        wake_one(postgres);
    pthread_mutex_unlock(&postgres->lock);
}

void *
pg_statement_serve(void *with)
{
    struct pg_session *session = with;

    while (gather(session)) {
        if (session->share->n_all == 0) {
            (void)pg_session_reconnect(session);
            continue;
        }
        pg_share_run(session->share);
        end_share(session);
        pg_share_part(session->share, OPERATION_RUN);
        pg_share_answer(session->share, "postgres.run.after");
        session->lone = session->share->n_all == 1;
    }
    pg_session_close(session);
    return NULL;
}
