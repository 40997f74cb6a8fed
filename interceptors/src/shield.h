#ifndef SHIELD_H
#define SHIELD_H

#include <pthread.h>
#include <stdatomic.h>

#include "shield_entry.h"
#include "shield_node.h"
#include "shield_topology.h"

#include <idem/shield.h>
#include <idem/turns.h>

#define SHIELD_NODES_MAX 64
#define SHIELD_NOBODY 255 /* no node's number */
#define SHIELD_HOPS_MAX 3 /* redirections of one look */
#define SHIELD_FILL NULL  /* who asked, of a fill that is not kept */

struct idem_shield {
    const struct idem_clock *clock;
    struct shield_url url;
    struct shield_secrets secrets; /* owned */
    int64_t budget_ns, entry_ttl_ms, breaker_ns;
    unsigned breaker_failures;
    size_t max_entry;
    bool pinned; /* the epoch is the option's, whatever the authority says */

    pthread_mutex_t lock; /* guards the next five */
    struct shield_looks new_looks;
    struct shield_fills new_fills;
    bool epoch_known;
    char epoch_text[IDEM_EPOCH_MAX]; /* as it was set */
    uint8_t epoch[IDEM_SHA256_SIZE];

    struct idem_turns *turns;

    /* The turns' own. */
    int epoll;           /* of the nodes' links */
    unsigned asked_here; /* looks since the last one */
    struct shield_node nodes[SHIELD_NODES_MAX];
    unsigned n_nodes;
    unsigned sentinel;            /* SENTINEL: which of the URL's is asked */
    uint8_t owners[SHIELD_SLOTS]; /* CLUSTER: the node of each slot */
    int64_t map_due_ns, map_asked_ns; /* … when to ask for them anew */
    unsigned map_turn;
    char map_mark, asking_mark;   /* who asked, of other commands */
    struct shield_looks answered; /* done is still to be called */

    atomic_uint_fast64_t looks, hits, misses, rejected, foreign, failed,
        skipped, fills;
};

static inline void
shield_count(atomic_uint_fast64_t *counter, unsigned n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* shield_turn.c: begin to have turns; have no more, and answer all looks. */
enum idem_status shield_turns_start(struct idem_shield *shield,
                                    struct idem_error *err) IDEM_MUST_CHECK;
void shield_turns_stop(struct idem_shield *shield);

/* … a look that was begun on the turns' own thread. */
void shield_ask_here(struct idem_shield *shield, struct idem_shield_look *look,
                     int64_t now_ns);

/* shield_answer.c: what Redis said of a look: fills its verdict and answer, and
 * counts. False: it belongs to another command, the link is out of step. */
bool shield_answer(struct idem_shield *shield, struct idem_shield_look *look,
                   const struct redis_reply *reply);

/* shield_reply.c: of a node's link. */
redis_replied_fn shield_replied;

/* shield_discover.c: at the start, before the turns; each turn; when there is
 * something to do although nothing happens. */
void shield_discover_init(struct idem_shield *shield);
void shield_discover(struct idem_shield *shield, int64_t now_ns);
int64_t shield_discover_next_ns(struct idem_shield *shield);

/* What shield_discover asked is answered. False: close the link. */
bool shield_discover_reply(struct shield_node *node,
                           const struct redis_reply *reply);

/* The node is not where it was, or not what it was. */
void shield_discover_lost(struct shield_node *node);

/* The node that has the key; NULL: none that is there. */
struct shield_node *shield_node_of(struct idem_shield *shield,
                                   struct idem_bytes key);

/* The node said that the key is elsewhere, and the look is under way there.
 * False: it was not redirected, or too often, or to where nobody is. */
bool shield_redirect(struct shield_node *node, struct idem_shield_look *look,
                     const struct redis_reply *reply);

/* As shield_redirect, of a fill that was kept, and is freed or sent there. */
void shield_redirect_fill(struct shield_node *node, struct shield_fill *fill,
                          const struct redis_reply *reply);

/* The authority's epoch; false when it is not known. From any thread. */
bool shield_epoch(struct idem_shield *shield, uint8_t epoch[IDEM_SHA256_SIZE]);

/* The key in Redis: the prefix and the record's digest, raw. */
void shield_write_key(uint8_t key[SHIELD_KEY_SIZE], const uint8_t *digest);

/* shield_looks.c: by one thread at a time. */
void shield_fills_push(struct shield_fills *fills, struct shield_fill *fill);
struct shield_fill *shield_fills_pop(struct shield_fills *fills);
void shield_looks_push(struct shield_looks *looks,
                       struct idem_shield_look *look);
struct idem_shield_look *shield_looks_pop(struct shield_looks *looks);

#endif
