#include "server_inside.h"

#include "arena.h"
#include "codec.h"
#include "key_text.h"
#include "parent.h"

#include <idem/reason.h>

#define NS_PER_US 1000

/* What an OPEN asks for: looked at, turned away, or made a call that walks. */

/* The method is what the client thinks it is. */
static enum idem_status
check_shape(const struct peer *peer, const struct frame *frame,
            const struct header_open *open, const struct idem_method *method,
            struct idem_error *err)
{
    static const char *const kinds[] = {
        "a unary call", "a client stream", "a server stream",
        "a bidirectional stream",
        /* HEADER_EACH */
        "a unary call with keys", "a client stream with a key for each message",
        "a server stream with keys",
        "a bidirectional stream with a key for each message"};
    const unsigned whole = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE;
    uint32_t shape = method->streams | (method->each ? HEADER_EACH : 0u);
    bool many = method->streams & IDEM_STREAMS_CLIENT;

    if (open->streams != shape)
        return idem_fail(
            err, IDEM_UNIMPLEMENTED, "%s is %s, and the client calls it as %s",
            method->name, kinds[shape],
            kinds[open->streams & (IDEM_STREAMS_BOTH | HEADER_EACH)]);
    if (method->streams &&
        connection_peer_limits(peer->connection)->stream_window == 0)
        return idem_fail(err, IDEM_UNIMPLEMENTED,
                         "%s is %s, and the client's SETTINGS know no streams",
                         method->name, kinds[method->streams]);
    if ((frame->flags & whole) != (many ? 0 : whole))
        return idem_fail(err, IDEM_UNIMPLEMENTED,
                         many ? "an OPEN of a client stream with a message"
                              : "an OPEN without its whole request");
    return IDEM_OK;
}

/* What needs no memory to be refused. */
static enum idem_status
check_open(const struct peer *peer, const struct frame *frame,
           const struct header_open *open, const struct method_entry *entry,
           struct idem_error *err)
{
    enum idem_status status;

    if (!entry)
        return idem_fail(
            err, IDEM_UNIMPLEMENTED, "no method \"%.*s\" here",
            (int)(open->method.size < 128 ? open->method.size : 128),
            open->method.size ? (const char *)open->method.data : "");
    if (frame->oversize)
        return idem_fail_reason(
            err, IDEM_RESOURCE_EXHAUSTED, IDEM_REQUEST_TOO_LARGE,
            "the request is %zu bytes, the server takes "
            "%zu",
            frame->payload.size, peer->server->options.max_message);
    status = check_shape(peer, frame, open, entry->method, err);
    if (status != IDEM_OK)
        return status;
    if (open->has_timeout && open->timeout_us == 0)
        return idem_fail(err, IDEM_DEADLINE_EXCEEDED,
                         "the deadline was over when the request came");
    if (frame->route.size > 0)
        status = plain_check_open(open, entry->method, err);
    if (status != IDEM_OK)
        return status;
    return key_text_check(open->key, err);
}

static int64_t
deadline_ns(const struct idem_clock *clock, const struct header_open *open)
{
    int64_t now_ns;

    if (!open->has_timeout)
        return INT64_MAX;
    now_ns = clock->monotonic_ns(clock);
    if (open->timeout_us > (uint64_t)(INT64_MAX - now_ns) / NS_PER_US)
        return INT64_MAX;
    return now_ns + (int64_t)open->timeout_us * NS_PER_US;
}

static enum idem_status
check_metadata(const struct server_call *call, struct idem_error *err)
{
    size_t size = call->call.base.metadata.size;
    size_t limit = call->peer->server->options.max_metadata;

    if (size <= limit)
        return IDEM_OK;
    return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                     "the metadata is %zu bytes, the server takes %zu", size,
                     limit);
}

static enum idem_status
open_request(struct server_call *call, const struct frame *frame,
             struct idem_error *err)
{
    size_t limit = call->peer->server->options.max_message;
    struct idem_call *base = &call->call.base;

    switch (codec_open(&base->request, frame->payload, limit, base->arena)) {
    case CODEC_OPENED:
        return IDEM_OK;
    case CODEC_OVERSIZE:
        return idem_fail_reason(
            err, IDEM_RESOURCE_EXHAUSTED, IDEM_REQUEST_TOO_LARGE,
            "the request is %zu bytes, the server takes %zu",
            base->request.size, limit);
    case CODEC_NO_MEMORY:
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    case CODEC_BROKEN:
        break;
    }
    return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_BAD_COMPRESSION,
                            "the request cannot be made of its %zu compressed "
                            "bytes",
                            frame->payload.size);
}

