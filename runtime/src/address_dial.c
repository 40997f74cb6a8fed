#include "channel_inside.h"

#include <stdio.h>

#define GIVE_UP_MS 20000 /* dial and hello together; gRPC's least */
#define JITTER_PERCENT 20

/* How an address gets its link: one attempt at a time, pauses that double
 * between attempts that fail (client.md; gRPC's connection backoff). A link on
 * which no call was ever answered has failed, too, whatever it said at first:
 * else a server that takes connections and drops them would be dialled without
 * a pause.
 *
 *    dialling --stream--> link says hello --SETTINGS--> ready
 *       ^  \________failed________/                      |
 *       |           |                              lost, or GOAWAY
 *       +--pause----+                                    |
 *       +------------------------------------------------+
 */

/* --- Timers: each that waits or fires uses the address --- */

static void
start_timer(struct address *address, struct idem_timer *timer, int64_t ms)
{
    struct idem_channel *channel = address->channel;

    if (!idem_timer_stop(channel->timers, timer))
        address_use(address);
    idem_timer_start(channel->timers, timer, channel_after_ms(channel, ms));
}

static void
stop_timer(struct address *address, struct idem_timer *timer)
{
    if (idem_timer_stop(address->channel->timers, timer))
        address_release(address);
}

static void
release(struct address *address)
{
    struct idem_channel *channel = address->channel;

    pthread_mutex_lock(&channel->lock);
    address_release(address);
    pthread_mutex_unlock(&channel->lock);
}

/* --- One attempt --- */

/* With the lock: the pause from now, and the next one. */
static int64_t
next_pause_ms(struct address *address)
{
    const struct idem_channel *channel = address->channel;
    int64_t pause_ms = address->backoff_ms;
    int64_t max_ms = channel->options.connect_backoff_max_ms;
    int64_t spread_ms = pause_ms * JITTER_PERCENT / 100;

    address->backoff_ms = pause_ms > max_ms / 2 ? max_ms : pause_ms * 2;
    return idem_clock_between(channel->clock, pause_ms - spread_ms,
                              pause_ms + spread_ms);
}

void
address_failed(struct address *address, const char *why)
{
    struct idem_channel *channel = address->channel;
    struct client_call *impatient = NULL;

    pthread_mutex_lock(&channel->lock);
    snprintf(address->trouble, sizeof address->trouble, "cannot connect: %s",
             why);
    snprintf(channel->trouble, sizeof channel->trouble, "%s", address->trouble);
    address_step(address, ADDRESS_FAILED);
    if (channel->away)
        impatient = wait_take_impatient(channel);
    if (!address_unwanted(address))
        start_timer(address, &address->redial, next_pause_ms(address));
    stop_timer(address, &address->give_up);
    pthread_mutex_unlock(&channel->lock);
    wait_resume(impatient);
    target_again(channel->target);
    address_dial_wanted(channel);
}

static void
dialed(void *with, struct io_stream *stream, const struct idem_error *err)
{
    struct address *address = with;
    struct idem_channel *channel = address->channel;
    struct io_dialer *dialer;

    pthread_mutex_lock(&channel->lock);
    dialer = address->dialer;
    address->dialer = NULL;
    address->dialing = false;
    pthread_mutex_unlock(&channel->lock);
    dialer->ops->free(dialer);
    if (stream)
        link_open(address, stream);
    else
        address_failed(address, err->message);
    release(address);
}

/* With the lock: NULL when there is no need, or no way. */
static struct io_dialer *
new_dialer(struct address *address, struct idem_error *err)
{
    if (address_unwanted(address) || address->dialing ||
        address->io->dialer(address->io, address->name, &address->dialer,
                            err) != IDEM_OK)
        return NULL;
    address->dialing = true;
    address_use(address);
    address_step(address, ADDRESS_DIALLED);
    start_timer(address, &address->give_up, GIVE_UP_MS);
    return address->dialer;
}

