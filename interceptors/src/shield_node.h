#ifndef SHIELD_NODE_H
#define SHIELD_NODE_H

#include "shield_breaker.h"
#include "shield_resolve.h"
#include "shield_url.h"
#include "store_redis.h"

#include <idem/digest.h>

#define SHIELD_KEY_PREFIX "idem:"
#define SHIELD_KEY_SIZE (sizeof(SHIELD_KEY_PREFIX) - 1 + IDEM_SHA256_SIZE)

struct idem_shield;
struct idem_shield_look;

struct shield_looks {
    struct idem_shield_look *first, **last; /* last: NULL when empty */
};

/* An entry on its way to Redis. */
struct shield_fill {
    struct shield_fill *next;
    int64_t ttl_ms;
    uint8_t key[SHIELD_KEY_SIZE];
    size_t size;
    uint8_t entry[];
};

struct shield_fills {
    struct shield_fill *first, **last; /* last: NULL when empty */
    unsigned count;
};

/* One server that the shield talks to: a Redis, a node of a cluster,
 * or a Sentinel. Connects, logs in, and is left alone for a while when that
 * fails; whatever goes wrong, the connection is dropped with all that is asked,
 * for a late reply must not meet the next command. The turns' own. */
struct shield_node {
    struct idem_shield *shield;
    struct shield_place place; /* host "": at the URL's path, or not known */
    bool wanted;               /* connect, and stay so */
    bool sentinel;             /* has no login and no database of ours */

    struct redis_link *link;        /* NULL: not connected */
    short watched;                  /* … the events that epoll tells of it */
    struct shield_resolve *resolve; /* the host's address is looked up */
    int64_t connect_ns;             /* no link: when to try next */
    int64_t opened_ns;              /* a link: since when */
    int64_t heard_ns;  /* … when it last owed nothing, or a reply came */
    unsigned connects; /* in a row, without an answer */
    struct shield_breaker breaker;
    struct shield_looks asked; /* under way, oldest first */
    struct shield_fills kept;  /* CLUSTER: fills under way, oldest first; some
                                * are not kept */
};

/* Logged in. */
bool shield_node_ready(const struct shield_node *node);

/* Ask it for the look's key; asking: after an ASK. False: not now. */
bool shield_node_ask(struct shield_node *node, struct idem_shield_look *look,
                     bool asking);

/* Send it, which it owns from here. False: not now, and it is freed. */
bool shield_node_fill(struct shield_node *node, struct shield_fill *fill,
                      bool keep);

/* Each turn: drop what is late, connect what is wanted. */
void shield_node_keep(struct shield_node *node, int64_t now_ns);

/* Read and write what poll says is possible. */
void shield_node_turn(struct shield_node *node, short events);

/* Let the shield's epoll tell of what the link waits for from here. */
void shield_node_watch(struct shield_node *node);

/* Looks under way are answered: ask the authority. */
void shield_node_drop(struct shield_node *node);

/* When there is something to do although nothing happens. */
int64_t shield_node_next_ns(const struct shield_node *node);

/* For good: no look is answered. */
void shield_node_close(struct shield_node *node);

#endif
