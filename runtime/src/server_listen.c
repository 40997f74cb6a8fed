#include "server_inside.h"

#include <stdlib.h>

#define PAUSE_NS 50000000 /* after an accept that failed: EMFILE, mostly */

/* The server's addresses: one accept at a time on each. */

static void
accepted(void *with, struct io_stream *stream, const struct idem_error *err)
{
    struct server_listener *listener = with;
    struct idem_server *server = listener->server;
    int64_t now_ns = server->clock->monotonic_ns(server->clock);

    (void)err;
    if (stream) {
        peer_new(server, stream);
        server_accept(listener);
        return;
    }
    pthread_mutex_lock(&server->lock);
    if (server->state == SERVER_RUNNING)
        idem_timer_start(server->timers, &listener->pause, now_ns + PAUSE_NS);
    pthread_mutex_unlock(&server->lock);
}

void
server_accept(struct server_listener *listener)
{
    /* False: closed, and nothing is left to do. */
    (void)listener->io->ops->accept(listener->io, accepted, listener);
}

static void
fire_pause(struct idem_timer *timer)
{
    server_accept(
        (struct server_listener *)((char *)timer -
                                   offsetof(struct server_listener, pause)));
}

/* True: accept at once. */
static bool
add(struct idem_server *server, struct server_listener *listener)
{
    bool running;

    pthread_mutex_lock(&server->lock);
    *server->last_listener = listener;
    server->last_listener = &listener->next;
    running = server->state == SERVER_RUNNING;
    pthread_mutex_unlock(&server->lock);
    return running;
}

enum idem_status
server_listen_with_io(struct idem_server *server, const struct io *io,
                      const char *address, struct idem_error *err)
{
    struct server_listener *listener;
    enum idem_status status;

    if (server->state == SERVER_DRAINING)
        return idem_fail(err, IDEM_FAILED_PRECONDITION,
                         "%s: the server is stopped", address);
    listener = calloc(1, sizeof *listener);
    if (!listener)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    listener->server = server;
    listener->pause.fire = fire_pause;
    status = io->listen(io, address, &listener->io, err);
    if (status != IDEM_OK) {
        free(listener);
        return status;
    }
    if (add(server, listener))
        server_accept(listener);
    return IDEM_OK;
}

enum idem_status
idem_server_listen(struct idem_server *server, const char *address,
                   struct idem_error *err)
{
    const struct io *io;
    enum idem_status status;

    if (server->tls && tls_is_address(address))
        return server_listen_with_io(server, tls_io(server->tls), address, err);
    status = io_find(address, &io, err);
    if (status != IDEM_OK)
        return status;
    return server_listen_with_io(server, io, address, err);
}

const char *
idem_server_address(const struct idem_server *server, unsigned index)
{
    const struct server_listener *listener = server->listeners;

    while (listener && index-- > 0)
        listener = listener->next;
    return listener ? listener->io->ops->address(listener->io) : NULL;
}

void
server_listeners_close(struct idem_server *server)
{
    struct server_listener *listener = server->listeners;

    for (; listener; listener = listener->next)
        listener->io->ops->close(listener->io);
}

void
server_listeners_free(struct idem_server *server)
{
    while (server->listeners) {
        struct server_listener *listener = server->listeners;

        server->listeners = listener->next;
        listener->io->ops->free(listener->io);
        free(listener);
    }
}
