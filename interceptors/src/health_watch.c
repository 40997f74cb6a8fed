#include "health.h"

#include <idem/v1/health.idem.h>

#include <utlist.h>

/* The streams of Watch. Their handler runs in callback style, so that a watcher
 * holds no thread; the health thread tells all of them. */

/* One, in its call's arena. The health's lock guards it. While it is busy the
 * thread writes to its stream without the lock, for a write that finds the
 * connection gone may end the stream on the spot; whoever is the last of the
 * two closes it. */
struct health_watch {
    struct health *health;
    struct idem_health_watch_server_stream *stream;
    const char *service;
    enum health_status told;
    unsigned turn; /* of the thread's in which it was told */
    bool busy, ended;
    enum idem_status status; /* ended: with this */
    struct health_watch *prev, *next;
};

static const idem_health_health_check_response_serving_status words[] = {
    [HEALTH_UNKNOWN] = IDEM_HEALTH_HEALTH_CHECK_RESPONSE_SERVING_STATUS_UNKNOWN,
    [HEALTH_SERVING] = IDEM_HEALTH_HEALTH_CHECK_RESPONSE_SERVING_STATUS_SERVING,
    [HEALTH_NOT_SERVING] =
        IDEM_HEALTH_HEALTH_CHECK_RESPONSE_SERVING_STATUS_NOT_SERVING,
    [HEALTH_NO_SERVICE] =
        IDEM_HEALTH_HEALTH_CHECK_RESPONSE_SERVING_STATUS_SERVICE_UNKNOWN,
};

/* Busy. What finds no room comes with a later turn, as it is then. */
static void
say(struct health_watch *watch)
{
    idem_health_health_check_response reply =
        IDEM_HEALTH_HEALTH_CHECK_RESPONSE_INIT;
    enum health_status status = health_status_of(watch->health, watch->service);

    if (status == watch->told)
        return;
    reply.status = words[status];
    if (idem_health_watch_send(watch->stream, &reply) == IDEM_OK)
        watch->told = status;
}

/* It is told, and ends when its client has gone, or the server goes. */
static void
tell(struct health *health, struct health_watch *watch)
{
    bool over;

    say(watch);
    over = !idem_server_is_running(health->server);
    pthread_mutex_lock(&health->lock);
    watch->busy = false;
    if (over && !watch->ended) {
        watch->ended = true;
        watch->status = IDEM_UNAVAILABLE;
        DL_DELETE(health->watches, watch);
    }
    over = watch->ended;
    pthread_mutex_unlock(&health->lock);
    if (over)
        idem_health_watch_close(watch->stream, watch->status);
}

/* The next that was not told in this turn, busy from here. */
static struct health_watch *
next_of(struct health *health, unsigned turn)
{
    struct health_watch *watch;

    pthread_mutex_lock(&health->lock);
    DL_FOREACH(health->watches, watch)
    if (watch->turn != turn && !watch->busy)
        break;
    if (watch) {
        watch->turn = turn;
        watch->busy = true;
    }
    pthread_mutex_unlock(&health->lock);
    return watch;
}

void
health_watches_tell(struct health *health)
{
    unsigned turn = ++health->turn;
    struct health_watch *watch;

    while ((watch = next_of(health, turn)) != NULL)
        tell(health, watch);
}

static void
end(struct idem_health_watch_server_stream *stream, enum idem_status status)
{
    struct health_watch *watch = idem_health_watch_server_user(stream);
    struct health *health = watch->health;
    bool mine = false;

    pthread_mutex_lock(&health->lock);
    if (!watch->ended) {
        watch->ended = true;
        watch->status = status;
        DL_DELETE(health->watches, watch);
        mine = !watch->busy;
    }
    pthread_mutex_unlock(&health->lock);
    if (mine)
        idem_health_watch_close(stream, status);
}

enum idem_status
health_watch_serve(struct idem_context *context, const char *service,
                   struct idem_health_watch_server_stream *stream)
{
    static const struct idem_health_watch_server_callbacks callbacks = {
        .end = end,
    };
    struct health *health = idem_context_user(context);
    struct health_watch *watch =
        idem_arena_zalloc(idem_context_arena(context), sizeof(*watch));

    if (!watch)
        return idem_context_fail(context, IDEM_RESOURCE_EXHAUSTED,
                                 "no memory for the watch");
    watch->health = health;
    watch->stream = stream;
    watch->service = service;
    idem_health_watch_serve(stream, &callbacks, watch);
    pthread_mutex_lock(&health->lock);
    DL_APPEND(health->watches, watch);
    pthread_cond_signal(&health->wake);
    pthread_mutex_unlock(&health->lock);
    return IDEM_OK;
}
