#ifndef CROWD_H
#define CROWD_H

#include <stdbool.h>

/* Very many calls in flight on one channel, started by one thread, towards a
 * server in a process of its own that answers none before all have come. */
struct crowd_seen {
    unsigned told; /* callbacks that ran … */
    unsigned ok;   /* … of calls that ended OK */
    unsigned once; /* calls that were told exactly once */
    double kib;    /* resident memory a call, while all fly, its message of 16
                    * bytes and all that it needs included; 0: a sanitizer has
                    * memory of its own */
};

/* Forks: from main, before there is a thread. Ends the process when it cannot.
 */
struct crowd_seen crowd_run(unsigned calls);

#endif
