#ifndef TIMER_H
#define TIMER_H

#include <idem/timer.h>

/* Start the thread. NULL: out of memory or threads. */
struct idem_timers *timers_new(const struct idem_clock *clock);

/* Stops the thread; timers that wait never fire. Not from a timer. */
void timers_free(struct idem_timers *timers);

#endif
