#include "store_postgres_keeper.h"

#include "store_postgres_maintain.h"

#define NS_PER_MS INT64_C(1000000)

static int64_t
now_ns(const struct pg_store *postgres)
{
    return postgres->clock->monotonic_ns(postgres->clock);
}

void
pg_keeper_note(struct pg_store *postgres, const struct idem_ticket *ticket)
{
    if (ticket->deadline_ns < postgres->keeper_until_ns)
        pthread_cond_signal(&postgres->keeper_wake);
}

/* As pg_queue_take_late, of all queues. */
static struct idem_ticket *
take_late(struct pg_store *postgres, int64_t *next_ns)
{
    struct pg_queue *const queues[] = {
        &postgres->grouped, &postgres->sharing.queue, &postgres->joining.queue,
        &postgres->queue};
    int64_t other_ns, late_ns = now_ns(postgres);
    struct idem_ticket *late = NULL;

    *next_ns = INT64_MAX;
    for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]) && !late; i++) {
        late = pg_queue_take_late(queues[i], late_ns, &other_ns);
        if (other_ns < *next_ns)
            *next_ns = other_ns;
    }
    return late;
}

/* A ticket that is not to be served, with the reason. Under the store's lock.
 */
static struct idem_ticket *
take_failed(struct pg_store *postgres)
{
    struct idem_ticket *ticket = pg_queue_take(&postgres->refused, PG_ANY);

    if (ticket) {
        pg_ticket_fail(ticket, IDEM_RESOURCE_EXHAUSTED, "",
                       "too many claims wait for PostgreSQL");
        return ticket;
    }
    ticket = take_late(postgres, &postgres->keeper_until_ns);
    if (ticket)
        pg_ticket_fail(ticket, IDEM_DEADLINE_EXCEEDED, "",
                       "no connection was free before the deadline");
    return ticket;
}

static void *
keep(void *with)
{
    struct pg_store *postgres = with;
    struct idem_ticket *failed;

    pthread_mutex_lock(&postgres->lock);
    while (!postgres->stopping) {
        failed = take_failed(postgres);
        if (!failed) {
            postgres->clock->wait_until(postgres->clock, &postgres->keeper_wake,
                                        &postgres->lock,
                                        postgres->keeper_until_ns);
            continue;
        }
        pthread_mutex_unlock(&postgres->lock);
        failed->done(failed);
        pthread_mutex_lock(&postgres->lock);
    }
    pthread_mutex_unlock(&postgres->lock);
    return NULL;
}

/* False: stop. */
static bool
wait_turn(struct pg_store *postgres, int64_t until_ns)
{
    bool stopping;

    pthread_mutex_lock(&postgres->lock);
    while (!postgres->stopping && now_ns(postgres) < until_ns)
        postgres->clock->wait_until(postgres->clock, &postgres->janitor_wake,
                                    &postgres->lock, until_ns);
    stopping = postgres->stopping;
    pthread_mutex_unlock(&postgres->lock);
    return !stopping;
}

void
pg_keeper_alarm(struct pg_store *postgres, const char *what)
{
    atomic_fetch_add(&postgres->alarms, 1);
    postgres->alarm(postgres->alarm_with, what);
}

/* A failure is the next turn's to mend; but time may be running out. */
static void
tidy_once(struct pg_store *postgres)
{
    struct idem_error err;

    if (pg_maintain(&postgres->link_options, postgres->days_ahead, &err) ==
        IDEM_FAILED_PRECONDITION)
        pg_keeper_alarm(postgres, err.message);
}

static void *
tidy(void *with)
{
    struct pg_store *postgres = with;
    int64_t pause_ns = postgres->maintain_every_ms * NS_PER_MS;
    int64_t next_ns = now_ns(postgres);

    while (wait_turn(postgres, next_ns)) {
        tidy_once(postgres);
        next_ns = now_ns(postgres) +
                  idem_clock_between(postgres->clock, pause_ns / 2, pause_ns);
    }
    return NULL;
}

uint64_t
idem_postgres_alarms(const struct idem_store *store)
{
    const struct pg_store *postgres = (const struct pg_store *)store;

    return atomic_load(&postgres->alarms);
}

enum idem_status
pg_keeper_start(struct pg_store *postgres, struct idem_error *err)
{
    postgres->has_keeper =
        pthread_create(&postgres->keeper, NULL, keep, postgres) == 0;
    if (!postgres->has_keeper)
        return idem_fail(err, IDEM_INTERNAL, "no thread for the keeper");
    if (postgres->maintain_every_ms < 0)
        return IDEM_OK;
    postgres->has_janitor =
        pthread_create(&postgres->janitor, NULL, tidy, postgres) == 0;
    if (!postgres->has_janitor)
        return idem_fail(err, IDEM_INTERNAL, "no thread for the janitor");
    return IDEM_OK;
}

void
pg_keeper_join(struct pg_store *postgres)
{
    if (postgres->has_keeper)
        pthread_join(postgres->keeper, NULL);
    if (postgres->has_janitor)
        pthread_join(postgres->janitor, NULL);
}
