#include "channel_inside.h"

#include <idem/reason.h>

#include <stdlib.h>

#define NS_PER_US 1000

/* A connection of the channel and the attempts that fly on it: OPEN out, END
 * in, what becomes of them when it drains or is lost. */

/* --- Out --- */

/* The channel's number of a method; 0: it has none left. */
static uint32_t
number_of(struct idem_channel *channel, const struct idem_method *method)
{
    const unsigned room = METHOD_IDS * 2;
    unsigned at = (unsigned)(((uintptr_t)method >> 4) % room);

    while (channel->ids[at].method && channel->ids[at].method != method)
        at = (at + 1) % room;
    if (!channel->ids[at].method) {
        if (channel->n_ids == METHOD_IDS)
            return 0;
        channel->ids[at] = (struct method_id){method, ++channel->n_ids};
    }
    return channel->ids[at].id;
}

static size_t
write_open(struct link *link, const struct client_call *call,
           uint8_t bytes[FRAME_HEADER_MAX])
{
    const struct idem_call *base = &call->call.base;
    uint32_t id = number_of(link->channel, base->method);
    struct header_open open = {
        .method_id = id,
        .key = base->key,
        .attempt = base->attempt,
    };

    if (id == 0 || !link->told[id])
        open.method = idem_bytes_of(base->method->name);
    link->told[id] = true;
    if (base->deadline_ns != INT64_MAX) {
        open.has_timeout = true;
        open.timeout_us = (uint64_t)idem_call_remaining_ns(base) / NS_PER_US;
    }
    return header_open_write(bytes, FRAME_HEADER_MAX, &open, &base->metadata);
}

bool
link_has_room(const struct link *link)
{
    return link->last_stream < UINT32_MAX &&
           link->streams.count <
               connection_peer_limits(link->connection)->max_streams;
}

static void
release_request(void *with)
{
    struct client_call *call = with;

    call_unref(&call->call);
}

/* True: the OPEN is in the queue. */
static bool
append_open(struct link *link, struct client_call *call)
{
    uint8_t header[FRAME_HEADER_MAX];
    struct frame frame = {
        .type = FRAME_OPEN,
        .flags = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE,
        .stream = call->stream,
        .header = {header, 0},
        .payload = call->call.base.request,
    };
    enum connection_append appended;

    frame.header.size = write_open(link, call, header);
    call_ref(&call->call);
    appended = connection_append(link->connection, &frame,
                                 (struct outbox_hold){release_request, call},
                                 &call->mark);
    if (appended != CONNECTION_HELD)
        call_unref(&call->call); /* not the last: the walk has one */
    return appended != CONNECTION_CLOSED;
}

static void
refuse_size(struct client_call *call, size_t limit)
{
    idem_call_fail(&call->call.base, IDEM_RESOURCE_EXHAUSTED,
                   IDEM_EFFECT_NOT_SENT, IDEM_REQUEST_TOO_LARGE,
                   "the request is %zu bytes, the server takes %zu",
                   call->call.base.request.size, limit);
}

enum link_placed
link_place(struct link *link, struct client_call *call)
{
    size_t limit = connection_peer_limits(link->connection)->max_message;

    if (call->call.base.request.size > limit) {
        refuse_size(call, limit);
        return LINK_REFUSED;
    }
    if (!link_has_room(link))
        return LINK_FULL;
    call->stream = link->last_stream + 1;
    if (!streams_add(&link->streams, call->stream, call))
        return LINK_FULL;
    if (!append_open(link, call)) {
        streams_take(&link->streams, call->stream);
        return LINK_FULL;
    }
    link->last_stream = call->stream;
    call->link = link;
    call->place = PLACE_FLYING;
    call->call.sent = true;
    return LINK_PLACED;
}

bool
link_over(const struct link *link)
{
    return link->draining && link->streams.count == 0;
}

/* With the lock: no new calls here. True: another link is wanted. */
static bool
retire(struct link *link)
{
    bool was_it = link->channel->link == link;

    link->draining = true;
    if (was_it)
        link->channel->link = NULL;
    return was_it && !link->channel->closing;
}

bool
link_used_up(struct link *link)
{
    return link->last_stream == UINT32_MAX && retire(link);
}

void
link_withdraw(struct link *link, struct client_call *call)
{
    bool given_up = atomic_load(&call->call.interrupt) == IDEM_CANCELLED;
    struct frame frame = {
        .type = given_up ? FRAME_CANCEL : FRAME_DETACH,
        .stream = call->stream,
    };

    streams_take(&link->streams, call->stream);
    call->place = PLACE_NOWHERE;
    call->link = NULL;
    (void)connection_append(link->connection, &frame, (struct outbox_hold){0},
                            NULL);
}

/* --- In --- */

/* With the lock: a stream is free. Who waited may go; an empty link that drains
 * may end. */
