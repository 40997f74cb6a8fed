#include "channel_inside.h"

#include <stdlib.h>
#include <string.h>

#define BACKOFF_MS 100
#define BACKOFF_MAX_MS 10000
#define MAX_MESSAGE ((size_t)4 << 20)
#define MAX_MESSAGE_LIMIT ((size_t)1 << 30) /* a frame's size is 32 bits */
#define CLOSE_AT_ONCE 16 /* links; there are hardly ever two */
#define MAX_BUFFERED ((size_t)64 << 20)

/* A channel's life; see channel_inside.h for its parts. */

static enum idem_status
check_options(const struct idem_channel_options *options,
              struct idem_error *err)
{
    if (options->timeout_ms < 0 || options->connect_backoff_ms < 0 ||
        options->connect_backoff_max_ms < 0)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "an option in milliseconds is negative");
    if (options->connect_backoff_ms > options->connect_backoff_max_ms)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "connect_backoff_ms is over connect_backoff_max_ms");
    if (options->max_message > MAX_MESSAGE_LIMIT)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "max_message is over %zu",
                         MAX_MESSAGE_LIMIT);
    return IDEM_OK;
}

static struct idem_channel_options
with_defaults(const struct idem_channel_options *given)
{
    struct idem_channel_options options = {0};

    if (given)
        options = *given;
    if (options.connect_backoff_ms == 0)
        options.connect_backoff_ms = BACKOFF_MS;
    if (options.connect_backoff_max_ms == 0)
        options.connect_backoff_max_ms =
            options.connect_backoff_ms > BACKOFF_MAX_MS
                ? options.connect_backoff_ms
                : BACKOFF_MAX_MS;
    if (options.max_message == 0)
        options.max_message = MAX_MESSAGE;
    if (options.max_buffered == 0)
        options.max_buffered = MAX_BUFFERED;
    if (!options.clock)
        options.clock = idem_clock_system();
    return options;
}

/* Is it an address at all? Dialers are cheap and connect to nothing yet. */
static enum idem_status
check_target(const struct io *io, const char *target, struct idem_error *err)
{
    struct io_dialer *dialer;
    enum idem_status status = io->dialer(io, target, &dialer, err);

    if (status == IDEM_OK)
        dialer->ops->free(dialer);
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

    if (status == IDEM_OK)
        status = check_target(io, target, err);
    if (status != IDEM_OK)
        return status;
    channel = calloc(1, sizeof *channel);
    if (channel) {
        channel->target = strdup(target);
        channel->timers = timers_new(options.clock);
    }
    if (!channel || !channel->target || !channel->timers) {
        if (channel && channel->timers)
            timers_free(channel->timers);
        if (channel)
            free(channel->target);
        free(channel);
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    }
    channel->clock = options.clock;
    channel->io = io;
    channel->options = options;
    channel->backoff_ms = options.connect_backoff_ms;
    channel->last_waiting = &channel->waiting;
    atomic_init(&channel->refs, 1);
    pthread_mutex_init(&channel->lock, NULL);
    pthread_cond_init(&channel->idle, NULL);
    channel_dial(channel);
    *out = channel;
    return IDEM_OK;
}

enum idem_status
idem_channel_new(struct idem_channel **channel, const char *target,
                 const struct idem_channel_options *options,
                 struct idem_error *err)
{
    const struct io *io;
    enum idem_status status = io_find(target, &io, err);

    if (status != IDEM_OK)
        return status;
    return channel_new_with_io(channel, io, target, options, err);
}

enum idem_status
idem_channel_add(struct idem_channel *channel,
                 struct idem_interceptor *interceptor, struct idem_error *err)
{
    enum idem_status status;

    pthread_mutex_lock(&channel->lock);
    status = chain_add(&channel->chain, interceptor, err);
    pthread_mutex_unlock(&channel->lock);
    return status;
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
    pthread_cond_destroy(&channel->idle);
    pthread_mutex_destroy(&channel->lock);
    free(channel->target);
    free(channel);
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

/* With the lock: something below the calls is not gone. */
static bool
is_busy(const struct idem_channel *channel)
{
    return channel->dialing || channel->dialed || channel->links;
}

void
idem_channel_close(struct idem_channel *channel)
{
    if (!channel)
        return;
    IDEM_ASSERT(!channel_in_callback());
    pthread_mutex_lock(&channel->lock);
    channel->closing = true;
    pthread_mutex_unlock(&channel->lock);
    channel_dial_stop(channel);
    cancel_calls(channel);
    chain_stop(&channel->chain);
    pthread_mutex_lock(&channel->lock);
    while (channel->n_calls > 0)
        pthread_cond_wait(&channel->idle, &channel->lock);
    while (is_busy(channel)) {
        pthread_mutex_unlock(&channel->lock);
        close_links(channel);
        pthread_mutex_lock(&channel->lock);
        if (is_busy(channel))
            pthread_cond_wait(&channel->idle, &channel->lock);
    }
    pthread_mutex_unlock(&channel->lock);
    timers_free(channel->timers);
    channel_unref(channel);
}
