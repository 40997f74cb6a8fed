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

bool
pg_idle_sleep(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    bool woken;

    session->idle = true;
    postgres->clock->wait_until(
        postgres->clock, &session->wake, &postgres->lock,
        pg_link_is_up(&session->link) ? INT64_MAX : session->retry_ns);
    woken = !session->idle;
    session->idle = false;
    return woken;
}
