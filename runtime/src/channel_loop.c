#include "channel_inside.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Callbacks on a thread of the caller's own event loop: calls that are over
 * wait in a queue, and an eventfd is readable while there are some. */

enum idem_status
loop_init(struct idem_channel *channel, struct idem_error *err)
{
    channel->last_told = &channel->told;
    channel->loop_fd = -1;
    if (!channel->options.own_loop)
        return IDEM_OK;
    channel->loop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (channel->loop_fd < 0)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "eventfd: %s",
                         strerror(errno));
    return IDEM_OK;
}

void
loop_fini(struct idem_channel *channel)
{
    if (channel->loop_fd >= 0)
        close(channel->loop_fd);
}

void
loop_put(struct client_call *call)
{
    struct idem_channel *channel = call->channel;
    bool first;

    pthread_mutex_lock(&channel->lock);
    if (call->queued) {
        pthread_mutex_unlock(&channel->lock);
        return;
    }
    call_ref(&call->call); /* the queue's */
    call->queued = true;
    first = !channel->told;
    call->next_told = NULL;
    *channel->last_told = call;
    channel->last_told = &call->next_told;
    if (channel->closing)
        pthread_cond_broadcast(&channel->idle);
    if (first)
        (void)eventfd_write(channel->loop_fd, 1);
    pthread_mutex_unlock(&channel->lock);
}

int
idem_channel_fd(const struct idem_channel *channel)
{
    return channel->loop_fd;
}

static void
run_callbacks(struct client_call *call)
{
    struct idem_channel *channel = call->channel;

    pthread_mutex_lock(&channel->lock);
    call->queued = false;
    pthread_mutex_unlock(&channel->lock);
    if (call->call.stream)
        channel_stream_deliver(call);
    else
        channel_tell(call);
}

unsigned
idem_channel_process(struct idem_channel *channel)
{
    struct client_call *call, *next;
    eventfd_t count;
    unsigned n = 0;

    pthread_mutex_lock(&channel->lock);
    if (channel->told)
        (void)eventfd_read(channel->loop_fd, &count);
    call = channel->told;
    channel->told = NULL;
    channel->last_told = &channel->told;
    pthread_mutex_unlock(&channel->lock);
    for (; call; call = next) {
        next = call->next_told;
        run_callbacks(call);
        call_unref(&call->call);
        n++;
    }
    return n;
}
