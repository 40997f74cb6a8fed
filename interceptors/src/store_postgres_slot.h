#ifndef STORE_POSTGRES_SLOT_H
#define STORE_POSTGRES_SLOT_H

#include "store_postgres_record.h"

/* A ticket of mode LEASED on its way through batches (semantics.md 4.3): one
 * statement a batch, until its verdict is known. The group session's thread
 * alone touches it.
 *
 *   claim      CLAIM, or LOOK first when a record is likely; a claim that met a
 *              record LOOKs, and then the record decides
 *   complete   COMPLETE; fenced: LOOK whether it was our own doing
 *   release, doubt, renew, mark      that; asked again and fenced: LOOK, too */
enum slot_step {
    SLOT_LOOK,
    SLOT_CLAIM,
    SLOT_COMPLETE,
    SLOT_RELEASE,
    SLOT_DOUBT,
    SLOT_RENEW,
    SLOT_MARK,
    SLOT_OVER, /* the verdict is filled */
};
#define SLOT_STEPS SLOT_OVER

struct pg_slot {
    struct idem_ticket *ticket; /* NULL: told that it is late */
    struct row_key key;
    unsigned place; /* in pg_busy */
    enum slot_step step;
    enum slot_step sent; /* in the transaction under way; SLOT_OVER: not */
    int64_t owner;       /* a claim's */
    int64_t until_ns;
    unsigned losses; /* of the connection, with this under way */
    unsigned moves;  /* that the record made necessary */
    bool begun;      /* its first step is known */
    bool again;      /* its answer was lost: a row with our owner is ours */
    bool answered;   /* the statement gave a row for it */
};

/* Begin with a ticket; the owner is random. */
void pg_slot_init(struct pg_slot *slot, struct pg_session *session,
                  struct idem_ticket *ticket, int64_t owner);

/* Before it is sent: its first step is chosen, for which the day's window may
 * have to be told, and its fault point passed. */
void pg_slot_begin(struct pg_slot *slot, struct pg_session *session);

/* Its statement gave this row. May run statements of its own. */
void pg_slot_answer(struct pg_slot *slot, struct pg_session *session,
                    const struct pg_row *row);

/* Its statement is committed and gave no row for it. */
void pg_slot_miss(struct pg_slot *slot);

/* Its statement, alone, is an error. */
void pg_slot_fail(struct pg_slot *slot, const struct pg_query *query);

/* What was sent may have been done. Fills the verdict when this was too often.
 */
void pg_slot_lose(struct pg_slot *slot, struct pg_session *session);

/* It is too late for an answer of the database. */
void pg_slot_expire(struct pg_slot *slot, struct pg_session *session);

/* The database is away: fill the verdict. */
void pg_slot_refuse(struct pg_slot *slot, struct pg_session *session,
                    const struct idem_error *why);

/* The fault point behind a verdict; it may take the verdict back. */
void pg_slot_pass_fault(struct pg_slot *slot, struct pg_session *session);

#endif
