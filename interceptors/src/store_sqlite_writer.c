#include "store_sqlite.h"

#include <string.h>

/* The thread that owns the writing connection. While a transaction is open, its
 * handler has the connection: only the end of that transaction is done, whoever
 * wants the same key hears RUNNING at once, everything else waits. */

static bool
same_record(const struct idem_record_id *a, const struct idem_record_id *b)
{
    return memcmp(a->digest, b->digest, sizeof a->digest) == 0;
}

/* Would begin something: may be refused before it has. */
static bool
begins(const struct idem_ticket *ticket)
{
    return ticket->op == SQLITE_OP_CLAIM || ticket->op == SQLITE_OP_RUN ||
           ticket->op == SQLITE_OP_ABANDON || ticket->op == SQLITE_OP_SETTLE;
}

static bool
is_rival(const struct idem_ticket *ticket, const struct idem_ticket *open)
{
    return open && begins(ticket) && same_record(&ticket->id, &open->id);
}

static void
decide_running(struct sqlite_writer *writer, struct idem_ticket *ticket)
{
    ticket->verdict = IDEM_VERDICT_RUNNING;
    ticket->wait_ms = 0;
    sqlite_queue_push(&writer->decided, ticket);
}

/* Everything after a lock: where does the ticket wait? */
static void
put(struct sqlite_writer *writer, struct idem_ticket *ticket)
{
    if (ticket->tx) {
        IDEM_ASSERT(writer->open == ticket);
        writer->ending = ticket;
    } else if (is_rival(ticket, writer->open)) {
        decide_running(writer, ticket);
    } else if (ticket->op == SQLITE_OP_CLAIM &&
               ticket->mode == IDEM_MODE_TRANSACTION) {
        sqlite_queue_push(&writer->transactions, ticket);
    } else {
        sqlite_queue_push(&writer->grouped, ticket);
    }
    if (begins(ticket) && ticket->deadline_ns < writer->first_deadline_ns)
        writer->first_deadline_ns = ticket->deadline_ns;
}

void
sqlite_writer_submit(struct sqlite_store *store, struct idem_ticket *ticket,
                     enum sqlite_op op)
{
    struct sqlite_writer *writer = &store->writer;

    /* B008: no claim without an end. */
    if (op == SQLITE_OP_CLAIM || op == SQLITE_OP_RENEW)
        IDEM_ASSERT(ticket->mode != IDEM_MODE_LEASED || ticket->lease_ms > 0);
    ticket->op = (unsigned char)op;
    if (op == SQLITE_OP_CLAIM || op == SQLITE_OP_RUN)
        ticket->tx = NULL;
    pthread_mutex_lock(&writer->lock);
    put(writer, ticket);
    pthread_cond_signal(&writer->wake);
    pthread_mutex_unlock(&writer->lock);
}

bool
sqlite_writer_is_open(struct sqlite_store *store,
                      const struct idem_record_id *id)
{
    struct sqlite_writer *writer = &store->writer;
    bool open;

    pthread_mutex_lock(&writer->lock);
    open = writer->open && same_record(&writer->open->id, id);
    pthread_mutex_unlock(&writer->lock);
    return open;
}

/* Pass a queue through a sieve: what it takes is in decided afterwards. */
typedef bool sieve_fn(struct sqlite_writer *writer, struct idem_ticket *ticket,
                      int64_t now_ns);

static void
sift(struct sqlite_writer *writer, struct sqlite_queue *queue, sieve_fn *take,
     int64_t now_ns)
{
    struct sqlite_queue all = *queue;
    struct idem_ticket *ticket;

    *queue = (struct sqlite_queue){NULL, NULL};
    while ((ticket = sqlite_queue_pop(&all)))
        if (!take(writer, ticket, now_ns))
            sqlite_queue_push(queue, ticket);
}

static bool
take_overdue(struct sqlite_writer *writer, struct idem_ticket *ticket,
             int64_t now_ns)
{
    if (!begins(ticket))
        return false;
    if (ticket->deadline_ns > now_ns) {
        if (ticket->deadline_ns < writer->first_deadline_ns)
            writer->first_deadline_ns = ticket->deadline_ns;
        return false;
    }
    sqlite_ticket_fail(ticket, IDEM_DEADLINE_EXCEEDED,
                       "the deadline came before the claim's turn");
    sqlite_queue_push(&writer->decided, ticket);
    return true;
}

static bool
take_rival(struct sqlite_writer *writer, struct idem_ticket *ticket,
           int64_t now_ns)
{
    (void)now_ns;
    if (!is_rival(ticket, writer->open))
        return false;
    decide_running(writer, ticket);
    return true;
}

static void
expire(struct sqlite_writer *writer, int64_t now_ns)
{
    if (now_ns < writer->first_deadline_ns)
        return;
    writer->first_deadline_ns = INT64_MAX;
    sift(writer, &writer->grouped, take_overdue, now_ns);
    sift(writer, &writer->transactions, take_overdue, now_ns);
}

static bool
has_work(const struct sqlite_writer *writer, int64_t now_ns)
{
    if (writer->decided.first || writer->ending || writer->stop)
        return true;
    return !writer->open &&
           (writer->grouped.first || writer->transactions.first ||
            now_ns >= writer->maintain_at_ns);
}

