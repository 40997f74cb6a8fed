#include "channel_inside.h"

#include "codec.h"

#include <idem/reason.h>

/* The bottom of the client's chain: an attempt goes onto a link, or waits for
 * one, or is taken back from there. */

static bool
withdraw(struct idem_call *base, void *with)
{
    struct client_call *call = with;
    struct idem_channel *channel = call->channel;
    struct connection *connection = NULL;
    bool mine, over = false;

    (void)base;
    pthread_mutex_lock(&channel->lock);
    mine = call->place != PLACE_NOWHERE;
    if (call->place == PLACE_WAITING) {
        wait_out(channel, call);
        wait_say_why(channel, call);
    } else if (call->place == PLACE_FLYING) {
        struct link *link = call->link;

        connection = link->connection;
        connection_ref(connection);
        link_withdraw(link, call);
        over = link_over(link);
        if (channel->waiting) /* not here: the call's lock is held */
            idem_timer_start(channel->timers, &channel->board, 0);
    }
    pthread_mutex_unlock(&channel->lock);
    if (!connection)
        return mine;
    connection_flush(connection);
    if (over)
        connection_finish(connection);
    connection_unref(connection);
    return mine;
}

static const struct idem_holder holder = {.withdraw = withdraw};

/* With the lock: on a link, or in the queue, or neither (the outcome says why).
 * *placed is the link. */
static enum idem_step
put(struct idem_channel *channel, struct client_call *call,
    struct link **placed)
{
    struct link *link = channel->waiting ? NULL : balance(channel, call);

    if (channel->closing) {
        idem_call_fail(&call->call.base, IDEM_CANCELLED, IDEM_EFFECT_NOT_SENT,
                       NULL, "the channel is closed");
        return IDEM_ANSWER;
    }
    if (channel->away && !call->wait_for_ready) {
        idem_call_fail(&call->call.base, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT,
                       IDEM_NOT_CONNECTED, "%s", channel->trouble);
        return IDEM_ANSWER;
    }
    if (is_full(channel) && !call->wait_for_ready) {
        idem_call_fail(&call->call.base, IDEM_RESOURCE_EXHAUSTED,
                       IDEM_EFFECT_NOT_SENT, IDEM_TOO_MANY_IN_FLIGHT,
                       "%u calls are in flight to %s", channel->n_flying,
                       channel->name);
        return IDEM_ANSWER;
    }
    switch (link ? link_place(link, call) : LINK_FULL) {
    case LINK_REFUSED:
        return IDEM_ANSWER;
    case LINK_PLACED:
        *placed = link;
        return IDEM_WAIT;
    case LINK_FULL:
        wait_in(channel, call);
        return IDEM_WAIT;
    }
    return IDEM_WAIT;
}

static enum idem_step
put_and_flush(struct idem_channel *channel, struct client_call *call)
{
    struct connection *connection = NULL;
    struct address *used_up = NULL;
    struct link *link = NULL;
    enum idem_step step;
    bool held = false;

    pthread_mutex_lock(&channel->lock);
    step = put(channel, call, &link);
    if (link) {
        if (!connection_gathers(link->connection)) {
            connection = link->connection;
            connection_ref(connection);
            held = gather_hold(call, connection);
        }
        if (link_used_up(link)) {
            used_up = link->address;
            address_use(used_up);
        }
    }
    pthread_mutex_unlock(&channel->lock);
    if (held)
        gather_check(channel);
    else if (connection)
        connection_flush(connection);
    if (connection)
        connection_unref(connection);
    if (used_up)
        address_renew(used_up);
    return step;
}

/* Before the lock: it takes its time. Once for all attempts. */
static void
squeeze(struct client_call *call)
{
    const struct idem_channel *channel = call->channel;
    const struct idem_compression *how = &channel->options.compression;
    struct idem_call *base = &call->call.base;
    struct squeezed *squeezed;

    if (call->no_compression ||
        !(atomic_load(&channel->codecs) & CODEC_BIT(how->codec)) ||
        (call->squeezed && call->squeezed->of == base->request.data))
        return;
    squeezed = idem_arena_zalloc(base->arena, sizeof *squeezed);
    if (!squeezed)
        return;
    squeezed->of = base->request.data;
    if (codec_squeeze(&squeezed->bytes, how, base->request, base->arena))
        call->squeezed = squeezed;
}

enum idem_step
channel_send(struct call *base)
{
    struct client_call *call = client_call_of(base);

    if (idem_call_remaining_ns(&base->base) == 0) {
        idem_call_fail(&base->base, IDEM_DEADLINE_EXCEEDED,
                       IDEM_EFFECT_NOT_SENT, NULL, "the deadline is over");
        return IDEM_ANSWER;
    }
    if (call->channel->options.compression.codec != IDEM_CODEC_NONE)
        squeeze(call);
    /* Where it is put sees to its deadline. */
    if (!call_keep_unarmed(base, &holder, call))
        return IDEM_ANSWER;
    return put_and_flush(call->channel, call);
}
