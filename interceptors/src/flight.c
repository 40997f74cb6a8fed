#include "flight.h"

#include "shared_answer.h"

#include <string.h>
#include <utlist.h>

/* A digest is as good as its hash. */
#undef HASH_FUNCTION
#define HASH_FUNCTION(digest, size, hash)                                      \
    memcpy(&(hash), (digest), sizeof(hash))

/* Take a parked call's timer forward. When it cannot be stopped it is about to
 * fire, and sees under the lock why. */
static void
kick(struct flight *flight)
{
    if (idem_timer_stop(flight->timers, &flight->timer))
        idem_timer_start(flight->timers, &flight->timer, 0);
}

static void
seat_first(struct flights *flights, struct flight *flight)
{
    flight->place = FLIGHT_FIRST;
    HASH_ADD(hh, flights->first, digest, sizeof(flight->digest), flight);
}

static struct flight *
find_first(struct flights *flights, const struct flight *flight)
{
    struct flight *first;

    HASH_FIND(hh, flights->first, flight->digest, sizeof(flight->digest),
              first);
    return first;
}

static void
fire(struct idem_timer *timer)
{
    struct flight *flight =
        (struct flight *)((char *)timer - offsetof(struct flight, timer));
    struct flights *flights = flight->table;
    struct flight *first;
    enum flight_wake why;

    pthread_mutex_lock(&flights->lock);
    why = flight->why;
    flight->parked = false;
    if (flight->place == FLIGHT_WAITING) {
        first = find_first(flights, flight);
        DL_DELETE(first->waiters, flight);
        flight->place = FLIGHT_OUT;
    }
    pthread_mutex_unlock(&flights->lock);
    flight->wake(flight, why);
}

static void
park(struct flight *flight, int64_t until_ns)
{
    flight->why = FLIGHT_TIME;
    flight->parked = true;
    idem_timer_start(flight->timers, &flight->timer, until_ns);
}

static bool
is_same(const struct flight *a, const struct flight *b)
{
    return idem_fingerprint_match(a->fingerprint, b->fingerprint);
}

static enum flight_seat
join(struct flights *flights, struct flight *flight, bool wait)
{
    struct flight *first = find_first(flights, flight);

    if (flights->stopped)
        return FLIGHT_SEAT_STOPPED;
    if (!first) {
        seat_first(flights, flight);
        return FLIGHT_SEAT_FIRST;
    }
    if (atomic_load(&first->granted) && !is_same(first, flight))
        return FLIGHT_SEAT_REUSED;
    if (!wait)
        return FLIGHT_SEAT_BUSY;
    flight->place = FLIGHT_WAITING;
    DL_APPEND(first->waiters, flight);
    park(flight, flight->until_ns);
    return FLIGHT_SEAT_WAITING;
}

/* Returns those that wait with another request. */
static struct flight *
answer_all(const struct flight *first, struct flight *waiters,
           struct shared_answer *shared)
{
    struct flight *flight, *next;

    DL_FOREACH_SAFE(waiters, flight, next)
    {
        if (!is_same(first, flight))
            continue;
        DL_DELETE(waiters, flight);
        flight->place = FLIGHT_OUT;
        flight->why = FLIGHT_ANSWER;
        flight->shared = shared_answer_ref(shared);
        kick(flight);
    }
    return waiters;
}

static void
hand_over(struct flights *flights, struct flight *waiters)
{
    struct flight *heir = waiters;

    DL_DELETE(waiters, heir);
    heir->waiters = waiters;
    heir->why = FLIGHT_TURN;
    seat_first(flights, heir);
    kick(heir);
}

void
flights_init(struct flights *flights)
{
    pthread_mutex_init(&flights->lock, NULL);
    flights->first = NULL;
    flights->stopped = false;
}

void
flights_fini(struct flights *flights)
{
    IDEM_ASSERT(flights->first == NULL);
    pthread_mutex_destroy(&flights->lock);
}

enum flight_seat
flights_join(struct flights *flights, struct flight *flight, bool wait)
{
    enum flight_seat seat;

    flight->table = flights;
    flight->timer.fire = fire;
    pthread_mutex_lock(&flights->lock);
    seat = join(flights, flight, wait);
    pthread_mutex_unlock(&flights->lock);
    return seat;
}

void
flights_granted(struct flight *flight)
{
    atomic_store(&flight->granted, true);
}

bool
flights_awaited(struct flights *flights, struct flight *flight)
{
    bool awaited;

    pthread_mutex_lock(&flights->lock);
    awaited = flight->waiters != NULL;
    pthread_mutex_unlock(&flights->lock);
    return awaited;
}

void
flights_leave(struct flights *flights, struct flight *flight,
              struct shared_answer *shared)
{
    struct flight *waiters;

    pthread_mutex_lock(&flights->lock);
    IDEM_ASSERT(flight->place == FLIGHT_FIRST);
    HASH_DELETE(hh, flights->first, flight);
    flight->place = FLIGHT_OUT;
    waiters = flight->waiters;
    flight->waiters = NULL;
    if (waiters && shared)
        waiters = answer_all(flight, waiters, shared);
    if (waiters)
        hand_over(flights, waiters);
    pthread_mutex_unlock(&flights->lock);
}

bool
flights_nap(struct flights *flights, struct flight *flight, int64_t until_ns)
{
    bool stopped;

    pthread_mutex_lock(&flights->lock);
    stopped = flights->stopped;
    if (!stopped)
        park(flight, flight->kicked ? 0 : until_ns);
    flight->kicked = false;
    pthread_mutex_unlock(&flights->lock);
    return !stopped;
}

void
flights_kick(struct flights *flights, struct flight *flight)
{
    pthread_mutex_lock(&flights->lock);
    if (flight->parked)
        kick(flight);
    else
        flight->kicked = true;
    pthread_mutex_unlock(&flights->lock);
}

void
flights_stop(struct flights *flights)
{
    struct flight *first, *waiter, *next;

    pthread_mutex_lock(&flights->lock);
    flights->stopped = true;
    HASH_ITER (hh, flights->first, first, next) {
        if (first->parked)
            kick(first);
        DL_FOREACH(first->waiters, waiter)
        kick(waiter);
    }
    pthread_mutex_unlock(&flights->lock);
}

bool
flights_stopped(struct flights *flights)
{
    bool stopped;

    pthread_mutex_lock(&flights->lock);
    stopped = flights->stopped;
    pthread_mutex_unlock(&flights->lock);
    return stopped;
}
