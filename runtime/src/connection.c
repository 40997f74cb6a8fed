#include "connection_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_PER_MS 8 /* what a frame under way must move at least */
#define NS_PER_MS 1000000

/* --- Its life --- */

struct connection *
connection_new(struct io_stream *stream,
               const struct connection_options *options)
{
    struct connection *connection = calloc(1, sizeof *connection);

    if (!connection ||
        !inbox_init(&connection->inbox, options->limits.max_message)) {
        free(connection);
        stream->ops->close(stream);
        stream->ops->free(stream);
        return NULL;
    }
    connection->stream = stream;
    connection->options = *options;
    atomic_init(&connection->refs, 1);
    outbox_init(&connection->outbox);
    pthread_mutex_init(&connection->lock, NULL);
    return connection;
}

void
connection_ref(struct connection *connection)
{
    atomic_fetch_add_explicit(&connection->refs, 1, memory_order_relaxed);
}

bool
connection_ref_alive(struct connection *connection)
{
    unsigned refs = atomic_load(&connection->refs);

    while (refs > 0)
        if (atomic_compare_exchange_weak(&connection->refs, &refs, refs + 1))
            return true;
    return false;
}

void
connection_unref(struct connection *connection)
{
    const struct connection_events *events = connection->options.events;
    void *with = connection->options.with;

    if (atomic_fetch_sub_explicit(&connection->refs, 1, memory_order_acq_rel) !=
        1)
        return;
    connection->stream->ops->close(connection->stream);
    connection->stream->ops->free(connection->stream);
    inbox_fini(&connection->inbox);
    outbox_fini(&connection->outbox);
    pthread_mutex_destroy(&connection->lock);
    events->gone(with);
    free(connection);
}

void
connection_close(struct connection *connection, const char *why)
{
    bool first;

    pthread_mutex_lock(&connection->lock);
    first = !connection->closed;
    connection->closed = true;
    if (first)
        snprintf(connection->why, sizeof connection->why, "%s", why);
    pthread_mutex_unlock(&connection->lock);
    if (first)
        connection->stream->ops->close(connection->stream);
}

/* --- What it knows --- */

/* A slow peer may take its time, as long as it moves. */
static int64_t
stalls_at(int64_t since_ns, int64_t timeout_ns, size_t size)
{
    return since_ns + timeout_ns + (int64_t)(size / BYTES_PER_MS) * NS_PER_MS;
}

int64_t
connection_stalls_at(struct connection *connection, int64_t timeout_ns)
{
    int64_t begun_ns, in_ns = INT64_MAX, out_ns = INT64_MAX;
    size_t size;

    pthread_mutex_lock(&connection->lock);
    begun_ns =
        atomic_load_explicit(&connection->begun_ns, memory_order_relaxed);
    size = atomic_load_explicit(&connection->begun_size, memory_order_relaxed);
    if (begun_ns > 0)
        in_ns = stalls_at(begun_ns, timeout_ns, size);
    if (connection->sending)
        out_ns = stalls_at(connection->flying_ns, timeout_ns,
                           connection->outbox.flying.total);
    pthread_mutex_unlock(&connection->lock);
    return in_ns < out_ns ? in_ns : out_ns;
}

const char *
connection_why_lost(const struct connection *connection, const char *otherwise)
{
    const struct io_stream *stream = connection->stream;
    const char *why = stream->ops->trouble ? stream->ops->trouble(stream) : "";

    return *why ? why : otherwise;
}

const char *
connection_why(const struct connection *connection)
{
    return connection->why;
}

const struct connection_limits *
connection_peer_limits(const struct connection *connection)
{
    return &connection->peer;
}

struct idem_peer
connection_peer(const struct connection *connection)
{
    const struct io_stream *stream = connection->stream;

    return (struct idem_peer){
        .address = stream->ops->peer(stream),
        .identity = stream->ops->identity ? stream->ops->identity(stream) : "",
        .secure = stream->ops->secure,
    };
}

bool
connection_plain(const struct connection *connection)
{
    return connection->plain;
}

bool
connection_secure(const struct connection *connection)
{
    return connection->stream->ops->secure;
}

uint64_t
connection_heard(const struct connection *connection)
{
    return atomic_load_explicit(&connection->heard, memory_order_relaxed);
}
