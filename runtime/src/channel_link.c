#include "channel_inside.h"

#include "codec.h"
#include "stream.h"

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
    char key[IDEM_KEY_MAX + 1];
    struct header_open open = {
        .method_id = id,
        .key = base->key,
        .attempt = base->attempt,
        .ack_below = base->ack_below,
        .streams =
            base->method->streams | (base->method->each ? HEADER_EACH : 0u),
        .plain_reply = call->no_compression,
    };

    if (call->call.stream) {
        open.resume_token = call->call.stream->token;
        open.resume_after = call->call.stream->came_since;
    }
    if (base->method->each) {
        pthread_mutex_lock(&call->call.stream->lock);
        stream_each_open(call->call.stream, &open, key);
        pthread_mutex_unlock(&call->call.stream->lock);
    }
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
retain_request(void *with)
{
    struct client_call *call = with;

    call_ref(&call->call);
}

static void
release_request(void *with)
{
    struct client_call *call = with;

    call_unref(&call->call);
}

static bool
goes_squeezed(const struct link *link, const struct client_call *call)
{
    enum idem_codec codec = link->channel->options.compression.codec;

    return call->squeezed &&
           call->squeezed->of == call->call.base.request.data &&
           (connection_peer_limits(link->connection)->codecs &
            CODEC_BIT(codec));
}

/* True: the OPEN is in the queue. */
static bool
append_open(struct link *link, struct client_call *call)
{
    uint8_t header[FRAME_HEADER_MAX];
    struct frame frame = {
        .type = FRAME_OPEN,
        .stream = call->stream,
        .header = {header, 0},
        .payload = call->call.base.request,
    };

    if (!(call->call.base.method->streams & IDEM_STREAMS_CLIENT))
        frame.flags = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE;
    if (goes_squeezed(link, call)) {
        frame.flags |= FRAME_FLAG_SQUEEZED;
        frame.payload = call->squeezed->bytes;
    }
    frame.header.size = write_open(link, call, header);
    return connection_append(
        link->connection, &frame,
        (struct outbox_hold){retain_request, release_request, call},
        &call->mark);
}

static void
refuse_stream(struct client_call *call, const char *address)
{
    idem_call_fail(&call->call.base, IDEM_UNIMPLEMENTED, IDEM_EFFECT_NOT_SENT,
                   NULL, "%s is a stream, and the server at %s knows none",
                   call->call.base.method->name, address);
}

/* A token is not for everybody on the way. */
static bool
keeps_secrets(const struct link *link)
{
    return connection_secure(link->connection) ||
           address_is_local(link->address->name) ||
           link->channel->options.tokens_in_plain;
}

