#include "channel_inside.h"

#include <idem/reason.h>

#define BOARD_LINKS 8 /* flushed after each turn */

/* Calls that wait in the channel for a link: a queue, first in first out. */

void
wait_in(struct idem_channel *channel, struct client_call *call)
{
    call_arm(&call->call);
    call->place = PLACE_WAITING;
    call->next_waiting = NULL;
    call->link_in_waiting = channel->last_waiting;
    *channel->last_waiting = call;
    channel->last_waiting = &call->next_waiting;
}

void
wait_out(struct idem_channel *channel, struct client_call *call)
{
    call->place = PLACE_NOWHERE;
    *call->link_in_waiting = call->next_waiting;
    if (call->next_waiting)
        call->next_waiting->link_in_waiting = call->link_in_waiting;
    else
        channel->last_waiting = call->link_in_waiting;
    call->next_waiting = NULL;
}

void
wait_say_why(const struct idem_channel *channel, struct client_call *call)
{
    struct idem_call *base = &call->call.base;

    base->waited_for =
        is_full(channel)
            ? idem_arena_printf(base->arena, "%u calls are in flight to %s",
                                channel->n_flying, channel->name)
            : idem_arena_printf(base->arena, "%s is %s%s%s", channel->name,
                                idem_channel_state_name(channel->state),
                                channel->trouble[0] ? ": " : "",
                                channel->trouble);
}

struct client_call *
wait_take_impatient(struct idem_channel *channel)
{
    struct client_call *taken = NULL, **last = &taken;
    struct client_call *call = channel->waiting;

    while (call) {
        struct client_call *next = call->next_waiting;

        if (!call->wait_for_ready) {
            wait_out(channel, call);
            idem_call_fail(&call->call.base, IDEM_UNAVAILABLE,
                           IDEM_EFFECT_NOT_SENT, IDEM_NOT_CONNECTED, "%s",
                           channel->trouble);
            *last = call;
            last = &call->next_waiting;
        }
        call = next;
    }
    return taken;
}

/* What one turn under the lock has put on links. */
struct boarding {
    struct connection *flush[BOARD_LINKS];
    unsigned n;
    struct client_call *refused, **last;
};

/* With the lock. False: as many connections as a turn flushes. */
static bool
note_flush(struct boarding *boarding, struct connection *connection)
{
    for (unsigned i = 0; i < boarding->n; i++)
        if (boarding->flush[i] == connection)
            return true;
    connection_ref(connection);
    boarding->flush[boarding->n++] = connection;
    return boarding->n < BOARD_LINKS;
}

/* With the lock: the first that waits. True: look at the next. */
static bool
board_first(struct idem_channel *channel, struct boarding *boarding)
{
    struct client_call *call = channel->waiting;
    struct link *link = call ? balance(channel, call) : NULL;

    if (!link)
        return false;
    wait_out(channel, call);
    switch (link_place(link, call)) {
    case LINK_PLACED:
        return note_flush(boarding, link->connection);
    case LINK_REFUSED:
        *boarding->last = call;
        boarding->last = &call->next_waiting;
        return true;
    case LINK_FULL:
        break;
    }
    wait_in(channel, call); /* the link is about to be lost */
    return false;
}

void
wait_board(struct idem_channel *channel)
{
    struct boarding boarding;

    do {
        boarding = (struct boarding){.last = &boarding.refused};
        pthread_mutex_lock(&channel->lock);
        while (board_first(channel, &boarding))
            ;
        pthread_mutex_unlock(&channel->lock);
        for (unsigned i = 0; i < boarding.n; i++) {
            connection_flush(boarding.flush[i]);
            connection_unref(boarding.flush[i]);
        }
        wait_resume(boarding.refused);
    } while (boarding.n == BOARD_LINKS);
}

void
wait_fire_board(struct idem_timer *timer)
{
    wait_board((struct idem_channel *)((char *)timer -
                                       offsetof(struct idem_channel, board)));
}

void
wait_resume(struct client_call *calls)
{
    while (calls) {
        struct client_call *next = calls->next_waiting;

        idem_call_resume(&calls->call.base, IDEM_ANSWER);
        calls = next;
    }
}
