#ifndef STORE_POSTGRES_QUEUE_H
#define STORE_POSTGRES_QUEUE_H

#include <idem/store.h>

/* Tickets that wait for a connection, first come first served. The owner's lock
 * guards it. */

enum operation {
    OPERATION_CLAIM,
    OPERATION_CLAIM_ALONE, /* though it has a group */
    OPERATION_COMPLETE,
    OPERATION_RELEASE,
    OPERATION_DOUBT,
    OPERATION_RENEW,
    OPERATION_MARK,
    OPERATION_LOOK,
    OPERATION_ABANDON,
    OPERATION_SETTLE,
    OPERATION_WATERMARK,
    OPERATION_ACKNOWLEDGE,
    OPERATION_READ,
    OPERATION_RUN,   /* in a transaction of its own */
    OPERATION_SHARE, /* in one with others */
    OPERATIONS,
};

struct pg_queue {
    struct idem_ticket *head, **tail;
    unsigned size;
};

void pg_queue_init(struct pg_queue *queue);
void pg_queue_push(struct pg_queue *queue, struct idem_ticket *ticket);

/* Does it keep its connection beyond the operation? */
bool pg_ticket_pins(const struct idem_ticket *ticket);

/* Is it of mode LEASED, and a change of its record? */
bool pg_ticket_is_grouped(const struct idem_ticket *ticket);

/* May it share a transaction with other interactive ones? */
bool pg_ticket_joins(const struct idem_ticket *ticket);

enum pg_wanted { PG_ANY, PG_SHORT /* that do not pin */, PG_PINNING };

/* The first one that is wanted. NULL: none. */
struct idem_ticket *pg_queue_take(struct pg_queue *queue,
                                  enum pg_wanted wanted);

/* Ask for each, in their order, whether it is picked; who picks keeps it. */
enum pg_pick { PG_PICK, PG_LEAVE, PG_STOP /* and ask no more */ };
typedef enum pg_pick pg_pick_fn(void *with, struct idem_ticket *ticket);
void pg_queue_pick(struct pg_queue *queue, pg_pick_fn *pick, void *with);

/* The first one whose deadline is not after now. NULL: none; then *next_ns is
 * the earliest deadline of all. */
struct idem_ticket *pg_queue_take_late(struct pg_queue *queue, int64_t now_ns,
                                       int64_t *next_ns);

#endif
