#include "store_postgres_queue.h"

void
pg_queue_init(struct pg_queue *queue)
{
    queue->head = NULL;
    queue->size = 0;
    queue->tail = &queue->head;
}

void
pg_queue_push(struct pg_queue *queue, struct idem_ticket *ticket)
{
    ticket->next = NULL;
    *queue->tail = ticket;
    queue->tail = &ticket->next;
    queue->size++;
}

bool
pg_ticket_pins(const struct idem_ticket *ticket)
{
    return ticket->op == OPERATION_READ || ticket->op == OPERATION_RUN ||
           ticket->op == OPERATION_CLAIM_ALONE ||
           (ticket->op == OPERATION_CLAIM &&
            ticket->mode == IDEM_MODE_TRANSACTION);
}

/* A repeat mostly finds an answer, or comes from a group that has failed. */
bool
pg_ticket_joins(const struct idem_ticket *ticket)
{
    return ticket->op == OPERATION_CLAIM &&
           ticket->mode == IDEM_MODE_TRANSACTION && ticket->group > 1 &&
           !ticket->repeat;
}

bool
pg_ticket_is_grouped(const struct idem_ticket *ticket)
{
    switch (ticket->op) {
    case OPERATION_CLAIM:
        return ticket->mode == IDEM_MODE_LEASED;
    case OPERATION_COMPLETE:
    case OPERATION_RELEASE:
    case OPERATION_DOUBT:
    case OPERATION_RENEW:
    case OPERATION_MARK:
        return true;
    default:
        return false;
    }
}

static struct idem_ticket *
unlink_at(struct pg_queue *queue, struct idem_ticket **link)
{
    struct idem_ticket *ticket = *link;

    *link = ticket->next;
    if (!ticket->next)
        queue->tail = link;
    ticket->next = NULL;
    queue->size--;
    return ticket;
}

struct idem_ticket *
pg_queue_take(struct pg_queue *queue, enum pg_wanted wanted)
{
    for (struct idem_ticket **link = &queue->head; *link; link = &(*link)->next)
        if (wanted == PG_ANY || pg_ticket_pins(*link) == (wanted == PG_PINNING))
            return unlink_at(queue, link);
    return NULL;
}

void
pg_queue_pick(struct pg_queue *queue, pg_pick_fn *pick, void *with)
{
    struct idem_ticket **link = &queue->head;
    enum pg_pick what = PG_LEAVE;

    while (*link && what != PG_STOP) {
        struct idem_ticket *ticket = *link;

        what = pick(with, ticket);
        if (what == PG_PICK)
            (void)unlink_at(queue, link);
        else
            link = &ticket->next;
    }
}

struct idem_ticket *
pg_queue_take_late(struct pg_queue *queue, int64_t now_ns, int64_t *next_ns)
{
    *next_ns = INT64_MAX;
    for (struct idem_ticket **link = &queue->head; *link;
         link = &(*link)->next) {
        if ((*link)->deadline_ns <= now_ns)
            return unlink_at(queue, link);
        if ((*link)->deadline_ns < *next_ns)
            *next_ns = (*link)->deadline_ns;
    }
    return NULL;
}
