#ifndef PERMITS_H
#define PERMITS_H

#include <pthread.h>
#include <stdatomic.h>

#include "adapt.h"

#include <idem/method.h>

/* How many calls may be under way, of the server and of each method that says
 * so. Who finds no permit stands in line: first for the method's, then, with
 * that, for the server's.
 *
 *             take                    called        withdraw   end
 *   OUT       HELD, or one of IN_LINE -             -          -
 *   IN_LINE   -                       HELD, or OUT  OUT        OUT
 *   HELD      -                       -             -          OUT
 *
 * While nobody is in line and no method has a limit of its own, a permit is one
 * atomic addition. For any thread. */

struct method_permits;

enum permit_place {
    PERMIT_OUT,
    PERMIT_FOR_METHOD, /* in line */
    PERMIT_FOR_SERVER, /* in line, with the method's */
    PERMIT_HELD,
};

/* A call's. All zero at first; lives in the call's arena. */
struct permit {
    /* Once for each take that said IN_LINE and was not withdrawn: now it is
     * held, or, when the permits are stopped, out. With the permits' lock, so
     * that a permit that was withdrawn is touched by nobody: start a timer, no
     * more. */
    void (*called)(struct permit *permit);

    /* Adaptive: over so long it is late; INT64_MAX: never. */
    int64_t late_ns;

    enum permit_place place; /* the lock's once it was in line, else the owner's
                              */
    bool lined;              /* it was */
    bool server;             /* it needs one of the server's */
    struct method_permits *method; /* NULL: that has no limit of its own */
    int64_t began_ns;              /* HELD, adaptive */
    struct permit *prev, *next;    /* in line */
};

enum permit_take {
    PERMIT_TAKEN,
    PERMIT_IN_LINE,
    PERMIT_NO_ROOM,
};

struct permits {
    atomic_uint limit;     /* of the server, now */
    atomic_uint in_flight; /* its permits that are out */
    atomic_uint in_line;   /* that have nothing to wait for but the server's */
    unsigned max_waiting;
    bool adaptive;

    pthread_mutex_t lock;
    struct permit *line; /* for the server's */
    unsigned waiting;    /* in all lines */
    bool stopped;
    struct method_permits *methods; /* that have a limit, by address */
    struct adapt adapt;
};

/* least 0: not adaptive. */
void permits_init(struct permits *permits, unsigned least, unsigned most,
                  unsigned max_waiting);

/* When all have been given back. */
void permits_fini(struct permits *permits);

/* A call's of this method. server: it needs one of the server's; one of the
 * method's it needs when policy says how many there are. */
struct permit_wish {
    const struct idem_method *method;
    const struct idem_limit_policy *policy;
    bool server;
    bool wait; /* in line, when there is none; else NO_ROOM */
    int64_t now_ns;
};

/* called and late_ns of the permit are set. */
enum permit_take permits_take(struct permits *permits, struct permit *permit,
                              const struct permit_wish *wish);

/* The same without the line: for work that goes on now, also over the limit. */
void permits_take_over(struct permits *permits, struct permit *permit,
                       const struct permit_wish *wish);

/* Where one is that was in line. */
enum permit_place permits_place(struct permits *permits, struct permit *permit);

/* Out of the line. True: it will not be called. */
bool permits_withdraw(struct permits *permits, struct permit *permit);

/* Give it back; whoever has waited longest gets it. Out of the line, if it is
 * there; one that is OUT is fine. */
void permits_end(struct permits *permits, struct permit *permit,
                 int64_t now_ns);

/* All that are in line are called, without a permit; nobody waits from here. */
void permits_stop(struct permits *permits);

unsigned permits_waiting(struct permits *permits);

#endif
