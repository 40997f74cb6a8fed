#include "server_inside.h"

#include "arena.h"
#include "codec.h"
#include "stream.h"

#include <idem/reason.h>

#include <string.h>

#define ARENA_SPARE 1536     /* for the reply and what interceptors keep */
#define ARENA_UNPACKED 65536 /* bytes at most for the unpacked request */

/* A call of the server: its memory, its walk, its END. What makes it of an OPEN
 * is in server_open.c. */

/* --- END --- */

static void
retain_reply(void *with)
{
    struct server_call *call = with;

    call_ref(&call->call);
}

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
        .executions = outcome->executions,
        .rebuilt = outcome->rebuilt,
        .has_retry_after = outcome->retry_after_ms != -1,
        .retry_after_ms = (uint64_t)outcome->retry_after_ms,
        .server_time_ms = base->clock->wall_ms(base->clock),
        .watermark = server_each_watermark(call),
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
    (void)connection_append(
        call->peer->connection, &frame,
        (struct outbox_hold){retain_reply, release_reply, call}, NULL);
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
    server_each_fini(server_call_of(base)->each);
    stream_fini(base->stream);
    context_fini(&server_call_of(base)->context);
    call_fini(base); /* and with the arena the call itself */
    connection_unref(connection);
}

static const struct call_ops server_call_ops = {
    endpoint_send, finish, free_call, NULL, server_stream_interrupted,
};

struct server_call *
server_call_make(struct peer *peer, const struct call_ops *ops, size_t size)
{
    size_t unpacked = 2 * size < ARENA_UNPACKED ? 2 * size : ARENA_UNPACKED;
    size_t room = sizeof(struct server_call) + ARENA_SPARE + size + unpacked;
    struct idem_arena *arena = arena_new(room, 0);
    struct server_call *call =
        arena ? idem_arena_alloc(arena, sizeof *call) : NULL;

    if (!call) {
        if (arena)
            arena_free(arena);
        return NULL;
    }
    call_init(&call->call, ops, &peer->server->chain, arena);
    memset(&call->peer, 0, sizeof *call - offsetof(struct server_call, peer));
    call->call.base.clock = peer->server->clock;
    call->call.base.timers = peer->server->timers;
    call->peer = peer;
    connection_ref(peer->connection);
    return call;
}

struct server_call *
server_call_new(struct peer *peer, const struct frame *frame)
{
    struct server_call *call = server_call_make(
        peer, &server_call_ops, frame->payload.size + 2 * frame->header.size);

    if (!call)
        return NULL;
    call_ref_unseen(&call->call, 1);
    call->stream = frame->stream;
    return call;
}
