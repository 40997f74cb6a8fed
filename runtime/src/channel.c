#include "channel_inside.h"

#include "clock_after.h"
#include "clock_held.h"
#include "codec.h"
#include "stream.h"
#include "worker.h"

#include <stdlib.h>
#include <string.h>

#define BACKOFF_MS 100
#define BACKOFF_MAX_MS 10000
#define BACKOFF_LONGEST_MS 86400000 /* a day */
#define MAX_MESSAGE ((size_t)4 << 20)
#define MAX_MESSAGE_LIMIT ((size_t)1 << 30) /* a frame's size is 32 bits */
#define CLOSE_AT_ONCE 16                    /* links */
#define MAX_BUFFERED ((size_t)64 << 20)
#define RESOLVE_MS 30000
#define KEEPALIVE_MS 30000
#define KEEPALIVE_TIMEOUT_MS 20000
#define HOST_MAX 256

/* A channel's life; see channel_inside.h for its parts. */

static enum idem_status
check_options(const struct idem_channel_options *options,
              struct idem_error *err)
{
    enum idem_status status;

    if (options->timeout_ms < 0 || options->connect_backoff_ms < 0 ||
        options->connect_backoff_max_ms < 0 || options->resolve_ms < 0 ||
        options->keepalive_ms < 0 || options->keepalive_timeout_ms < 0)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "an option in milliseconds is negative");
    if (options->connect_backoff_ms > options->connect_backoff_max_ms)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "connect_backoff_ms is over connect_backoff_max_ms");
    status = balancer_check(options->balancer, err);
    if (status != IDEM_OK)
        return status;
    status = outlier_check(&options->outlier, err);
    if (status != IDEM_OK)
        return status;
    if (options->stream_window > STREAM_WINDOW_MAX)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "stream_window is over %d",
                         STREAM_WINDOW_MAX);
    if (options->max_message > MAX_MESSAGE_LIMIT)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "max_message is over %zu",
                         MAX_MESSAGE_LIMIT);
    return codec_check(&options->compression, err);
}

static void
or_default(int64_t *ms, int64_t ms_default)
{
    if (*ms == 0)
        *ms = ms_default;
}

static int64_t
smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Who says one of the two has the other beside it. */
static void
backoff_defaults(int64_t *first_ms, int64_t *max_ms)
{
    if (*first_ms == 0)
        *first_ms = *max_ms > 0 ? smaller(BACKOFF_MS, *max_ms) : BACKOFF_MS;
    if (*max_ms == 0)
        *max_ms = *first_ms > BACKOFF_MAX_MS ? *first_ms : BACKOFF_MAX_MS;
    *first_ms = smaller(*first_ms, BACKOFF_LONGEST_MS);
    *max_ms = smaller(*max_ms, BACKOFF_LONGEST_MS);
}

static struct idem_channel_options
with_defaults(const struct idem_channel_options *given)
{
    struct idem_channel_options options = {0};

    if (given)
        options = *given;
    backoff_defaults(&options.connect_backoff_ms,
                     &options.connect_backoff_max_ms);
    if (options.max_message == 0)
        options.max_message = MAX_MESSAGE;
    if (options.stream_window == 0)
        options.stream_window = STREAM_WINDOW;
    if (options.max_buffered == 0)
        options.max_buffered = MAX_BUFFERED;
    or_default(&options.resolve_ms, RESOLVE_MS);
    or_default(&options.keepalive_ms, KEEPALIVE_MS);
    or_default(&options.keepalive_timeout_ms, KEEPALIVE_TIMEOUT_MS);
    outlier_defaults(&options.outlier);
    if (!options.clock)
        options.clock = clock_held();
    return options;
}

