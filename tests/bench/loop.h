#ifndef LOOP_H
#define LOOP_H

#include <idem/channel.h>

#include "tally.h"

struct loop;

/* Start one call; its callback hands the user of the options to loop_done. */
typedef struct idem_call *
loop_start_fn(struct idem_channel *channel,
              const struct idem_call_options *options);

struct loop_options {
    struct idem_channel *const *channels;
    unsigned n_channels; /* calls are spread over them in turn */
    unsigned in_flight;
    loop_start_fn *start;
};

/* A closed loop of async calls: each that ends starts the next one while the
 * tally says so. Ends the process when a call fails. Free it when the tally has
 * run. */
struct loop *loop_start(const struct loop_options *options,
                        struct tally *tally);
void loop_free(struct loop *loop);

/* From a call's callback. */
void loop_done(void *user, const struct idem_outcome *outcome);

#endif
