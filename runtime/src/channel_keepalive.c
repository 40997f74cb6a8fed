#include "channel_inside.h"

#include <stdio.h>

/* Is the server still there? A link on which calls fly is asked by a PING now
 * and then, and has some time to say anything at all.
 *
 *    quiet --a call is placed--> asks after keepalive_ms
 *      ^                             |  ^
 *      |                        PING |  | heard of
 *      +--nothing flies any more--   v  |
 *                          listens for keepalive_timeout_ms --silent--> closed
 *
 * The timer holds a reference of the connection while it runs. */

/* With the lock. */
static void
start(struct link *link, int64_t ms)
{
    idem_timer_start(link->channel->timers, &link->keepalive,
                     channel_after_ms(link->channel, ms));
}

/* With the lock: what to do now. True: say PING. */
static bool
turn(struct link *link, bool *dead)
{
    const struct idem_channel_options *options = &link->channel->options;
    int64_t rest_ms = options->keepalive_ms - options->keepalive_timeout_ms;
    uint64_t heard = connection_heard(link->connection);
    bool asked = link->asked;

    *dead = asked && heard == link->heard && link->streams.count > 0;
    link->asked = false;
    if (*dead || link->streams.count == 0) {
        link->ticking = false;
        return false;
    }
    if (asked) { /* the next PING keepalive_ms after this one */
        start(link, rest_ms > 0 ? rest_ms : 0);
        return false;
    }
    link->asked = true;
    link->heard = heard;
    start(link, options->keepalive_timeout_ms);
    return true;
}

static void
fire(struct idem_timer *timer)
{
    struct link *link =
        (struct link *)((char *)timer - offsetof(struct link, keepalive));
    const struct frame ping = {.type = FRAME_PING};
    struct idem_channel *channel = link->channel;
    struct connection *connection = link->connection;
    int64_t timeout_ms = channel->options.keepalive_timeout_ms;
    char why[64];
    bool asks, dead, goes_on;

    connection_ref(connection); /* the timer's own is another's when it runs on
                                 */
    pthread_mutex_lock(&channel->lock);
    asks = turn(link, &dead);
    goes_on = link->ticking;
    pthread_mutex_unlock(&channel->lock);
    if (asks)
        connection_send(connection, &ping);
    if (dead) {
        snprintf(why, sizeof why, "no answer to a PING in %lld ms",
                 (long long)timeout_ms);
        connection_close(connection, why);
    }
    if (!goes_on)
        connection_unref(connection);
    connection_unref(connection);
}

void
keepalive_begin(struct link *link)
{
    link->ticking = true;
    link->keepalive.fire = fire;
    connection_ref(link->connection);
    start(link, link->channel->options.keepalive_ms);
}

bool
keepalive_end(struct link *link)
{
    if (!idem_timer_stop(link->channel->timers, &link->keepalive))
        return false;
    link->ticking = false;
    return true;
}
