#include "server_inside.h"

#include "arena.h"
#include "codec.h"
#include "parent.h"
#include "stream.h"

#include <idem/reason.h>

#include <string.h>

#define NS_PER_US 1000
#define ARENA_SPARE 1536     /* for the reply and what interceptors keep */
#define ARENA_UNPACKED 65536 /* bytes at most for the unpacked request */

/* A call of the server: made from an OPEN, walked, answered with END. */

/* --- END --- */

static void
release_reply(void *with)
{
    struct server_call *call = with;

    call_unref(&call->call);
}

/* The client said how much it takes; what was done stays done (case B099). */
static void
respect_limit(struct server_call *call)
{
    struct idem_call *base = &call->call.base;
    size_t limit = connection_peer_limits(call->peer->connection)->max_message;
    struct idem_outcome *outcome = &base->outcome;
    bool final = outcome->final;

    if (outcome->status != IDEM_OK || base->reply.size <= limit)
        return;
    idem_call_fail(base, IDEM_RESOURCE_EXHAUSTED, outcome->effect,
                   IDEM_REPLY_TOO_LARGE,
                   "the reply is %zu bytes, the client takes %zu",
                   base->reply.size, limit);
    outcome->final = final;
}

/* Compressed, if both sides and the call want it. */
static bool
squeeze_reply(struct server_call *call, struct idem_bytes *squeezed)
{
    const struct idem_compression *ours =
        &call->peer->server->options.compression;
    struct idem_call *base = &call->call.base;
    uint32_t theirs = connection_peer_limits(call->peer->connection)->codecs;

    return ours->codec != IDEM_CODEC_NONE && !call->context.plain &&
           (theirs & CODEC_BIT(ours->codec)) &&
           codec_squeeze(squeezed, ours, base->reply, base->arena);
}

static void
send_end(struct server_call *call)
{
    const struct idem_call *base = &call->call.base;
    const struct idem_outcome *outcome = &base->outcome;
    uint8_t header[FRAME_HEADER_MAX];
    struct header_end end = {
        .status = outcome->status,
        .effect = outcome->effect == IDEM_EFFECT_NOT_SENT ? IDEM_EFFECT_REFUSED
                                                          : outcome->effect,
        .final = outcome->final,
        .message = idem_bytes_of(outcome->message),
        .reason = idem_bytes_of(outcome->reason),
        .first_at_ms = outcome->first_at_ms,
        .rebuilt = outcome->rebuilt,
        .has_retry_after = outcome->retry_after_ms != -1,
        .retry_after_ms = (uint64_t)outcome->retry_after_ms,
        .server_time_ms = base->clock->wall_ms(base->clock),
    };
    struct frame frame = {
        .type = FRAME_END,
        .flags = FRAME_FLAG_LAST,
        .stream = call->stream,
        .header = {header, 0},
        .route = call->route,
    };

    frame.header.size =
        header_end_write(header, sizeof header, &end, &base->trailers);
    if (outcome->status == IDEM_OK &&
        !(base->method->streams & IDEM_STREAMS_SERVER)) {
        frame.flags |= FRAME_FLAG_MESSAGE;
        frame.payload = base->reply;
        if (squeeze_reply(call, &frame.payload))
            frame.flags |= FRAME_FLAG_SQUEEZED;
    }
    call_ref(&call->call);
    if (connection_append(call->peer->connection, &frame,
                          (struct outbox_hold){release_reply, call},
                          NULL) != CONNECTION_HELD)
        call_unref(&call->call);
    endpoint_flush(call->peer->connection);
}

/* Out of the peer's lists. True: the client still listens. */
static bool
leave(struct server_call *call)
{
    struct peer *peer = call->peer;
    bool listens;

    pthread_mutex_lock(&peer->lock);
    listens = streams_take(&peer->streams, call->stream);
    peer->n_streaming -= call->call.stream != NULL;
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    pthread_mutex_unlock(&peer->lock);
    return listens;
}

static void
finish(struct call *base)
{
    if (!server_resume_begin(server_call_of(base)))
        server_call_end(server_call_of(base));
}

