#include "server_inside.h"

#include "clock_after.h"

#include <stdlib.h>
#include <string.h>

/* One client's connection at the server: OPEN, CANCEL, DETACH in; what happens
 * to its calls when it goes. */

/* --- In --- */

void
peer_end(struct peer *peer, const struct frame *open,
         const struct idem_error *err, enum idem_effect effect)
{
    uint8_t header[FRAME_HEADER_MAX];
    const struct idem_clock *clock = peer->server->clock;
    struct header_end end = {
        .status = err->status,
        .effect = effect,
        .message = idem_bytes_of(err->message),
        .reason = idem_bytes_of(err->reason),
        .server_time_ms = clock->wall_ms(clock),
    };
    struct frame frame = {
        .type = FRAME_END,
        .flags = FRAME_FLAG_LAST,
        .stream = open->stream,
        .header = {header, 0},
        .route = open->route,
    };

    frame.header.size = header_end_write(header, sizeof header, &end, NULL);
    connection_send(peer->connection, &frame);
}

void
peer_note_open(struct peer *peer, uint32_t stream)
{
    if (!peer->draining)
        peer->last_stream = stream;
}

void
peer_refuse(struct peer *peer, const struct frame *open,
            const struct idem_error *err)
{
    pthread_mutex_lock(&peer->lock);
    peer_note_open(peer, open->stream);
    pthread_mutex_unlock(&peer->lock);
    peer_end(peer, open, err, IDEM_EFFECT_REFUSED);
}

static bool
reserve_told(struct peer *peer, uint32_t id)
{
    uint32_t n = peer->n_told ? peer->n_told : 16;
    const struct method_entry **told;

    while (n <= id)
        n *= 2;
    if (n == peer->n_told)
        return true;
    told = realloc(peer->told, n * sizeof(*told));
    if (!told)
        return false;
    memset(told + peer->n_told, 0, (n - peer->n_told) * sizeof(*told));
    peer->told = told;
    peer->n_told = n;
    return true;
}

/* The method that an OPEN names, by name or by a number that was told. */
static const struct method_entry *
method_of(struct peer *peer, const struct header_open *open)
{
    const struct method_entry *entry;
    uint32_t id = open->method_id;

    if (open->method.size == 0)
        return id < peer->n_told ? peer->told[id] : NULL;
    entry = method_table_find(&peer->server->methods, open->method);
    if (entry && id > 0 && id <= HEADER_METHOD_IDS && reserve_told(peer, id))
        peer->told[id] = entry;
    return entry;
}

static const char *
take_open(struct peer *peer, const struct frame *frame)
{
    struct header_open open;
    struct idem_error err;

    if (frame->stream <= peer->newest)
        return "stream ids must grow";
    peer->newest = frame->stream;
    if (plain_complain(frame, peer->server->options.max_message, &err)) {
        peer_refuse(peer, frame, &err);
        return NULL;
    }
    if (header_open_read(frame->header, &open)) {
        server_call_open(peer, frame, &open, method_of(peer, &open));
        return NULL;
    }
    idem_fail(&err, IDEM_INTERNAL, "the header of OPEN cannot be read");
    peer_refuse(peer, frame, &err);
    return NULL;
}

/* Jobs of OPENs that come together are pushed together. */
static const char *
take_opens(struct peer *peer, const struct frame *frame)
{
    const char *why;

    endpoint_gather(peer);
    why = take_open(peer, frame);
    endpoint_gather(NULL);
    return why;
}

static void
on_settled(void *with)
{
    (void)with;
    endpoint_push_gathered();
}

/* The same, with a reference of its call. */
static struct server_call *
detach(struct peer *peer, uint32_t stream)
{
    struct server_call *call;

    pthread_mutex_lock(&peer->lock);
    call = streams_take(&peer->streams, stream);
    if (call)
        call_ref(&call->call);
    pthread_mutex_unlock(&peer->lock);
    return call;
}

bool
peer_detach(struct peer *peer, uint32_t stream)
{
    struct server_call *call = detach(peer, stream);

    if (call)
        call_unref(&call->call);
    return call;
}

static void
take_detach(struct peer *peer, const struct frame *frame)
{
    struct server_call *call = detach(peer, frame->stream);

    if (!call)
        return;
    /* What a stream says has no other listener. */
    if (frame->type == FRAME_CANCEL || call->call.stream)
        server_stream_unheard(call);
    call_unref(&call->call);
}

static const char *
on_frame(void *with, const struct frame *frame)
{
    struct peer *peer = with;

    switch (frame->type) {
    case FRAME_OPEN:
        return take_opens(peer, frame);
    case FRAME_CANCEL:
    case FRAME_DETACH:
        take_detach(peer, frame);
        return NULL;
    case FRAME_MESSAGE:
    case FRAME_WINDOW:
        server_stream_frame(peer, frame);
        return NULL;
    default:
        return NULL; /* of the future */
    }
}

