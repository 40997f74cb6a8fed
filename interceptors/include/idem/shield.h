#ifndef IDEM_SHIELD_H
#define IDEM_SHIELD_H

#include <idem/store.h>

/* The shield in front of the authority: Redis answers repeats of recorded
 * calls. It may only say no (semantics.md 4.5): replay a verified answer, or
 * nothing. Absent, slow, stale, lying: only latency changes. */
struct idem_shield;

/* What signs entries. Another secret has another id. */
struct idem_redis_secret {
    uint32_t id;
    struct idem_bytes bytes; /* at least 16; copied */
};

#define IDEM_REDIS_SECRETS_MAX 8

/* To change the secret: first every server gets the new one among old_secrets,
 * then each signs with it and has the old one there, and when the last entry of
 * the old one has ended (entry_ttl_ms) it is left out. At each step all servers
 * believe what any of them signs. */
struct idem_redis_options {
    /* "redis://[[user]:password@]127.0.0.1:6379/0",
     * "unix://[[user]:password@]/run/r.sock?db=0",
     * "redis+sentinel://[[user]:password@]host[:26379],…/master[/db]" or
     * "redis+cluster://[[user]:password@]host[:6379],…", up to 8 hosts.
     * Sentinels have a login of their own, or none: "…/master?sentinel=:pw". */
    const char *url;
    int64_t budget_ms;    /* a look may take; 0: 5. Over it: as absent */
    int64_t entry_ttl_ms; /* of an entry; 0: 3,600,000. At most the window */
    unsigned breaker_failures; /* in a row until Redis is left alone; 0: 5 */
    int64_t breaker_ms;        /* … for this long; 0: 1,000 */
    size_t max_entry;          /* larger answers are not cached; 0: 8 KiB */
    struct idem_bytes secret;  /* signs entries; at least 16 bytes; copied */
    uint32_t secret_id;        /* … and stands in them */
    const struct idem_redis_secret *old_secrets; /* believed, not signed with */
    size_t n_old_secrets; /* under IDEM_REDIS_SECRETS_MAX */
    const char *epoch; /* which authority the answers are of, for good; copied.
                        * NULL: what idem_shield_set_epoch says */
    const struct idem_clock *clock; /* NULL: the system's */
};

struct idem_shield_counts {
    uint64_t looks, hits, misses;
    uint64_t rejected; /* entries that did not verify */
    uint64_t foreign;  /* of these: signed by a secret that is not known here */
    uint64_t failed;   /* errors and time-outs, of fills too */
    uint64_t skipped;  /* looks that were not sent: Redis is away, left alone,
                        * too busy, or the authority's epoch is not known */
    uint64_t fills;
};

/* One look; lives until done. */
struct idem_shield_look {
    const struct idem_record_id *id;
    const struct idem_fingerprint *fingerprint;
    struct idem_arena *arena;
    enum idem_verdict verdict; /* DONE, REUSED, or ABSENT: ask the store */
    struct idem_answer answer;
    void (*done)(struct idem_shield_look *look); /* exactly once, within the
                                                  * budget, on any thread but
                                                  * never inside look */
    struct idem_shield_look *next;               /* the shield's */
    int64_t expires_ns;                          /* the shield's */
    unsigned char hops;                          /* the shield's */
};

IDEM_BEGIN_DECLS

/* Does not wait for Redis; connects and re-connects in the background. */
IDEM_API enum idem_status
idem_redis_new(struct idem_shield **out,
               const struct idem_redis_options *options, struct idem_error *err)
    IDEM_MUST_CHECK;

IDEM_API void idem_shield_look(struct idem_shield *shield,
                               struct idem_shield_look *look);

/* Cache an answer that the authority has recorded, at most until it forgets it:
 * until_ms, since 1970. Fire and forget; copies. From any thread. */
IDEM_API void idem_shield_fill(struct idem_shield *shield,
                               const struct idem_record_id *id,
                               const struct idem_fingerprint *fingerprint,
                               const struct idem_answer *answer,
                               int64_t until_ms);

/* The authority's epoch changed (or is not known: ""): older entries do not
 * verify any more. Without an epoch there are no hits. From any thread; nothing
 * when the options pin one. */
IDEM_API void idem_shield_set_epoch(struct idem_shield *shield,
                                    const char *epoch);

IDEM_API void idem_shield_counts(const struct idem_shield *shield,
                                 struct idem_shield_counts *counts);

/* Looks under way are answered ABSENT first. Not from inside done, nor from a
 * handler or callback on a thread of the library: it waits for the one that
 * talks to Redis. NULL is fine. */
IDEM_API void idem_shield_free(struct idem_shield *shield);

IDEM_END_DECLS

#endif
