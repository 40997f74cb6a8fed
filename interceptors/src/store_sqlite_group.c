#include "store_sqlite.h"

#include <sqlite3.h>

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

/* A disk that fails during COMMIT has perhaps written it: *unknown. */
static bool
run_and_commit(struct sqlite_store *store, const struct sqlite_queue *queue,
               bool *unknown, struct idem_error *err)
{
    *unknown = false;
    if (run_all(store, queue, err)) {
        if (sqlite_db_run(&store->db, "COMMIT", err) == IDEM_OK)
            return true;
        *unknown = (sqlite3_errcode(store->db.handle) & 0xFF) == SQLITE_IOERR;
    }
    sqlite_db_rollback(&store->db);
    return false;
}

/* Only of an effect does it matter that it may stand: the others say with
 * FAILED that they may be asked again. */
static void
fail(struct idem_ticket *ticket, bool unknown, const struct idem_error *err)
{
    ticket->verdict = unknown && ticket->op == SQLITE_OP_RUN
                          ? IDEM_VERDICT_UNKNOWN
                          : IDEM_VERDICT_FAILED;
    ticket->error = *err;
}

static void
answer_all(struct sqlite_queue *queue)
{
    struct idem_ticket *ticket;

    while ((ticket = sqlite_queue_pop(queue))) {
        if (sqlite_op_fault(ticket, "after") && ticket->op == SQLITE_OP_RUN &&
            ticket->verdict == IDEM_VERDICT_MINE)
            ticket->verdict = IDEM_VERDICT_UNKNOWN;
        ticket->done(ticket);
    }
}

static void
fail_all(struct sqlite_queue *queue, bool unknown, const struct idem_error *err)
{
    for (struct idem_ticket *at = queue->first; at; at = at->next)
        fail(at, unknown, err);
    answer_all(queue);
}

static void
run_alone(struct sqlite_store *store, struct idem_ticket *ticket)
{
    struct sqlite_queue alone = {NULL, NULL};
    struct idem_error err;
    bool unknown = false;

    sqlite_queue_push(&alone, ticket);
    if (!sqlite_begin(store, ticket->deadline_ns, &err) ||
        !run_and_commit(store, &alone, &unknown, &err))
        fail(ticket, unknown, &err);
    answer_all(&alone);
}

void
sqlite_group_run(struct sqlite_store *store, struct sqlite_queue *queue)
{
    struct idem_error err;
    struct idem_ticket *ticket;
    bool unknown;

    if (!sqlite_begin(store, INT64_MAX, &err)) {
        fail_all(queue, false, &err);
    } else if (run_and_commit(store, queue, &unknown, &err)) {
        answer_all(queue);
    } else if (queue->first == queue->last) {
        fail_all(queue, unknown, &err);
    } else {
        /* One that cannot be done must not take the others with it. */
        while ((ticket = sqlite_queue_pop(queue)))
            run_alone(store, ticket);
    }
}
