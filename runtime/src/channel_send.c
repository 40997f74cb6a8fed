#include "channel_inside.h"

/* The bottom of the client's chain: an attempt goes onto a link, or waits for
 * one, or is taken back from there. */

static bool
withdraw(struct idem_call *base, void *with)
{
    struct client_call *call = with;
    struct idem_channel *channel = call->channel;
    struct connection *connection = NULL;
    bool mine, over = false;

    (void)base;
    pthread_mutex_lock(&channel->lock);
    mine = call->place != PLACE_NOWHERE;
    if (call->place == PLACE_WAITING) {
        wait_out(channel, call);
    } else if (call->place == PLACE_FLYING) {
        struct link *link = call->link;

        connection = link->connection;
        connection_ref(connection);
        link_withdraw(link, call);
        over = link_over(link);
    }
    pthread_mutex_unlock(&channel->lock);
    if (!connection)
        return mine;
    connection_flush(connection);
    if (over)
        connection_finish(connection);
    connection_unref(connection);
    return mine;
}

static const struct idem_holder holder = {.withdraw = withdraw};

/* With the lock: on the link, or in the queue, or neither (the outcome says
 * why). *connection gets a reference when there is something to flush. */
static enum idem_step
put(struct idem_channel *channel, struct client_call *call,
    struct connection **connection, bool *redial)
{
    enum link_placed placed = LINK_FULL;

    if (channel->closing) {
        idem_call_fail(&call->call.base, IDEM_CANCELLED, IDEM_EFFECT_NOT_SENT,
                       NULL, "the channel is closed");
        return IDEM_ANSWER;
    }
    if (!channel->link && channel->away && !call->wait_for_ready) {
        idem_call_fail(&call->call.base, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT,
                       NULL, "%s", channel->trouble);
        return IDEM_ANSWER;
    }
    if (channel->link && !channel->waiting)
        placed = link_place(channel->link, call);
    if (placed == LINK_REFUSED)
        return IDEM_ANSWER;
    if (placed == LINK_FULL)
        wait_in(channel, call);
    if (channel->link) {
        *connection = channel->link->connection;
        connection_ref(*connection);
        *redial = link_used_up(channel->link);
    }
    return IDEM_WAIT;
}

enum idem_step
channel_send(struct call *base)
{
    struct client_call *call = client_call_of(base);
    struct idem_channel *channel = call->channel;
    struct connection *connection = NULL;
    bool redial = false;
    enum idem_step step;

    if (idem_call_remaining_ns(&base->base) == 0) {
        idem_call_fail(&base->base, IDEM_DEADLINE_EXCEEDED,
                       IDEM_EFFECT_NOT_SENT, NULL, "the deadline is over");
        return IDEM_ANSWER;
    }
    if (!idem_call_keep(&base->base, &holder, call))
        return IDEM_ANSWER;
    pthread_mutex_lock(&channel->lock);
    step = put(channel, call, &connection, &redial);
    pthread_mutex_unlock(&channel->lock);
    if (connection) {
        connection_flush(connection);
        connection_unref(connection);
    }
    if (redial)
        channel_dial(channel);
    return step;
}