static void
close_links(struct idem_channel *channel)
{
    struct connection *connections[CLOSE_AT_ONCE];
    unsigned n = 0;

    pthread_mutex_lock(&channel->lock);
    for (struct link *link = channel->links; link && n < CLOSE_AT_ONCE;
         link = link->next)
        if (connection_ref_alive(link->connection))
            connections[n++] = link->connection;
    pthread_mutex_unlock(&channel->lock);
    while (n > 0) {
        connection_close(connections[--n], "the channel is closed");
        connection_unref(connections[n]);
    }
}

/* With the lock: from now on each address goes when nothing uses it. */
static void
drop_addresses(struct idem_channel *channel)
{
    for (struct address *at = channel->addresses, *next; at; at = next) {
        next = at->next;
        if (!at->dropped)
            address_drop(at);
    }
}

static void
begin_to_close(struct idem_channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    channel->closing = true;
    pthread_mutex_unlock(&channel->lock);
    target_stop(channel->target);
    pthread_mutex_lock(&channel->lock);
    drop_addresses(channel);
    pthread_mutex_unlock(&channel->lock);
}

static void
await_addresses(struct idem_channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    while (channel->addresses) {
        pthread_mutex_unlock(&channel->lock);
        close_links(channel);
        pthread_mutex_lock(&channel->lock);
        if (channel->addresses)
            pthread_cond_wait(&channel->idle, &channel->lock);
    }
    pthread_mutex_unlock(&channel->lock);
}

/* Of a channel without calls. */
static void
close_target(struct idem_channel *channel)
{
    if (!channel->target)
        return;
    begin_to_close(channel);
    await_addresses(channel);
}

static void
free_channel(struct idem_channel *channel)
{
    if (channel->timers)
        timers_free(channel->timers);
    target_free(channel->target);
    loop_fini(channel);
    pthread_cond_destroy(&channel->restated);
    pthread_cond_destroy(&channel->idle);
    pthread_mutex_destroy(&channel->lock);
    tls_free(channel->tls);
    free(channel->ready);
    free(channel->name);
    free(channel);
}

static void
init_channel(struct idem_channel *channel, const struct io *io,
             const struct idem_channel_options *options)
{
    channel->clock = options->clock;
    channel->io = io;
    channel->options = *options;
    channel->options.tls = NULL;
    channel->options.token = NULL;
    channel->last_waiting = &channel->waiting;
    channel->state = IDEM_CHANNEL_CONNECTING;
    atomic_init(&channel->refs, 1);
    pthread_mutex_init(&channel->lock, NULL);
    pthread_cond_init(&channel->idle, NULL);
    pthread_cond_init(&channel->restated, NULL);
    channel->board.fire = wait_fire_board;
    outlier_init(channel);
    rebalance_init(channel);
    atomic_init(&channel->codecs, CODECS);
}

static enum idem_status
open_target(struct idem_channel *channel, const char *target,
            struct idem_error *err)
{
    const struct target_options options = {
        .io = channel->io,
        .clock = channel->clock,
        .again_ms = channel->options.resolve_ms,
        .found = channel_found,
        .trouble = channel_trouble,
        .with = channel,
    };
    enum idem_status status =
        target_new(&channel->target, target, &options, err);

    if (status != IDEM_OK)
        return status;
    channel->name = strdup(target);
    channel->timers = timers_new(channel->clock);
    if (!channel->name || !channel->timers)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    return target_start(channel->target, err);
}

/* Of a dns:// target all addresses answer for its host, and a certificate names
 * that. */
static enum idem_status
open_tls(struct idem_channel *channel, const char *target,
         const struct idem_tls_options *given, struct idem_error *err)
{
    struct idem_tls_options options = *given;
    char host[HOST_MAX];
    enum idem_status status;

    if (!options.server_name && target_dns_host(target, host, sizeof host))
        options.server_name = host;
    status = tls_new(&channel->tls, false, &options, err);
    if (status == IDEM_OK)
        channel->io = tls_io(channel->tls);
    return status;
}

