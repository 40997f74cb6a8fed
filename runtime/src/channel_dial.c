#include "channel_inside.h"

#include <stdio.h>

#define NS_PER_MS 1000000
#define GIVE_UP_MS 20000 /* dial and hello together; gRPC's least */
#define JITTER_PERCENT 20

/* How the channel gets its links: one attempt at a time, pauses that double
 * between attempts that fail (client.md; gRPC's connection backoff). A link on
 * which no call was ever answered has failed, too, whatever it said at first:
 * else a server that takes connections and drops them would be dialled without
 * a pause.
 *
 *    DIALING --stream--> link says hello --SETTINGS--> ready
 *       ^  \________failed________/                      |
 *       |           |                              lost, or GOAWAY
 *       +--pause----+                                    |
 *       +------------------------------------------------+
 */

static int64_t
after_ms(const struct idem_channel *channel, int64_t ms)
{
    return channel->clock->monotonic_ns(channel->clock) + ms * NS_PER_MS;
}

/* With the lock: the pause from now, and the next one. */
static int64_t
next_pause_ms(struct idem_channel *channel)
{
    int64_t pause_ms = channel->backoff_ms;
    int64_t max_ms = channel->options.connect_backoff_max_ms;
    int64_t spread_ms = pause_ms * JITTER_PERCENT / 100;

    channel->backoff_ms = pause_ms > max_ms / 2 ? max_ms : pause_ms * 2;
    return idem_clock_between(channel->clock, pause_ms - spread_ms,
                              pause_ms + spread_ms);
}

void
channel_dial_failed(struct idem_channel *channel, const char *why)
{
    struct client_call *impatient;
    int64_t pause_ms;
    bool again;

    idem_timer_stop(channel->timers, &channel->give_up);
    pthread_mutex_lock(&channel->lock);
    channel->away = true;
    snprintf(channel->trouble, sizeof channel->trouble, "cannot connect: %s",
             why);
    impatient = wait_take_impatient(channel);
    again = !channel->closing;
    pause_ms = next_pause_ms(channel);
    pthread_mutex_unlock(&channel->lock);
    if (again)
        idem_timer_start(channel->timers, &channel->redial,
                         after_ms(channel, pause_ms));
    wait_resume(impatient);
}

static void
dialed(void *with, struct io_stream *stream, const struct idem_error *err)
{
    struct idem_channel *channel = with;
    struct io_dialer *dialer;

    pthread_mutex_lock(&channel->lock);
    dialer = channel->dialer;
    channel->dialer = NULL;
    channel->dialing = false;
    channel->dialed = true;
    pthread_mutex_unlock(&channel->lock);
    dialer->ops->free(dialer);
    if (stream)
        link_open(channel, stream);
    else
        channel_dial_failed(channel, err->message);
    pthread_mutex_lock(&channel->lock);
    channel->dialed = false;
    pthread_cond_broadcast(&channel->idle);
    pthread_mutex_unlock(&channel->lock);
}

/* With the lock. */
static struct connection *
link_without_hello(struct idem_channel *channel)
{
    struct link *link = channel->links;

    while (link && (link->ready || link->draining))
        link = link->next;
    if (!link)
        return NULL;
    connection_ref(link->connection);
    return link->connection;
}

static void
fire_give_up(struct idem_timer *timer)
{
    struct idem_channel *channel =
        (struct idem_channel *)((char *)timer -
                                offsetof(struct idem_channel, give_up));
    struct connection *connection;

    pthread_mutex_lock(&channel->lock);
    if (channel->dialer)
        channel->dialer->ops->close(channel->dialer);
    connection = link_without_hello(channel);
    pthread_mutex_unlock(&channel->lock);
    if (!connection)
        return;
    connection_close(connection, "no hello in time");
    connection_unref(connection);
}

static void
fire_redial(struct idem_timer *timer)
{
    channel_dial(
        (struct idem_channel *)((char *)timer -
                                offsetof(struct idem_channel, redial)));
}

/* With the lock: NULL when there is no need, or no way. */
static struct io_dialer *
new_dialer(struct idem_channel *channel, struct idem_error *err)
{
    if (channel->closing || channel->dialing ||
        channel->io->dialer(channel->io, channel->target, &channel->dialer,
                            err) != IDEM_OK)
        return NULL;
    channel->dialing = true;
    return channel->dialer;
}

void
channel_dial(struct idem_channel *channel)
{
    struct idem_error err = {0};
    struct io_dialer *dialer;

    channel->give_up.fire = fire_give_up;
    channel->redial.fire = fire_redial;
    pthread_mutex_lock(&channel->lock);
    dialer = new_dialer(channel, &err);
    pthread_mutex_unlock(&channel->lock);
    if (!dialer && err.status != IDEM_OK)
        channel_dial_failed(channel, err.message);
    if (!dialer)
        return;
    idem_timer_start(channel->timers, &channel->give_up,
                     after_ms(channel, GIVE_UP_MS));
    if (!dialer->ops->dial(dialer, dialed, channel)) {
        idem_fail(&err, IDEM_UNAVAILABLE, "the channel is closed");
        dialed(channel, NULL, &err);
    }
}

void
channel_dial_done(struct idem_channel *channel)
{
    idem_timer_stop(channel->timers, &channel->give_up);
}

void
channel_dial_stop(struct idem_channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    if (channel->dialer)
        channel->dialer->ops->close(channel->dialer);
    pthread_mutex_unlock(&channel->lock);
}
