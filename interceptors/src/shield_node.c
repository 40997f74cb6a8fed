#include "shield.h"

#include "retry_backoff.h"

#include <stdlib.h>
#include <sys/epoll.h>

#define MS 1000000LL
#define REPLY_NS (1000 * MS) /* for a fill's reply, and to log in */
#define REPLY_SLACK 1024     /* of an entry: what errors add */
#define KEPT_MAX 64          /* fills that may be sent elsewhere */
#define MAP_MAX 65536        /* bytes in which a cluster describes itself */

static int64_t
now_of(const struct shield_node *node)
{
    return node->shield->clock->monotonic_ns(node->shield->clock);
}

/* --- Connecting --- */

/* Every look under way is answered: ask the authority. */
static void
fail_asked(struct shield_node *node)
{
    struct idem_shield_look *look;
    unsigned n = 0;

    while ((look = shield_looks_pop(&node->asked))) {
        look->verdict = IDEM_VERDICT_ABSENT;
        shield_looks_push(&node->shield->answered, look);
        n++;
    }
    shield_count(&node->shield->failed, n);
    if (n > 0)
        shield_breaker_failed(&node->breaker, now_of(node));
}

static void
connect_later(struct shield_node *node)
{
    const struct retry_backoff backoff = {50, 1000, 2000};

    node->connect_ns =
        now_of(node) +
        retry_backoff_ns(&backoff, ++node->connects, node->shield->clock);
    shield_discover_lost(node);
}

static void
forget_fills(struct shield_node *node)
{
    struct shield_fill *fill;

    while ((fill = shield_fills_pop(&node->kept)))
        free(fill);
}

/* By hand: a child that this process has forked may still have it open, and
 * epoll would tell of it as long. */
static void
unwatch(struct shield_node *node)
{
    if (node->link && node->watched)
        (void)epoll_ctl(node->shield->epoll, EPOLL_CTL_DEL,
                        redis_link_fd(node->link), NULL);
    node->watched = 0;
}

void
shield_node_drop(struct shield_node *node)
{
    unwatch(node);
    redis_link_close(node->link);
    node->link = NULL;
    fail_asked(node);
    forget_fills(node);
    connect_later(node);
}

static size_t
max_reply_of(const struct idem_shield *shield)
{
    size_t entry = shield->max_entry + REPLY_SLACK;

    return shield->url.kind == SHIELD_SINGLE || entry > MAP_MAX ? entry
                                                                : MAP_MAX;
}

static void
open_link(struct shield_node *node, const char *address)
{
    const struct shield_url *url = &node->shield->url;
    const struct redis_target target = {
        .host = address,
        .port = node->place.port,
        .path = url->path,
        .user = node->sentinel ? url->sentinel_user : url->user,
        .password = node->sentinel ? url->sentinel_password : url->password,
        .db = node->sentinel ? 0 : url->db,
    };

    node->link = redis_link_open(&target, max_reply_of(node->shield));
    node->opened_ns = node->heard_ns = now_of(node);
    if (!node->link)
        connect_later(node);
}

/* The name is looked up anew each time: after a failover it leads elsewhere. */
static void
start_connect(struct shield_node *node)
{
    const char *host = node->place.host;

    if (!host[0]) {
        open_link(node, NULL);
    } else if (shield_is_address(host)) {
        open_link(node, host);
    } else {
        node->resolve = shield_resolve_start(host, node->shield->turns);
        if (!node->resolve)
            connect_later(node);
    }
}

static void
take_address(struct shield_node *node)
{
    char address[SHIELD_ADDRESS_MAX];

    if (!shield_resolve_done(node->resolve, address))
        return;
    shield_resolve_free(node->resolve);
    node->resolve = NULL;
    if (address[0])
        open_link(node, address);
    else
        connect_later(node);
}

static void
keep_connected(struct shield_node *node, int64_t now_ns)
{
    if (node->resolve)
        take_address(node);
    else if (node->wanted && !node->link && now_ns >= node->connect_ns)
        start_connect(node);
}

/* --- Time --- */

/* How long the link may owe a reply. */
static int64_t
patience_ns(const struct shield_node *node)
{
    int64_t budget_ns = node->shield->budget_ns;

    return budget_ns > REPLY_NS ? budget_ns : REPLY_NS;
}

static void
end_late(struct shield_node *node, int64_t now_ns)
{
    const struct idem_shield_look *oldest = node->asked.first;

    if (!node->link)
        return;
    if (redis_link_pending(node->link) == 0)
        node->heard_ns = now_ns;
    if ((oldest && now_ns >= oldest->expires_ns) ||
        now_ns - node->heard_ns >= patience_ns(node))
        shield_node_drop(node);
}

int64_t
shield_node_next_ns(const struct shield_node *node)
{
    if (node->asked.first)
        return node->asked.first->expires_ns;
    if (node->resolve)
        return INT64_MAX;
    if (!node->link)
        return node->wanted ? node->connect_ns : INT64_MAX;
    if (redis_link_pending(node->link) == 0)
        return INT64_MAX;
    return node->heard_ns + patience_ns(node);
}

/* --- Turns --- */

bool
shield_node_ready(const struct shield_node *node)
{
    return node->link && redis_link_ready(node->link);
}

bool
shield_node_ask(struct shield_node *node, struct idem_shield_look *look,
                bool asking)
{
    uint8_t key[SHIELD_KEY_SIZE];

    shield_write_key(key, look->id->digest);
    if (!shield_node_ready(node) ||
        (asking && !redis_link_say(node->link, "ASKING", NULL,
                                   &node->shield->asking_mark)) ||
        !redis_link_get(node->link, (struct idem_bytes){key, sizeof(key)},
                        look))
        return false;
    shield_looks_push(&node->asked, look);
    return true;
}

bool
shield_node_fill(struct shield_node *node, struct shield_fill *fill, bool keep)
{
    const struct idem_bytes key = {fill->key, sizeof(fill->key)};
    const struct idem_bytes entry = {fill->entry, fill->size};
    bool kept = keep && node->shield->url.kind == SHIELD_CLUSTER &&
                node->kept.count < KEPT_MAX;
    bool sent = shield_node_ready(node) &&
                redis_link_set(node->link, key, entry, fill->ttl_ms,
                               kept ? fill : SHIELD_FILL);

    if (sent && kept)
        shield_fills_push(&node->kept, fill);
    else
        free(fill);
    return sent;
}

void
shield_node_keep(struct shield_node *node, int64_t now_ns)
{
    end_late(node, now_ns);
    if (node->link && !node->wanted)
        shield_node_drop(node);
    keep_connected(node, now_ns);
}

void
shield_node_turn(struct shield_node *node, short events)
{
    if (node->link &&
        !redis_link_turn(node->link, events, shield_replied, node))
        shield_node_drop(node);
}

void
shield_node_watch(struct shield_node *node)
{
    short wanted = node->link ? redis_link_events(node->link) : 0;
    struct epoll_event event = {.events = (uint32_t)wanted, .data.ptr = node};
    int change = node->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    if (!node->link || wanted == node->watched)
        return;
    node->watched = wanted;
    if (epoll_ctl(node->shield->epoll, change, redis_link_fd(node->link),
                  &event) != 0)
        shield_node_drop(node);
}

void
shield_node_close(struct shield_node *node)
{
    redis_link_close(node->link);
    node->link = NULL;
    shield_resolve_free(node->resolve);
    node->resolve = NULL;
    fail_asked(node);
    forget_fills(node);
}
