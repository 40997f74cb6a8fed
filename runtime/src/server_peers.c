#include "server_inside.h"

#include "stream.h"

#include <stdlib.h>

/* What the server does to its peers and their calls, one or all. */

/* The calls, each with a reference, in an array that is the caller's: the
 * connection's end and the server's may both be at it at once. */
static struct server_call **
take_calls(struct peer *peer, size_t *n)
{
    struct server_call **taken;
    size_t count = 0;

    pthread_mutex_lock(&peer->lock);
    for (struct server_call *call = peer->calls; call; call = call->next)
        count++;
    taken = calloc(count + 1, sizeof(*taken));
    IDEM_ASSERT(taken);
    *n = 0;
    for (struct server_call *call = peer->calls; call; call = call->next) {
        call_ref(&call->call);
        taken[(*n)++] = call;
    }
    pthread_mutex_unlock(&peer->lock);
    return taken;
}

/* Streams that end between two of their messages, so that their clients go on
 * elsewhere. */
static void
stir_streams(struct peer *peer)
{
    size_t n;
    struct server_call **calls = take_calls(peer, &n);

    while (n > 0) {
        struct server_call *call = calls[--n];

        if (call->call.base.method->each)
            stream_stir(call->call.stream);
        call_unref(&call->call);
    }
    free(calls);
}

void
peer_retire(struct peer *peer, const char *why)
{
    uint8_t header[64];
    struct header_goaway goaway = {.reason = idem_bytes_of(why)};
    struct frame frame = {.type = FRAME_GOAWAY, .header = {header, 0}};
    bool first, idle;

    pthread_mutex_lock(&peer->lock);
    first = !peer->draining;
    idle = !peer->calls;
    peer->draining = true;
    goaway.last_stream = peer->last_stream;
    pthread_mutex_unlock(&peer->lock);
    if (!first)
        return;
    if (idle && connection_plain(peer->connection)) {
        connection_finish(peer->connection); /* it would not understand */
        return;
    }
    frame.header.size = header_goaway_write(header, sizeof header, &goaway);
    connection_send(peer->connection, &frame);
    stir_streams(peer);
}

void
peer_drain(struct peer *peer)
{
    peer_retire(peer, "drain");
}

/* A call with a key goes on, its answer will be asked for again; one without,
 * or a stream, can be of no use to anybody. */
void
peer_interrupt(struct peer *peer, enum idem_status status, bool keyed_too)
{
    size_t n;
    struct server_call **calls = take_calls(peer, &n);

    while (n > 0) {
        struct server_call *call = calls[--n];

        if (keyed_too || call->call.base.key.size == 0 || call->call.stream)
            call_interrupt(&call->call, status);
        call_unref(&call->call);
    }
    free(calls);
}

void
peer_give_up(struct peer *peer)
{
    peer_interrupt(peer, IDEM_UNAVAILABLE, true);
}

void
peer_finish(struct peer *peer)
{
    connection_finish(peer->connection);
}

void
peer_cut(struct peer *peer)
{
    connection_close(peer->connection, "the server stops");
}

void
peers_each(struct idem_server *server, bool ready_only,
           void (*visit)(struct peer *peer))
{
    struct peer **peers;
    unsigned n = 0;

    pthread_mutex_lock(&server->lock);
    peers = calloc(server->n_peers + 1, sizeof(*peers));
    IDEM_ASSERT(peers);
    for (struct peer *peer = server->peers; peer; peer = peer->next) {
        if (ready_only && !peer->ready)
            continue;
        if (connection_ref_alive(peer->connection))
            peers[n++] = peer;
    }
    pthread_mutex_unlock(&server->lock);
    while (n > 0) {
        visit(peers[--n]);
        connection_unref(peers[n]->connection);
    }
    free(peers);
}
