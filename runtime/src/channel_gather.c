#include "channel_inside.h"

#include <idem/clock.h>

/* Calls of threads that block, gathered into one write. Threads that were told
 * together run one after another where there are fewer processors, and the
 * first ones call again before the last ones are awake. Their requests are in
 * the connection's queue, but are held: the last of those that were told to be
 * awake lets them go. Nobody waits for calls that may not come.
 *
 * Whose request was held first sees to it: it sleeps for half a millisecond at
 * most before it lets go itself, because others may have the processors. It is
 * done as long as it helps (trial.h): two requests and more were held, and not
 * for so long (decision 51). */

#define HELD_MAX_NS 500000
/* The server begins with these: all of them in one write, and the two ends take
 * turns (decision 41). */
#define FRAMES_MAX 8

/* With the lock. False: now is no time to. */
static bool
begin(struct gathering *gathering, struct waiter *waiter,
      struct connection *connection)
{
    if (gathering->frames > 0)
        trial_judge(&gathering->trial,
                    gathering->frames > 1 && !atomic_load(&gathering->late));
    gathering->frames = 0;
    if (!trial_is_on(&gathering->trial)) {
        trial_pass(&gathering->trial);
        return false;
    }
    gathering->frames = 1;
    atomic_store(&gathering->late, false);
    waiter->gathering = (uint32_t)atomic_fetch_add(&gathering->number, 1) + 1;
    waiter->holds = true;
    connection_ref(connection);
    atomic_store(&gathering->held, connection);
    return true;
}

bool
gather_hold(struct client_call *call, struct connection *connection)
{
    struct gathering *gathering = &call->channel->gathering;
    const struct connection *held;

    if (!call->waiter || !channel_is_starting(call) ||
        atomic_load(&gathering->asleep) == 0)
        return false;
    held = atomic_load(&gathering->held);
    if (!held)
        return begin(gathering, call->waiter, connection);
    if (held != connection)
        return false;
    if (++gathering->frames < FRAMES_MAX)
        return true;
    if (atomic_exchange(&gathering->held, NULL))
        connection_unref(connection); /* not the last: the link has one */
    return false;
}

/* False: nothing was held. */
static bool
let_go(struct gathering *gathering)
{
    struct connection *held = atomic_exchange(&gathering->held, NULL);

    if (!held)
        return false;
    connection_flush(held);
    connection_unref(held);
    return true;
}

/* Who holds looks for sleepers afterwards, and who wakes for what is held: one
 * of the two sees the other. */
void
gather_check(struct idem_channel *channel)
{
    struct gathering *gathering = &channel->gathering;

    if (atomic_load(&gathering->asleep) == 0)
        (void)let_go(gathering);
}

void
gather_told(struct idem_channel *channel)
{
    atomic_fetch_add(&channel->gathering.asleep, 1);
}

void
gather_awake(struct idem_channel *channel)
{
    struct gathering *gathering = &channel->gathering;

    if (atomic_fetch_sub(&gathering->asleep, 1) == 1 &&
        atomic_load(&gathering->held))
        (void)let_go(gathering);
}

void
gather_await(struct idem_channel *channel, struct waiter *waiter)
{
    struct gathering *gathering = &channel->gathering;
    const struct idem_clock *clock = idem_clock_system();
    bool told =
        waiter_wait(channel, waiter, clock->monotonic_ns(clock) + HELD_MAX_NS);

    if (atomic_load(&gathering->number) == waiter->gathering &&
        let_go(gathering) && !told)
        atomic_store(&gathering->late, true);
}