/* --- Its life --- */

static void
hello_over(struct peer *peer)
{
    struct idem_server *server = peer->server;

    pthread_mutex_lock(&server->lock);
    if (!peer->ready)
        server->n_strange--;
    peer->ready = true;
    pthread_mutex_unlock(&server->lock);
    if (idem_timer_stop(server->timers, &peer->hello))
        connection_unref(peer->connection);
}

static void
on_ready(void *with)
{
    struct peer *peer = with;
    bool late;

    peer->known = connection_peer(peer->connection);
    peer->principal.identity = idem_bytes_of(peer->known.identity);
    hello_over(peer);
    pthread_mutex_lock(&peer->server->lock);
    late = peer->server->state != SERVER_RUNNING;
    pthread_mutex_unlock(&peer->server->lock);
    if (late)
        peer_drain(peer);
}

static void
fire_hello(struct idem_timer *timer)
{
    struct peer *peer =
        (struct peer *)((char *)timer - offsetof(struct peer, hello));

    connection_close(peer->connection, "no hello in time");
    connection_unref(peer->connection);
}

static void
on_closed(void *with)
{
    struct peer *peer = with;
    struct idem_server *server = peer->server;

    hello_over(peer);
    peer_watch_end(peer);
    pthread_mutex_lock(&peer->lock);
    streams_fini(&peer->streams);
    pthread_mutex_unlock(&peer->lock);
    peer_interrupt(peer, IDEM_CANCELLED, false);
    pthread_mutex_lock(&server->lock);
    peer->open = false;
    server->n_open--;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    connection_unref(peer->connection);
}

static void
on_gone(void *with)
{
    struct peer *peer = with;
    struct idem_server *server = peer->server;

    pthread_mutex_lock(&server->lock);
    if (peer->link) {
        *peer->link = peer->next;
        if (peer->next)
            peer->next->link = peer->link;
        else
            server->last_peer = peer->link;
        server->n_peers--;
    }
    streams_fini(&peer->streams);
    pthread_mutex_destroy(&peer->lock);
    free(peer->told);
    free(peer);
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static const struct connection_events peer_events = {
    .ready = on_ready,
    .frame = on_frame,
    .ping = peer_watch_ping,
    .settled = on_settled,
    .roomy = server_stream_roomy,
    .closed = on_closed,
    .gone = on_gone,
};

/* With the lock: the one that has been without SETTINGS for longest. */
static struct connection *
oldest_strange(struct idem_server *server)
{
    struct peer *peer = server->peers;

    while (peer && (peer->ready || !peer->open))
        peer = peer->next;
    if (!peer)
        return NULL;
    connection_ref(peer->connection);
    return peer->connection;
}

/* With the lock: may one more come in? *victim has to go for it (case B105). */
static bool
admit(struct idem_server *server, struct peer *peer, struct connection **victim)
{
    if (server->state != SERVER_RUNNING ||
        server->n_open >= server->options.max_connections)
        return false;
    if (server->n_strange > server->options.max_connections / 4)
        *victim = oldest_strange(server);
    peer->open = true;
    peer->link = server->last_peer;
    *server->last_peer = peer;
    server->last_peer = &peer->next;
    server->n_peers++;
    server->n_open++;
    server->n_strange++;
    return true;
}

static struct peer *
new_peer(struct idem_server *server, struct io_stream *stream)
{
    struct peer *peer = calloc(1, sizeof *peer);
    struct connection_options options = {
        .server = true,
        .limits = {.max_message = server->options.max_message,
                   .max_streams = server->options.max_streams,
                   .stream_window = server->options.stream_window},
        .clock = server->clock,
        .events = &peer_events,
        .with = peer,
    };

    if (!peer) {
        stream->ops->free(stream);
        return NULL;
    }
    peer->server = server;
    peer->hello.fire = fire_hello;
    pthread_mutex_init(&peer->lock, NULL);
    peer->connection = connection_new(stream, &options);
    if (peer->connection)
        return peer;
    pthread_mutex_destroy(&peer->lock);
    free(peer);
    return NULL;
}

void
peer_new(struct idem_server *server, struct io_stream *stream)
{
    struct peer *peer = new_peer(server, stream);
    struct connection *victim = NULL;
    int64_t now_ns = server->clock->monotonic_ns(server->clock);
    bool in;

    if (!peer)
        return;
    pthread_mutex_lock(&server->lock);
    in = admit(server, peer, &victim);
    pthread_mutex_unlock(&server->lock);
    if (victim) {
        connection_close(victim, "too many connections without a hello");
        connection_unref(victim);
    }
    if (!in) {
        connection_unref(peer->connection);
        return;
    }
    connection_ref(peer->connection);
    idem_timer_start(server->timers, &peer->hello,
                     clock_after(now_ns, server->options.hello_timeout_ms));
    peer_watch_begin(peer);
    connection_start(peer->connection);
}
