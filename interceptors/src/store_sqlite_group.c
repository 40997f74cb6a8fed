#include "store_sqlite.h"

/* Many operations under one commit, which is one fsync. What waits when the
 * writer is free goes together: no timer. */

static bool
run_all(struct sqlite_store *store, const struct sqlite_queue *queue,
        struct idem_error *err)
{
    for (struct idem_ticket *at = queue->first; at; at = at->next) {
        if (sqlite_op_run(store, at))
            continue;
        *err = at->error;
        return false;
    }
    return true;
}

static bool
run_and_commit(struct sqlite_store *store, const struct sqlite_queue *queue,
               struct idem_error *err)
{
    if (run_all(store, queue, err) &&
        sqlite_db_run(&store->db, "COMMIT", err) == IDEM_OK)
        return true;
    sqlite_db_rollback(&store->db);
    return false;
}

static void
fail(struct idem_ticket *ticket, const struct idem_error *err)
{
    ticket->verdict = IDEM_VERDICT_FAILED;
    ticket->error = *err;
}

static void
answer_all(struct sqlite_queue *queue)
{
    struct idem_ticket *ticket;

    while ((ticket = sqlite_queue_pop(queue))) {
        (void)sqlite_op_fault(ticket, "after");
        ticket->done(ticket);
    }
}

static void
fail_all(struct sqlite_queue *queue, const struct idem_error *err)
{
    for (struct idem_ticket *at = queue->first; at; at = at->next)
        fail(at, err);
    answer_all(queue);
}

static void
run_alone(struct sqlite_store *store, struct idem_ticket *ticket)
{
    struct sqlite_queue alone = {NULL, NULL};
    struct idem_error err;

    sqlite_queue_push(&alone, ticket);
    if (!sqlite_begin(store, ticket->deadline_ns, &err) ||
        !run_and_commit(store, &alone, &err))
        fail(ticket, &err);
    answer_all(&alone);
}

void
sqlite_group_run(struct sqlite_store *store, struct sqlite_queue *queue)
{
    struct idem_error err;
    struct idem_ticket *ticket;

    if (!sqlite_begin(store, INT64_MAX, &err)) {
        fail_all(queue, &err);
    } else if (run_and_commit(store, queue, &err)) {
        answer_all(queue);
    } else if (queue->first == queue->last) {
        fail_all(queue, &err);
    } else {
        /* One that cannot be done must not take the others with it. */
        while ((ticket = sqlite_queue_pop(queue)))
            run_alone(store, ticket);
    }
}
