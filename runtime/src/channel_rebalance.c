#include "channel_inside.h"

/* From one balancer to another while calls fly. Who asks for it may hold locks
 * of its own, so that what runs callbacks is left to the timers' thread. */

/* With the lock: pick_first has one link. */
static void
retire_surplus(struct idem_channel *channel)
{
    bool first = true;

    for (struct address *at = channel->addresses; at; at = at->next) {
        if (!at->link)
            continue;
        if (!first) {
            link_retire(at->link);
            address_step(at, ADDRESS_LOST);
        }
        first = false;
    }
}

static void
rebalance(struct idem_timer *timer)
{
    struct idem_channel *channel =
        (struct idem_channel *)((char *)timer -
                                offsetof(struct idem_channel, rebalance));

    link_finish_empty(channel);
    address_dial_wanted(channel);
    wait_board(channel);
}

void
rebalance_init(struct idem_channel *channel)
{
    channel->rebalance.fire = rebalance;
}

enum idem_balancer
idem_channel_balancer(struct idem_channel *channel)
{
    enum idem_balancer balancer;

    pthread_mutex_lock(&channel->lock);
    balancer = channel->options.balancer;
    pthread_mutex_unlock(&channel->lock);
    return balancer;
}

enum idem_status
idem_channel_set_balancer(struct idem_channel *channel,
                          enum idem_balancer balancer, struct idem_error *err)
{
    enum idem_status status = balancer_check(balancer, err);

    if (status != IDEM_OK)
        return status;
    pthread_mutex_lock(&channel->lock);
    if (!channel->closing && channel->options.balancer != balancer) {
        channel->options.balancer = balancer;
        if (balancer == IDEM_BALANCER_PICK_FIRST)
            retire_surplus(channel);
        idem_timer_start(channel->timers, &channel->rebalance,
                         channel_after_ms(channel, 0));
    }
    pthread_mutex_unlock(&channel->lock);
    return IDEM_OK;
}
