#include "server_inside.h"

#include "clock_held.h"
#include "codec.h"
#include "stream.h"
#include "validate.h"

#include <stdlib.h>
#include <unistd.h>

#define WORKERS_PER_CORE 4
#define MAX_QUEUED 10000
#define MAX_CONNECTIONS 10000
#define MAX_STREAMS 100000
#define MAX_STREAMING 1000
#define MAX_MESSAGE ((size_t)4 << 20)
#define MAX_MESSAGE_LIMIT ((size_t)1 << 30) /* a frame's size is 32 bits */
#define MAX_DEPTH 100                       /* as message.h has it */
#define HELLO_TIMEOUT_MS 10000
#define DRAIN_MS 10000
#define STALL_TIMEOUT_MS 30000
#define IDLE_TIMEOUT_MS 1800000
#define AGE_GRACE_MS 10000
#define MAX_PINGS 60 /* a minute */

/* A server's life up to start; server_stop.c has the rest. */

static unsigned
cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 0 ? (unsigned)n : 1;
}

/* How large a call may be. */
static void
with_size_defaults(struct idem_server_options *options)
{
    if (options->max_message == 0)
        options->max_message = MAX_MESSAGE;
    if (options->max_metadata == 0)
        options->max_metadata = IDEM_METADATA_MAX;
    if (options->max_depth == 0)
        options->max_depth = MAX_DEPTH;
}

/* How long a connection may do what. */
static void
with_life_defaults(struct idem_server_options *options)
{
    if (options->stall_timeout_ms == 0)
        options->stall_timeout_ms = STALL_TIMEOUT_MS;
    if (options->idle_timeout_ms == 0)
        options->idle_timeout_ms = IDLE_TIMEOUT_MS;
    if (options->age_grace_ms == 0)
        options->age_grace_ms = AGE_GRACE_MS;
    if (options->max_pings == 0)
        options->max_pings = MAX_PINGS;
}

static struct idem_server_options
with_defaults(const struct idem_server_options *given)
{
    struct idem_server_options options = {0};

    if (given)
        options = *given;
    if (options.workers == 0)
        options.workers = WORKERS_PER_CORE * cores();
    if (options.max_queued == 0)
        options.max_queued = MAX_QUEUED;
    if (options.max_connections == 0)
        options.max_connections = MAX_CONNECTIONS;
    if (options.max_streams == 0)
        options.max_streams = MAX_STREAMS;
    if (options.max_streaming == 0)
        options.max_streaming = MAX_STREAMING;
    if (options.stream_window == 0)
        options.stream_window = STREAM_WINDOW;
    with_size_defaults(&options);
    if (options.hello_timeout_ms == 0)
        options.hello_timeout_ms = HELLO_TIMEOUT_MS;
    if (options.drain_ms == 0)
        options.drain_ms = DRAIN_MS;
    with_life_defaults(&options);
    if (!options.clock)
        options.clock = clock_held();
    return options;
}

static enum idem_status
check_options(const struct idem_server_options *options, struct idem_error *err)
{
    if (options->hello_timeout_ms < 0 || options->drain_ms < 0 ||
        options->stall_timeout_ms < 0 || options->idle_timeout_ms < 0 ||
        options->max_age_ms < 0 || options->age_grace_ms < 0)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "an option in milliseconds is negative");
    if (options->stream_window > STREAM_WINDOW_MAX)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "stream_window is over %d",
                         STREAM_WINDOW_MAX);
    if (options->max_message > MAX_MESSAGE_LIMIT)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "max_message is over %zu",
                         MAX_MESSAGE_LIMIT);
    if (options->max_metadata > IDEM_METADATA_MAX)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "max_metadata is over %d",
                         IDEM_METADATA_MAX);
    if (options->max_depth > MAX_DEPTH)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "max_depth is over %d",
                         MAX_DEPTH);
    return codec_check(&options->compression, err);
}

static enum idem_status
add_validate(struct idem_server *server, struct idem_error *err)
{
    struct idem_message_limits limits = {
        .max_size = server->options.max_message,
        .max_depth = server->options.max_depth,
    };
    struct idem_interceptor *validate = validate_new(&limits);

    if (!validate)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    return chain_add(&server->chain, validate, err);
}

/* Everything that runs, or is locked. */
static enum idem_status
init(struct idem_server *server, const struct idem_server_options *options,
     struct idem_error *err)
{
    enum idem_status status = IDEM_OK;

    server->options = *options;
    server->options.tls = NULL;
    server->options.auth = NULL;
    server->clock = options->clock;
    server->last_listener = &server->listeners;
    server->last_peer = &server->peers;
    pthread_mutex_init(&server->lock, NULL);
    pthread_mutex_init(&server->stopping, NULL);
    pthread_cond_init(&server->changed, NULL);
    server->timers = timers_new(server->clock);
    server->workers = workers_new(options->workers, options->max_queued);
    if (!server->timers || !server->workers)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                         "out of memory or threads");
    workers_set_let_go(server->workers, endpoint_let_go);
    if (options->tls)
        status = tls_new(&server->tls, true, options->tls, err);
    return status == IDEM_OK ? add_validate(server, err) : status;
}

