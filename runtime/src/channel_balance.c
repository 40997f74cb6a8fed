#include "channel_inside.h"

/* Which address gets a call: its balancer's choice among those that are best
 * for this call. Everything looks at each address once: there are few, and no
 * table has to follow them as they come and go. */

enum choice {
    CHOICE_NEW,   /* not ejected, not tried by this call */
    CHOICE_TRIED, /* all that have room turned it away: once more */
    CHOICE_ANY,
    CHOICES,
};

typedef struct address *pick_fn(struct idem_channel *channel,
                                const struct client_call *call,
                                enum choice choice);

static bool
may(const struct address *address, const struct client_call *call,
    enum choice choice)
{
    return link_has_room(address->link) &&
           (choice == CHOICE_ANY || !address->outlier.ejected) &&
           (choice != CHOICE_NEW || !(call->tried & address->bit));
}

static struct address *
pick_first(struct idem_channel *channel, const struct client_call *call,
           enum choice choice)
{
    for (unsigned i = 0; i < channel->n_ready; i++)
        if (may(channel->ready[i], call, choice))
            return channel->ready[i];
    return NULL;
}

static struct address *
pick_in_turn(struct idem_channel *channel, const struct client_call *call,
             enum choice choice)
{
    for (unsigned i = 0; i < channel->n_ready; i++) {
        unsigned at = (channel->next + i) % channel->n_ready;

        if (may(channel->ready[at], call, choice)) {
            channel->next = at + 1;
            return channel->ready[at];
        }
    }
    return NULL;
}

/* Of equals each in turn: else an idle channel would wear out its first. */
static struct address *
pick_least(struct idem_channel *channel, const struct client_call *call,
           enum choice choice)
{
    struct address *least = NULL;

    for (unsigned i = 0; i < channel->n_ready; i++) {
        struct address *at =
            channel->ready[(channel->next + i) % channel->n_ready];

        if (may(at, call, choice) &&
            (!least || at->link->streams.count < least->link->streams.count))
            least = at;
    }
    channel->next++;
    return least;
}

/* Rendezvous: each key ranks all addresses by itself. When one goes, only its
 * own keys move, and each to its second; no table has to be made anew, nor is
 * one uneven (docs/decisions). */
static struct address *
pick_by_key(struct idem_channel *channel, const struct client_call *call,
            enum choice choice)
{
    uint64_t hash = address_hash(call->call.base.key), highest = 0;
    struct address *best = NULL;

    if (call->call.base.key.size == 0)
        return pick_in_turn(channel, call, choice);
    for (unsigned i = 0; i < channel->n_ready; i++) {
        struct address *at = channel->ready[i];
        uint64_t rank = address_mix(hash ^ at->hash);

        if (may(at, call, choice) && (!best || rank > highest)) {
            best = at;
            highest = rank;
        }
    }
    return best;
}

static pick_fn *const picks[] = {
    [IDEM_BALANCER_PICK_FIRST] = pick_first,
    [IDEM_BALANCER_ROUND_ROBIN] = pick_in_turn,
    [IDEM_BALANCER_LEAST_IN_FLIGHT] = pick_least,
    [IDEM_BALANCER_KEY_HASH] = pick_by_key,
};

enum idem_status
balancer_check(enum idem_balancer balancer, struct idem_error *err)
{
    if ((size_t)balancer >= sizeof picks / sizeof *picks)
        return idem_fail(err, IDEM_INVALID_ARGUMENT, "there is no balancer %d",
                         (int)balancer);
    return IDEM_OK;
}

bool
is_full(const struct idem_channel *channel)
{
    return channel->options.max_in_flight > 0 &&
           channel->n_flying >= channel->options.max_in_flight;
}

struct link *
balance(struct idem_channel *channel, const struct client_call *call)
{
    struct address *address = NULL;

    if (is_full(channel))
        return NULL;
    if (channel->n_ready == 1)
        return link_has_room(channel->ready[0]->link) ? channel->ready[0]->link
                                                      : NULL;
    for (unsigned i = 0; i < CHOICES && !address; i++)
        address =
            picks[channel->options.balancer](channel, call, (enum choice)i);
    return address ? address->link : NULL;
}
