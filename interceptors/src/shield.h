#ifndef SHIELD_H
#define SHIELD_H

#include <pthread.h>
#include <stdatomic.h>

#include "shield_breaker.h"
#include "shield_entry.h"
#include "shield_resolve.h"
#include "shield_url.h"
#include "store_redis.h"

#include <idem/shield.h>

#define SHIELD_KEY_PREFIX "idem:"
#define SHIELD_KEY_SIZE (sizeof(SHIELD_KEY_PREFIX) - 1 + IDEM_SHA256_SIZE)

/* An entry on its way to Redis. */
struct shield_fill {
    struct shield_fill *next;
    int64_t ttl_ms;
    uint8_t key[SHIELD_KEY_SIZE];
    size_t size;
    uint8_t entry[];
};

/* Queues of the two kinds of work. */
struct shield_looks {
    struct idem_shield_look *first, **last; /* last: NULL when empty */
};

struct shield_fills {
    struct shield_fill *first, **last;
    unsigned count;
};

struct idem_shield {
    const struct idem_clock *clock;
    struct shield_url url;
    struct shield_secrets secrets; /* owned */
    int64_t budget_ns, entry_ttl_ms;
    size_t max_entry;
    bool pinned; /* the epoch is the option's, whatever the authority says */

    pthread_mutex_t lock; /* guards the next five */
    struct shield_looks new_looks;
    struct shield_fills new_fills;
    bool stopping;
    bool epoch_known;
    uint8_t epoch[IDEM_SHA256_SIZE];

    pthread_t thread;
    int wake_fd;

    /* The thread's own. */
    struct redis_link *link;        /* NULL: not connected */
    struct shield_resolve *resolve; /* the host's address is looked up */
    int64_t connect_ns;             /* no link: when to try next */
    int64_t opened_ns;              /* a link: since when */
    int64_t heard_ns;  /* … when it last owed nothing, or a reply came */
    unsigned connects; /* in a row, without an answer */
    struct shield_breaker breaker;
    struct shield_looks asked;    /* under way, oldest first */
    struct shield_looks answered; /* done is still to be called */

    atomic_uint_fast64_t looks, hits, misses, rejected, foreign, failed,
        skipped, fills;
};

static inline void
shield_count(atomic_uint_fast64_t *counter, unsigned n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* shield_thread.c: until shield->stopping. */
void *shield_run(void *shield);

/* shield.c: make the thread look at what is new. From any thread. */
void shield_wake(struct idem_shield *shield);

/* shield_answer.c: what Redis said of a look: fills its verdict and answer, and
 * counts. False: it belongs to another command, the link is out of step. */
bool shield_answer(struct idem_shield *shield, struct idem_shield_look *look,
                   const struct redis_reply *reply);

/* The authority's epoch; false when it is not known. From any thread. */
bool shield_epoch(struct idem_shield *shield, uint8_t epoch[IDEM_SHA256_SIZE]);

/* The key in Redis: the prefix and the record's digest, raw. */
void shield_write_key(uint8_t key[SHIELD_KEY_SIZE], const uint8_t *digest);

/* shield_looks.c: by one thread at a time. */
void shield_looks_push(struct shield_looks *looks,
                       struct idem_shield_look *look);
struct idem_shield_look *shield_looks_pop(struct shield_looks *looks);

#endif
