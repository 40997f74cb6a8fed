#include "channel_inside.h"

/* Deadlines of calls that fly. Nearly every call is answered long before its
 * own, so one that is placed gets no timer: each 100 ms a round of its link
 * arms those that have come since the round before and fly still. What may be
 * over before the next round is armed at once (decision 53).
 *
 *    quiet --a call is placed--> a round comes --nothing new flies--> quiet
 *
 * The rounds' timer holds a reference of the connection while it runs. */

#define ROUND_NS INT64_C(100000000) /* all links' together: one wake-up */

/* With the lock. */
static void
start(struct link *link)
{
    const struct idem_clock *clock = link->channel->clock;
    int64_t now_ns = clock->monotonic_ns(clock);

    link->arms_at_ns = (now_ns / ROUND_NS + 1) * ROUND_NS;
    idem_timer_start(link->channel->timers, &link->arming, link->arms_at_ns);
}

/* With the lock. */
static void
go_round(struct link *link)
{
    uint32_t from = link->armed_to, at = 0;
    struct client_call *call;

    while ((call = streams_next_above(&link->streams, from, &at)) != NULL)
        call_arm(&call->call);
    link->armed_to = link->last_stream;
    link->arms = link->streams.count > 0 && link->armed_to != from;
    if (link->arms)
        start(link);
}

static void
fire(struct idem_timer *timer)
{
    struct link *link =
        (struct link *)((char *)timer - offsetof(struct link, arming));
    struct idem_channel *channel = link->channel;
    struct connection *connection = link->connection;
    bool goes_on;

    /* The timer's own is another's when it runs on. */
    connection_ref(connection);
    pthread_mutex_lock(&channel->lock);
    go_round(link);
    goes_on = link->arms;
    pthread_mutex_unlock(&channel->lock);
    if (!goes_on)
        connection_unref(connection);
    connection_unref(connection);
}

void
arming_note(struct link *link, struct call *call)
{
    if (call->armed || call->end_ns == INT64_MAX)
        return;
    if (!link->arms) {
        link->arms = true;
        link->arming.fire = fire;
        connection_ref(link->connection);
        start(link);
    }
    if (call->end_ns <= link->arms_at_ns)
        call_arm(call);
}

bool
arming_end(struct link *link)
{
    if (!idem_timer_stop(link->channel->timers, &link->arming))
        return false;
    link->arms = false;
    return true;
}
