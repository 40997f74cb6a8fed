#ifndef STORE_POSTGRES_RECORD_H
#define STORE_POSTGRES_RECORD_H

#include "record.h"
#include "store_postgres_session.h"

/* A ticket as parameters, and a row as a record. */

struct row_key {
    uint8_t bytes[16];
    bool opaque;
    int64_t day; /* of the minting, since 1970 UTC; 0 for an opaque key */
};

void pg_row_key_of(struct row_key *key, const struct idem_record_id *id);

/* The number of the key's advisory lock. */
int64_t pg_row_lock_of(const struct idem_record_id *id);

/* $1 to $8 of a statement that inserts: the identity, the fingerprint (NULL
 * without one), the window. */
void pg_identity_arguments(struct pg_arguments *arguments,
                           const struct row_key *key,
                           const struct idem_ticket *ticket);

/* $1 to $6 of SQL_LOOK. */
void pg_look_arguments(struct pg_arguments *arguments,
                       const struct row_key *key,
                       const struct idem_ticket *ticket);

/* Five more: status, message, reason, reply, trailers. */
void pg_answer_arguments(struct pg_arguments *arguments,
                         const struct idem_answer *answer);

/* $1 key, $2 token. */
void pg_fence_arguments(struct pg_arguments *arguments,
                        const struct row_key *key, int64_t token);

/* All of SQL_TAKE, of the record that was read. */
void pg_take_arguments(struct pg_arguments *arguments,
                       const struct row_key *key, const struct record *record,
                       const struct idem_ticket *ticket, int64_t owner,
                       int64_t lease_ms);

/* Of a minted key: when its window ends, wall ms. Of an opaque one: how long
 * its answer is kept. */
int64_t pg_window_of(const struct row_key *key,
                     const struct idem_ticket *ticket);

/* Read SQL_LOOK's row into *record and *owner; bytes are copied into the
 * ticket's arena. False: the arena is full. */
bool pg_record_read(struct record *record, int64_t *owner,
                    const struct idem_ticket *ticket,
                    const struct pg_query *query) IDEM_MUST_CHECK;

/* As above, one of many rows. */
struct pg_row {
    const struct pg_result *of;
    int at;
};
bool pg_record_read_row(struct record *record, int64_t *owner,
                        const struct idem_ticket *ticket,
                        const struct pg_row *row) IDEM_MUST_CHECK;

#endif
