#include "channel_inside.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <idem/burst.h>

/* How a blocking stub sleeps and is woken. All threads of a channel sleep on a
 * few words of it (futex(2)), each with a bit of its own, so that those that
 * one read has answered are woken by one system call: waking one after another
 * cost more than all the rest of their calls. A word is another one after each
 * time, so who was about to sleep looks again.
 *
 *    AWAKE --wait--> ASLEEP --tell--> TOLD
 *      +----------------------tell----->+
 */

enum { AWAKE, ASLEEP, TOLD };

#define BITS 32     /* of a word */
#define TOLD_MAX 16 /* wait for the end of a burst; then they are woken */
#define NS_PER_S 1000000000

/* Whom this thread has told and not woken. */
static _Thread_local struct {
    struct idem_channel *channel; /* a reference; NULL: there are none */
    unsigned n;
    uint32_t bits[WAITER_WORDS];
} told;

/* This thread's: one after another, so that few threads are in few words. */
static unsigned
place(void)
{
    static atomic_uint places;
    static _Thread_local unsigned mine; /* from 1 */

    if (mine == 0)
        mine = atomic_fetch_add(&places, 1) % (WAITER_WORDS * BITS) + 1;
    return mine - 1;
}

void
waiter_init(struct waiter *waiter)
{
    *waiter = (struct waiter){.place = place()};
    atomic_init(&waiter->state, AWAKE);
}

/* False: the time is over. */
static bool
sleep_on(atomic_uint *word, unsigned seen, uint32_t bit, int64_t until_ns)
{
    const struct timespec until = {until_ns / NS_PER_S, until_ns % NS_PER_S};

    return syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen,
                   until_ns == INT64_MAX ? NULL : &until, NULL, bit) == 0 ||
           errno != ETIMEDOUT;
}

bool
waiter_wait(struct idem_channel *channel, struct waiter *waiter,
            int64_t until_ns)
{
    atomic_uint *word = &channel->turns[waiter->place / BITS];
    uint32_t bit = UINT32_C(1) << waiter->place % BITS;
    bool in_time = true;

    for (;;) {
        unsigned seen = atomic_load(word);
        int state = AWAKE;

        if (!atomic_compare_exchange_strong(&waiter->state, &state, ASLEEP) &&
            state == TOLD)
            return true;
        if (!in_time)
            return false;
        in_time = sleep_on(word, seen, bit, until_ns);
    }
}

void
waiter_wake_told(void)
{
    struct idem_channel *channel = told.channel;

    if (!channel)
        return;
    told.channel = NULL;
    told.n = 0;
    for (unsigned i = 0; i < WAITER_WORDS; i++) {
        if (told.bits[i] == 0)
            continue;
        atomic_fetch_add(&channel->turns[i], 1);
        (void)syscall(SYS_futex, &channel->turns[i], FUTEX_WAKE_BITSET_PRIVATE,
                      INT_MAX, NULL, NULL, told.bits[i]);
        told.bits[i] = 0;
    }
    channel_unref(channel);
}

static void
wake_at_end(void *with)
{
    (void)with;
    waiter_wake_told();
}

static void
note_told(struct idem_channel *channel, unsigned place)
{
    if (told.channel != channel) {
        waiter_wake_told();
        atomic_fetch_add_explicit(&channel->refs, 1, memory_order_relaxed);
        told.channel = channel;
    }
    told.bits[place / BITS] |= UINT32_C(1) << place % BITS;
    told.n++;
}

void
waiter_tell(struct idem_channel *channel, struct waiter *waiter)
{
    unsigned place = waiter->place;

    if (atomic_exchange(&waiter->state, TOLD) != ASLEEP)
        return;
    note_told(channel, place);
    if (told.n == TOLD_MAX || !idem_burst_put_off(wake_at_end, NULL))
        waiter_wake_told();
}
