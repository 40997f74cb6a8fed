#include "loop.h"

#include <stdio.h>
#include <stdlib.h>

/* One call after another in one of the places. */
struct place {
    struct loop *loop;
    struct idem_channel *channel;
    int64_t since_ns;
};

struct loop {
    loop_start_fn *start;
    struct tally *tally;
    struct place places[];
};

static void
start(struct place *place)
{
    const struct idem_call_options options = {.user = place,
                                              .timeout_ms = 60000};

    place->since_ns = now_ns();
    idem_call_release(place->loop->start(place->channel, &options));
}

void
loop_done(void *user, const struct idem_outcome *outcome)
{
    struct place *place = user;

    if (outcome->status != IDEM_OK) {
        fprintf(stderr, "bench: %s %s: %s\n", idem_status_name(outcome->status),
                outcome->reason, outcome->message);
        exit(1);
    }
    if (tally_add(place->loop->tally, place->since_ns))
        start(place);
}

struct loop *
loop_start(const struct loop_options *options, struct tally *tally)
{
    struct loop *loop =
        calloc(1, sizeof *loop + options->in_flight * sizeof *loop->places);

    if (!loop) {
        fprintf(stderr, "bench: out of memory\n");
        exit(1);
    }
    loop->start = options->start;
    loop->tally = tally;
    for (unsigned i = 0; i < options->in_flight; i++) {
        loop->places[i].loop = loop;
        loop->places[i].channel = options->channels[i % options->n_channels];
        start(&loop->places[i]);
    }
    return loop;
}

void
loop_free(struct loop *loop)
{
    free(loop);
}