static void
refuse_plain(struct client_call *call, const char *address)
{
    idem_call_fail(&call->call.base, IDEM_UNAUTHENTICATED, IDEM_EFFECT_NOT_SENT,
                   IDEM_NOT_SECURE,
                   "%s is not secure, and the call has a secret", address);
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
    if (call->call.base.confidential && !keeps_secrets(link)) {
        refuse_plain(call, link->address->name);
        return LINK_REFUSED;
    }
    if (call->call.stream &&
        connection_peer_limits(link->connection)->stream_window == 0) {
        refuse_stream(call, link->address->name);
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
    call->bit = link->address->bit;
    if (call->call.parent) /* attempts beside it go elsewhere first */
        client_call_of(call->call.parent)->tried |= call->bit;
    call->place = PLACE_FLYING;
    link->channel->n_flying++;
    if (!link->ticking)
        keepalive_begin(link);
    arming_note(link, &call->call);
    call->call.sent = true;
    if (call->call.stream)
        stream_place(call->call.stream, link->connection, call->stream);
    return LINK_PLACED;
}

bool
link_over(const struct link *link)
{
    return link->draining && link->streams.count == 0;
}

bool
link_retire(struct link *link)
{
    bool was_it = link->address->link == link;

    link->draining = true;
    if (was_it) {
        link->address->link = NULL;
        channel_restate(link->channel);
    }
    return was_it;
}

bool
link_used_up(struct link *link)
{
    return link->last_stream == UINT32_MAX && link_retire(link);
}

/* Its attempt is over here. */
static void
ground(struct link *link, struct client_call *call)
{
    call->place = PLACE_NOWHERE;
    call->link = NULL;
    link->channel->n_flying--;
    if (call->call.stream)
        stream_unplace(call->call.stream);
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
    ground(link, call);
    /* Not one that another attempt was faster than. */
    if (atomic_load(&call->call.interrupt) == IDEM_DEADLINE_EXCEEDED)
        outlier_failed(link->address);
    (void)connection_append(link->connection, &frame, (struct outbox_hold){0},
                            NULL);
}

/* --- In --- */

void
link_prove(struct link *link)
{
    if (link->proved)
        return;
    link->proved = true;
    link->address->backoff_ms = link->channel->options.connect_backoff_ms;
}

/* With the lock: a stream is free. True: calls wait for one. */
static bool
after_end(struct link *link, bool *over, bool *judging)
{
    link_prove(link);
    *over = link_over(link);
    *judging = link->channel->judging;
    return link->channel->waiting != NULL;
}

static void
end(struct link *link, const struct frame *frame)
{
    struct idem_channel *channel = link->channel;
    struct client_call *call;
    bool over, board, judging;

    pthread_mutex_lock(&channel->lock);
    call = streams_take(&link->streams, frame->stream);
    if (call)
        ground(link, call);
    board = after_end(link, &over, &judging);
    pthread_mutex_unlock(&channel->lock);
    if (call) {
        channel_take_end(call, frame);
        if (judging)
            outlier_note(link->address, &call->call.base.outcome);
        idem_call_resume(&call->call.base, IDEM_ANSWER);
    }
    if (board)
        wait_board(channel);
    if (over)
        connection_finish(link->connection);
}

struct client_call *
link_take_flying(struct link *link, uint32_t above)
{
    struct client_call *taken = NULL, *call;
    uint32_t at = 0;

    while ((call = streams_take_above(&link->streams, above, &at))) {
        ground(link, call);
        call->next_waiting = taken;
        taken = call;
    }
    return taken;
}

/* With the lock: it can be asked again, but there are others. */
static bool
has_others(const struct address *address)
{
    for (const struct address *at = address->channel->addresses; at;
         at = at->next)
        if (at != address && !at->dropped)
            return true;
    return false;
}

static const char *
goaway(struct link *link, const struct frame *frame)
{
    struct idem_channel *channel = link->channel;
    struct address *address = link->address;
    struct header_goaway said;
    struct client_call *refused;
    bool was_it, over, at_once;

    if (!header_goaway_read(frame->header, &said))
        return "broken GOAWAY";
    pthread_mutex_lock(&channel->lock);
    was_it = link_retire(link);
    at_once = link->proved && !has_others(address);
    refused = link_take_flying(link, said.last_stream);
    over = link_over(link);
    pthread_mutex_unlock(&channel->lock);
    for (struct client_call *call = refused; call; call = call->next_waiting) {
        call->tried |= address->bit;
        idem_call_fail(&call->call.base, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED,
                       NULL, "%s: the server is going away", address->name);
    }
    if (was_it)
        address_lost(address, at_once, "the server is going away");
    wait_resume(refused);
    if (over)
        connection_finish(link->connection);
    return NULL;
}

const char *
link_frame(void *with, const struct frame *frame)
{
    struct link *link = with;

    if (frame->type == FRAME_END)
        end(link, frame);
    else if (frame->type == FRAME_GOAWAY)
        return goaway(link, frame);
    else if (frame->type == FRAME_MESSAGE || frame->type == FRAME_WINDOW)
        return channel_stream_frame(link, frame);
    return NULL;
}
