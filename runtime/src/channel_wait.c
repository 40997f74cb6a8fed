#include "channel_inside.h"

#include <idem/reason.h>

/* Calls that wait in the channel for a link: a queue, first in first out. */

void
wait_in(struct idem_channel *channel, struct client_call *call)
{
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

struct client_call *
wait_board(struct idem_channel *channel)
{
    struct client_call *refused = NULL, **last = &refused;

    while (channel->link && channel->waiting) {
        struct client_call *call = channel->waiting;
        enum link_placed placed;

        if (!link_has_room(channel->link))
            break;
        wait_out(channel, call);
        placed = link_place(channel->link, call);
        if (placed == LINK_FULL) {
            wait_in(channel, call); /* the link is about to be lost */
            break;
        }
        if (placed == LINK_REFUSED) {
            *last = call;
            last = &call->next_waiting;
        }
    }
    return refused;
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
