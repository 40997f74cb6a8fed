#include "store_postgres_session.h"

#include "fault.h"
#include "store_postgres_durable.h"
#include "store_postgres_group.h"
#include "store_postgres_joint.h"
#include "store_postgres_operation.h"
#include "store_postgres_statement.h"

#include <idem/reason.h>

#include <string.h>

#define FIRST_BACKOFF_NS INT64_C(20000000)
#define LONGEST_BACKOFF_NS INT64_C(1000000000)

static pg_operation_fn *const operations[OPERATIONS] = {
    [OPERATION_CLAIM] = pg_transaction_claim,
    [OPERATION_CLAIM_ALONE] = pg_transaction_claim,
    [OPERATION_LOOK] = pg_look,
    [OPERATION_ABANDON] = pg_abandon,
    [OPERATION_SETTLE] = pg_settle,
    [OPERATION_WATERMARK] = pg_watermark,
    [OPERATION_ACKNOWLEDGE] = pg_acknowledge,
    [OPERATION_READ] = pg_read_begin,
    [OPERATION_RUN] = pg_statement_alone,
};

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

bool
pg_session_reconnect(struct pg_session *session)
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

void
pg_session_outgrow(struct pg_session *session)
{
    (void)atomic_fetch_add(&session->postgres->tables, 1);
}

bool
pg_session_is_ready(struct pg_session *session)
{
    if (pg_link_is_up(&session->link) &&
        session->tables != atomic_load(&session->postgres->tables))
        pg_session_close(session);
    return pg_link_is_up(&session->link);
}

void
pg_session_refuse(struct pg_session *session, struct idem_ticket *ticket)
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
 * filled. */
static void
serve(struct pg_session *session, struct idem_ticket *ticket)
{
    const struct idem_clock *clock = session->postgres->clock;
    enum pg_end end = PG_LOST;

    clock->random(clock, &session->owner, sizeof(session->owner));
    for (int i = 0; i < POSTGRES_TRIES && end == PG_LOST; i++) {
        if (!pg_session_is_ready(session) && !pg_session_reconnect(session)) {
            pg_session_refuse(session, ticket);
            return;
        }
        session->until_ns =
            pg_store_until(session->postgres, ticket->deadline_ns, GRACE_NS);
        end = operations[ticket->op](session, ticket, i > 0);
    }
    if (end != PG_OK)
        tell_lost(session, ticket, end);
}

void
pg_session_clean(struct pg_session *session)
{
    if (session->soiled)
        pg_session_close(session);
}

/* NULL: the store is freed, or a read is over. */
static struct idem_ticket *
wait_for_word(struct pg_session *session)
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
    return ticket;
}

/* Beside the transaction, before its handler has it. */
static void
serve_inside(struct pg_session *session, struct idem_ticket *ticket)
{
    session->until_ns =
        pg_store_until(session->postgres, ticket->deadline_ns, GRACE_NS);
    if (!pg_link_is_up(&session->link) ||
        pg_watermark(session, ticket, false) != PG_OK)
        tell_lost(session, ticket, PG_LOST);
    ticket->done(ticket);
}

struct idem_ticket *
pg_session_stay(struct pg_session *session)
{
    struct idem_ticket *ticket = wait_for_word(session);

    while (ticket && ticket->op == OPERATION_WATERMARK) {
        serve_inside(session, ticket);
        ticket = wait_for_word(session);
    }
    session->pinned = false;
    return ticket;
}

static void
stay(struct pg_session *session)
{
    struct idem_ticket *ticket = pg_session_stay(session);

    if (!ticket) {
        pg_read_end(session);
        pg_session_clean(session);
        return;
    }
    if (ticket->op == OPERATION_COMPLETE)
        pg_transaction_complete(session, ticket);
    else
        pg_transaction_release(session, ticket);
    (void)pg_durable_check(session, &ticket, 1);
    pg_session_clean(session);
    ticket->done(ticket);
}

