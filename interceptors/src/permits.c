#include "permits.h"

#include <idem/base.h>

#include <stdlib.h>
#include <string.h>

#include <uthash.h>
#include <utlist.h>

/* Of a method that states max_in_flight. */
struct method_permits {
    const struct idem_method *method;
    unsigned limit, max_waiting;
    unsigned in_flight, waiting;
    struct permit *line;
    UT_hash_handle hh;
};

void
permits_init(struct permits *permits, unsigned least, unsigned most,
             unsigned max_waiting)
{
    memset(permits, 0, sizeof(*permits));
    pthread_mutex_init(&permits->lock, NULL);
    permits->adaptive = least > 0;
    adapt_init(&permits->adapt, least > 0 ? least : most, most);
    permits->max_waiting = max_waiting;
    atomic_init(&permits->limit, permits->adapt.limit);
}

void
permits_fini(struct permits *permits)
{
    struct method_permits *at, *next;

    IDEM_ASSERT(permits->waiting == 0 && atomic_load(&permits->in_flight) == 0);
    HASH_ITER (hh, permits->methods, at, next) {
        HASH_DEL(permits->methods, at);
        free(at);
    }
    pthread_mutex_destroy(&permits->lock);
}

/* --- One of the server's --- */

static bool
take_server(struct permits *permits)
{
    unsigned out = atomic_load(&permits->in_flight);

    while (out < atomic_load(&permits->limit))
        if (atomic_compare_exchange_weak(&permits->in_flight, &out, out + 1))
            return true;
    return false;
}

/* With the lock. */
static void
hold(struct permits *permits, struct permit *permit, int64_t now_ns)
{
    permits->waiting--;
    permit->place = PERMIT_HELD;
    permit->began_ns = now_ns;
    permit->called(permit);
}

/* With the lock: those in line for whom there is one now. */
static void
call_line(struct permits *permits, int64_t now_ns)
{
    while (permits->line && take_server(permits)) {
        struct permit *permit = permits->line;

        DL_DELETE(permits->line, permit);
        atomic_fetch_sub(&permits->in_line, 1);
        hold(permits, permit, now_ns);
    }
}

/* With the lock. */
static bool
has_room(const struct permits *permits)
{
    return !permits->stopped && permits->waiting < permits->max_waiting;
}

/* With the lock. A number of those in line that is seen before the last look
 * for a permit: who gives one back afterwards sees it, and calls. */
static enum permit_take
stand_for_server(struct permits *permits, struct permit *permit, bool wait)
{
    atomic_fetch_add(&permits->in_line, 1);
    if (!permits->line && take_server(permits)) {
        atomic_fetch_sub(&permits->in_line, 1);
        return PERMIT_TAKEN;
    }
    if (!wait || !has_room(permits)) {
        atomic_fetch_sub(&permits->in_line, 1);
        return PERMIT_NO_ROOM;
    }
    permit->place = PERMIT_FOR_SERVER;
    permit->lined = true;
    permits->waiting++;
    DL_APPEND(permits->line, permit);
    return PERMIT_IN_LINE;
}

/* --- One of a method's; all with the lock --- */

/* NULL: out of memory. */
static struct method_permits *
method_of(struct permits *permits, const struct permit_wish *wish)
{
    struct method_permits *at;

    HASH_FIND_PTR(permits->methods, &wish->method, at);
    if (at)
        return at;
    at = calloc(1, sizeof(*at));
    if (!at)
        return NULL;
    at->method = wish->method;
    at->limit = wish->policy->max_in_flight;
    at->max_waiting = wish->policy->max_waiting;
    HASH_ADD_PTR(permits->methods, method, at);
    return at;
}

static enum permit_take
take_method(struct permits *permits, struct permit *permit, bool wait)
{
    struct method_permits *method = permit->method;

    if (method->in_flight < method->limit) {
        method->in_flight++;
        return PERMIT_TAKEN;
    }
    if (!wait || !has_room(permits) || method->waiting >= method->max_waiting)
        return PERMIT_NO_ROOM;
    permit->place = PERMIT_FOR_METHOD;
    permit->lined = true;
    permits->waiting++;
    method->waiting++;
    DL_APPEND(method->line, permit);
    return PERMIT_IN_LINE;
}

/* Who waits for it gets it, and goes on to the end of the server's line. */
static void
end_method(struct permits *permits, struct method_permits *method,
           int64_t now_ns)
{
    struct permit *next = method->line;

    if (!next) {
        method->in_flight--;
        return;
    }
    DL_DELETE(method->line, next);
    method->waiting--;
    if (!next->server) {
        hold(permits, next, now_ns);
        return;
    }
    next->place = PERMIT_FOR_SERVER;
    DL_APPEND(permits->line, next);
    atomic_fetch_add(&permits->in_line, 1);
}

static enum permit_take
take_both(struct permits *permits, struct permit *permit,
          const struct permit_wish *wish)
{
    enum permit_take take = PERMIT_TAKEN;

    if (wish->policy->max_in_flight > 0) {
        permit->method = method_of(permits, wish);
        if (!permit->method)
            return PERMIT_NO_ROOM;
        take = take_method(permits, permit, wish->wait);
    }
    if (take != PERMIT_TAKEN || !wish->server)
        return take;
    take = stand_for_server(permits, permit, wish->wait);
    if (take == PERMIT_NO_ROOM && permit->method)
        end_method(permits, permit->method, wish->now_ns);
    return take;
}