enum idem_status
channel_new_with_io(struct idem_channel **out, const struct io *io,
                    const char *target,
                    const struct idem_channel_options *given,
                    struct idem_error *err)
{
    struct idem_channel_options options = with_defaults(given);
    enum idem_status status = check_options(&options, err);
    struct idem_channel *channel;

    if (status != IDEM_OK)
        return status;
    channel = calloc(1, sizeof *channel);
    if (!channel)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    init_channel(channel, io, &options);
    status = loop_init(channel, err);
    if (status == IDEM_OK && options.tls)
        status = open_tls(channel, target, options.tls, err);
    if (status == IDEM_OK)
        status = open_target(channel, target, err);
    if (status != IDEM_OK) {
        close_target(channel);
        free_channel(channel);
        return status;
    }
    *out = channel;
    return IDEM_OK;
}

enum idem_status
idem_channel_new(struct idem_channel **channel, const char *target,
                 const struct idem_channel_options *options,
                 struct idem_error *err)
{
    return channel_new_with_io(channel, NULL, target, options, err);
}

int64_t
channel_after_ms(const struct idem_channel *channel, int64_t ms)
{
    return clock_after(channel->clock->monotonic_ns(channel->clock), ms);
}

enum idem_status
idem_channel_add(struct idem_channel *channel,
                 struct idem_interceptor *interceptor, struct idem_error *err)
{
    enum idem_status status;

    pthread_mutex_lock(&channel->lock);
    status = chain_add(&channel->chain, interceptor, err);
    pthread_mutex_unlock(&channel->lock);
    if (status == IDEM_OK && interceptor->ops->join)
        interceptor->ops->join(interceptor, channel);
    return status;
}

int64_t
idem_channel_skew_ms(const struct idem_channel *channel)
{
    return atomic_load_explicit(&channel->skew_ms, memory_order_relaxed);
}

struct idem_interceptor *
idem_channel_find(struct idem_channel *channel,
                  const struct idem_interceptor_ops *ops)
{
    struct idem_interceptor *found = NULL;

    pthread_mutex_lock(&channel->lock);
    for (unsigned i = 0; i < channel->chain.count && !found; i++)
        if (channel->chain.at[i]->ops == ops)
            found = channel->chain.at[i];
    pthread_mutex_unlock(&channel->lock);
    return found;
}

const char *
idem_channel_chain(struct idem_channel *channel)
{
    return channel->chain.text;
}

void
channel_unref(struct idem_channel *channel)
{
    if (atomic_fetch_sub_explicit(&channel->refs, 1, memory_order_acq_rel) != 1)
        return;
    chain_free(&channel->chain);
    free_channel(channel);
}

/* Each call that is not over, once. */
static void
cancel_calls(struct idem_channel *channel)
{
    struct client_call *calls = NULL, *next;

    pthread_mutex_lock(&channel->lock);
    for (struct client_call *call = channel->calls; call; call = call->next) {
        call_ref(&call->call);
        call->next_cancelled = calls;
        calls = call;
    }
    pthread_mutex_unlock(&channel->lock);
    for (; calls; calls = next) {
        next = calls->next_cancelled;
        call_interrupt(&calls->call, IDEM_CANCELLED);
        call_unref(&calls->call);
    }
}

void
idem_channel_close(struct idem_channel *channel)
{
    if (!channel)
        return;
    IDEM_ASSERT(!channel_in_callback());
    begin_to_close(channel);
    cancel_calls(channel);
    chain_stop(&channel->chain);
    workers_will_block();
    pthread_mutex_lock(&channel->lock);
    while (channel->n_calls > 0) {
        if (!channel->told) {
            pthread_cond_wait(&channel->idle, &channel->lock);
            continue;
        }
        pthread_mutex_unlock(&channel->lock);
        (void)idem_channel_process(channel);
        pthread_mutex_lock(&channel->lock);
    }
    pthread_mutex_unlock(&channel->lock);
    await_addresses(channel);
    timers_free(channel->timers);
    channel->timers = NULL;
    channel_unref(channel);
}
