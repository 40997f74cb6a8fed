#ifndef STORE_SQLITE_RECORD_H
#define STORE_SQLITE_RECORD_H

#include "record.h"
#include "store_sqlite_db.h"

/* The SQL of one record, a statement an arrow. Those that write run inside the
 * writer's transaction and say how many rows they changed: 1, or 0 when their
 * condition did not hold; -1: the statement failed, ticket->error says why. */

/* Read the ticket's record; its bytes go to the ticket's arena. */
bool sqlite_record_read(struct sqlite_db *db, struct record *record,
                        struct idem_ticket *ticket, int64_t now_ms)
    IDEM_MUST_CHECK;

/* ABSENT → RUNNING. 0: it is there already, or no day takes the key. */
int sqlite_record_start(struct sqlite_db *db, struct idem_ticket *ticket,
                        int64_t now_ms);

/* ABSENT → ABANDONED. 0: as above. */
int sqlite_record_refuse(struct sqlite_db *db, struct idem_ticket *ticket,
                         int64_t now_ms);

/* RUNNING whose lease is over, RELEASED → RUNNING, if it is what was read. */
int sqlite_record_take(struct sqlite_db *db, struct idem_ticket *ticket,
                       const struct record *read, int64_t now_ms);

/* RELEASED, RUNNING unbegun whose lease is over → ABANDONED, if it is what was
 * read. */
int sqlite_record_abandon(struct sqlite_db *db, struct idem_ticket *ticket,
                          const struct record *read, int64_t now_ms);

/* store_sqlite_settle.c: DOUBT, RUNNING → what the ticket's settlement says, if
 * its token is ticket->token, with a line in the audit. */
int sqlite_record_settle(struct sqlite_db *db, struct idem_ticket *ticket,
                         int64_t now_ms);

/* The rest is the owner's: fenced by ticket->token. */

/* RUNNING, DOUBT → DONE with ticket->answer. */
int sqlite_record_finish(struct sqlite_db *db, struct idem_ticket *ticket,
                         int64_t now_ms);

/* RUNNING, DOUBT → RELEASED. */
int sqlite_record_release(struct sqlite_db *db, struct idem_ticket *ticket);

/* RUNNING → DOUBT; DOUBT stays. */
int sqlite_record_doubt(struct sqlite_db *db, struct idem_ticket *ticket);

/* RUNNING, its lease not over: begun, at ticket->step. */
int sqlite_record_mark(struct sqlite_db *db, struct idem_ticket *ticket,
                       int64_t now_ms);

/* RUNNING with a lease from now. */
int sqlite_record_renew(struct sqlite_db *db, struct idem_ticket *ticket,
                        int64_t now_ms);

#endif
