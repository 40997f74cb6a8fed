#include "channel_inside.h"

#include <stdlib.h>

/* The life of a link: hello, ready, lost, gone. */

/* With the lock: pick_first has one link. The channel is closing: none. */
static bool
is_surplus(const struct link *link)
{
    const struct idem_channel *channel = link->channel;

    return address_unwanted(link->address) ||
           (channel->options.balancer == IDEM_BALANCER_PICK_FIRST &&
            channel->n_ready > 0);
}

static void
on_ready(void *with)
{
    struct link *link = with;
    struct idem_channel *channel = link->channel;
    bool surplus;

    atomic_store(&channel->codecs,
                 connection_peer_limits(link->connection)->codecs);
    pthread_mutex_lock(&channel->lock);
    link->ready = true;
    surplus = is_surplus(link);
    link->address->link = link;
    address_dial_done(link->address);
    address_step(link->address, ADDRESS_UP);
    if (surplus) {
        link_retire(link);
        address_step(link->address, ADDRESS_LOST);
    }
    pthread_mutex_unlock(&channel->lock);
    if (surplus)
        connection_finish(link->connection);
    wait_board(channel);
}

/* Each call knows at once whether it can have been seen. */
static void
fail_lost(struct link *link, struct client_call *calls)
{
    for (; calls; calls = calls->next_waiting) {
        bool reached = connection_reached(link->connection, calls->mark);

        if (!reached)
            calls->tried |= link->address->bit;
        idem_call_fail(&calls->call.base, IDEM_UNAVAILABLE,
                       reached ? IDEM_EFFECT_IN_DOUBT : IDEM_EFFECT_NOT_SENT,
                       NULL, "%s: %s", link->address->name,
                       connection_why(link->connection));
    }
}

static void
on_closed(void *with)
{
    struct link *link = with;
    struct idem_channel *channel = link->channel;
    struct connection *connection = link->connection;
    struct client_call *lost;
    bool was_it, ticked, armed;

    pthread_mutex_lock(&channel->lock);
    was_it = link_retire(link);
    ticked = keepalive_end(link);
    armed = arming_end(link);
    lost = link_take_flying(link, 0);
    if (lost) /* one cause, however many calls */
        outlier_failed(link->address);
    pthread_mutex_unlock(&channel->lock);
    fail_lost(link, lost);
    if (!link->ready || was_it)
        address_lost(link->address, link->proved, connection_why(connection));
    wait_resume(lost);
    wait_board(channel);
    if (ticked)
        connection_unref(connection);
    if (armed)
        connection_unref(connection);
    connection_unref(connection);
}

static void
on_gone(void *with)
{
    struct link *link = with;
    struct idem_channel *channel = link->channel;
    struct link **at = &channel->links;

    pthread_mutex_lock(&channel->lock);
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    address_release(link->address);
    streams_fini(&link->streams);
    free(link);
    pthread_cond_broadcast(&channel->idle);
    pthread_mutex_unlock(&channel->lock);
}

static const struct connection_events link_events = {
    .ready = on_ready,
    .frame = link_frame,
    .roomy = channel_stream_roomy,
    .closed = on_closed,
    .gone = on_gone,
};

/* With the lock. */
static struct connection *
next_empty(const struct idem_channel *channel)
{
    for (struct link *link = channel->links; link; link = link->next)
        if (link->ready && link_over(link) && !link->finished &&
            connection_ref_alive(link->connection)) {
            link->finished = true;
            return link->connection;
        }
    return NULL;
}

void
link_finish_empty(struct idem_channel *channel)
{
    struct connection *connection;

    do {
        pthread_mutex_lock(&channel->lock);
        connection = next_empty(channel);
        pthread_mutex_unlock(&channel->lock);
        if (connection) {
            connection_finish(connection);
            connection_unref(connection);
        }
    } while (connection);
}

/* With the lock. */
static void
enter(struct link *link)
{
    struct idem_channel *channel = link->channel;

    address_use(link->address);
    link->next = channel->links;
    channel->links = link;
}

void
link_open(struct address *address, struct io_stream *stream)
{
    struct idem_channel *channel = address->channel;
    struct link *link = calloc(1, sizeof *link);
    struct connection_options options = {
        .limits = {.max_message = channel->options.max_message,
                   .max_streams = 1,
                   .stream_window = channel->options.stream_window},
        .clock = channel->clock,
        .events = &link_events,
        .with = link,
    };
    bool unwanted;

    if (link)
        link->connection = connection_new(stream, &options);
    else
        stream->ops->free(stream);
    if (!link || !link->connection) {
        free(link);
        address_failed(address, "out of memory");
        return;
    }
    link->channel = channel;
    link->address = address;
    pthread_mutex_lock(&channel->lock);
    enter(link);
    unwanted = address_unwanted(address);
    pthread_mutex_unlock(&channel->lock);
    if (unwanted)
        connection_close(link->connection, "nobody wants it any more");
    connection_start(link->connection);
}
