#ifndef IDEM_STORE_H
#define IDEM_STORE_H

#include <idem/arena.h>
#include <idem/clock.h>
#include <idem/fingerprint.h>
#include <idem/key.h>
#include <idem/status.h>

/* The authority that decides whether a call may run: one record a key.
 *
 * The life of a record (semantics.md 4.2); each arrow is one conditional
 * statement:
 *
 *              claim     complete   release   expire*        abandon
 *   ABSENT     RUNNING   DONE(tx)   -         -              ABANDONED
 *   RUNNING    (lease)   DONE       RELEASED  RUNNING, DOUBT DOUBT**
 *   RELEASED   RUNNING   -          -         -              ABANDONED
 *   DOUBT      (probe)   DONE***    RELEASED***              -
 *   DONE       -         -          -         -              -
 *   ABANDONED  -         -          -         -              -
 *
 * settle: DOUBT, and RUNNING whose lease is over → DONE or RELEASED.
 *
 *   *   the lease is over and another call claims: what after_crash says
 *   **  only when the lease is over. The handler may have begun, so it cannot
 *       be said that it never ran; but from DOUBT it never runs again
 *   *** by the token's owner; settle fences it off
 *
 * The lease is over: REEXECUTE runs it again; HOLD makes it DOUBT, because the
 * claim is all that tells that its handler was begun: whoever claims and then
 * does not begin releases. PROBE lends it to the call that claims, under the
 * next token, to ask what became of it (ticket->probe); so it does with DOUBT.
 * Whoever was lent it and does not find out makes it DOUBT. A window that is
 * over begins nothing: EXPIRED instead of RUNNING, or DOUBT after a crash.
 *
 * Executions: ticket->executions of a claim tells the count. It grows by each
 * LEASED claim; a TRANSACTION leaves nothing behind, unless it counts.
 *
 * Steps: a claim with ticket->steps is not begun until its owner marks a step.
 * A record that is not begun and whose lease is over is taken over whatever
 * after_crash says; abandon makes it ABANDONED, for it never ran, and so does a
 * claim when its window is over.
 *
 * DONE and ABANDONED are written once. A record never goes back to ABSENT: it
 * goes with its partition, and then its key is refused. */

#define IDEM_EPOCH_MAX 64 /* bytes, with the NUL */

struct idem_rows;
struct idem_statements;
struct idem_store;
struct idem_tx;

/* Who the key belongs to: SHA-256 of the length-prefixed parts ("idem1",
 * tenant, scope, key), so that no two of them can run into one another. */
struct idem_record_id {
    uint8_t digest[32];
    struct idem_key key; /* its text outlives the ticket */
    struct idem_bytes tenant;
    const char *scope;
};

/* The answer that is recorded and replayed, byte for byte. */
struct idem_answer {
    enum idem_status status;
    struct idem_bytes message;  /* text */
    struct idem_bytes reason;   /* text */
    struct idem_bytes reply;    /* protobuf; empty unless status is OK */
    struct idem_bytes trailers; /* encoded metadata, as in EndHeader */
    int64_t first_at_ms;        /* wall clock of the authority */
    unsigned executions;        /* that it took, its own included */
};

/* What an operator has found out about a key in doubt. Texts are audited in the
 * transaction that settles, and not empty. */
struct idem_settlement {
    bool took_effect;     /* DONE with the ticket's answer; else RELEASED: it
                           * may be tried again */
    struct idem_bytes by; /* who says so */
    struct idem_bytes why;
};

/* What the store says of a claim, a completion, a release or a look. */
enum idem_verdict {
    IDEM_VERDICT_FAILED,  /* the store did not do it and nothing changed: error
                           * says why. The call may be tried again */
    IDEM_VERDICT_MINE,    /* claim: run it. complete, release: it is written */
    IDEM_VERDICT_DONE,    /* answer holds the recorded answer */
    IDEM_VERDICT_RUNNING, /* somebody else runs it; wait_ms says how long its
                           * lease lasts at most; 0: unknown */
    IDEM_VERDICT_REUSED,  /* the key is recorded for another request */
    IDEM_VERDICT_EXPIRED, /* no partition takes this key, or its window ended */
    IDEM_VERDICT_DOUBT,   /* a crash left it in doubt, HOLD */
    IDEM_VERDICT_ABANDONED, /* no execution has it, and none ever will.
                             * first_at_ms 0: it never ran; else (LEASED) one
                             * gave it back, and may have acted before */
    IDEM_VERDICT_ABSENT,    /* look: never seen */
    IDEM_VERDICT_FENCED,    /* complete, release, renew, mark: not the owner.
                             * settle: in doubt by another execution */
    IDEM_VERDICT_UNKNOWN,   /* complete: the connection was lost with the commit
                             * under way. Claim again: that is the barrier */
    IDEM_VERDICT_CONFLICT,  /* complete: rolled back by a serialization failure
                             * or deadlock. Claim and run again */
};

/* One call's business with the store, from claim to completion. The owner
 * fills the first part; it lives until its last done. One operation at a time,
 * but for renew. */