bool
pg_session_must_wait(const struct pg_session *session)
{
    return session->tried && now_ns(session) < session->retry_ns;
}

/* It may have been woken for what it does not take. */
static void
wake_for_rest(struct pg_store *postgres)
{
    if (postgres->queue.head)
        (void)pg_store_wake(postgres, pg_ticket_pins(postgres->queue.head));
}

/* A ticket for this session, or a group, under the lock: what it may serve when
 * it is connected; what nobody can serve, to refuse it, while it must not
 * connect. */
static struct idem_ticket *
take(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    enum pg_wanted wanted = PG_ANY;
    struct idem_ticket *ticket;

    if (pg_link_is_up(&session->link)) {
        if (pg_joint_pick(session)) {
            wake_for_rest(postgres);
            return NULL;
        }
        if (session->role == PG_BRIEF)
            wanted = PG_SHORT;
        ticket = pg_queue_take(&postgres->queue, wanted);
        if (ticket)
            pg_joint_wake(postgres);
        return ticket;
    }
    if (!pg_session_must_wait(session) || pg_store_serves(postgres, true))
        return NULL;
    if (pg_store_serves(postgres, false))
        wanted = PG_PINNING;
    ticket = pg_queue_take(&postgres->queue, wanted);
    return ticket ? ticket : pg_queue_take(&postgres->joining.queue, PG_ANY);
}

/* Wait for a ticket, or a group. NULL and no group: time to connect, or to
 * stop. */
static struct idem_ticket *
next_ticket(struct pg_session *session)
{
    struct pg_store *postgres = session->postgres;
    struct idem_ticket *ticket;

    pthread_mutex_lock(&postgres->lock);
    while (!(ticket = take(session)) && !pg_joint_is_picked(session) &&
           !postgres->stopping) {
        bool up = pg_link_is_up(&session->link);

        if (!up && now_ns(session) >= session->retry_ns)
            break;
        session->idle = true;
        postgres->clock->wait_until(postgres->clock, &session->wake,
                                    &postgres->lock,
                                    up ? INT64_MAX : session->retry_ns);
        session->idle = false;
        postgres->joining.waking = false;
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

static void
serve_one(struct pg_session *session, struct idem_ticket *ticket)
{
    if (pg_link_is_up(&session->link))
        serve(session, ticket);
    else
        pg_session_refuse(session, ticket);
    (void)pg_durable_check(session, &ticket, 1);
    ticket->done(ticket);
    if (session->pinned)
        stay(session);
}

static void *
run(void *with)
{
    struct pg_session *session = with;
    struct idem_ticket *ticket;

    for (;;) {
        ticket = next_ticket(session);
        if (ticket)
            serve_one(session, ticket);
        else if (pg_joint_is_picked(session))
            pg_joint_serve(session);
        else if (is_stopping(session->postgres))
            break;
        else
            (void)pg_session_reconnect(session);
    }
    pg_session_close(session);
    return NULL;
}

static void *(*const runs[PG_ROLES])(void *session) = {
    [PG_GROUP] = pg_group_run,
    [PG_BRIEF] = run,
    [PG_LONG] = run,
    [PG_STATEMENT] = pg_statement_serve,
};

enum idem_status
pg_session_start(struct pg_session *session, struct pg_store *postgres,
                 struct idem_error *err)
{
    session->postgres = postgres;
    session->backoff_ns = FIRST_BACKOFF_NS;
    if (session->role == PG_GROUP && !pg_group_init(session))
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    if ((session->role == PG_STATEMENT || session->role == PG_LONG) &&
        !pg_statement_init(session))
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    if (pthread_create(&session->thread, NULL, runs[session->role], session) ==
        0)
        return IDEM_OK;
    return idem_fail(err, IDEM_INTERNAL, "no thread for a session");
}

void
pg_session_join(struct pg_session *session)
{
    pthread_join(session->thread, NULL);
}