static enum idem_status
take_request(struct server_call *call, const struct frame *frame,
             struct idem_error *err)
{
    struct idem_call *base = &call->call.base;

    if (frame->flags & FRAME_FLAG_SQUEEZED)
        return open_request(call, frame, err);
    base->request = (struct idem_bytes){
        idem_arena_copy(base->arena, frame->payload), frame->payload.size};
    if (!base->request.data)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    return IDEM_OK;
}

/* Empty on the wire is none. */
static bool
keep(struct idem_call *base, struct idem_bytes *kept, struct idem_bytes bytes)
{
    if (bytes.size == 0)
        return true;
    *kept =
        (struct idem_bytes){idem_arena_copy(base->arena, bytes), bytes.size};
    return kept->data;
}

/* Everything that outlives the frame is copied. */
static enum idem_status
fill(struct server_call *call, const struct frame *frame,
     const struct header_open *open, const struct method_entry *entry,
     struct idem_error *err)
{
    struct idem_call *base = &call->call.base;
    enum idem_status status;

    call->entry = entry;
    base->method = entry->method;
    base->attempt = open->attempt ? open->attempt : 1;
    base->ack_below = open->ack_below;
    base->deadline_ns = deadline_ns(base->clock, open);
    base->peer = &call->peer->known;
    if (call->peer->principal.identity.size > 0) {
        base->principal = &call->peer->principal;
        base->tenant = base->principal->identity;
    }
    context_init(&call->context, base, entry->user);
    call->context.run = endpoint_run;
    if (base->method->streams && !server_stream_new(call))
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    if (base->method->messages && !server_resume_take(call, open))
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    call->context.plain = open->plain_reply;
    if (!keep(base, &base->key, open->key) ||
        !keep(base, &call->route, frame->route))
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    status = take_request(call, frame, err);
    if (status == IDEM_OK)
        status = header_open_metadata(open->metadata, &base->metadata,
                                      base->arena, err);
    if (status == IDEM_OK)
        status = check_metadata(call, err);
    if (status == IDEM_OK && base->metadata.first)
        parent_take_fence(&call->context);
    return status;
}

/* Into the peer's lists. */
static enum idem_status
enter(struct server_call *call, struct idem_error *err)
{
    struct peer *peer = call->peer;
    enum idem_status status = IDEM_OK;

    pthread_mutex_lock(&peer->lock);
    peer_note_open(peer, call->stream);
    if (peer->draining && !call->entry->while_draining)
        status = idem_fail(err, IDEM_UNAVAILABLE, "the server is going away");
    else if (peer->streams.count >= peer->server->options.max_streams)
        status = idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                           "%u calls are in flight on this connection",
                           peer->streams.count);
    else if (call->call.stream &&
             peer->n_streaming >= peer->server->options.max_streaming)
        status = idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                           "max_streaming: %u streams are open on this "
                           "connection",
                           peer->n_streaming);
    else if (!streams_add(&peer->streams, call->stream, call))
        status = idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    if (status == IDEM_OK) {
        peer->n_streaming += call->call.stream != NULL;
        call->next = peer->calls;
        call->link = &peer->calls;
        if (call->next)
            call->next->link = &call->next;
        peer->calls = call;
        atomic_fetch_add(&peer->server->in_flight, 1);
    }
    pthread_mutex_unlock(&peer->lock);
    return status;
}

void
server_call_open(struct peer *peer, const struct frame *frame,
                 const struct header_open *open,
                 const struct method_entry *entry)
{
    struct idem_error err;
    struct server_call *call = NULL;
    enum idem_status status = check_open(peer, frame, open, entry, &err);

    if (status == IDEM_OK) {
        call = server_call_new(peer, frame);
        if (!call)
            status = idem_fail(&err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    }
    if (status == IDEM_OK)
        status = fill(call, frame, open, entry, &err);
    if (status == IDEM_OK)
        status = enter(call, &err);
    if (status == IDEM_OK) {
        call_begin_with(&call->call);
        return;
    }
    peer_refuse(peer, frame, &err);
    if (call) { /* the walk's reference, and this thread's */
        call_unref(&call->call);
        call_unref(&call->call);
    }
}
