#include <idem/digest.h>
#include <idem/store.h>

#include <pthread.h>

void
idem_record_id_digest(struct idem_record_id *id)
{
    const struct idem_bytes parts[] = {idem_bytes_of("idem1"), id->tenant,
                                       idem_bytes_of(id->scope), id->key.text};

    idem_sha256_of_parts(parts, 4, id->digest);
}

/* A ticket that its asker waits for. */
struct waiting {
    struct idem_ticket ticket; /* first: a ticket is its waiting */
    pthread_mutex_t lock;      /* guards answered */
    pthread_cond_t wake;
    bool answered;
};

static void
wake(struct idem_ticket *ticket)
{
    struct waiting *waiting = (struct waiting *)ticket;

    pthread_mutex_lock(&waiting->lock);
    waiting->answered = true;
    pthread_cond_signal(&waiting->wake);
    pthread_mutex_unlock(&waiting->lock);
}

static void
ask(struct idem_store *store, idem_store_operation_fn *operation,
    struct idem_ticket *ticket)
{
    struct waiting waiting = {.ticket = *ticket};

    waiting.ticket.done = wake;
    pthread_mutex_init(&waiting.lock, NULL);
    pthread_cond_init(&waiting.wake, NULL);
    operation(store, &waiting.ticket);
    pthread_mutex_lock(&waiting.lock);
    while (!waiting.answered)
        pthread_cond_wait(&waiting.wake, &waiting.lock);
    pthread_mutex_unlock(&waiting.lock);
    pthread_cond_destroy(&waiting.wake);
    pthread_mutex_destroy(&waiting.lock);
    *ticket = waiting.ticket;
}

/* "Not seen" and "never ran" would be a lie of a record that has gone. */
void
idem_store_ask(struct idem_store *store, idem_store_operation_fn *operation,
               struct idem_ticket *ticket)
{
    enum idem_verdict said;

    ask(store, operation, ticket);
    said = ticket->verdict;
    if (ticket->id.key.sequence == 0 ||
        (said != IDEM_VERDICT_ABSENT && said != IDEM_VERDICT_ABANDONED))
        return;
    ask(store, store->ops->watermark, ticket);
    if (ticket->verdict == IDEM_VERDICT_MINE)
        ticket->verdict = said;
}

void
idem_store_free(struct idem_store *store)
{
    if (store)
        store->ops->free(store);
}