enum idem_status
idem_server_new(struct idem_server **out,
                const struct idem_server_options *given, struct idem_error *err)
{
    struct idem_server_options options = with_defaults(given);
    enum idem_status status = check_options(&options, err);
    struct idem_server *server;

    if (status != IDEM_OK)
        return status;
    server = calloc(1, sizeof *server);
    if (!server)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    status = init(server, &options, err);
    if (status != IDEM_OK) {
        idem_server_free(server);
        return status;
    }
    *out = server;
    return IDEM_OK;
}

enum idem_status
idem_server_add(struct idem_server *server,
                struct idem_interceptor *interceptor, struct idem_error *err)
{
    return chain_add(&server->chain, interceptor, err);
}

const char *
idem_server_chain(struct idem_server *server)
{
    return server->chain.text;
}

/* Of a server stream it is the effect before its messages, of the others each
 * message, and the end of one that has a reply. */
static bool
has_no_unit(const struct idem_method *method)
{
    bool reply = !(method->streams & IDEM_STREAMS_SERVER);

    if (method->mode == IDEM_MODE_NONE || !method->streams)
        return false;
    if (method->streams == IDEM_STREAMS_SERVER)
        return !method->messages;
    return !method->each || (reply && !method->end);
}

/* An effect without its record is what this library is there to prevent. */
static enum idem_status
check_once(const struct idem_server *server, const struct idem_method *method,
           struct idem_error *err)
{
    if (!method)
        return IDEM_OK;
    if (has_no_unit(method))
        return idem_fail(err, IDEM_FAILED_PRECONDITION,
                         "%s is a stream with a mode, and nothing says what of "
                         "it takes effect once: generate it anew",
                         method->name);
    if (method->mode == IDEM_MODE_NONE ||
        chain_has_band(&server->chain, IDEM_BAND_KEY))
        return IDEM_OK;
    return idem_fail(err, IDEM_FAILED_PRECONDITION,
                     "%s has an effect, and the chain (%s) has no once",
                     method->name, server->chain.text);
}

/* The generator sees one file at a time. */
static enum idem_status
check_scope(const struct idem_server *server, const struct idem_method *method,
            struct idem_error *err)
{
    const struct idem_method *rival =
        method_table_find_rival(&server->methods, method);

    if (!rival)
        return IDEM_OK;
    return idem_fail(err, IDEM_INVALID_ARGUMENT,
                     "%s and %s have the scope \"%s\", so that each would get "
                     "the other's answers: methods share keys with key_group",
                     method->name, rival->name, method->scope);
}

/* A transaction is its thread's: it cannot wait for a completion elsewhere. */
static enum idem_status
check_dispatch(const struct idem_method *method, struct idem_error *err)
{
    if (method->dispatch != IDEM_DISPATCH_ASYNC ||
        method->mode != IDEM_MODE_TRANSACTION)
        return IDEM_OK;
    return idem_fail(err, IDEM_INVALID_ARGUMENT,
                     "%s: a handler that answers later (dispatch ASYNC) cannot "
                     "keep a transaction open: mode TRANSACTION is for POOL",
                     method->name);
}

/* A rule that nobody enforces lets everybody in. */
static enum idem_status
check_allow(const struct idem_server *server, struct idem_error *err)
{
    const struct idem_method *method = server->methods.guarded;

    if (!method || chain_has_band(&server->chain, IDEM_BAND_ALLOW))
        return IDEM_OK;
    return idem_fail(err, IDEM_FAILED_PRECONDITION,
                     "%s is not for anyone, and nobody in the chain (%s) asks "
                     "who calls: add idem_allow_new",
                     method->name, server->chain.text);
}

enum idem_status
idem_server_register(struct idem_server *server,
                     const struct idem_service *service, const void *handlers,
                     size_t size, void *user, struct idem_error *err)
{
    enum idem_status status = IDEM_OK;

    if (server->state != SERVER_NEW)
        return idem_fail(err, IDEM_FAILED_PRECONDITION,
                         "%s: the server runs already", service->name);
    for (unsigned i = 0; i < service->n_methods && status == IDEM_OK; i++) {
        status = check_dispatch(&service->methods[i], err);
        if (status == IDEM_OK)
            status = check_once(server, &service->methods[i], err);
        if (status == IDEM_OK)
            status = check_scope(server, &service->methods[i], err);
    }
    if (status != IDEM_OK)
        return status;
    return method_table_add(&server->methods, service, handlers, size, user,
                            err);
}

const struct idem_service *
idem_server_service(const struct idem_server *server, unsigned index)
{
    return method_table_service(&server->methods, index);
}

bool
idem_server_is_running(struct idem_server *server)
{
    bool running;

    pthread_mutex_lock(&server->lock);
    running = server->state == SERVER_RUNNING;
    pthread_mutex_unlock(&server->lock);
    return running;
}

enum idem_status
idem_server_start(struct idem_server *server, struct idem_error *err)
{
    enum idem_status status =
        check_once(server, server->methods.effectful, err);

    if (status == IDEM_OK)
        status = check_allow(server, err);
    if (status != IDEM_OK)
        return status;
    pthread_mutex_lock(&server->lock);
    if (server->state == SERVER_NEW)
        server->state = SERVER_RUNNING;
    else
        status = idem_fail(err, IDEM_FAILED_PRECONDITION,
                           "the server was started already");
    pthread_mutex_unlock(&server->lock);
    if (status != IDEM_OK)
        return status;
    chain_seal(&server->chain);
    for (struct server_listener *at = server->listeners; at; at = at->next)
        server_accept(at);
    return IDEM_OK;
}
