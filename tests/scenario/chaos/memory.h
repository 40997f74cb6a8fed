#ifndef MEMORY_WATCH_H
#define MEMORY_WATCH_H

#include "site.h"

/* Does what a server holds grow with the time that it is called? Servers are
 * killed and started again, so what counts is the most that any of them held in
 * either half of the run. */
struct memory_watch {
    long half_kib[2]; /* resident */
};

void memory_look(struct memory_watch *watch, const struct site *site,
                 bool second_half);

/* False: the second half took more than a quarter and 16 MiB beyond the first.
 * Prints both. */
bool memory_is_flat(const struct memory_watch *watch);

#endif
