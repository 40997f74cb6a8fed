#include "server_inside.h"

#include "clock_after.h"

#include <stdlib.h>

#define LINGER_MS 500 /* for a client to read its last answer and go */

/* The end of a server, in this order: take nothing new, let calls end, let go
 * of those that do not, let the last answers out, cut (nng.md 6.7). */

void
idem_server_drain(struct idem_server *server)
{
    bool first;

    pthread_mutex_lock(&server->lock);
    first = server->state != SERVER_DRAINING;
    server->state = SERVER_DRAINING;
    pthread_mutex_unlock(&server->lock);
    if (!first)
        return;
    server_listeners_close(server);
    peers_each(server, true, peer_drain);
}

static bool
calls_in_flight(struct idem_server *server)
{
    return atomic_load(&server->in_flight) > 0;
}

static bool
peers_open(struct idem_server *server)
{
    return server->n_open > 0;
}

static bool
peers_there(struct idem_server *server)
{
    return server->n_peers > 0;
}

/* Up to ms milliseconds (negative: no end) while it is so. True: it is over. */
static bool
wait_while(struct idem_server *server, bool (*so)(struct idem_server *server),
           int64_t ms)
{
    const struct idem_clock *clock = server->clock;
    int64_t end_ns =
        ms < 0 ? INT64_MAX : clock_after(clock->monotonic_ns(clock), ms);
    bool over;

    pthread_mutex_lock(&server->lock);
    while (so(server) && clock->monotonic_ns(clock) < end_ns)
        clock->wait_until(clock, &server->changed, &server->lock, end_ns);
    over = !so(server);
    pthread_mutex_unlock(&server->lock);
    return over;
}

void
idem_server_stop(struct idem_server *server)
{
    pthread_mutex_lock(&server->stopping);
    idem_server_drain(server);
    atomic_store(&server->leaving, true);
    if (!wait_while(server, calls_in_flight, server->options.drain_ms)) {
        chain_stop(&server->chain);
        peers_each(server, false, peer_give_up);
        peers_each(server, true, peer_finish);
    }
    /* Clients that know GOAWAY go by themselves. To close while they still
     * send could cost them the last answer (TCP's RST). */
    wait_while(server, peers_open, LINGER_MS);
    peers_each(server, false, peer_cut);
    wait_while(server, peers_open, -1);
    pthread_mutex_unlock(&server->stopping);
}

void
idem_server_free(struct idem_server *server)
{
    if (!server)
        return;
    idem_server_stop(server);
    peers_each(server, false, peer_give_up);
    /* Handlers that answer later are the author's to end; what their calls lead
     * to may want a worker. */
    wait_while(server, calls_in_flight, -1);
    if (server->workers)
        workers_free(server->workers);
    wait_while(server, peers_there, -1);
    /* Before the timers: what an interceptor has left to do without a call ends
     * on them (a record that is written late). */
    chain_free(&server->chain);
    if (server->timers)
        timers_free(server->timers);
    server_listeners_free(server);
    tls_free(server->tls);
    method_table_fini(&server->methods);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->stopping);
    pthread_mutex_destroy(&server->lock);
    free(server);
}
