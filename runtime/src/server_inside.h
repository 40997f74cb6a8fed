#ifndef SERVER_INSIDE_H
#define SERVER_INSIDE_H

#include "endpoint.h"
#include "method_table.h"
#include "server.h"
#include "server_call.h"
#include "server_peer.h"
#include "timer.h"
#include "tls.h"
#include "worker.h"

/* What the files of the server share. Listeners (server_listen.c) make peers
 * (server_peer.c); a peer's OPEN (server_open.c) makes a call (server_call.c),
 * which walks down the chain to its handler (endpoint.c) and back up to END.
 *
 * Locks: a call's, a peer's and the server's are never held together but in
 * that order; then the connection's. No event, hook or handler runs under any.
 */

enum server_state {
    SERVER_NEW,
    SERVER_RUNNING,
    SERVER_DRAINING, /* or stopped: takes nothing new */
};

struct server_listener {
    struct idem_server *server;
    struct io_listener *io;
    struct server_listener *next;
    struct idem_timer pause; /* after an accept that failed */
};

struct idem_server {
    const struct idem_clock *clock;
    struct idem_server_options
        options;     /* no zeroes left; tls and auth are NULL */
    struct tls *tls; /* NULL: none */
    struct chain chain;
    struct method_table methods;
    struct idem_timers *timers;
    struct workers *workers;
    atomic_uint in_flight;    /* calls */
    atomic_bool leaving;      /* somebody waits for in_flight to be 0 */
    pthread_mutex_t stopping; /* one stop at a time */

    pthread_mutex_t lock;   /* guards the rest */
    pthread_cond_t changed; /* in_flight is 0, a peer closed or is gone */
    enum server_state state;
    struct server_listener *listeners, **last_listener;
    struct peer *peers, **last_peer; /* in order of arrival */
    unsigned n_peers;                /* not gone */
    unsigned n_open;                 /* of them, not closed */
    unsigned n_strange;              /* of them, without SETTINGS */
};

/* --- server_listen.c --- */
void server_accept(struct server_listener *listener);
void server_listeners_close(struct idem_server *server);
void server_listeners_free(struct idem_server *server);

#endif