void
server_call_end(struct server_call *call)
{
    struct idem_server *server = call->peer->server;

    if (call->call.stream)
        stream_over(call->call.stream, NULL);
    if (leave(call)) {
        respect_limit(call);
        send_end(call);
    }
    if (atomic_fetch_sub(&server->in_flight, 1) != 1 ||
        !atomic_load(&server->leaving))
        return;
    pthread_mutex_lock(&server->lock);
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static void
free_call(struct call *base)
{
    struct connection *connection = server_call_of(base)->peer->connection;

    later_fini(server_call_of(base)->later);
    stream_fini(base->stream);
    call_fini(base); /* and with the arena the call itself */
    connection_unref(connection);
}

static const struct call_ops server_call_ops = {
    endpoint_send, finish, free_call, NULL, server_stream_interrupted,
};

/* --- OPEN --- */

static enum idem_status
check_key(struct idem_bytes key, struct idem_error *err)
{
    if (key.size > IDEM_KEY_MAX)
        return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_TOO_LONG,
                                "the key has %zu bytes, at most %d", key.size,
                                IDEM_KEY_MAX);
    for (size_t i = 0; i < key.size; i++)
        if (key.data[i] < 0x21 || key.data[i] > 0x7E)
            return idem_fail_reason(
                err, IDEM_INVALID_ARGUMENT, IDEM_KEY_CHARSET,
                "byte %zu of the key is not of 0x21..0x7E", i);
    return IDEM_OK;
}

/* The method is what the client thinks it is. */
static enum idem_status
check_shape(const struct peer *peer, const struct frame *frame,
            const struct header_open *open, const struct idem_method *method,
            struct idem_error *err)
{
    static const char *const kinds[] = {"a unary call", "a client stream",
                                        "a server stream",
                                        "a bidirectional stream"};
    const unsigned whole = FRAME_FLAG_LAST | FRAME_FLAG_MESSAGE;
    bool many = method->streams & IDEM_STREAMS_CLIENT;

    if (open->streams != method->streams)
        return idem_fail(err, IDEM_UNIMPLEMENTED,
                         "%s is %s, and the client calls it as %s",
                         method->name, kinds[method->streams],
                         kinds[open->streams & IDEM_STREAMS_BOTH]);
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
    return check_key(open->key, err);
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

static struct server_call *
new_call(struct peer *peer, const struct frame *frame)
{
    size_t size = frame->payload.size;
    size_t unpacked = 2 * size < ARENA_UNPACKED ? 2 * size : ARENA_UNPACKED;
    size_t room = sizeof(struct server_call) + ARENA_SPARE +
                  2 * frame->header.size + size + unpacked;
    struct idem_arena *arena = arena_new(room, 0);
    struct server_call *call =
        arena ? idem_arena_alloc(arena, sizeof *call) : NULL;

    if (!call) {
        if (arena)
            arena_free(arena);
        return NULL;
    }
    call_init(&call->call, &server_call_ops, &peer->server->chain, arena);
    memset(&call->call + 1, 0, sizeof *call - sizeof call->call);
    call->call.base.clock = peer->server->clock;
    call->call.base.timers = peer->server->timers;
    call->peer = peer;
    call->stream = frame->stream;
    connection_ref(peer->connection);
    return call;
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
    base->key.size = open->key.size;
    if (open->key.size > 0) /* empty on the wire is none */
        base->key.data = idem_arena_copy(base->arena, open->key);
    if (base->method->streams && !server_stream_new(call))
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    if (base->method->messages && !server_resume_take(call, open))
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    call->context.plain = open->plain_reply;
    call->route = (struct idem_bytes){
        idem_arena_copy(base->arena, frame->route), frame->route.size};
    if ((base->key.size > 0 && !base->key.data) || !call->route.data)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    status = take_request(call, frame, err);
    if (status == IDEM_OK)
        status = header_open_metadata(frame->header, &base->metadata,
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
    struct idem_error err = {0};
    struct server_call *call = NULL;
    enum idem_status status = check_open(peer, frame, open, entry, &err);

    if (status == IDEM_OK) {
        call = new_call(peer, frame);
        if (!call)
            status = idem_fail(&err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    }
    if (status == IDEM_OK)
        status = fill(call, frame, open, entry, &err);
    if (status == IDEM_OK)
        status = enter(call, &err);
    if (status == IDEM_OK) {
        call_begin(&call->call);
        return;
    }
    peer_end(peer, frame, &err, IDEM_EFFECT_REFUSED);
    if (call)
        call_unref(&call->call);
}
