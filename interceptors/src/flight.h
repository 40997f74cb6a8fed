#ifndef FLIGHT_H
#define FLIGHT_H

#include <pthread.h>
#include <stdatomic.h>

#include <idem/fingerprint.h>
#include <idem/timer.h>

#include <uthash.h>

/* The keys that calls of this process are at work on. The first call of a key
 * goes on to the store; those that come while it is there wait beside it and
 * hold memory only (fault case 2: 50 at once are one claim).
 *
 *             join           leave with an answer   leave without   wake
 *   OUT       FIRST or       -                      -               -
 *             WAITING
 *   FIRST     -              OUT                    OUT             FIRST
 *   WAITING   -              OUT (gets it)          one is FIRST    OUT
 *
 * A call of another request under the key gets nobody's answer. While the first
 * one's handler runs it is refused; before, nobody knows whose the key is, not
 * even that the first one is not the wrong one: it waits for its turn to ask.
 *
 * A call that waits, beside a first one or in a nap of its own, leaves by one
 * door: its timer, which fires when its time is over or when it is kicked. So
 * nobody frees what a timer is about to touch, and no lock is held when a call
 * goes on. */

struct shared_answer;

enum flight_place {
    FLIGHT_OUT,
    FLIGHT_FIRST,   /* the key's only call that may ask the store */
    FLIGHT_WAITING, /* for the first one */
};

enum flight_wake {
    FLIGHT_TIME,   /* nobody called: the time is over, or it was kicked */
    FLIGHT_ANSWER, /* the first one got its answer: it is in shared */
    FLIGHT_TURN,   /* the first one left without one: this is the first now */
};

enum flight_seat {
    FLIGHT_SEAT_FIRST,
    FLIGHT_SEAT_WAITING, /* parked: touch nothing of it any more */
    FLIGHT_SEAT_REUSED,  /* the first one runs for another request */
    FLIGHT_SEAT_BUSY,    /* there is a first one and the caller will not wait */
    FLIGHT_SEAT_STOPPED,
};

/* A call's part. The owner fills the first group, the lock guards the rest. */
struct flight {
    uint8_t digest[32];
    const struct idem_fingerprint *fingerprint;
    struct idem_timers *timers;
    int64_t until_ns; /* monotonic: it waits no longer beside a first one */
    /* On the timers' thread, without a lock held, once for each time that it
     * was parked. */
    void (*wake)(struct flight *flight, enum flight_wake why);

    atomic_bool granted; /* the store has let it through; without the lock */

    struct idem_timer timer;
    enum flight_place place;
    enum flight_wake why;
    bool parked;
    bool kicked; /* when it was not parked: its next nap is over at once */
    struct flights *table;
    struct shared_answer *shared; /* ANSWER: owned by the flight's owner */
    struct flight *waiters;       /* FIRST */
    struct flight *prev, *next;   /* WAITING */
    UT_hash_handle hh;            /* FIRST */
};

struct flights {
    pthread_mutex_t lock; /* taken inside a call's lock, around the timers' */
    struct flight *first; /* by digest */
    bool stopped;
};

void flights_init(struct flights *flights);

/* When nobody is in it. */
void flights_fini(struct flights *flights);

/* May this call ask the store? Waits beside the first one when it may not and
 * wait is true. */
enum flight_seat flights_join(struct flights *flights, struct flight *flight,
                              bool wait);

/* The store has let the first one through. */
void flights_granted(struct flight *flight);

/* The first one has company. A hint: who comes later is not told. */
bool flights_awaited(struct flights *flights, struct flight *flight);

/* The first one leaves. All that wait with its request get the answer. The next
 * in line of the others, or of all when there is none (NULL), is the first from
 * here. */
void flights_leave(struct flights *flights, struct flight *flight,
                   struct shared_answer *shared);

/* Park a first one until then. False: stopped, it is not parked. */
bool flights_nap(struct flights *flights, struct flight *flight,
                 int64_t until_ns);

/* Wake a parked call now, or when it is parked; from any thread. */
void flights_kick(struct flights *flights, struct flight *flight);

/* Wake all that are parked; nobody waits from here. */
void flights_stop(struct flights *flights);
bool flights_stopped(struct flights *flights);

#endif
