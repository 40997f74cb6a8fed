#include "store_postgres.h"

#include "store_postgres_epoch.h"
#include "store_postgres_group.h"
#include "store_postgres_joint.h"
#include "store_postgres_keeper.h"
#include "store_postgres_maintain.h"
#include "store_postgres_session.h"
#include "store_postgres_statement.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NS_PER_MS INT64_C(1000000)

void
pg_ticket_fail(struct idem_ticket *ticket, enum idem_status status,
               const char *reason, const char *why)
{
    ticket->verdict = IDEM_VERDICT_FAILED;
    (void)idem_fail_reason(&ticket->error, status, reason, "%s", why);
}

int64_t
pg_store_until(const struct pg_store *postgres, int64_t deadline_ns,
               int64_t grace_ns)
{
    int64_t now_ns = postgres->clock->monotonic_ns(postgres->clock);
    int64_t longest_ns = now_ns + postgres->statement_ms * NS_PER_MS;

    if (deadline_ns < now_ns)
        deadline_ns = now_ns;
    return (deadline_ns < longest_ns ? deadline_ns : longest_ns) + grace_ns;
}

bool
pg_store_serves(const struct pg_store *postgres, bool pins)
{
    return postgres->up[PG_LONG] > 0 || (!pins && postgres->up[PG_BRIEF] > 0);
}

/* One that may serve it; else, when none that may is up, one that refuses. */
static struct pg_session *
find_idle(struct pg_store *postgres, bool pins)
{
    bool served = pg_store_serves(postgres, pins);

    for (unsigned i = postgres->n_sessions; i-- > 0;) {
        struct pg_session *session = &postgres->sessions[i];

        if ((session->role == PG_BRIEF || session->role == PG_LONG) &&
            session->idle && session->counted == served &&
            (!served || !pins || session->role == PG_LONG))
            return session;
    }
    return NULL;
}

bool
pg_store_wake(struct pg_store *postgres, bool pins)
{
    struct pg_session *session = find_idle(postgres, pins);

    if (!session)
        return false;
    session->idle = false;
    pthread_cond_signal(&session->wake);
    return true;
}

void
pg_store_post(struct pg_store *postgres, struct idem_ticket *ticket,
              enum operation operation)
{
    ticket->op = (unsigned char)operation;
    pthread_mutex_lock(&postgres->lock);
    pg_keeper_note(postgres, ticket);
    if (pg_ticket_is_grouped(ticket)) {
        pg_group_post(postgres, ticket);
    } else if (pg_ticket_joins(ticket)) {
        pg_joint_post(postgres, ticket);
    } else {
        pg_queue_push(&postgres->queue, ticket);
        (void)pg_store_wake(postgres, pg_ticket_pins(ticket));
    }
    pthread_mutex_unlock(&postgres->lock);
}

static struct pg_store *
pg_store_of(struct idem_store *store)
{
    return (struct pg_store *)store;
}

/* For the session that has the ticket's transaction. */
static void
post_inside(struct pg_store *postgres, struct idem_ticket *ticket,
            enum operation operation)
{
    struct pg_session *session = (struct pg_session *)ticket->tx;

    IDEM_ASSERT(session && session->postgres == postgres);
    ticket->op = (unsigned char)operation;
    pthread_mutex_lock(&postgres->lock);
    session->pending = ticket;
    pthread_cond_signal(&session->wake);
    pthread_mutex_unlock(&postgres->lock);
}

static void
post_end(struct idem_store *store, struct idem_ticket *ticket,
         enum operation operation)
{
    if (ticket->mode == IDEM_MODE_TRANSACTION)
        post_inside(pg_store_of(store), ticket, operation);
    else
        pg_store_post(pg_store_of(store), ticket, operation);
}

static void
store_claim(struct idem_store *store, struct idem_ticket *ticket)
{
    pg_store_post(pg_store_of(store), ticket, OPERATION_CLAIM);
}

static void
store_complete(struct idem_store *store, struct idem_ticket *ticket)
{
    post_end(store, ticket, OPERATION_COMPLETE);
}

static void
store_release(struct idem_store *store, struct idem_ticket *ticket)
{
    post_end(store, ticket, OPERATION_RELEASE);
}

static void
store_run(struct idem_store *store, struct idem_ticket *ticket)
{
    pg_statement_post(pg_store_of(store), ticket);
}

static void
store_doubt(struct idem_store *store, struct idem_ticket *ticket)
{
    pg_store_post(pg_store_of(store), ticket, OPERATION_DOUBT);
}

static void
store_renew(struct idem_store *store, struct idem_ticket *ticket)
{
    pg_store_post(pg_store_of(store), ticket, OPERATION_RENEW);
}

static void
store_mark(struct idem_store *store, struct idem_ticket *ticket)
{
    pg_store_post(pg_store_of(store), ticket, OPERATION_MARK);
}

static void
store_look(struct idem_store *store, struct idem_ticket *ticket)
{
    pg_store_post(pg_store_of(store), ticket, OPERATION_LOOK);
}

static void
store_abandon(struct idem_store *store, struct idem_ticket *ticket)
{
    pg_store_post(pg_store_of(store), ticket, OPERATION_ABANDON);
}

static void
store_settle(struct idem_store *store, struct idem_ticket *ticket)
{
    pg_store_post(pg_store_of(store), ticket, OPERATION_SETTLE);
}

