#include "shield.h"

#include <idem/call.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* What the shield does, turn by turn, on one of the sockets' threads
 * (<idem/turns.h>). It owns the nodes and the looks under way; what is new
 * comes in by the lock. Each turn: read what came, end what is late, take what
 * is new, send, tell who asked. */

#define PART 16 /* looks */

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
ask_or_skip(struct idem_shield *shield, struct idem_shield_look *look,
            int64_t now_ns)
{
    if (ask(shield, look, now_ns))
        return;
    shield_count(&shield->skipped, 1);
    shield_looks_push(&shield->answered, look);
}

static void
ask_all(struct idem_shield *shield, struct shield_looks *looks, int64_t now_ns)
{
    struct idem_shield_look *look;

    while ((look = shield_looks_pop(looks)))
        ask_or_skip(shield, look, now_ns);
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

static void
take_new(struct idem_shield *shield, int64_t now_ns)
{
    struct shield_looks looks = {NULL, NULL};
    struct shield_fills fills;

    pthread_mutex_lock(&shield->lock);
    looks.first = shield->new_looks.first;
    shield->new_looks = (struct shield_looks){NULL, NULL};
    fills = shield->new_fills;
    shield->new_fills = (struct shield_fills){NULL, NULL, 0};
    pthread_mutex_unlock(&shield->lock);

    ask_all(shield, &looks, now_ns);
    send_fills(shield, &fills);
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

/* --- A turn --- */

static void
read_what_came(struct idem_shield *shield)
{
    struct epoll_event events[SHIELD_NODES_MAX];
    int n = epoll_wait(shield->epoll, events, SHIELD_NODES_MAX, 0);

    for (int i = 0; i < n; i++)
        shield_node_turn(events[i].data.ptr, (short)events[i].events);
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
send_all(struct idem_shield *shield)
{
    for (unsigned i = 0; i < shield->n_nodes; i++) {
        shield_node_turn(&shield->nodes[i], 0);
        shield_node_watch(&shield->nodes[i]);
        if (shield->nodes[i].asked.first)
            idem_turns_sent(shield->turns);
    }
}

/* Redis begins with a part of the looks of one read while the rest of it is
 * worked at. */
void
shield_ask_here(struct idem_shield *shield, struct idem_shield_look *look,
                int64_t now_ns)
{
    ask_or_skip(shield, look, now_ns);
    if (++shield->asked_here % PART == 0)
        send_all(shield);
    if (shield->asked_here == 1)
        idem_turns_ask(shield->turns);
}

static void
turn(void *self)
{
    struct idem_shield *shield = self;
    int64_t now_ns;

    shield->asked_here = 0;
    read_what_came(shield);
    now_ns = now_of(shield);
    for (unsigned i = 0; i < shield->n_nodes; i++)
        shield_node_keep(&shield->nodes[i], now_ns);
    shield_discover(shield, now_ns);
    take_new(shield, now_ns);
    send_all(shield);
    idem_turns_by(shield->turns, next_ns(shield));
    tell(shield);
}

enum idem_status
shield_turns_start(struct idem_shield *shield, struct idem_error *err)
{
    struct idem_turns_options options = {
        .turn = turn, .with = shield, .clock = shield->clock};
    enum idem_status status;

    shield->epoll = options.fd = epoll_create1(EPOLL_CLOEXEC);
    if (options.fd < 0)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "epoll_create1: %s",
                         strerror(errno));
    status = idem_turns_new(&shield->turns, &options, err);
    if (status == IDEM_OK)
        idem_turns_ask(shield->turns);
    else
        close(options.fd);
    return status;
}

void
shield_turns_stop(struct idem_shield *shield)
{
    idem_turns_stop(shield->turns);
    shield->epoll = -1; /* closed with them */
    take_new(shield, INT64_MAX);
    for (unsigned i = 0; i < shield->n_nodes; i++) {
        shield_node_turn(&shield->nodes[i], 0); /* fills that wait */
        shield_node_close(&shield->nodes[i]);   /* no name is looked up now */
    }
    tell(shield);
    idem_turns_free(shield->turns);
}
