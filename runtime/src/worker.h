#ifndef WORKER_H
#define WORKER_H

#include <idem/base.h>

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

/* NULL: out of memory or threads. Without a clock: the pool looks at the
 * system's, since a fake one that stands still would leave jobs behind a
 * handler that blocks. */
struct workers *workers_new(unsigned threads, unsigned max_queued);

/* False: the queue is full, or the pool stops. */
bool workers_push(struct workers *workers, struct job *job) IDEM_MUST_CHECK;

/* Several, linked by next, in one go and with one wake. Those that did not fit
 * come back, still linked; NULL: all did. */
struct job *workers_push_all(struct workers *workers, struct job *first)
    IDEM_MUST_CHECK;

/* Take a job out that no worker has begun. False: too late. */
bool workers_withdraw(struct workers *workers, struct job *job);

/* What a worker does after a job when the queue is empty, and between jobs
 * whenever 100 us have passed since it did so last: replies of a run of jobs
 * leave in one write. A job that may block for long does the same first, else
 * what ran just before waits for it. Called without a lock, on the worker. Set
 * before the first push. */
void workers_set_idle(struct workers *workers, void (*idle)(void *with),
                      void *with);

/* Nobody runs and nobody looks out: only a push wakes. For tests. */
bool workers_rest(struct workers *workers);

/* Runs what is queued, then ends the threads. */
void workers_free(struct workers *workers);

#endif
