#ifndef LOOP_H
#define LOOP_H

#include <idem/channel.h>

#include "measure.h"

struct loop;

/* Start one call; the loop gets it back by loop_done. */
typedef struct idem_call *loop_start_fn(struct idem_channel *channel,
                                        const struct idem_call_options *options,
                                        struct loop *loop);

struct loop_options {
    struct idem_channel *const *channels;
    unsigned n_channels; /* calls are spread over them in turn */
    unsigned in_flight;
    double seconds;
    loop_start_fn *start;
};

/* A closed loop of async calls: each that ends starts the next. Ends the
 * process when a call fails. */
struct measure loop_run(const struct loop_options *options);

/* From the call's callback; user is the option's. */
void loop_done(void *user, const struct idem_outcome *outcome);

#endif
