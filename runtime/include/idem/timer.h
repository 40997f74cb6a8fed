#ifndef IDEM_TIMER_H
#define IDEM_TIMER_H

#include <idem/clock.h>

/* One thread that fires timers by a clock's monotonic time; it sleeps when
 * there are none (nng's own clock is CLOCK_REALTIME: nng.md 5). */
struct idem_timers;

/* Owned by the user, who zeroes it and sets fire before the first start. */
struct idem_timer {
    /* On the timers' thread, without a lock held; must not block. The timer may
     * be started again, or its memory freed, in here. */
    void (*fire)(struct idem_timer *timer);
    int64_t at_ns;                   /* the timers' */
    struct idem_timer *next, **link; /* the timers' */
};

IDEM_BEGIN_DECLS

/* Fire at that monotonic time, or at once when it is over. A timer that runs is
 * moved. From any thread. */
IDEM_API void idem_timer_start(struct idem_timers *timers,
                               struct idem_timer *timer, int64_t at_ns);

/* True: it was waiting and will not fire. False: it was not started, has fired
 * or is about to. From any thread. */
IDEM_API bool idem_timer_stop(struct idem_timers *timers,
                              struct idem_timer *timer);

IDEM_END_DECLS

#endif
