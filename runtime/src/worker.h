#ifndef WORKER_H
#define WORKER_H

#include <idem/clock.h>

/* Threads that run handlers: one queue, first in first out, one job a pop, so
 * that nothing is trapped behind a handler that blocks. A further worker is
 * woken only when the oldest job has waited (nng.md 6.5). */
struct workers;

/* Embed in what is to be run. */
struct job {
    void (*run)(struct job *job); /* on a worker; may block */
    struct job *next, **link;     /* the pool's */
    int64_t since_ns;             /* the pool's */
};

/* NULL: out of memory or threads. */
struct workers *workers_new(const struct idem_clock *clock, unsigned threads,
                            unsigned max_queued);

/* False: the queue is full, or the pool stops. */
bool workers_push(struct workers *workers, struct job *job) IDEM_MUST_CHECK;

/* Take a job out that no worker has begun. False: too late. */
bool workers_withdraw(struct workers *workers, struct job *job);

/* Called by a worker's job before it blocks for long, and set by the server:
 * what a worker does when the queue is empty or before a job of another
 * connection, so that replies of a run of jobs leave in one write. */
void workers_set_idle(struct workers *workers, void (*idle)(void *with),
                      void *with);

/* Runs what is queued, then ends the threads. */
void workers_free(struct workers *workers);

#endif
