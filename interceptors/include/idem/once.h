#ifndef IDEM_ONCE_H
#define IDEM_ONCE_H

#include <idem/interceptor.h>
#include <idem/store.h>

struct idem_shield;

/* The server's interceptor that lets one execution of a key through. Reads what
 * to do from each method's policy.
 *
 * What a caller is told, beyond what its handler said:
 *   replayed          the recorded answer; REPLAYED, final. Also after a lost
 *                     commit that turns out to stand: whose it was nobody can
 *                     tell
 *   still running     ABORTED KEY_RUNNING, IN_DOUBT, with the time to come back
 *   gave up waiting   DEADLINE_EXCEEDED or CANCELLED, IN_DOUBT
 *   store away        UNAVAILABLE STORE_AWAY; REFUSED before the handler, else
 *                     ROLLED_BACK (TRANSACTION) or IN_DOUBT (LEASED: the record
 *                     is written behind the answer's back, as soon as the store
 *                     is there again)
 *   a released error  ROLLED_BACK (TRANSACTION), IN_DOUBT (LEASED: nobody knows
 *                     what the handler did elsewhere before it gave up)
 *   reply too large   FAIL: RESOURCE_EXHAUSTED; TRANSACTION: ROLLED_BACK and
 *                     released, LEASED: IN_DOUBT and recorded. DIGEST and
 *                     REBUILD: the first caller gets its reply; a repeat gets
 *                     ALREADY_EXISTS ANSWER_DROPPED (DIGEST, or a rebuild that
 *                     failed, which the message explains), or the reply that
 *                     the method's rebuild makes, marked rebuilt
 *
 * INTERNAL and UNKNOWN of a TRANSACTION are released, but count: the method's
 * max_executions'th is recorded, and final. A LEASED key is in doubt at once,
 * and also when its lease is over after max_executions.
 *
 * A method with a probe whose execution ended half-way: DONE is recorded and
 * told as REPLAYED, NOT_DONE runs the handler, UNKNOWN is ABORTED
 * KEY_IN_DOUBT.
 *
 * A handler that marks its steps (<idem/step.h>) and fails before its first
 * mark has done nothing: ROLLED_BACK, and released unless the status is one
 * that is recorded.
 *
 * A method whose key is OPTIONAL runs a call without one under a key of the
 * server's own making: the same transaction, only that nobody can repeat it.
 *
 * A handler sees ABORTED of idem_sql when its transaction met a conflict: it is
 * run again, whatever it answers, in a fresh one, up to max_repeats times.
 *
 * Interceptors below this one on a server must not answer AGAIN: the handler
 * would run twice in one transaction. */

/* All zero is all defaults. */
struct idem_once_options {
    int64_t wait_cap_ms;  /* a duplicate waits at most; 0: 30,000 */
    unsigned max_repeats; /* of a handler after CONFLICT or UNKNOWN; 0: 5 */
    struct idem_shield *shield;     /* NULL: no Redis. The once owns it */
    struct idem_interceptor *limit; /* of the same chain, whose permits its
                                     * calls need (limit.h); NULL: none */
    bool no_memory;                 /* keep no answers in this process */
    size_t memory_bytes;     /* of the answers that are kept; 0: 32 MiB */
    unsigned memory_entries; /* … and how many at most; 0: 65,536 */
    int64_t epoch_ttl_ms;    /* memory and Redis are asked for so long after the
                              * authority last answered; 0: 5,000 */
    const struct idem_clock *clock; /* NULL: of a call its server's, of all
                                     * else the system's */
};

struct idem_once_counts {
    uint64_t executed;   /* handlers let through */
    uint64_t probed;     /* probes asked of an execution that ended half-way */
    uint64_t replayed;   /* answered from a record, by memory, Redis or store */
    uint64_t shielded;   /* of these: by Redis */
    uint64_t remembered; /* answers and refusals out of this process's memory */
    uint64_t rebuilt;    /* of these: with a reply that was made again */
    uint64_t attached;   /* waited for a call of this process */
    uint64_t refused;   /* key missing, malformed, reused, expired, abandoned */
    uint64_t busy;      /* ABORTED: still running elsewhere */
    uint64_t exhausted; /* TRANSACTION: made final after max_executions */
    uint64_t in_doubt;
    uint64_t fenced; /* results thrown away: the lease was lost */
    uint64_t store_failed;
    uint64_t claims; /* operations asked of the store */

    /* This process's memory, now; evicted: since the start, for want of room.
     */
    uint64_t memory_entries, memory_bytes, memory_evicted;
};

IDEM_BEGIN_DECLS

/**
 * @param out    receives the interceptor; the server it is added to owns it
 * @param store  the authority; the interceptor owns it
 */
IDEM_API enum idem_status idem_once_new(struct idem_interceptor **out,
                                        struct idem_store *store,
                                        const struct idem_once_options *options,
                                        struct idem_error *err) IDEM_MUST_CHECK;

/* A copy of the counts; from any thread. */
IDEM_API void idem_once_counts(const struct idem_interceptor *once,
                               struct idem_once_counts *counts);

IDEM_END_DECLS

#endif