/* --- Both --- */

static void
begin(struct permit *permit, const struct permit_wish *wish)
{
    permit->method = NULL;
    permit->server = wish->server;
    permit->lined = false;
    permit->began_ns = wish->now_ns;
}

enum permit_take
permits_take(struct permits *permits, struct permit *permit,
             const struct permit_wish *wish)
{
    enum permit_take take;

    begin(permit, wish);
    if (wish->policy->max_in_flight == 0 &&
        (!wish->server ||
         (atomic_load(&permits->in_line) == 0 && take_server(permits)))) {
        permit->place = PERMIT_HELD;
        return PERMIT_TAKEN;
    }
    pthread_mutex_lock(&permits->lock);
    take = take_both(permits, permit, wish);
    if (take == PERMIT_TAKEN)
        permit->place = PERMIT_HELD;
    call_line(permits, wish->now_ns);
    pthread_mutex_unlock(&permits->lock);
    return take;
}

void
permits_take_over(struct permits *permits, struct permit *permit,
                  const struct permit_wish *wish)
{
    begin(permit, wish);
    if (wish->server)
        atomic_fetch_add(&permits->in_flight, 1);
    if (wish->policy->max_in_flight > 0) {
        pthread_mutex_lock(&permits->lock);
        permit->method = method_of(permits, wish);
        if (permit->method)
            permit->method->in_flight++;
        pthread_mutex_unlock(&permits->lock);
    }
    permit->place = PERMIT_HELD;
}

enum permit_place
permits_place(struct permits *permits, struct permit *permit)
{
    enum permit_place place;

    pthread_mutex_lock(&permits->lock);
    place = permit->place;
    pthread_mutex_unlock(&permits->lock);
    return place;
}

/* With the lock. Who gets the method's stands in the server's line, and is
 * called when a permit is given back: there was none for this one either. */
static bool
withdraw(struct permits *permits, struct permit *permit)
{
    switch (permit->place) {
    case PERMIT_FOR_METHOD:
        DL_DELETE(permit->method->line, permit);
        permit->method->waiting--;
        break;
    case PERMIT_FOR_SERVER:
        DL_DELETE(permits->line, permit);
        atomic_fetch_sub(&permits->in_line, 1);
        if (permit->method)
            end_method(permits, permit->method, permit->began_ns);
        break;
    case PERMIT_OUT:
    case PERMIT_HELD:
        return false;
    }
    permits->waiting--;
    permit->place = PERMIT_OUT;
    return true;
}

bool
permits_withdraw(struct permits *permits, struct permit *permit)
{
    bool withdrawn;

    pthread_mutex_lock(&permits->lock);
    withdrawn = withdraw(permits, permit);
    pthread_mutex_unlock(&permits->lock);
    return withdrawn;
}

/* With the lock. */
static void
adjust(struct permits *permits, const struct permit *permit, int64_t now_ns)
{
    bool late = now_ns - permit->began_ns > permit->late_ns;

    adapt_done(&permits->adapt, permit->began_ns, now_ns, late,
               atomic_load(&permits->in_flight));
    atomic_store(&permits->limit, permits->adapt.limit);
}

/* With the lock. */
static void
give_back(struct permits *permits, struct permit *permit, int64_t now_ns)
{
    if (permit->place != PERMIT_HELD) {
        withdraw(permits, permit);
        return;
    }
    if (permits->adaptive && permit->server)
        adjust(permits, permit, now_ns);
    if (permit->server)
        atomic_fetch_sub(&permits->in_flight, 1);
    if (permit->method)
        end_method(permits, permit->method, now_ns);
    permit->place = PERMIT_OUT;
}

void
permits_end(struct permits *permits, struct permit *permit, int64_t now_ns)
{
    bool alone = !permit->lined && !permit->method && !permits->adaptive;

    if (!permit->lined && permit->place == PERMIT_OUT)
        return;
    if (alone) {
        permit->place = PERMIT_OUT;
        if (permit->server)
            atomic_fetch_sub(&permits->in_flight, 1);
        if (atomic_load(&permits->in_line) == 0)
            return;
    }
    pthread_mutex_lock(&permits->lock);
    if (!alone)
        give_back(permits, permit, now_ns);
    call_line(permits, now_ns);
    pthread_mutex_unlock(&permits->lock);
}

/* With the lock. */
static void
send_away(struct permits *permits, struct permit *permit)
{
    if (withdraw(permits, permit))
        permit->called(permit);
}

void
permits_stop(struct permits *permits)
{
    struct method_permits *at, *next;

    pthread_mutex_lock(&permits->lock);
    permits->stopped = true;
    HASH_ITER (hh, permits->methods, at, next)
        while (at->line)
            send_away(permits, at->line);
    while (permits->line)
        send_away(permits, permits->line);
    pthread_mutex_unlock(&permits->lock);
}

unsigned
permits_waiting(struct permits *permits)
{
    unsigned waiting;

    pthread_mutex_lock(&permits->lock);
    waiting = permits->waiting;
    pthread_mutex_unlock(&permits->lock);
    return waiting;
}
