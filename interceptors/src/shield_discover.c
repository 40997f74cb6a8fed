#include "shield.h"

#include <stdlib.h>
#include <string.h>

/* Which node has a key: the one of the URL, the master that a Sentinel names,
 * or the one that has the key's slot. Nodes are the turns' own.
 *
 * Sentinel: nodes[0] is the master, whose place is forgotten with each lost
 * connection; nodes[1] is a Sentinel, connected only while it is not known, and
 * another of the URL's each time. Cluster: nodes of the URL first, then those
 * that it speaks of. */

#define MASTER 0
#define SENTINEL 1
#define MAP_EVERY_NS INT64_C(1000000000)

static struct shield_node *
add_node(struct idem_shield *shield, const struct shield_place *place)
{
    struct shield_node *node = &shield->nodes[shield->n_nodes++];

    *node = (struct shield_node){
        .shield = shield,
        .place = *place,
        .wanted = true,
        .breaker = {.limit = shield->breaker_failures,
                    .open_ns = shield->breaker_ns},
    };
    return node;
}

void
shield_discover_init(struct idem_shield *shield)
{
    const struct shield_place nowhere = {.host = ""};
    const struct shield_url *url = &shield->url;

    memset(shield->owners, SHIELD_NOBODY, sizeof(shield->owners));
    if (url->kind == SHIELD_SENTINEL) {
        add_node(shield, &nowhere)->wanted = false;
        add_node(shield, &url->hosts[0])->sentinel = true;
    } else if (url->n_hosts == 0)
        add_node(shield, &nowhere);
    else
        for (unsigned i = 0; i < url->n_hosts; i++)
            add_node(shield, &url->hosts[i]);
}

/* --- Sentinel --- */

static void
forget_master(struct idem_shield *shield)
{
    shield->nodes[MASTER].wanted = false;
    shield->nodes[SENTINEL].wanted = true;
}

static void
ask_next_sentinel(struct idem_shield *shield)
{
    shield->sentinel = (shield->sentinel + 1) % shield->url.n_hosts;
    shield->nodes[SENTINEL].place = shield->url.hosts[shield->sentinel];
}

/* The Sentinel is not needed any more, or another is asked: in any case its
 * link ends. */
static bool
take_master(struct idem_shield *shield, const struct redis_reply *reply)
{
    struct shield_node *master = &shield->nodes[MASTER];

    if (reply->kind == REDIS_VALUE &&
        shield_read_master(&master->place, reply->bytes, shield->url.master)) {
        master->wanted = true;
        shield->nodes[SENTINEL].wanted = false;
        shield->nodes[SENTINEL].connects = 0;
    }
    return false;
}

/* --- Cluster --- */

/* Another place for a node that is not wanted any more. */
static unsigned
replace_one(struct idem_shield *shield, const struct shield_place *place)
{
    for (unsigned i = shield->url.n_hosts; i < shield->n_nodes; i++) {
        struct shield_node *node = &shield->nodes[i];

        if (!node->wanted && !node->link && !node->resolve) {
            node->place = *place;
            node->connect_ns = 0;
            node->connects = 0;
            return i;
        }
    }
    return SHIELD_NOBODY;
}

static unsigned
find_node(struct idem_shield *shield, const struct shield_place *place)
{
    for (unsigned i = 0; i < shield->n_nodes; i++)
        if (strcmp(shield->nodes[i].place.host, place->host) == 0 &&
            strcmp(shield->nodes[i].place.port, place->port) == 0)
            return i;
    if (shield->n_nodes < SHIELD_NODES_MAX) {
        add_node(shield, place);
        return shield->n_nodes - 1;
    }
    return replace_one(shield, place);
}

static void
take_range(void *with, const struct shield_place *place, unsigned first,
           unsigned last)
{
    struct idem_shield *shield = with;
    unsigned node = find_node(shield, place);

    if (node != SHIELD_NOBODY)
        shield->nodes[node].wanted = true;
    for (unsigned slot = first; slot <= last; slot++)
        shield->owners[slot] = (uint8_t)node;
}

/* Those of the URL stay; they may be all that answers. */
static void
let_go_of_the_rest(struct idem_shield *shield)
{
    bool owns[SHIELD_NODES_MAX] = {false};

    for (unsigned slot = 0; slot < SHIELD_SLOTS; slot++)
        if (shield->owners[slot] != SHIELD_NOBODY)
            owns[shield->owners[slot]] = true;
    for (unsigned i = shield->url.n_hosts; i < shield->n_nodes; i++)
        shield->nodes[i].wanted = owns[i];
}

