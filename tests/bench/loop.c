#include "loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* One call after another in one of the places. */
struct place {
    struct loop *loop;
    struct idem_channel *channel;
    int64_t since_ns;
};

struct loop {
    const struct loop_options *options;
    struct place *places;
    atomic_bool over;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t quiet;
    unsigned running;
    uint64_t calls;
    struct histogram latencies;
};

static void
start(struct place *place)
{
    const struct idem_call_options options = {.user = place,
                                              .timeout_ms = 60000};

    place->since_ns = now_ns();
    idem_call_release(
        place->loop->options->start(place->channel, &options, place->loop));
}

void
loop_done(void *user, const struct idem_outcome *outcome)
{
    struct place *place = user;
    struct loop *loop = place->loop;
    uint64_t took_ns = (uint64_t)(now_ns() - place->since_ns);
    bool over = atomic_load_explicit(&loop->over, memory_order_relaxed);

    if (outcome->status != IDEM_OK) {
        fprintf(stderr, "bench: %s %s: %s\n", idem_status_name(outcome->status),
                outcome->reason, outcome->message);
        exit(1);
    }
    pthread_mutex_lock(&loop->lock);
    histogram_add(&loop->latencies, took_ns);
    loop->calls++;
    if (over && --loop->running == 0)
        pthread_cond_signal(&loop->quiet);
    pthread_mutex_unlock(&loop->lock);
    if (!over)
        start(place);
}

static void
pass(double seconds)
{
    struct timespec t = {(time_t)seconds,
                         (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&t, NULL);
}

static void
await_quiet(struct loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    while (loop->running > 0)
        pthread_cond_wait(&loop->quiet, &loop->lock);
    pthread_mutex_unlock(&loop->lock);
}

static struct loop *
loop_new(const struct loop_options *options)
{
    struct loop *loop = calloc(1, sizeof *loop);

    if (!loop ||
        !(loop->places = calloc(options->in_flight, sizeof *loop->places))) {
        fprintf(stderr, "bench: out of memory\n");
        exit(1);
    }
    loop->options = options;
    loop->running = options->in_flight;
    pthread_mutex_init(&loop->lock, NULL);
    pthread_cond_init(&loop->quiet, NULL);
    for (unsigned i = 0; i < options->in_flight; i++) {
        loop->places[i].loop = loop;
        loop->places[i].channel = options->channels[i % options->n_channels];
    }
    return loop;
}

struct measure
loop_run(const struct loop_options *options)
{
    struct loop *loop = loop_new(options);
    struct measure seen = {0};
    double cpu = cpu_of_self();
    int64_t began_ns = now_ns();

    for (unsigned i = 0; i < options->in_flight; i++)
        start(&loop->places[i]);
    pass(options->seconds);
    atomic_store(&loop->over, true);
    await_quiet(loop);
    seen.calls = loop->calls;
    seen.seconds = (double)(now_ns() - began_ns) / 1e9;
    seen.cpu_seconds = cpu_of_self() - cpu;
    seen.p50_ns = histogram_quantile(&loop->latencies, 0.50);
    seen.p99_ns = histogram_quantile(&loop->latencies, 0.99);
    free(loop->places);
    free(loop);
    return seen;
}