struct idem_ticket {
    struct idem_record_id id;
    struct idem_fingerprint fingerprint; /* look, abandon: version 0 is not
                                          * compared */
    enum idem_mode mode;                 /* TRANSACTION or LEASED */
    enum idem_after_crash after_crash;   /* LEASED */
    int64_t lease_ms;                    /* LEASED; over 0 */
    unsigned max_executions; /* LEASED, claim: a lease that is over after so
                              * many is not run again but held. 0: any number */
    bool counts; /* TRANSACTION, release: the execution ended badly and stays in
                  * the record's count, which is then RELEASED, if it can be
                  * written; else nothing is left of it */
    bool steps;  /* LEASED, claim: it is begun by a mark, not by the claim */
    unsigned group;      /* TRANSACTION, claim: so many may share a transaction,
                          * each in a savepoint; not a repeat. 0: none */
    int64_t window_ms;   /* opaque key: how long its answer is kept; 0: 24 h.
                          * Afterwards DONE with ANSWER_DROPPED, for 400 days */
    int64_t deadline_ns; /* monotonic; INT64_MAX: none. A claim that the store
                          * has not begun by then: FAILED, DEADLINE_EXCEEDED */
    bool repeat;         /* attempt > 1: a record is likely, look first */
    struct idem_arena *arena; /* what the store returns lives here. May be NULL
                               * but for claim, look, abandon and run: then a
                               * recorded answer is not wanted */

    enum idem_verdict verdict;
    struct idem_error error;          /* FAILED */
    struct idem_answer answer;        /* DONE; in: complete, settle */
    struct idem_fingerprint recorded; /* REUSED: the first request's … */
    int64_t first_at_ms;              /* … and when it came */
    int64_t token;                    /* MINE: the fencing token. DOUBT: whose
                                       * it is, for settle */
    unsigned executions;              /* MINE: this one included */
    bool probe; /* MINE of a claim: an execution before was begun, and nobody
                 * knows how it ended: ask the probe before the handler. Never
                 * release it before NOT_DONE: doubt */
    int64_t wait_ms;
    const struct idem_settlement *settlement; /* in: settle */
    uint64_t ack_below;                       /* in: acknowledge */
    const char *step;                         /* in: mark. Not empty */
    struct idem_tx *tx;                       /* MINE in mode TRANSACTION; the
                                               * store's, until complete or release
                                               * has answered */

    bool here; /* MINE in mode TRANSACTION: the thread of done has nothing to do
                * but this transaction: the handler may run on it */

    const struct idem_statements *statements; /* in: run */

    /* run: from the statements' rows (rows[i] of statement i), or from the
     * failure of one of them (then rows is NULL), to the answer. True: record
     * ticket->answer, with what the statements wrote when its status is OK,
     * else without; false: record nothing and undo it. On a thread of the store
     * inside the transaction; must not block. Again whenever the transaction is
     * begun anew: the last time counts. */
    bool (*conclude)(struct idem_ticket *ticket,
                     const struct idem_rows *const *rows,
                     const struct idem_error *failed);

    /* Once per operation, on a thread of the store, never inside the call of
     * the operation. Must not block, unless here. */
    void (*done)(struct idem_ticket *ticket);

    struct idem_ticket *next; /* the store's, while an operation is under way */
    unsigned char op;         /* the store's */
};

struct idem_store_ops {
    const char *name; /* "sqlite", "postgres" */

    /* All of these return at once and answer by ticket->done. */

    /* May this call run? In mode TRANSACTION, MINE comes with an open
     * transaction in which the handler writes and which nobody waits for: a
     * rival gets RUNNING. Those of a group become MINE one after another, each
     * when the one before completes or releases. Verdicts: FAILED MINE DONE
     * RUNNING REUSED EXPIRED DOUBT ABANDONED. */
    void (*claim)(struct idem_store *store, struct idem_ticket *ticket);

    /* Record ticket->answer. In mode TRANSACTION with status OK: record and
     * commit what the handler wrote; with an error: undo what it wrote, record,
     * commit. In a group that is told of all when the last has ended; CONFLICT
     * when the commit of all has failed, and a repeat goes alone. Verdicts:
     * MINE FENCED FAILED UNKNOWN CONFLICT; DONE when a rival recorded first
     * (TRANSACTION; ours is rolled back). Also in TRANSACTION: FAILED with
     * INTERNAL when a statement had failed and the handler said OK (B074): all
     * of it is rolled back, nothing is recorded. DOUBT when the handler ended
     * the transaction by itself: its effect may stand, so the record says DOUBT
     * from here. */
    void (*complete)(struct idem_store *store, struct idem_ticket *ticket);

    /* Give the key back: the call may be tried again. TRANSACTION: roll back.
     * Verdicts: MINE FENCED FAILED; DOUBT as in complete. */
    void (*release)(struct idem_store *store, struct idem_ticket *ticket);

