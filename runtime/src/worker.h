#ifndef WORKER_H
#define WORKER_H

#include <idem/base.h>

#include <stdatomic.h>
#include <stdint.h>

struct idem_host;

/* Threads that run handlers: one queue, first in first out, one job a pop, so
 * that nothing is trapped behind a handler that blocks. A further worker is
 * woken only when the oldest job has waited (nng.md 6.5).
 *
 * What a sockets' thread pushes of a kind that was short lately it runs itself,
 * as a guest of the pool, behind the event that it is in. When a job takes
 * longer than was thought, the look-out sees to it that another thread has the
 * sockets, a millisecond later at most; so a job may block there too (decision
 * 48). No more jobs run at once, guests' included, than there are workers. */
struct workers;

/* How long jobs of one kind took lately. Zeroed: not known, so short. */
struct job_kind {
    _Atomic(int64_t) mean_ns;
};

/* Embed in what is to be run. */
struct job {
    void (*run)(struct job *job); /* on a worker, or a guest; may block */
    struct job_kind *kind;        /* NULL: never a guest's */

    /* Optional. It waits for long: once, on the look-out, with the pool's lock,
     * a millisecond and a little after it was pushed. */
    void (*waits)(struct job *job);
    struct job *next, **link; /* the pool's, as what follows */
    int64_t since_ns;
    uint64_t number; /* as they came */
    bool quick;
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

/* From here this thread has short jobs that it pushes for itself, and runs them
 * in workers_run_lent, which ends it; unless another host does so just then.
 * While one of them is long the host is told (struct idem_host). */
void workers_lend(struct idem_host *host);
void workers_run_lent(void);

/* Take a job out that no worker has begun. False: too late. */
bool workers_withdraw(struct workers *workers, struct job *job);

/* What a worker keeps back during a run of jobs, to be let go together: replies
 * that leave in one write. It is handed to let_go, without a lock: on the
 * worker when the queue is empty, and between two jobs whenever 100 us have
 * passed; when a job takes longer meanwhile, on the look-out, a millisecond
 * later at most. Set before the first push. */
void workers_set_let_go(struct workers *workers, void (*let_go)(void *kept));

/* On a worker, or a guest. The next three there only. */
bool workers_here(void);

/* What it keeps; NULL: nothing. It may be let go elsewhere at any moment. */
void *workers_kept(void);

/* Keep this from here; returns what was kept, which is the caller's now. */
void *workers_keep(void *kept) IDEM_MUST_CHECK;

/* Now: the job may block for long. */
void workers_let_go(void);

/* This thread is about to wait for something that others may have to read off
 * the sockets: they have them, and what it keeps, from now on. Any thread. */
void workers_will_block(void);

/* Nobody runs and nobody looks out: only a push wakes. For tests. */
bool workers_rest(struct workers *workers);

/* Runs what is queued, then ends the threads. */
void workers_free(struct workers *workers);

#endif
