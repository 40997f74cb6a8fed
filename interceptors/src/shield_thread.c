#include "shield.h"

#include <idem/call.h>

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

/* The thread that talks to Redis. It owns the nodes and the looks under way;
 * what is new comes in by the lock and the eventfd. Each turn: take what is
 * new, end what is late, send, tell who asked, wait. */

#define MS 1000000LL

static int64_t
now_of(const struct idem_shield *shield)
{
    return shield->clock->monotonic_ns(shield->clock);
}

/* --- What is new --- */

static bool
ask(struct idem_shield *shield, struct idem_shield_look *look, int64_t now_ns)
{
    uint8_t key[SHIELD_KEY_SIZE], epoch[IDEM_SHA256_SIZE];
    struct shield_node *node;

    shield_write_key(key, look->id->digest);
    node = shield_node_of(shield, (struct idem_bytes){key, sizeof(key)});
    return node && shield_node_ready(node) && look->expires_ns > now_ns &&
           shield_epoch(shield, epoch) &&
           shield_breaker_allows(&node->breaker, now_ns) &&
           shield_node_ask(node, look, false);
}

static void
ask_all(struct idem_shield *shield, struct shield_looks *looks, int64_t now_ns)
{
    struct idem_shield_look *look;

    while ((look = shield_looks_pop(looks))) {
        if (!ask(shield, look, now_ns)) {
            shield_count(&shield->skipped, 1);
            shield_looks_push(&shield->answered, look);
        }
    }
}

/* One that cannot be sent is forgotten: it is only a shorter way. */
static void
send_fills(struct idem_shield *shield, struct shield_fills *fills)
{
    struct shield_fill *fill;

    while ((fill = shield_fills_pop(fills))) {
        const struct idem_bytes key = {fill->key, sizeof(fill->key)};
        struct shield_node *node = shield_node_of(shield, key);

        if (!node)
            free(fill);
        if (!node || !shield_node_fill(node, fill, true))
            shield_count(&shield->failed, 1);
    }
}

/* False when the shield stops. */
static bool
take_new(struct idem_shield *shield, int64_t now_ns)
{
    struct shield_looks looks = {NULL, NULL};
    struct shield_fills fills;
    bool stopping;

    pthread_mutex_lock(&shield->lock);
    looks.first = shield->new_looks.first;
    shield->new_looks = (struct shield_looks){NULL, NULL};
    fills = shield->new_fills;
    shield->new_fills = (struct shield_fills){NULL, NULL, 0};
    stopping = shield->stopping;
    pthread_mutex_unlock(&shield->lock);

    ask_all(shield, &looks, now_ns);
    send_fills(shield, &fills);
    return !stopping;
}

/* --- Time --- */

/* When there is something to do although nothing happens. */
static int64_t
next_ns(struct idem_shield *shield)
{
    int64_t at_ns = shield_discover_next_ns(shield);

    for (unsigned i = 0; i < shield->n_nodes; i++) {
        int64_t node_ns = shield_node_next_ns(&shield->nodes[i]);

        if (node_ns < at_ns)
            at_ns = node_ns;
    }
    return at_ns;
}

/* The eventfd, then the node's own, or -1. */
static unsigned
list_fds(const struct idem_shield *shield, struct pollfd *fds)
{
    fds[0] = (struct pollfd){.fd = shield->wake_fd, .events = POLLIN};
    for (unsigned i = 0; i < shield->n_nodes; i++) {
        const struct redis_link *link = shield->nodes[i].link;

        fds[1 + i] = (struct pollfd){.fd = -1};
        if (link) {
            fds[1 + i].fd = redis_link_fd(link);
            fds[1 + i].events = redis_link_events(link);
        }
    }
    return 1 + shield->n_nodes;
}

static void
wait_and_read(struct idem_shield *shield)
{
    struct pollfd fds[1 + SHIELD_NODES_MAX];
    unsigned n = list_fds(shield, fds);
    int64_t at_ns = next_ns(shield), left_ns = at_ns - now_of(shield);
    struct timespec left;
    uint64_t woken;

    if (left_ns < 0)
        left_ns = 0;
    left.tv_sec = left_ns / (1000 * MS);
    left.tv_nsec = left_ns % (1000 * MS);
    if (ppoll(fds, n, at_ns == INT64_MAX ? NULL : &left, NULL) <= 0)
        return;
    if (fds[0].revents && read(shield->wake_fd, &woken, sizeof(woken)) < 0)
        return; /* somebody took it: there is another turn */
    for (unsigned i = 1; i < n; i++)
        if (fds[i].revents)
            shield_node_turn(&shield->nodes[i - 1], fds[i].revents);
}

static void
tell_each(void *with)
{
    struct idem_shield *shield = with;
    struct idem_shield_look *look;

    while ((look = shield_looks_pop(&shield->answered)))
        look->done(look);
}

static void
tell(struct idem_shield *shield)
{
    if (shield->answered.first)
        idem_call_resume_all(tell_each, shield);
}

static void
turn_all(struct idem_shield *shield)
{
    for (unsigned i = 0; i < shield->n_nodes; i++)
        shield_node_turn(&shield->nodes[i], 0);
}

void *
shield_run(void *self)
{
    struct idem_shield *shield = self;

    for (;;) {
        int64_t now_ns = now_of(shield);
        bool goes_on;

        for (unsigned i = 0; i < shield->n_nodes; i++)
            shield_node_keep(&shield->nodes[i], now_ns);
        shield_discover(shield, now_ns);
        goes_on = take_new(shield, now_ns);
        turn_all(shield);
        if (!goes_on)
            break;
        tell(shield);
        wait_and_read(shield);
    }
    for (unsigned i = 0; i < shield->n_nodes; i++)
        shield_node_close(&shield->nodes[i]);
    tell(shield);
    return NULL;
}
