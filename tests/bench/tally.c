#include "tally.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define END_MS 10000 /* for the last calls to end */

enum phase {
    PHASE_WARM,
    PHASE_COUNT,
    PHASE_OVER,
};

/* Written by one thread, read by tally_run when the phase is over: a call that
 * ends just then may be counted or not. */
struct part {
    struct part *next;
    _Atomic uint64_t calls;
    _Atomic uint64_t latencies[HISTOGRAM_BUCKETS];
};

struct tally {
    unsigned number; /* no two of a process have the same */
    _Atomic enum phase phase;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t ending;
    struct part *parts;
    unsigned ended;
};

/* This thread's part, and of which tally. */
static _Thread_local struct part *mine;
static _Thread_local unsigned mine_of;

static void
die(const char *why)
{
    fprintf(stderr, "bench: %s\n", why);
    exit(1);
}

struct tally *
tally_new(void)
{
    static atomic_uint numbers;
    struct tally *tally = calloc(1, sizeof *tally);
    pthread_condattr_t monotonic;

    if (!tally)
        die("out of memory");
    tally->number = atomic_fetch_add(&numbers, 1) + 1;
    pthread_mutex_init(&tally->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&tally->ending, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return tally;
}

void
tally_free(struct tally *tally)
{
    while (tally->parts) {
        struct part *part = tally->parts;

        tally->parts = part->next;
        free(part);
    }
    pthread_cond_destroy(&tally->ending);
    pthread_mutex_destroy(&tally->lock);
    free(tally);
}

static struct part *
my_part(struct tally *tally)
{
    if (mine_of == tally->number)
        return mine;
    mine = calloc(1, sizeof *mine);
    if (!mine)
        die("out of memory");
    mine_of = tally->number;
    pthread_mutex_lock(&tally->lock);
    mine->next = tally->parts;
    tally->parts = mine;
    pthread_mutex_unlock(&tally->lock);
    return mine;
}

/* One writer: no locked instruction. */
static void
increment(_Atomic uint64_t *count)
{
    atomic_store_explicit(count,
                          atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

bool
tally_add(struct tally *tally, int64_t since_ns)
{
    enum phase phase =
        atomic_load_explicit(&tally->phase, memory_order_relaxed);

    if (phase == PHASE_COUNT) {
        struct part *part = my_part(tally);

        increment(&part->calls);
        increment(&part->latencies[histogram_bucket(
            (uint64_t)(now_ns() - since_ns))]);
    }
    if (phase != PHASE_OVER)
        return true;
    pthread_mutex_lock(&tally->lock);
    tally->ended++;
    pthread_cond_signal(&tally->ending);
    pthread_mutex_unlock(&tally->lock);
    return false;
}

static void
sum(struct tally *tally, struct measure *seen)
{
    struct histogram *all = calloc(1, sizeof *all);

    if (!all)
        die("out of memory");
    pthread_mutex_lock(&tally->lock);
    for (struct part *part = tally->parts; part; part = part->next) {
        seen->calls += atomic_load(&part->calls);
        for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
            all->count[i] += atomic_load(&part->latencies[i]);
    }
    pthread_mutex_unlock(&tally->lock);
    seen->p50_ns = histogram_quantile(all, 0.50);
    seen->p99_ns = histogram_quantile(all, 0.99);
    free(all);
}

static void
await_end(struct tally *tally, unsigned running)
{
    int64_t until_ns = now_ns() + END_MS * INT64_C(1000000);
    const struct timespec until = {until_ns / 1000000000,
                                   until_ns % 1000000000};
    int rc = 0;

    pthread_mutex_lock(&tally->lock);
    while (tally->ended < running && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&tally->ending, &tally->lock, &until);
    if (tally->ended < running) {
        fprintf(stderr, "bench: %u calls were lost\n", running - tally->ended);
        exit(1);
    }
    pthread_mutex_unlock(&tally->lock);
}

struct measure
tally_run(struct tally *tally, const struct tally_window *window)
{
    struct measure seen = {0};
    double others, own;
    int64_t began_ns;

    pass_seconds(window->warm);
    others = cpu_of(window->others, window->n_others);
    own = cpu_of_self();
    began_ns = now_ns();
    atomic_store(&tally->phase, PHASE_COUNT);
    pass_seconds(window->seconds);
    atomic_store(&tally->phase, PHASE_OVER);
    seen.seconds = (double)(now_ns() - began_ns) / 1e9;
    seen.cpu_seconds = cpu_of_self() - own;
    seen.cpu_seconds += cpu_of(window->others, window->n_others) - others;
    sum(tally, &seen);
    await_end(tally, window->running);
    return seen;
}
