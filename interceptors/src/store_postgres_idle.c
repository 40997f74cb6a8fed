#include "store_postgres_idle.h"

#include "store_postgres_session.h"

struct pg_session *
pg_idle_find(struct pg_store *postgres, enum pg_role role)
{
    bool served = postgres->up[role] > 0;

    for (unsigned i = 0; i < postgres->n_sessions; i++) {
        struct pg_session *session = &postgres->sessions[i];

        if (session->role == role && session->idle &&
            session->counted == served)
            return session;
    }
    return NULL;
}

unsigned
pg_idle_share(const struct pg_store *postgres, enum pg_role role,
              unsigned waiting)
{
    unsigned free_ones = 1;

    for (unsigned i = 0; i < postgres->n_sessions; i++)
        if (postgres->sessions[i].role == role && postgres->sessions[i].idle &&
            postgres->sessions[i].counted)
            free_ones++;
    return (waiting + free_ones - 1) / free_ones;
}

bool
pg_idle_may_pick(const struct pg_session *session)
{
    return pg_link_is_up(&session->link) ||
           (pg_session_must_wait(session) &&
            session->postgres->up[session->role] == 0);
}

void
pg_idle_wake(struct pg_session *session)
{
    session->idle = false;
    atomic_store(&session->called, true);
    pthread_cond_signal(&session->wake);
}

/* Where several calls are under way the processors are theirs. */
static bool
may_linger(const struct pg_session *session)
{
    const struct pg_store *postgres = session->postgres;

    if (!session->lone || !pg_link_is_up(&session->link) || postgres->stopping)
        return false;
    for (unsigned i = 0; i < postgres->n_sessions; i++) {
        const struct pg_session *other = &postgres->sessions[i];

        if (other->role == session->role && other->counted && !other->idle)
            return false;
    }
    return true;
}

static bool
is_called(const void *with)
{
    const struct pg_session *session = with;

    return atomic_load(&session->called);
}

/* True: it was woken, or it is time to stop. */
static bool
linger(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    bool called;

    atomic_store(&session->called, false);
    pthread_mutex_unlock(&postgres->lock);
    called = idem_linger(&session->linger, is_called, session);
    pthread_mutex_lock(&postgres->lock);
    return called || !session->idle || postgres->stopping;
}

bool
pg_idle_sleep(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    bool lingers, woken;

    session->idle = true;
    lingers = may_linger(session);
    session->lone = false;
    if (!lingers || !linger(session))
        postgres->clock->wait_until(
            postgres->clock, &session->wake, &postgres->lock,
            pg_link_is_up(&session->link) ? INT64_MAX : session->retry_ns);
    woken = !session->idle;
    session->idle = false;
    return woken;
}
