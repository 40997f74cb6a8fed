#ifndef RELAY_WORLD_H
#define RELAY_WORLD_H

#include "once_stage.h"

#include "relay.idem.h"

/* Two real servers, one behind the other: relay.proto's, whose handlers do what
 * a test says, and that of once_stage, which they call. */

#define RELAY_SEEN_MAX 64

/* A call as it came to the server behind. */
struct relay_seen {
    char key[256];
    int64_t remaining_ms; /* INT64_MAX: no deadline */
    char traceparent[128], tracestate[64], other[32]; /* "" without one */
    int64_t fence;
    unsigned n_metadata; /* that a handler sees */
};

struct relay_world {
    struct stage *behind;
    struct idem_server *server;
    struct idem_channel *to_behind; /* the handlers' */
    struct idem_channel *channel;   /* the test's, to the first server */

    pthread_mutex_t lock; /* guards the rest */
    unsigned runs;
    unsigned n_seen;
    struct relay_seen seen[RELAY_SEEN_MAX];

    /* What handlers do; set before the call. run counts from 1. */
    enum idem_status (*work)(struct relay_world *world,
                             struct idem_context *context, unsigned run);
};

int relay_world_up(void **state);
int relay_world_down(void **state);

/* What came to the server behind so far. */
unsigned relay_world_seen(struct relay_world *world);

/* From a handler: Add that much; the outcome's status. options may be NULL. */
enum idem_status relay_add(struct relay_world *world, int64_t amount,
                           const struct idem_call_options *options);

/* From the test. */
enum idem_status relay_call(struct relay_world *world,
                            const struct idem_call_options *options,
                            struct idem_outcome *outcome);

#endif