static bool
take_map(struct shield_node *node, const struct redis_reply *reply)
{
    struct idem_shield *shield = node->shield;

    if (reply->kind != REDIS_VALUE)
        return reply->kind == REDIS_REFUSAL;
    shield->map_due_ns = INT64_MAX;
    shield_read_cluster(reply->bytes, node->place.host, take_range, shield);
    let_go_of_the_rest(shield);
    return true;
}

static void
want_map(struct idem_shield *shield)
{
    if (shield->map_due_ns == INT64_MAX)
        shield->map_due_ns = shield->map_asked_ns + MAP_EVERY_NS;
}

/* Each in turn, so that one that is cut off does not tell for ever. */
static struct shield_node *
next_ready(struct idem_shield *shield)
{
    for (unsigned i = 0; i < shield->n_nodes; i++) {
        struct shield_node *node =
            &shield->nodes[++shield->map_turn % shield->n_nodes];

        if (shield_node_ready(node))
            return node;
    }
    return NULL;
}

/* The node that the reply says has the key. SHIELD_NOBODY: it says none. */
static unsigned
follow(const struct shield_node *node, const uint8_t key[SHIELD_KEY_SIZE],
       const struct redis_reply *reply, bool *asking)
{
    struct idem_shield *shield = node->shield;
    struct shield_redirect to;
    unsigned index;

    if (shield->url.kind != SHIELD_CLUSTER || reply->kind != REDIS_REFUSAL ||
        !shield_read_redirect(&to, reply->bytes, node->place.host))
        return SHIELD_NOBODY;
    index = find_node(shield, &to.place);
    if (index == SHIELD_NOBODY)
        return index;
    shield->nodes[index].wanted = true;
    *asking = to.asking;
    if (!to.asking) {
        shield->owners[shield_slot_of(
            (struct idem_bytes){key, SHIELD_KEY_SIZE})] = (uint8_t)index;
        want_map(shield);
    }
    return index;
}

bool
shield_redirect(struct shield_node *node, struct idem_shield_look *look,
                const struct redis_reply *reply)
{
    uint8_t key[SHIELD_KEY_SIZE];
    unsigned index;
    bool asking;

    shield_write_key(key, look->id->digest);
    index = follow(node, key, reply, &asking);
    return index != SHIELD_NOBODY && look->hops++ < SHIELD_HOPS_MAX &&
           shield_node_ask(&node->shield->nodes[index], look, asking);
}

void
shield_redirect_fill(struct shield_node *node, struct shield_fill *fill,
                     const struct redis_reply *reply)
{
    struct idem_shield *shield = node->shield;
    bool asking;
    unsigned index = follow(node, fill->key, reply, &asking);

    if (index == SHIELD_NOBODY)
        free(fill);
    if (index == SHIELD_NOBODY ||
        !shield_node_fill(&shield->nodes[index], fill, false))
        shield_count(&shield->failed, 1);
}

/* --- All of them --- */

bool
shield_discover_reply(struct shield_node *node, const struct redis_reply *reply)
{
    return node->sentinel ? take_master(node->shield, reply)
                          : take_map(node, reply);
}

void
shield_discover_lost(struct shield_node *node)
{
    if (node->sentinel)
        ask_next_sentinel(node->shield);
    else if (node->shield->url.kind == SHIELD_SENTINEL)
        forget_master(node->shield);
    else
        want_map(node->shield);
}

void
shield_discover(struct idem_shield *shield, int64_t now_ns)
{
    struct shield_node *node = NULL;

    if (shield->url.kind == SHIELD_SENTINEL) {
        node = &shield->nodes[SENTINEL];
        if (node->wanted && shield_node_ready(node) &&
            redis_link_pending(node->link) == 0)
            (void)redis_link_say(node->link, "INFO", "sentinel",
                                 &shield->map_mark);
    } else if (shield->url.kind == SHIELD_CLUSTER &&
               now_ns >= shield->map_due_ns && (node = next_ready(shield))) {
        shield->map_asked_ns = now_ns;
        shield->map_due_ns = now_ns + MAP_EVERY_NS;
        (void)redis_link_say(node->link, "CLUSTER", "NODES", &shield->map_mark);
    }
}

int64_t
shield_discover_next_ns(struct idem_shield *shield)
{
    if (shield->url.kind != SHIELD_CLUSTER)
        return INT64_MAX;
    for (unsigned i = 0; i < shield->n_nodes; i++)
        if (shield_node_ready(&shield->nodes[i]))
            return shield->map_due_ns;
    return INT64_MAX;
}

struct shield_node *
shield_node_of(struct idem_shield *shield, struct idem_bytes key)
{
    unsigned owner;

    if (shield->url.kind != SHIELD_CLUSTER)
        return &shield->nodes[MASTER];
    owner = shield->owners[shield_slot_of(key)];
    return owner == SHIELD_NOBODY ? next_ready(shield) : &shield->nodes[owner];
}
