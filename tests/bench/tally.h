#ifndef TALLY_H
#define TALLY_H

#include <stdbool.h>

#include "measure.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a closed loop of calls counts, on any number of threads: each call that
 * ends asks whether another is to be started in its place. */
struct tally;

struct tally *tally_new(void);
void tally_free(struct tally *tally); /* when no call runs any more */

/* A call ended that began then. True: start the next; false: none any more. */
bool tally_add(struct tally *tally, int64_t since_ns);

struct tally_window {
    unsigned running;     /* calls that were started */
    double warm, seconds; /* not counted, then counted */
    const int *others;    /* processes whose CPU is part of the price */
    unsigned n_others;
};

/* Count for that long, then let the calls end. Ends the process when one of
 * them never does. */
struct measure tally_run(struct tally *tally,
                         const struct tally_window *window);

#ifdef __cplusplus
}
#endif

#endif
