#include "store_postgres_session.h"

#include "fault.h"
#include "store_postgres_operation.h"

#include <idem/reason.h>

#include <string.h>

#define FIRST_BACKOFF_NS INT64_C(20000000)
#define LONGEST_BACKOFF_NS INT64_C(1000000000)

static pg_operation_fn *const operations[OPERATIONS] = {
    [OPERATION_CLAIM] = pg_leased_claim,
    [OPERATION_COMPLETE] = pg_leased_complete,
    [OPERATION_RELEASE] = pg_leased_release,
    [OPERATION_DOUBT] = pg_leased_doubt,
    [OPERATION_RENEW] = pg_leased_renew,
    [OPERATION_MARK] = pg_leased_mark,
    [OPERATION_LOOK] = pg_look,
    [OPERATION_ABANDON] = pg_abandon,
    [OPERATION_SETTLE] = pg_settle,
    [OPERATION_READ] = pg_read_begin,
};

static pg_operation_fn *
operation_of(const struct idem_ticket *ticket)
{
    if (ticket->op == OPERATION_CLAIM && pg_ticket_pins(ticket))
        return pg_transaction_claim;
    return operations[ticket->op];
}

static int64_t
now_ns(const struct pg_session *session)
{
    const struct idem_clock *clock = session->postgres->clock;

    return clock->monotonic_ns(clock);
}

/* After a failure, wait longer each time, and not all sessions at once. */
static void
back_off(struct pg_session *session, const struct idem_error *why)
{
    struct pg_store *postgres = session->postgres;
    int64_t pause_ns = session->backoff_ns;

    session->retry_ns =
        now_ns(session) +
        idem_clock_between(postgres->clock, pause_ns / 2, pause_ns);
    session->backoff_ns =
        pause_ns * 2 < LONGEST_BACKOFF_NS ? pause_ns * 2 : LONGEST_BACKOFF_NS;
    pthread_mutex_lock(&postgres->lock);
    postgres->away = *why;
    pthread_mutex_unlock(&postgres->lock);
}

static bool
reconnect(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    struct idem_error why = {0};
    enum idem_status status = pg_session_open(session, &why);

    if (status == IDEM_OK)
        session->backoff_ns = FIRST_BACKOFF_NS;
    else
        back_off(session, &why);
    pthread_mutex_lock(&postgres->lock);
    session->tried = true;
    pthread_mutex_unlock(&postgres->lock);
    return status == IDEM_OK;
}

static void
refuse(struct pg_session *session, struct idem_ticket *ticket)
{
    struct pg_store *postgres = session->postgres;

    ticket->verdict = IDEM_VERDICT_FAILED;
    pthread_mutex_lock(&postgres->lock);
    ticket->error = postgres->away;
    pthread_mutex_unlock(&postgres->lock);
}

static void
tell_lost(struct pg_session *session, struct idem_ticket *ticket,
          enum pg_end end)
{
    if (end == PG_LATE && now_ns(session) >= ticket->deadline_ns)
        pg_ticket_fail(ticket, IDEM_DEADLINE_EXCEEDED, "",
                       "PostgreSQL did not answer before the deadline");
    else
        pg_ticket_fail(ticket, IDEM_UNAVAILABLE, IDEM_STORE_AWAY,
                       "PostgreSQL: the connection was lost");
}

/* The operation, repeated when the connection is lost under it; the verdict is
 * filled. PG_OK: it is known what the database has done. */
static enum pg_end
attempt(struct pg_session *session, struct idem_ticket *ticket, bool again)
{
    pg_operation_fn *operation = operation_of(ticket);
    enum pg_end end = PG_LOST;

    for (int i = 0; i < POSTGRES_TRIES && end == PG_LOST; i++) {
        if (!pg_link_is_up(&session->link) && !reconnect(session)) {
            refuse(session, ticket);
            return again || i > 0 ? PG_LOST : PG_OK;
        }
        session->until_ns =
            pg_store_until(session->postgres, ticket->deadline_ns, GRACE_NS);
        end = operation(session, ticket, again || i > 0);
    }
    if (end != PG_OK)
        tell_lost(session, ticket, end);
    return end;
}