static int64_t
next_event_ns(const struct sqlite_writer *writer)
{
    if (writer->open || writer->first_deadline_ns < writer->maintain_at_ns)
        return writer->first_deadline_ns;
    return writer->maintain_at_ns;
}

/* With the lock held, as everything below that takes and gives back. */
static bool
wait_for_work(struct sqlite_store *store)
{
    struct sqlite_writer *writer = &store->writer;
    const struct idem_clock *clock = store->clock;

    for (;;) {
        int64_t now_ns = clock->monotonic_ns(clock);

        expire(writer, now_ns);
        if (has_work(writer, now_ns))
            break;
        clock->wait_until(clock, &writer->wake, &writer->lock,
                          next_event_ns(writer));
    }
    return !writer->stop;
}

static void
answer(struct sqlite_writer *writer)
{
    struct sqlite_queue decided = writer->decided;
    struct idem_ticket *ticket;

    writer->decided = (struct sqlite_queue){NULL, NULL};
    pthread_mutex_unlock(&writer->lock);
    while ((ticket = sqlite_queue_pop(&decided)))
        ticket->done(ticket);
    pthread_mutex_lock(&writer->lock);
}

static void
end_transaction(struct sqlite_store *store)
{
    struct sqlite_writer *writer = &store->writer;
    struct idem_ticket *ticket = writer->ending;

    writer->ending = NULL;
    pthread_mutex_unlock(&writer->lock);
    sqlite_transaction_end(store, ticket);
    pthread_mutex_lock(&writer->lock);
    writer->open = NULL;
    ticket->tx = NULL;
    pthread_mutex_unlock(&writer->lock);
    ticket->done(ticket);
    pthread_mutex_lock(&writer->lock);
}

static void
begin_transaction(struct sqlite_store *store)
{
    struct sqlite_writer *writer = &store->writer;
    struct idem_ticket *ticket = sqlite_queue_pop(&writer->transactions);

    pthread_mutex_unlock(&writer->lock);
    sqlite_transaction_begin(store, ticket);
    pthread_mutex_lock(&writer->lock);
    if (ticket->verdict == IDEM_VERDICT_MINE) {
        writer->open = ticket;
        sift(writer, &writer->grouped, take_rival, 0);
        sift(writer, &writer->transactions, take_rival, 0);
    }
    pthread_mutex_unlock(&writer->lock);
    (void)sqlite_op_fault(ticket, "after");
    ticket->done(ticket);
    pthread_mutex_lock(&writer->lock);
}

static void
run_group(struct sqlite_store *store)
{
    struct sqlite_writer *writer = &store->writer;
    struct sqlite_queue group = writer->grouped;

    writer->grouped = (struct sqlite_queue){NULL, NULL};
    pthread_mutex_unlock(&writer->lock);
    sqlite_group_run(store, &group);
    pthread_mutex_lock(&writer->lock);
}

/* One step; what is left follows after everybody else's work. What fails is
 * tried again next time. */
static void
maintain(struct sqlite_store *store)
{
    struct sqlite_writer *writer = &store->writer;
    const struct idem_clock *clock = store->clock;
    bool more;

    pthread_mutex_unlock(&writer->lock);
    (void)!sqlite_days_run(store, &more, NULL);
    pthread_mutex_lock(&writer->lock);
    writer->maintain_at_ns = clock->monotonic_ns(clock);
    if (!more)
        writer->maintain_at_ns += store->maintain_every_ms * 1000000;
}

/* A group and a transaction take turns, so that neither starves. */
static void
begin_work(struct sqlite_store *store)
{
    struct sqlite_writer *writer = &store->writer;
    bool transaction = writer->transactions.first &&
                       (writer->transaction_next || !writer->grouped.first);

    writer->transaction_next = !transaction;
    if (transaction)
        begin_transaction(store);
    else if (writer->grouped.first)
        run_group(store);
    else
        maintain(store);
}

static void *
write_all(void *with)
{
    struct sqlite_store *store = with;
    struct sqlite_writer *writer = &store->writer;

    pthread_mutex_lock(&writer->lock);
    while (wait_for_work(store)) {
        if (writer->decided.first)
            answer(writer);
        else if (writer->ending)
            end_transaction(store);
        else
            begin_work(store);
    }
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

enum idem_status
sqlite_writer_start(struct sqlite_store *store, struct idem_error *err)
{
    struct sqlite_writer *writer = &store->writer;

    writer->first_deadline_ns = INT64_MAX;
    writer->maintain_at_ns = INT64_MAX;
    if (store->maintain_every_ms > 0)
        writer->maintain_at_ns = store->clock->monotonic_ns(store->clock) +
                                 store->maintain_every_ms * 1000000;
    if (pthread_create(&writer->thread, NULL, write_all, store) != 0)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no thread");
    return IDEM_OK;
}

void
sqlite_writer_stop(struct sqlite_store *store)
{
    struct sqlite_writer *writer = &store->writer;

    pthread_mutex_lock(&writer->lock);
    writer->stop = true;
    pthread_cond_signal(&writer->wake);
    pthread_mutex_unlock(&writer->lock);
    pthread_join(writer->thread, NULL);
}