/* One that has a transaction does not wait for another connection. */
static void
store_watermark(struct idem_store *store, struct idem_ticket *ticket)
{
    if (ticket->tx)
        post_inside(pg_store_of(store), ticket, OPERATION_WATERMARK);
    else
        pg_store_post(pg_store_of(store), ticket, OPERATION_WATERMARK);
}

static void
store_acknowledge(struct idem_store *store, struct idem_ticket *ticket)
{
    pg_store_post(pg_store_of(store), ticket, OPERATION_ACKNOWLEDGE);
}

static void
store_epoch(struct idem_store *store, char *text)
{
    pg_epoch_tell(pg_store_of(store), text);
}

/* A ticket that its asker waits for. */
struct waiting {
    struct idem_ticket ticket; /* first: a ticket is its waiting */
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
};

static void
wake_reader(struct idem_ticket *ticket)
{
    struct waiting *waiting = (struct waiting *)ticket;

    pthread_mutex_lock(&waiting->lock);
    waiting->is_done = true;
    pthread_cond_signal(&waiting->done);
    pthread_mutex_unlock(&waiting->lock);
}

static struct idem_tx *
store_begin_read(struct idem_store *store, struct idem_arena *arena,
                 int64_t deadline_ns, struct idem_error *err)
{
    struct waiting waiting = {.ticket = {.mode = IDEM_MODE_NONE,
                                         .deadline_ns = deadline_ns,
                                         .arena = arena,
                                         .done = wake_reader}};

    pthread_mutex_init(&waiting.lock, NULL);
    pthread_cond_init(&waiting.done, NULL);
    pg_store_post(pg_store_of(store), &waiting.ticket, OPERATION_READ);
    pthread_mutex_lock(&waiting.lock);
    while (!waiting.is_done)
        pthread_cond_wait(&waiting.done, &waiting.lock);
    pthread_mutex_unlock(&waiting.lock);
    pthread_cond_destroy(&waiting.done);
    pthread_mutex_destroy(&waiting.lock);
    if (waiting.ticket.verdict == IDEM_VERDICT_MINE)
        return waiting.ticket.tx;
    if (err)
        *err = waiting.ticket.error;
    return NULL;
}

static void
store_end_read(struct idem_store *store, struct idem_tx *tx)
{
    struct pg_store *postgres = pg_store_of(store);
    struct pg_session *session = (struct pg_session *)tx;

    pthread_mutex_lock(&postgres->lock);
    session->read_over = true;
    pthread_cond_signal(&session->wake);
    pthread_mutex_unlock(&postgres->lock);
}

static enum idem_status
store_maintain(struct idem_store *store, struct idem_error *err)
{
    const struct pg_store *postgres = pg_store_of(store);

    return pg_maintain(&postgres->link_options, postgres->days_ahead, err);
}

static void
stop(struct pg_store *postgres)
{
    pthread_mutex_lock(&postgres->lock);
    postgres->stopping = true;
    for (unsigned i = 0; i < postgres->n_sessions; i++)
        pthread_cond_signal(&postgres->sessions[i].wake);
    pthread_cond_broadcast(&postgres->sharing.fewer);
    pthread_cond_signal(&postgres->keeper_wake);
    pthread_cond_signal(&postgres->janitor_wake);
    pthread_mutex_unlock(&postgres->lock);
    if (postgres->stop_fd >= 0)
        eventfd_write(postgres->stop_fd, 1);
}

static void
store_free(struct idem_store *store)
{
    struct pg_store *postgres = pg_store_of(store);

    stop(postgres);
    for (unsigned i = 0; i < postgres->n_started; i++)
        pg_session_join(&postgres->sessions[i]);
    pg_keeper_join(postgres);
    for (unsigned i = 0; i < postgres->n_sessions; i++) {
        pg_session_close(&postgres->sessions[i]);
        pg_group_fini(&postgres->sessions[i]);
        pg_statement_fini(&postgres->sessions[i]);
        pthread_cond_destroy(&postgres->sessions[i].wake);
    }
    if (postgres->stop_fd >= 0)
        close(postgres->stop_fd);
    pg_sharing_fini(&postgres->sharing);
    pg_windows_fini(&postgres->windows);
    pg_lost_fini(&postgres->lost);
    pthread_cond_destroy(&postgres->keeper_wake);
    pthread_cond_destroy(&postgres->janitor_wake);
    pthread_mutex_destroy(&postgres->epoch.lock);
    pthread_mutex_destroy(&postgres->lock);
    free(postgres->conninfo);
    free(postgres->pooled_conninfo);
    free(postgres->sessions);
    free(postgres);
}

const struct idem_store_ops pg_store_ops = {
    .name = "postgres",
    .claim = store_claim,
    .complete = store_complete,
    .release = store_release,
    .run = store_run,
    .doubt = store_doubt,
    .renew = store_renew,
    .mark = store_mark,
    .look = store_look,
    .abandon = store_abandon,
    .settle = store_settle,
    .watermark = store_watermark,
    .acknowledge = store_acknowledge,
    .epoch = store_epoch,
    .begin_read = store_begin_read,
    .end_read = store_end_read,
    .maintain = store_maintain,
    .free = store_free,
};
