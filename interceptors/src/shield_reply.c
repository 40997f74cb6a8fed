#include "shield.h"

#include <stdlib.h>
#include <string.h>

#define READONLY_NS INT64_C(1000000000) /* a replica is kept so long */

static int64_t
now_of(const struct shield_node *node)
{
    return node->shield->clock->monotonic_ns(node->shield->clock);
}

static bool
says(struct idem_bytes text, const char *word)
{
    return memmem(text.data, text.size, word, strlen(word)) != NULL;
}

/* A replica: the name, or the Sentinel, may lead to the primary by now (case
 * B060). Some proxies put another word in front of it. */
static bool
take_fill_reply(struct shield_node *node, const struct redis_reply *reply)
{
    struct idem_shield *shield = node->shield;

    if (reply->kind == REDIS_STATUS) {
        shield_count(&shield->fills, 1);
        return true;
    }
    shield_count(&shield->failed, 1);
    if (reply->kind != REDIS_REFUSAL)
        return false;
    if (says(reply->bytes, "MOVED "))
        shield_discover_lost(node);
    return !says(reply->bytes, "READONLY") ||
           now_of(node) - node->opened_ns < READONLY_NS;
}

/* One that another node takes is sent there instead. */
static bool
take_kept_reply(struct shield_node *node, const struct redis_reply *reply)
{
    struct shield_fill *fill = shield_fills_pop(&node->kept);

    if (reply->kind == REDIS_REFUSAL && says(reply->bytes, "MOVED ")) {
        shield_redirect_fill(node, fill, reply);
        return true;
    }
    free(fill);
    return take_fill_reply(node, reply);
}

/* A key of somebody else's, or one that is elsewhere, says nothing about Redis
 * as a whole. */
static bool
is_failure(const struct redis_reply *reply)
{
    return reply->kind == REDIS_REFUSAL && !says(reply->bytes, "WRONGTYPE") &&
           !says(reply->bytes, "MOVED ") && !says(reply->bytes, "ASK ");
}

static bool
take_look_reply(struct shield_node *node, struct idem_shield_look *look,
                const struct redis_reply *reply)
{
    bool in_step = shield_answer(node->shield, look, reply);

    shield_looks_push(&node->shield->answered, look);
    if (is_failure(reply) || !in_step) {
        shield_breaker_failed(&node->breaker, now_of(node));
    } else {
        shield_breaker_succeeded(&node->breaker);
        node->connects = 0;
    }
    return in_step;
}

bool
shield_replied(void *self, void *user, const struct redis_reply *reply)
{
    struct shield_node *node = self;
    struct idem_shield *shield = node->shield;
    struct idem_shield_look *look;

    node->heard_ns = now_of(node);
    if (user == SHIELD_FILL)
        return take_fill_reply(node, reply);
    if (user == node->kept.first)
        return take_kept_reply(node, reply);
    if (user == &shield->map_mark)
        return shield_discover_reply(node, reply);
    if (user == &shield->asking_mark)
        return reply->kind == REDIS_STATUS || reply->kind == REDIS_REFUSAL;
    look = shield_looks_pop(&node->asked);
    IDEM_ASSERT(look == user);
    return shield_redirect(node, look, reply) ||
           take_look_reply(node, look, reply);
}
