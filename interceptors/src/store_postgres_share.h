#ifndef STORE_POSTGRES_SHARE_H
#define STORE_POSTGRES_SHARE_H

#include "store_postgres_array.h"
#include "store_postgres_record.h"
#include "store_postgres_values.h"

/* Calls of mode TRANSACTION that share one database transaction. Those of
 * transaction STATEMENT go in two round trips (store_postgres_joint.h has the
 * interactive ones):
 *
 *   BEGIN; the statements of each call in order
 *   insert all records; COMMIT
 *
 * In between each call's second half makes its answer. When none of them needs
 * its rows the answers are made before, and all goes in one trip. First
 * attempts are not looked for: whoever has a record already makes the inserting
 * statement fail, and nothing of it stands. Then, and when one of them is a
 * repeat, a look at all keys goes in front.
 *
 * Numbers of sessions are looked at behind the INSERT, which is their claim;
 * one that was acknowledged makes that fail, too (decision 60). Beyond READ
 * COMMITTED, where that look sees what was there at the begin, their locks are
 * tried and their keys looked at in front.
 *
 * A call that the others must not wait for or fail with leaves: its key has a
 * record, a statement of it failed, it says "no". One whose statements change
 * what others would meet (SET LOCAL) is never in it. The transaction is rolled
 * back, the others begin anew, and whoever left goes alone. When it cannot be
 * said who is to blame, the halves go on by themselves. Keys are sorted, so
 * that two servers meet in one order.
 *
 * One thread. */

#define SHARE_MAX 256     /* calls */
#define SHARE_LEAST 16    /* that are not split over sessions */
#define SHARE_ROUNDS 4    /* then whoever is left goes alone */
#define SHARE_LOCK_MS 100 /* who waits longer for a lock leaves */
#define SHARE_STATEMENT_MS 1000

/* At most what the store's options say. */
int64_t pg_share_statement_ms(const struct pg_store *postgres);

/* Where a call stands. */
enum shared_place {
    SHARED_IN,    /* in the transaction */
    SHARED_OVER,  /* its verdict is filled */
    SHARED_ALONE, /* left: to go in a transaction of its own */
};

struct shared_call {
    struct idem_ticket *ticket;
    struct row_key key;
    unsigned busy; /* the key's place among those that are busy */
    enum shared_place place;
    bool leaves;              /* noted, and still IN */
    bool counts;              /* its handler ended badly, and that stays */
    struct pg_values *values; /* by statement */
    unsigned first;           /* query of its statements */
};

/* A query of the first round trip. */
struct shared_query {
    int owner;            /* a call; -1: ours */
    int statement;        /* of the call's; -1: it prepares … */
    struct pg_plan *plan; /* … this */
};

/* Which calls a statement is for. */
enum shared_kind {
    SHARED_MINTED,   /* whose records are in the one table … */
    SHARED_OPAQUE,   /* … in the other */
    SHARED_BOTH,     /* in either */
    SHARED_NUMBERED, /* with a session's number for a key; among the minted */
    SHARED_KINDS,
};

struct pg_share {
    struct pg_session *session;
    struct shared_call all[SHARE_MAX];
    unsigned n_all;
    struct shared_call
        *calls; /* those of the transaction, and some that left */
    unsigned n;
    bool lock;        /* try their keys' locks first … */
    bool look;        /* … look at their keys */
    bool undo;        /* the second trip begins with SQL_UNDO */
    bool conflict;    /* it met a lock, a deadlock or the like */
    unsigned asked;   /* the first query that is about keys, in front of the
                       * statements */
    unsigned closing; /* the first query behind the statements, when all travel
                       * in one trip */
    bool dated;       /* it is known … */
    int64_t begun_ms; /* … when it began, by the database's clock */
    unsigned date;    /* the query of a trip that tells; at least n_queries:
                       * none does */
    struct pg_query *queries;
    struct shared_query *about;
    unsigned n_queries, room;
    struct pg_arguments arguments[1 + SHARED_KINDS];
    struct pg_arrays arrays;
};

/* Serve all calls of transaction STATEMENT: each is OVER or ALONE then. */
void pg_share_run(struct pg_share *share);
void pg_share_fini(struct pg_share *share);

/* store_postgres_share_calls.c: those that are IN. */

/* Is the call at that place one, and of that kind? */
bool pg_share_is(const struct pg_share *share, unsigned i,
                 enum shared_kind kind);
bool pg_share_has(const struct pg_share *share, enum shared_kind kind);

/* All of them are, in the order of their keys. */
void pg_share_begin(struct pg_share *share);
unsigned pg_share_count(const struct pg_share *share);
void pg_share_move(struct pg_share *share, enum shared_place place);

/* Behind a trip: when the transaction began, if that tells. */
void pg_share_note_begun(struct pg_share *share);

/* They are OVER: committed. */
void pg_share_commit(struct pg_share *share);

/* They are OVER, with that verdict. */
void pg_share_tell(struct pg_share *share, enum idem_verdict verdict);

/* They are OVER: PostgreSQL is away. */
void pg_share_refuse(struct pg_share *share);

/* Each reaches the fault point. */
bool pg_share_reach(const struct pg_share *share, const char *point);

/* Behind the first trip: those that the look has found, whose number was
 * acknowledged, or whose lock is somebody's, leave. */
void pg_share_part_known(struct pg_share *share);

/* When all are OVER or ALONE: those that left are posted for another operation;
 * the others are told, each that was committed behind the fault point. */
void pg_share_part(const struct pg_share *share, enum operation operation);
void pg_share_answer(struct pg_share *share, const char *point);

/* The first query that has failed; n_queries: none. */
unsigned pg_share_failed(const struct pg_share *share);

/* Send the queries and wait for what they say. */
enum pg_end pg_share_travel(struct pg_share *share) IDEM_MUST_CHECK;

/* Free the results. */
void pg_share_clear(struct pg_share *share);

/* A connection that cannot do it is given up, and its transaction with it. */
void pg_share_roll_back(struct pg_share *share);

/* store_postgres_share_trip.c: the round trips. */

/* BEGIN, what is asked of their keys, and the limits. False: memory is out. */
bool pg_share_head(struct pg_share *share) IDEM_MUST_CHECK;

/* That, to the last statement. As above. */
bool pg_share_open(struct pg_share *share) IDEM_MUST_CHECK;

/* The records and COMMIT, which is the last query. As above. */
bool pg_share_close(struct pg_share *share) IDEM_MUST_CHECK;

/* Both, when the answers are there and neither lock nor look is wanted. */
bool pg_share_whole(struct pg_share *share) IDEM_MUST_CHECK;

#endif
