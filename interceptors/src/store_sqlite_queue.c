#include "store_sqlite.h"

void
sqlite_queue_push(struct sqlite_queue *queue, struct idem_ticket *ticket)
{
    ticket->next = NULL;
    if (queue->last)
        queue->last->next = ticket;
    else
        queue->first = ticket;
    queue->last = ticket;
}

struct idem_ticket *
sqlite_queue_pop(struct sqlite_queue *queue)
{
    struct idem_ticket *ticket = queue->first;

    if (!ticket)
        return NULL;
    queue->first = ticket->next;
    if (!queue->first)
        queue->last = NULL;
    ticket->next = NULL;
    return ticket;
}

void
sqlite_ticket_fail(struct idem_ticket *ticket, enum idem_status status,
                   const char *why)
{
    ticket->verdict = IDEM_VERDICT_FAILED;
    (void)idem_fail(&ticket->error, status, "sqlite: %s", why);
}