    /* Mode TRANSACTION in one operation: claim, run ticket->statements, ask
     * ticket->conclude, record, commit. Operations that wait at the same time
     * may share a commit; one that fails or says "no" does not touch its
     * neighbours'. Verdicts: MINE: what conclude said last is done; FAILED;
     * DONE RUNNING REUSED EXPIRED DOUBT ABANDONED as of claim; UNKNOWN CONFLICT
     * as of complete, when repeating inside did not help. A session's number is
     * looked at inside, too, behind what claims it: EXPIRED. */
    void (*run)(struct idem_store *store, struct idem_ticket *ticket);

    /* LEASED: the outcome is not known; HOLD it as in doubt. Verdicts: MINE
     * FENCED FAILED. */
    void (*doubt)(struct idem_store *store, struct idem_ticket *ticket);

    /* LEASED: extend the lease by lease_ms from now. The ticket is one of its
     * own (id, token, lease_ms, mode). Verdicts: MINE FENCED FAILED. */
    void (*renew)(struct idem_store *store, struct idem_ticket *ticket);

    /* LEASED: from here the execution is begun, and ticket->step is the last
     * that it marked. On the disk before it is answered. The ticket is one of
     * its own (id, token, step, mode). Verdicts: MINE; FENCED, also when the
     * lease is over and nobody has taken it; FAILED: it may be marked or not.
     */
    void (*mark)(struct idem_store *store, struct idem_ticket *ticket);

    /* What became of the key? Changes nothing. Verdicts: FAILED ABSENT DONE
     * RUNNING REUSED EXPIRED DOUBT ABANDONED. */
    void (*look)(struct idem_store *store, struct idem_ticket *ticket);

    /* Make sure that the key never runs, if it has not. Verdicts: FAILED DONE
     * RUNNING EXPIRED DOUBT ABANDONED. Does not compare fingerprints: whoever
     * abandons has the key alone. */
    void (*abandon)(struct idem_store *store, struct idem_ticket *ticket);

    /* An operator's word on a key that is in doubt: its record becomes what
     * ticket->settlement says, if its token is still ticket->token, which is
     * what a look told. The token grows, so that whoever ran it and comes back
     * is fenced. Verdicts: MINE, also when just this was settled before; FENCED
     * FAILED; ABSENT DONE RUNNING EXPIRED ABANDONED: there is no doubt. Does
     * not compare fingerprints. */
    void (*settle)(struct idem_store *store, struct idem_ticket *ticket);

    /* Of a session's key: may its number run? It is asked once a claim of it is
     * MINE (run does so itself): an acknowledgement is on the disk before the
     * first record goes, so whoever claims a number whose record has gone is
     * told here. Reads only, also beside an open transaction. Verdicts: MINE;
     * EXPIRED: it was acknowledged; FAILED. */
    void (*watermark)(struct idem_store *store, struct idem_ticket *ticket);

    /* The client has the answers of all calls of the session below
     * ticket->ack_below: their numbers are refused from here, and their records
     * go. Never beyond the ticket's own number, never back, and a bounded step
     * at a time. Verdicts: MINE FAILED. */
    void (*acknowledge)(struct idem_store *store, struct idem_ticket *ticket);

    /* Optional. Which incarnation of the authority its answers are of, for a
     * cache in front of it: another text once a backup was restored or another
     * server promoted; "" while that is not known. text receives at most
     * IDEM_EPOCH_MAX bytes. Any thread, does not block. */
    void (*epoch)(struct idem_store *store, char *text);

    /* The rest blocks. */

    /* A read-only transaction for a handler of mode NONE, whose rows live in
     * the arena. NULL and err when the store is away. Ended with end_read. From
     * any thread. */
    struct idem_tx *(*begin_read)(struct idem_store *store,
                                  struct idem_arena *arena, int64_t deadline_ns,
                                  struct idem_error *err);
    void (*end_read)(struct idem_store *store, struct idem_tx *tx);

    /* Make the partitions of today and the days ahead, drop those whose last
     * key's window is over, reap opaque keys in bounded batches. Any server may
     * run it at any time; a leader is chosen inside. */
    enum idem_status (*maintain)(struct idem_store *store,
                                 struct idem_error *err);

    /* When no operation is under way. */
    void (*free)(struct idem_store *store);
};

typedef void idem_store_operation_fn(struct idem_store *store,
                                     struct idem_ticket *ticket);

/* Embed as the first member. */
struct idem_store {
    const struct idem_store_ops *ops;
};

IDEM_BEGIN_DECLS

/* Fill the digest from tenant, scope and the key's text. */
IDEM_API void idem_record_id_digest(struct idem_record_id *id);

/* One operation of the store's, for whoever may block: returns when it is
 * answered. ticket->done is not used. A session's key that look or abandon did
 * not find and that was acknowledged is EXPIRED. */
IDEM_API void idem_store_ask(struct idem_store *store,
                             idem_store_operation_fn *operation,
                             struct idem_ticket *ticket);

/* NULL is fine. */
IDEM_API void idem_store_free(struct idem_store *store);

IDEM_END_DECLS

#endif
