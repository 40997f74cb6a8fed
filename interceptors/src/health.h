#ifndef HEALTH_H
#define HEALTH_H

#include <pthread.h>
#include <stdatomic.h>

#include <idem/context.h>
#include <idem/health.h>
#include <idem/interceptor.h>

/* An interceptor without hooks: it lives as long as the server's chain, and
 * ends before the store does (once is further in). */
struct health {
    struct idem_interceptor base;
    struct idem_server *server;
    struct idem_store *store; /* NULL: none is asked */
    const struct idem_clock *clock;
    int64_t interval_ns, timeout_ns;
    atomic_bool away; /* the authority did not answer the last question */

    pthread_t thread;
    unsigned turn;        /* the thread's */
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t wake;
    bool over;
    struct health_watch *watches;
};

enum health_status {
    HEALTH_UNKNOWN, /* of Watch, before it has said anything */
    HEALTH_SERVING,
    HEALTH_NOT_SERVING,
    HEALTH_NO_SERVICE, /* by that name */
};

/* "" is the server itself. */
enum health_status health_status_of(struct health *health, const char *service);

/* The handler of Watch, and what the thread does for all of them. */
struct idem_health_watch_server_stream;
enum idem_status
health_watch_serve(struct idem_context *context, const char *service,
                   struct idem_health_watch_server_stream *stream);
void health_watches_tell(struct health *health);

/* The thread that asks the store now and then, and tells the watches. */
enum idem_status health_start(struct health *health, struct idem_error *err)
    IDEM_MUST_CHECK;
void health_stop(struct health *health);

#endif