static struct client_call *
after_end(struct link *link, bool *over)
{
    if (!link->proved) {
        link->proved = true;
        link->channel->backoff_ms = link->channel->options.connect_backoff_ms;
    }
    *over = link_over(link);
    return link->channel->waiting ? wait_board(link->channel) : NULL;
}

static void
end(struct link *link, const struct frame *frame)
{
    struct idem_channel *channel = link->channel;
    struct client_call *call, *refused;
    bool over = false;

    pthread_mutex_lock(&channel->lock);
    call = streams_take(&link->streams, frame->stream);
    if (call) {
        call->place = PLACE_NOWHERE;
        call->link = NULL;
    }
    refused = after_end(link, &over);
    pthread_mutex_unlock(&channel->lock);
    if (call) {
        channel_take_end(call, frame);
        idem_call_resume(&call->call.base, IDEM_ANSWER);
    }
    wait_resume(refused);
    if (over)
        connection_finish(link->connection);
}

/* With the lock: the flying calls over this stream, not resumed yet. */
static struct client_call *
take_flying(struct link *link, uint32_t above)
{
    struct client_call *taken = NULL, *call;

    while ((call = streams_take_above(&link->streams, above))) {
        call->place = PLACE_NOWHERE;
        call->link = NULL;
        call->next_waiting = taken;
        taken = call;
    }
    return taken;
}

static void
dial_again(struct link *link, const char *why)
{
    if (link->proved)
        channel_dial(link->channel);
    else
        channel_dial_failed(link->channel, why);
}

static const char *
goaway(struct link *link, const struct frame *frame)
{
    struct idem_channel *channel = link->channel;
    struct header_goaway said;
    struct client_call *refused;
    bool redial, over;

    if (!header_goaway_read(frame->header, &said))
        return "broken GOAWAY";
    pthread_mutex_lock(&channel->lock);
    redial = retire(link);
    refused = take_flying(link, said.last_stream);
    over = link_over(link);
    pthread_mutex_unlock(&channel->lock);
    for (struct client_call *call = refused; call; call = call->next_waiting)
        idem_call_fail(&call->call.base, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED,
                       NULL, "%s: the server is going away", channel->target);
    if (redial)
        dial_again(link, "the server is going away");
    wait_resume(refused);
    if (over)
        connection_finish(link->connection);
    return NULL;
}

static const char *
on_frame(void *with, const struct frame *frame)
{
    struct link *link = with;

    if (frame->type == FRAME_END)
        end(link, frame);
    else if (frame->type == FRAME_GOAWAY)
        return goaway(link, frame);
    return NULL;
}

/* --- Its life --- */

static void
on_ready(void *with)
{
    struct link *link = with;
    struct idem_channel *channel = link->channel;
    struct client_call *refused;

    pthread_mutex_lock(&channel->lock);
    link->ready = true;
    channel->link = link;
    channel->away = false;
    refused = wait_board(channel);
    pthread_mutex_unlock(&channel->lock);
    channel_dial_done(channel);
    wait_resume(refused);
}

/* Each call knows at once whether it can have been seen. */
static void
fail_lost(struct link *link, struct client_call *calls)
{
    for (; calls; calls = calls->next_waiting) {
        bool reached = connection_reached(link->connection, calls->mark);

        idem_call_fail(&calls->call.base, IDEM_UNAVAILABLE,
                       reached ? IDEM_EFFECT_IN_DOUBT : IDEM_EFFECT_NOT_SENT,
                       NULL, "%s: %s", link->channel->target,
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
    bool redial;

    pthread_mutex_lock(&channel->lock);
    redial = retire(link);
    lost = take_flying(link, 0);
    pthread_mutex_unlock(&channel->lock);
    fail_lost(link, lost);
    if (!link->ready || redial)
        dial_again(link, connection_why(connection));
    wait_resume(lost);
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
    streams_fini(&link->streams);
    free(link);
    pthread_cond_broadcast(&channel->idle);
    pthread_mutex_unlock(&channel->lock);
}

static const struct connection_events link_events = {
    .ready = on_ready,
    .frame = on_frame,
    .closed = on_closed,
    .gone = on_gone,
};

void
link_open(struct idem_channel *channel, struct io_stream *stream)
{
    struct link *link = calloc(1, sizeof *link);
    struct connection_options options = {
        .limits = {channel->options.max_message, 1},
        .clock = channel->clock,
        .events = &link_events,
        .with = link,
    };
    bool closing;

    if (link)
        link->connection = connection_new(stream, &options);
    else
        stream->ops->free(stream);
    if (!link || !link->connection) {
        free(link);
        channel_dial_failed(channel, "out of memory");
        return;
    }
    link->channel = channel;
    pthread_mutex_lock(&channel->lock);
    link->next = channel->links;
    channel->links = link;
    closing = channel->closing;
    pthread_mutex_unlock(&channel->lock);
    if (closing)
        connection_close(link->connection, "the channel is closed");
    connection_start(link->connection);
}
