#ifndef STORE_POSTGRES_OPERATION_H
#define STORE_POSTGRES_OPERATION_H

#include "store_postgres_record.h"

/* What a session does with a ticket. PG_OK: the verdict is filled. Otherwise
 * the connection is lost and nothing is said: the session connects and asks the
 * same once more with again set, under the same owner, so that it knows its own
 * doing (semantics.md 4.3, last row). */
typedef enum pg_end pg_operation_fn(struct pg_session *session,
                                    struct idem_ticket *ticket, bool again);

pg_operation_fn pg_look, pg_abandon, pg_settle;
pg_operation_fn pg_watermark, pg_acknowledge;

/* Behind the record of a session's key, in its transaction: fails with 22012
 * when the number was acknowledged (decision 60). The arguments, which refer to
 * the digest, live until it has travelled. */
struct pg_query pg_number_query(struct pg_session *session,
                                const struct idem_ticket *ticket,
                                struct pg_arguments *arguments,
                                uint8_t digest[32]);

/* MINE leaves the session pinned, with the transaction open. */
pg_operation_fn pg_transaction_claim, pg_read_begin;

/* Claims, runs and ends a transaction of its own. */
pg_operation_fn pg_statement_alone;

/* These end a pinned transaction and always fill the verdict. */
void pg_transaction_complete(struct pg_session *session,
                             struct idem_ticket *ticket);
void pg_transaction_release(struct pg_session *session,
                            struct idem_ticket *ticket);
void pg_read_end(struct pg_session *session);

/* A statement had failed and the handler says OK all the same (case B074):
 * nothing of it may stand. */
bool pg_is_swallowed(const struct pg_session *session,
                     const struct idem_ticket *ticket);
void pg_tell_swallowed(struct pg_session *session, struct idem_ticket *ticket);

/* Steps that several share. */

/* Tell the database the key's window before its record is written. */
enum pg_end pg_note_window(struct pg_session *session,
                           const struct idem_ticket *ticket);

/* Read the key's record. A full arena fails the ticket: *found is false. */
enum pg_end pg_find(struct pg_session *session, struct idem_ticket *ticket,
                    struct record *record, int64_t *owner, bool *found);

/* Run one prepared statement; *changed receives its rows. An error of the
 * statement fails the ticket, and *changed is -1. */
enum pg_end pg_change(struct pg_session *session, struct idem_ticket *ticket,
                      enum statement statement, bool opaque,
                      const struct pg_arguments *arguments, long *changed);

/* Somebody has the key: who asks waits, and looks again soon. */
void pg_tell_running(struct idem_ticket *ticket);

/* ABSENT or RELEASED: nothing is told of who is about to change that. */
bool pg_is_open(const struct record *record);

/* EXPIRED, of an open record, is told for good: a claim from before the
 * window's end that is not committed yet is waited for (semantics.md M1), and
 * none comes behind this (decision 67). *expired false: look again. An error of
 * the statement fails the ticket. */
enum pg_end pg_expire(struct pg_session *session, struct idem_ticket *ticket,
                      const struct record *record, bool *expired);

/* Make a lapsed record DOUBT; *held is false when it has changed meanwhile. */
enum pg_end pg_hold(struct pg_session *session, struct idem_ticket *ticket,
                    const struct record *record, bool *held);

/* Make an absent record ABANDONED, or one that was read as RELEASED or as
 * lapsed and not begun; *done is false when it has changed meanwhile. */
enum pg_end pg_write_abandoned(struct pg_session *session,
                               struct idem_ticket *ticket,
                               const struct record *record, bool *done);

/* Point the session's transaction at a ticket; the session is pinned. */
void pg_tx_begin(struct pg_session *session, struct idem_ticket *ticket);

/* The statement that begins a transaction as the store's options say. */
struct pg_query pg_begin_query(const struct pg_session *session);

/* A savepoint in front of what the handler does, or does next: it tells at the
 * end whether the handler has ended the transaction by itself, and what lies
 * behind it can be undone. text is good as long as the query. */
#define PG_GUARD_MAX 64
struct pg_query pg_guard_query(struct pg_session *session,
                               char text[PG_GUARD_MAX]);

#endif
