#ifndef BYHAND_H
#define BYHAND_H

#include "tally.h"

/* The peer of exactly-once calls: what a careful engineer writes by hand in a
 * service, without a framework and without the network in front. */
enum byhand_shape {
    /* SET NX in Redis, INSERT of the claim (commit), the handler, UPDATE of the
     * claim with the answer (commit), SET of the answer in Redis. */
    BYHAND_LEASED,
    /* BEGIN, claim, business INSERT, completion, COMMIT, each a round trip
     * (design.md section 6). The transaction decides, so that nothing is asked
     * of Redis. */
    BYHAND_TRANSACTION,
    /* The same, by who knows the pipeline: BEGIN with the claim, business
     * INSERT, completion with COMMIT: three round trips. */
    BYHAND_THREE_TRIPS,
};

struct byhand_options {
    enum byhand_shape shape;
    const char *conninfo;
    const char *redis_socket; /* a unix socket's path */
    unsigned in_flight;       /* calls that are wanted at the same time */
    unsigned pool;            /* connections, a thread each; 16 is best here */
    struct tally_window window;
};

/* Makes its tables anew. Ends the process when a server says no. */
void byhand_prepare(const char *conninfo);

/* Run a closed loop for that window; running is in_flight. */
struct measure byhand_run(const struct byhand_options *options);

#endif
