#include "gate.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.idem.h"

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool shut, inside;
    unsigned waiting;
};

static struct gate the_gate = {.lock = PTHREAD_MUTEX_INITIALIZER,
                               .changed = PTHREAD_COND_INITIALIZER};

static void
done(struct idem_call *call, const bench_reply *reply,
     const struct idem_outcome *outcome)
{
    struct gate *gate = idem_call_user(call);

    if (!reply) {
        fprintf(stderr, "bench: slow: %s\n", outcome->message);
        exit(1);
    }
    pthread_mutex_lock(&gate->lock);
    gate->waiting--;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

struct gate *
gate_shut(struct idem_channel *channel, unsigned calls)
{
    const bench_request request = BENCH_REQUEST_INIT;
    const struct idem_call_options options = {
        .key = "slow", .user = &the_gate, .timeout_ms = 120000};

    the_gate.shut = true;
    the_gate.waiting = calls;
    for (unsigned i = 0; i < calls; i++)
        idem_call_release(bench_slow_async(channel, &request, &options, done));
    pthread_mutex_lock(&the_gate.lock);
    while (!the_gate.inside)
        pthread_cond_wait(&the_gate.changed, &the_gate.lock);
    pthread_mutex_unlock(&the_gate.lock);
    return &the_gate;
}

void
gate_open(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->shut = false;
    pthread_cond_broadcast(&gate->changed);
    while (gate->waiting > 0)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

void
gate_stay(void)
{
    pthread_mutex_lock(&the_gate.lock);
    the_gate.inside = true;
    pthread_cond_broadcast(&the_gate.changed);
    while (the_gate.shut)
        pthread_cond_wait(&the_gate.changed, &the_gate.lock);
    pthread_mutex_unlock(&the_gate.lock);
}
