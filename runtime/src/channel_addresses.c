#include "channel_inside.h"

#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The addresses of a channel: what its target names becomes what it has, and
 * how they stand becomes how it stands. */

/* --- How the channel stands --- */

/* A link that is just gone counts as one that is not there yet. */
static enum idem_channel_state
seen_state(const struct address *address)
{
    if (address->state == IDEM_CHANNEL_READY && !address->link)
        return IDEM_CHANNEL_CONNECTING;
    return address->state;
}

static enum idem_channel_state
best_state(const struct idem_channel *channel)
{
    static const unsigned char rank[] = {
        [IDEM_CHANNEL_TRANSIENT_FAILURE] = 0,
        [IDEM_CHANNEL_IDLE] = 1,
        [IDEM_CHANNEL_CONNECTING] = 2,
        [IDEM_CHANNEL_READY] = 3,
    };
    const struct address *best = NULL;

    for (const struct address *at = channel->addresses; at; at = at->next)
        if (!at->dropped &&
            (!best || rank[seen_state(at)] > rank[seen_state(best)]))
            best = at;
    if (!best)
        return channel->unfound ? IDEM_CHANNEL_TRANSIENT_FAILURE
                                : IDEM_CHANNEL_CONNECTING;
    return seen_state(best);
}

static void
note_ready(struct idem_channel *channel)
{
    channel->n_ready = 0;
    for (struct address *at = channel->addresses; at; at = at->next)
        if (at->link)
            channel->ready[channel->n_ready++] = at;
}

void
channel_restate(struct idem_channel *channel)
{
    note_ready(channel);
    channel->state = best_state(channel);
    channel->away = channel->state == IDEM_CHANNEL_TRANSIENT_FAILURE;
    pthread_cond_broadcast(&channel->restated);
}

enum idem_channel_state
idem_channel_state(struct idem_channel *channel)
{
    enum idem_channel_state state;

    pthread_mutex_lock(&channel->lock);
    state = channel->state;
    pthread_mutex_unlock(&channel->lock);
    return state;
}

enum idem_status
idem_channel_wait_ready(struct idem_channel *channel, int64_t timeout_ms,
                        struct idem_error *err)
{
    const struct idem_clock *clock = channel->clock;
    int64_t end_ns = channel_after_ms(channel, timeout_ms);
    enum idem_status status = IDEM_OK;

    if (channel_in_callback())
        return idem_fail(err, IDEM_FAILED_PRECONDITION,
                         "waiting inside a callback of the library would wait "
                         "for itself");
    workers_will_block();
    pthread_mutex_lock(&channel->lock);
    while (channel->state != IDEM_CHANNEL_READY &&
           clock->monotonic_ns(clock) < end_ns)
        clock->wait_until(clock, &channel->restated, &channel->lock, end_ns);
    if (channel->state != IDEM_CHANNEL_READY)
        status = idem_fail(
            err, IDEM_DEADLINE_EXCEEDED, "%s is %s: %s", channel->name,
            idem_channel_state_name(channel->state), channel->trouble);
    pthread_mutex_unlock(&channel->lock);
    return status;
}

/* --- What the target names --- */

/* With the lock: out of the old list. */
static struct address *
take_old(struct address **old, const char *name)
{
    for (struct address **at = old; *at; at = &(*at)->next) {
        struct address *found = *at;

        if (!found->dropped && strcmp(found->name, name) == 0) {
            *at = found->next;
            return found;
        }
    }
    return NULL;
}

/* With the lock: those that it had keep their links. */
static void
rename_all(struct idem_channel *channel, const char *const *names, unsigned n)
{
    struct address *old = channel->addresses;
    struct address **last = &channel->addresses;

    channel->addresses = NULL;
    for (unsigned i = 0; i < n; i++) {
        struct address *address = take_old(&old, names[i]);

        if (!address)
            address = address_new(channel, names[i]);
        if (address) {
            address->next = NULL;
            *last = address;
            last = &address->next;
        }
    }
    *last = old;
    for (struct address *at = old, *next; at; at = next) {
        next = at->next;
        if (!at->dropped)
            address_drop(at);
    }
}

void
channel_found(void *with, const char *const *names, unsigned n)
{
    struct idem_channel *channel = with;
    struct address **ready;

    pthread_mutex_lock(&channel->lock);
    /* Room for the old ones, too, until they are dropped. */
    ready = realloc(channel->ready,
                    (n + channel->n_ready + 1) * sizeof(struct address *));
    if (ready)
        channel->ready = ready;
    if (ready && !channel->closing) {
        rename_all(channel, names, n);
        channel->unfound = false;
        channel->trouble[0] = 0;
        outlier_watch(channel, n);
        channel_restate(channel);
    }
    pthread_mutex_unlock(&channel->lock);
    link_finish_empty(channel);
    address_dial_wanted(channel);
    wait_board(channel);
}

void
channel_trouble(void *with, const struct idem_error *err)
{
    struct idem_channel *channel = with;
    struct client_call *impatient = NULL;

    pthread_mutex_lock(&channel->lock);
    snprintf(channel->trouble, sizeof channel->trouble, "%s", err->message);
    channel->unfound = true;
    channel_restate(channel);
    if (channel->away)
        impatient = wait_take_impatient(channel);
    pthread_mutex_unlock(&channel->lock);
    wait_resume(impatient);
}

/* --- To be read by people --- */

static void
describe(const struct address *address, FILE *out)
{
    fprintf(out, "  %s %s", address->name,
            idem_channel_state_name(address->state));
    if (address->link)
        fprintf(out, ", %u in flight%s", address->link->streams.count,
                address->outlier.ejected ? ", ejected" : "");
    else if (address->trouble[0])
        fprintf(out, ": %s", address->trouble);
    fputc('\n', out);
}

void
idem_channel_describe(struct idem_channel *channel, FILE *out)
{
    pthread_mutex_lock(&channel->lock);
    fprintf(out, "%s %s, %s\n", channel->name,
            idem_channel_state_name(channel->state),
            idem_balancer_name(channel->options.balancer));
    for (const struct address *at = channel->addresses; at; at = at->next)
        if (!at->dropped)
            describe(at, out);
    if (channel->trouble[0])
        fprintf(out, "  last trouble: %s\n", channel->trouble);
    pthread_mutex_unlock(&channel->lock);
}