/* Without the lock, with a use. */
static void
dial(struct address *address)
{
    struct idem_channel *channel = address->channel;
    struct idem_error err = {0};
    struct io_dialer *dialer;

    pthread_mutex_lock(&channel->lock);
    dialer = new_dialer(address, &err);
    pthread_mutex_unlock(&channel->lock);
    if (!dialer && err.status != IDEM_OK)
        address_failed(address, err.message);
    if (!dialer || dialer->ops->dial(dialer, dialed, address))
        return;
    idem_fail(&err, IDEM_UNAVAILABLE, "the channel is closed");
    dialed(address, NULL, &err);
}

/* --- Which --- */

/* With the lock. pick_first has one link. */
static bool
wants_link(const struct address *address)
{
    const struct idem_channel *channel = address->channel;

    return !address_unwanted(address) && !address->dialing && !address->link &&
           (channel->options.balancer != IDEM_BALANCER_PICK_FIRST ||
            channel->n_ready == 0);
}

/* With the lock. */
static bool
somebody_connects(const struct idem_channel *channel)
{
    for (const struct address *at = channel->addresses; at; at = at->next)
        if (!at->dropped && at->state == IDEM_CHANNEL_CONNECTING)
            return true;
    return false;
}

/* With the lock: the next that was not tried since it was last READY. */
static struct address *
next_idle(const struct idem_channel *channel)
{
    if (channel->options.balancer == IDEM_BALANCER_PICK_FIRST &&
        somebody_connects(channel))
        return NULL;
    for (struct address *at = channel->addresses; at; at = at->next)
        if (at->state == IDEM_CHANNEL_IDLE && wants_link(at))
            return at;
    return NULL;
}

void
address_dial_wanted(struct idem_channel *channel)
{
    struct address *address;

    do {
        pthread_mutex_lock(&channel->lock);
        address = next_idle(channel);
        if (address)
            address_use(address);
        pthread_mutex_unlock(&channel->lock);
        if (address) {
            dial(address);
            release(address);
        }
    } while (address);
}

void
address_lost(struct address *address, bool worked, const char *why)
{
    struct idem_channel *channel = address->channel;
    char text[IDEM_MESSAGE_MAX];

    if (!worked) {
        snprintf(text, sizeof text, "%s: %s", address->name, why);
        address_failed(address, text);
        return;
    }
    pthread_mutex_lock(&channel->lock);
    address_step(address, ADDRESS_LOST);
    pthread_mutex_unlock(&channel->lock);
    address_dial_wanted(channel);
}

void
address_renew(struct address *address)
{
    address_lost(address, true, NULL);
    release(address);
}

static void
fire_redial(struct idem_timer *timer)
{
    struct address *address =
        (struct address *)((char *)timer - offsetof(struct address, redial));
    struct idem_channel *channel = address->channel;
    bool wanted;

    pthread_mutex_lock(&channel->lock);
    wanted = wants_link(address);
    if (!wanted && !address->dialing && !address->link)
        address_step(address, ADDRESS_REST);
    pthread_mutex_unlock(&channel->lock);
    if (wanted)
        dial(address);
    release(address);
}

/* --- An attempt that takes too long --- */

/* With the lock. */
static struct connection *
link_without_hello(const struct address *address)
{
    struct link *link = address->channel->links;

    while (link && (link->address != address || link->ready || link->draining))
        link = link->next;
    return link && connection_ref_alive(link->connection) ? link->connection
                                                          : NULL;
}

static void
fire_give_up(struct idem_timer *timer)
{
    struct address *address =
        (struct address *)((char *)timer - offsetof(struct address, give_up));
    struct idem_channel *channel = address->channel;
    struct connection *connection;

    pthread_mutex_lock(&channel->lock);
    if (address->dialer)
        address->dialer->ops->close(address->dialer);
    connection = link_without_hello(address);
    pthread_mutex_unlock(&channel->lock);
    if (connection) {
        connection_close(connection, "no hello in time");
        connection_unref(connection);
    }
    release(address);
}

void
address_dial_init(struct address *address)
{
    address->give_up.fire = fire_give_up;
    address->redial.fire = fire_redial;
}

void
address_dial_done(struct address *address)
{
    stop_timer(address, &address->give_up);
}

void
address_dial_stop(struct address *address)
{
    if (address->dialer)
        address->dialer->ops->close(address->dialer);
    stop_timer(address, &address->give_up);
    stop_timer(address, &address->redial);
}
