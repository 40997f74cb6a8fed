#include "health.h"

#include <idem/call.h>
#include <idem/context.h>

#include <stdlib.h>
#include <string.h>

#include <idem/v1/health.idem.h>

#define NS_PER_MS INT64_C(1000000)
#define INTERVAL_MS 1000
#define TIMEOUT_MS 1000
#define TIME_MAX_MS 86400000 /* a day */

#define SERVING IDEM_HEALTH_HEALTH_CHECK_RESPONSE_SERVING_STATUS_SERVING
#define NOT_SERVING IDEM_HEALTH_HEALTH_CHECK_RESPONSE_SERVING_STATUS_NOT_SERVING

/* --- What it says --- */

static bool
records(const struct idem_service *service)
{
    for (unsigned i = 0; i < service->n_methods; i++)
        if (service->methods[i].mode != IDEM_MODE_NONE)
            return true;
    return false;
}

/* service NULL: the server itself. */
static enum health_status
status_of(const struct health *health, const struct idem_service *service)
{
    if (!idem_server_is_running(health->server))
        return HEALTH_NOT_SERVING;
    if (service && records(service) && atomic_load(&health->away))
        return HEALTH_NOT_SERVING;
    return HEALTH_SERVING;
}

enum health_status
health_status_of(struct health *health, const char *name)
{
    const struct idem_service *service;

    if (!*name)
        return status_of(health, NULL);
    for (unsigned i = 0;
         (service = idem_server_service(health->server, i)) != NULL; i++)
        if (strcmp(service->name, name) == 0)
            return status_of(health, service);
    return HEALTH_NO_SERVICE;
}

static idem_health_health_check_response_serving_status
word_of(enum health_status status)
{
    return status == HEALTH_SERVING ? SERVING : NOT_SERVING;
}

static enum idem_status
check(struct idem_context *context,
      const idem_health_health_check_request *request,
      idem_health_health_check_response *reply)
{
    enum health_status status =
        health_status_of(idem_context_user(context), request->service);

    if (status == HEALTH_NO_SERVICE)
        return idem_context_fail(context, IDEM_NOT_FOUND,
                                 "no service \"%s\" here", request->service);
    reply->status = word_of(status);
    return IDEM_OK;
}

static enum idem_status
watch(struct idem_context *context,
      const idem_health_health_check_request *request,
      struct idem_health_watch_server_stream *stream)
{
    return health_watch_serve(context, request->service, stream);
}

static unsigned
count(const struct health *health)
{
    unsigned n = 0;

    while (idem_server_service(health->server, n))
        n++;
    return n;
}

typedef idem_health_health_list_response_statuses_entry entry;

/* NULL: out of memory. */
static entry *
make_entry(struct idem_context *context, const char *name,
           idem_health_health_check_response_serving_status status)
{
    struct idem_arena *arena = idem_context_arena(context);
    entry *made = idem_arena_alloc(arena, sizeof(*made));
    idem_health_health_check_response *value =
        idem_arena_alloc(arena, sizeof(*value));

    if (!made || !value)
        return NULL;
    *made = (entry)IDEM_HEALTH_HEALTH_LIST_RESPONSE_STATUSES_ENTRY_INIT;
    *value = (idem_health_health_check_response)
        IDEM_HEALTH_HEALTH_CHECK_RESPONSE_INIT;
    value->status = status;
    made->key = name;
    made->value = value;
    return made;
}

static enum idem_status
list(struct idem_context *context,
     const idem_health_health_list_request *request,
     idem_health_health_list_response *reply)
{
    const struct health *health = idem_context_user(context);
    unsigned n = count(health);
    entry **entries = idem_arena_alloc(idem_context_arena(context),
                                       (n + 1) * sizeof(*entries));

    (void)request;
    for (unsigned i = 0; entries && i <= n; i++) {
        const struct idem_service *service =
            i < n ? idem_server_service(health->server, i) : NULL;

        entries[i] = make_entry(context, service ? service->name : "",
                                word_of(status_of(health, service)));
        if (!entries[i])
            entries = NULL;
    }
    if (!entries)
        return idem_context_fail(context, IDEM_RESOURCE_EXHAUSTED,
                                 "no memory for the list");
    reply->statuses = entries;
    reply->n_statuses = n + 1;
    return IDEM_OK;
}

static const struct idem_health_handlers handlers = {
    .check = check,
    .watch = watch,
    .list = list,
};

/* --- Its life --- */

static void
destroy(struct health *health)
{
    pthread_cond_destroy(&health->wake);
    pthread_mutex_destroy(&health->lock);
    free(health);
}

static void
health_free(struct idem_interceptor *self)
{
    struct health *health = (struct health *)self;

    health_stop(health);
    destroy(health);
}

static const struct idem_interceptor_ops health_ops = {
    .name = "health",
    .band = IDEM_BAND_OBSERVE,
    .free = health_free,
};

static int64_t
time_ns(int64_t given_ms, int64_t otherwise_ms)
{
    return (given_ms ? given_ms : otherwise_ms) * NS_PER_MS;
}

static enum idem_status
check_time(const char *name, int64_t ms, struct idem_error *err)
{
    if (ms >= 0 && ms <= TIME_MAX_MS)
        return IDEM_OK;
    return idem_fail(err, IDEM_INVALID_ARGUMENT,
                     "health: %s is %lld; it is from 0 to %d", name,
                     (long long)ms, TIME_MAX_MS);
}

static enum idem_status
make(struct health **out, const struct idem_health_options *options,
     struct idem_error *err)
{
    enum idem_status status =
        check_time("interval_ms", options->interval_ms, err);
    struct health *health;

    if (status == IDEM_OK)
        status = check_time("timeout_ms", options->timeout_ms, err);
    if (status != IDEM_OK)
        return status;
    health = calloc(1, sizeof(*health));
    if (!health)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no memory for health");
    health->base.ops = &health_ops;
    health->clock = options->clock ? options->clock : idem_clock_system();
    health->interval_ns = time_ns(options->interval_ms, INTERVAL_MS);
    health->timeout_ns = time_ns(options->timeout_ms, TIMEOUT_MS);
    pthread_mutex_init(&health->lock, NULL);
    pthread_cond_init(&health->wake, NULL);
    *out = health;
    return IDEM_OK;
}

enum idem_status
idem_health_add(struct idem_server *server, struct idem_store *store,
                const struct idem_health_options *given, struct idem_error *err)
{
    static const struct idem_health_options defaults;
    struct health *health = NULL;
    enum idem_status status = make(&health, given ? given : &defaults, err);

    if (status != IDEM_OK)
        return status;
    health->server = server;
    health->store = store;
    status = health_start(health, err);
    if (status != IDEM_OK) {
        destroy(health);
        return status;
    }
    status = idem_server_add(server, &health->base, err);
    if (status != IDEM_OK)
        return status;
    return idem_health_register(server, &handlers, health, err);
}