static void
serve(struct pg_session *session, struct idem_ticket *ticket)
{
    const struct idem_clock *clock = session->postgres->clock;
    struct lost_claims *lost = &session->postgres->lost;
    bool claims = ticket->op == OPERATION_CLAIM && !pg_ticket_pins(ticket);
    int64_t before = claims ? pg_lost_take(lost, ticket->id.digest) : 0;

    clock->random(clock, &session->owner, sizeof(session->owner));
    if (before)
        session->owner = before;
    /* A handler did begin, elsewhere, before a claim that is to probe. */
    if (attempt(session, ticket, before != 0) != PG_OK && claims &&
        !ticket->probe)
        pg_lost_remember(lost, ticket->id.digest, session->owner);
}

/* What a handler left in the session is not for the next one. */
static void
clean(struct pg_session *session)
{
    if (session->soiled)
        pg_session_close(session);
}

/* While the handler has the transaction: sleep until it is to be ended, or the
 * store is freed under it, which rolls it back. */
static void
stay(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    struct idem_ticket *ticket;

    pthread_mutex_lock(&postgres->lock);
    while (!session->pending && !session->read_over && !postgres->stopping)
        postgres->clock->wait_until(postgres->clock, &session->wake,
                                    &postgres->lock, INT64_MAX);
    ticket = session->pending;
    session->pending = NULL;
    session->read_over = false;
    pthread_mutex_unlock(&postgres->lock);
    session->pinned = false;
    if (!ticket) {
        pg_read_end(session);
        clean(session);
        return;
    }
    if (ticket->op == OPERATION_COMPLETE)
        pg_transaction_complete(session, ticket);
    else
        pg_transaction_release(session, ticket);
    clean(session);
    ticket->done(ticket);
}

/* While it is down: it may not connect yet, and so may refuse. */
static bool
must_wait(const struct pg_session *session)
{
    return session->tried && now_ns(session) < session->retry_ns;
}

static struct idem_ticket *
take_grouped(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;

    if (!pg_link_is_up(&session->link) &&
        (!must_wait(session) || postgres->up[PG_GROUP] > 0))
        return NULL;
    return pg_queue_take(&postgres->grouped, PG_ANY);
}

/* A ticket for this session, under the lock: what it may serve when it is
 * connected; what nobody can serve, to refuse it, while it must not connect. */
static struct idem_ticket *
take(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    enum pg_wanted wanted = PG_ANY;

    if (session->role == PG_GROUP)
        return take_grouped(session);
    if (pg_link_is_up(&session->link)) {
        if (session->role == PG_BRIEF)
            wanted = PG_SHORT;
    } else {
        if (!must_wait(session) || pg_store_serves(postgres, true))
            return NULL;
        if (pg_store_serves(postgres, false))
            wanted = PG_PINNING;
    }
    return pg_queue_take(&postgres->queue, wanted);
}

/* Wait for a ticket. NULL: time to connect, or to stop. */
static struct idem_ticket *
next_ticket(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    struct idem_ticket *ticket;

    pthread_mutex_lock(&postgres->lock);
    while (!(ticket = take(session)) && !postgres->stopping) {
        bool up = pg_link_is_up(&session->link);

        if (!up && now_ns(session) >= session->retry_ns)
            break;
        session->idle = true;
        postgres->clock->wait_until(postgres->clock, &session->wake,
                                    &postgres->lock,
                                    up ? INT64_MAX : session->retry_ns);
        session->idle = false;
    }
    pthread_mutex_unlock(&postgres->lock);
    return ticket;
}

static bool
is_stopping(struct pg_store *postgres)
{
    bool stopping;

    pthread_mutex_lock(&postgres->lock);
    stopping = postgres->stopping;
    pthread_mutex_unlock(&postgres->lock);
    return stopping;
}

static void *
run(void *with)
{
    struct pg_session *session = with;
    struct idem_ticket *ticket;

    while ((ticket = next_ticket(session)) || !is_stopping(session->postgres)) {
        if (!ticket) {
            (void)reconnect(session);
            continue;
        }
        if (pg_link_is_up(&session->link))
            serve(session, ticket);
        else
            refuse(session, ticket);
        ticket->done(ticket);
        if (session->pinned)
            stay(session);
    }
    pg_session_close(session);
    return NULL;
}

enum idem_status
pg_session_start(struct pg_session *session, struct pg_store *postgres,
                 struct idem_error *err)
{
    session->postgres = postgres;
    session->backoff_ns = FIRST_BACKOFF_NS;
    if (pthread_create(&session->thread, NULL, run, session) == 0)
        return IDEM_OK;
    return idem_fail(err, IDEM_INTERNAL, "no thread for a session");
}

void
pg_session_join(struct pg_session *session)
{
    pthread_join(session->thread, NULL);
}
