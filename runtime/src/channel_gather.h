#ifndef CHANNEL_GATHER_H
#define CHANNEL_GATHER_H

#include "trial.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Threads in blocking stubs of a channel: how they sleep and are woken, and
 * what is held for those that still sleep. Part of channel_inside.h. */

struct client_call;
struct connection;
struct idem_channel;

/* For 32 threads that block each; of more, several share a bit. */
#define WAITER_WORDS 8

/* A thread in a blocking stub (channel_waiter.c). On its stack: it may be gone
 * as soon as it is told. */
struct waiter {
    atomic_int state;
    unsigned place;     /* which word and bit it sleeps on */
    bool holds;         /* sees to a gathering … */
    uint32_t gathering; /* … of this number */
};

/* Callers that were told and are not awake yet; what others send meanwhile is
 * held until the last of them is (channel_gather.c). */
struct gathering {
    atomic_uint asleep;
    _Atomic(struct connection *) held; /* a reference; NULL: nothing is */
    atomic_uint_fast32_t number;       /* of the last time that something was */
    atomic_bool late;                  /* … which took too long */

    /* The channel's lock. */
    unsigned frames; /* that were held then; 0: it is judged */
    struct trial trial;
};

/* --- channel_waiter.c --- */
void waiter_init(struct waiter *waiter);

/* Until it is told, or to this monotonic time of the system's; INT64_MAX: for
 * as long as it takes. True: it is told. May be asked again. */
bool waiter_wait(struct idem_channel *channel, struct waiter *waiter,
                 int64_t until_ns);

/* Wakes it; in a burst of this thread at its end, with the others that it tells
 * (decision 51). With a reference of the channel. */
void waiter_tell(struct idem_channel *channel, struct waiter *waiter);

/* Now: what this thread does next may take its time. */
void waiter_wake_told(void);

/* --- channel_gather.c --- */

/* With the lock: the call is on the connection. True: its frames are held;
 * gather_check next. */
bool gather_hold(struct client_call *call, struct connection *connection);

/* Without the lock, as the rest: what is held leaves if nobody sleeps. */
void gather_check(struct idem_channel *channel);

/* A caller is about to be told, */
void gather_told(struct idem_channel *channel);

/* … and is awake: the last one lets go of what is held. */
void gather_awake(struct idem_channel *channel);

/* Of a caller whose frames were held first: until it is told. What is held then
 * or after half a millisecond leaves. */
void gather_await(struct idem_channel *channel, struct waiter *waiter);

#endif
