#include "server_inside.h"

#include "clock_after.h"

#define MS_PER_MINUTE 60000
#define JITTER_PERCENT 10
#define SURE_MS 1000 /* until the second look at a stall */

/* What a connection is held to beside its calls: it moves what it has begun, it
 * does not stay without a call, it does not grow too old, it does not ask all
 * the time whether we are there. One timer a peer looks at all of it, so that
 * calls cost nothing: what it finds may be late by its own period.
 *
 *   taken in --idle, or of age--> told to go (GOAWAY) --grace--> cut
 *        |                                                        ^
 *        +----------------------- stalled ------------------------+
 */

static int64_t
earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Not all of those that came together go together. */
static int64_t
of_age_at(const struct idem_server *server, int64_t now_ns)
{
    int64_t age_ms = server->options.max_age_ms;
    int64_t part_ms = age_ms / 100 * JITTER_PERCENT;

    if (age_ms == 0)
        return INT64_MAX;
    return clock_after(clock_after(now_ns, age_ms - part_ms),
                       idem_clock_between(server->clock, 0, 2 * part_ms));
}

/* With the peer's lock: why it is told to go now; NULL: it is not. */
static const char *
reason_to_go(struct peer *peer, int64_t now_ns)
{
    const struct idem_server_options *options = &peer->server->options;
    struct peer_watch *watch = &peer->watch;

    if (peer->calls || peer->last_stream != watch->seen_stream)
        watch->idle_ns = now_ns;
    watch->seen_stream = peer->last_stream;
    if (watch->ends_ns != INT64_MAX)
        return NULL;
    if (now_ns >= watch->retires_ns)
        return "max_age";
    return now_ns >= clock_after(watch->idle_ns, options->idle_timeout_ms)
               ? "idle"
               : NULL;
}

/* With the peer's lock. */
static int64_t
next_look(struct peer *peer, int64_t now_ns, int64_t stalls_ns)
{
    const struct idem_server_options *options = &peer->server->options;
    const struct peer_watch *watch = &peer->watch;
    int64_t next_ns =
        earlier(stalls_ns, clock_after(now_ns, options->stall_timeout_ms));

    if (watch->ends_ns != INT64_MAX)
        return earlier(next_ns, watch->ends_ns);
    next_ns = earlier(next_ns, watch->retires_ns);
    return earlier(next_ns,
                   clock_after(watch->idle_ns, options->idle_timeout_ms));
}

/* A stall is believed at the second look: when all of us stood still (a process
 * that was stopped, a machine that slept), what came meanwhile is read first.
 * *next_ns is when to look again. */
static bool
is_stalled(struct peer_watch *watch, int64_t now_ns, int64_t *next_ns)
{
    int64_t stalls_ns = *next_ns;
    bool sure = now_ns >= stalls_ns && watch->suspect_ns == stalls_ns;

    watch->suspect_ns = now_ns >= stalls_ns ? stalls_ns : INT64_MAX;
    if (now_ns >= stalls_ns)
        *next_ns = clock_after(now_ns, SURE_MS);
    return sure;
}

/* Why it is cut now; NULL: it is not. *go is why it is told to go. */
static const char *
look(struct peer *peer, const char **go)
{
    const struct idem_server *server = peer->server;
    const struct idem_server_options *options = &server->options;
    struct peer_watch *watch = &peer->watch;
    int64_t now_ns = server->clock->monotonic_ns(server->clock);
    int64_t stalls_ns = connection_stalls_at(
        peer->connection, clock_after(0, options->stall_timeout_ms));
    const char *why = NULL;

    pthread_mutex_lock(&peer->lock);
    *go = reason_to_go(peer, now_ns);
    if (*go)
        watch->ends_ns = clock_after(now_ns, options->age_grace_ms);
    if (is_stalled(watch, now_ns, &stalls_ns))
        why = "stall_timeout_ms: a frame that was begun did not move";
    else if (now_ns >= watch->ends_ns)
        why = "age_grace_ms: it was told to go, and did not";
    if (!why && !watch->over) {
        connection_ref(peer->connection);
        idem_timer_start(server->timers, &watch->timer,
                         next_look(peer, now_ns, stalls_ns));
    }
    pthread_mutex_unlock(&peer->lock);
    return why;
}

static void
fire(struct idem_timer *timer)
{
    struct peer *peer =
        (struct peer *)((char *)timer - offsetof(struct peer, watch.timer));
    struct connection *connection = peer->connection;
    const char *go, *why = look(peer, &go);

    if (why)
        connection_close(connection, why);
    else if (go)
        peer_retire(peer, go);
    connection_unref(connection);
}

void
peer_watch_begin(struct peer *peer)
{
    struct idem_server *server = peer->server;
    struct peer_watch *watch = &peer->watch;
    int64_t now_ns = server->clock->monotonic_ns(server->clock);

    pthread_mutex_lock(&peer->lock);
    watch->timer.fire = fire;
    watch->idle_ns = watch->pings_ns = now_ns;
    watch->retires_ns = of_age_at(server, now_ns);
    watch->ends_ns = INT64_MAX;
    connection_ref(peer->connection);
    idem_timer_start(server->timers, &watch->timer,
                     next_look(peer, now_ns, INT64_MAX));
    pthread_mutex_unlock(&peer->lock);
}

void
peer_watch_end(struct peer *peer)
{
    pthread_mutex_lock(&peer->lock);
    peer->watch.over = true;
    pthread_mutex_unlock(&peer->lock);
    if (idem_timer_stop(peer->server->timers, &peer->watch.timer))
        connection_unref(peer->connection);
}

const char *
peer_watch_ping(void *with)
{
    struct peer *peer = with;
    struct peer_watch *watch = &peer->watch;
    const struct idem_clock *clock = peer->server->clock;
    int64_t now_ns = clock->monotonic_ns(clock);

    if (now_ns >= clock_after(watch->pings_ns, MS_PER_MINUTE)) {
        watch->pings_ns = now_ns;
        watch->pings = 0;
    }
    if (++watch->pings <= peer->server->options.max_pings)
        return NULL;
    peer_retire(peer, "max_pings");
    connection_finish(peer->connection);
    return NULL;
}
