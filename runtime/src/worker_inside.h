#ifndef WORKER_INSIDE_H
#define WORKER_INSIDE_H

#include "head_start.h"
#include "lead.h"
#include "look_out.h"
#include "worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* What the files of the workers share: worker.c (threads, and what comes from
 * outside), worker_job.c (the queues, one job, what is kept back),
 * worker_guest.c (jobs on the sockets' threads), worker_host.c (on others). */

/* A job that waited longer gets a further worker, and what a worker keeps is
 * let go ... */
#define PATIENCE_NS 100000
/* ... but no worker is woken while jobs take less than this: it would only be
 * in the way. */
#define SHORT_NS 20000

/* Of each sockets' loop, and of the hosts one. */
#define HOSTED LEADS_MAX
#define GUESTS (LEADS_MAX + 1)

/* Each sleeps on a condition of its own, so that a wake wakes the one meant. */
struct worker {
    struct workers *pool;
    struct worker *next; /* of those that sleep in line */
    pthread_t thread;
    pthread_cond_t wake;
    bool woken;
    bool works;        /* at a job; the pool's lock */
    int64_t since_ns;  /* its job began; the pool's lock */
    int64_t took_ns;   /* the job before, 0: there was none; its own thread's */
    int64_t clean_ns;  /* it kept nothing; its own thread's */
    struct lead *lead; /* of a guest, while one is there or announced; NULL: a
                        * worker's; the pool's lock */
    struct idem_host *host;       /* so of the guest of a host */
    bool told;                    /* the host, of this visit; the pool's lock */
    struct head_start head_start; /* of a guest's visits */
    _Atomic(void *) kept;         /* taken by itself or the look-out */
};

struct queue {
    struct job *first, **last;
    struct job *fresh; /* the first that was not told that it waits */
};

/* While there is work the look-out sees whether a job, or what a worker keeps,
 * is stuck behind handlers that block, so neither a push nor a pop has to wake
 * anybody for that case. */
struct workers {
    void (*let_go)(void *kept);

    pthread_mutex_t lock;        /* guards all below and each job's fields */
    struct queue jobs, quick;    /* quick: for the guest that has pushed them */
    unsigned queued, max_queued; /* in both */
    uint64_t pushed;             /* ever */
    unsigned awake;              /* workers that run or look for jobs */
    unsigned running, max_running; /* jobs, also those of guests */
    unsigned pops;                 /* ever; wraps */
    int64_t moved_ns;              /* a worker last took a job, or was woken */
    struct worker *line;           /* asleep; last in, first out: warm caches */
    bool stopping;
    unsigned guests;     /* there or announced */
    pthread_cond_t left; /* a guest */

    struct look_out look_out;
    unsigned pops_seen; /* by the look-out */

    unsigned count;
    struct worker guest[GUESTS];
    struct worker worker[];
};

int64_t workers_now(void);

/* --- worker_job.c; all with the lock --- */

void workers_append(struct workers *pool, struct job *job, int64_t now_ns,
                    bool quick);
void workers_take_out(struct workers *pool, struct job *job);

/* Of both queues; NULL: they are empty. */
struct job *workers_oldest(const struct workers *pool);
bool workers_oldest_waits_long(const struct workers *pool, int64_t now_ns);

/* Nobody has come for the oldest job for long, nor is on the way. */
bool workers_is_stuck(const struct workers *pool, int64_t now_ns);

/* May one more job run? */
bool workers_has_room(const struct workers *pool);

/* Run it on this thread, which is self's, without the lock meanwhile. Returns
 * when it ended. */
int64_t workers_run(struct workers *pool, struct worker *self, struct job *job,
                    int64_t now_ns);

/* A worker that keeps something and is long at its job. */
struct worker *workers_find_long_job(struct workers *pool, int64_t now_ns);

/* This thread is it; NULL: none. */
void workers_enter(struct worker *self);

/* Without the lock. */
void workers_hand_over(struct worker *worker);

/* --- worker.c --- */

/* One more for the queue, if one sleeps. With the lock. */
void workers_wake_one(struct workers *pool, int64_t now_ns);

/* --- worker_guest.c; all with the lock --- */

/* Where this job may go: true: a guest takes it on this thread. */
bool workers_for_guest(struct workers *pool, struct lead *lead,
                       const struct job *job);

/* Guests that are long at a job lead no more. */
void workers_relieve_guests(struct workers *pool, int64_t now_ns);

/* Run jobs as that guest, which was announced. Without the lock. */
void workers_visit(struct worker *guest);

/* --- worker_host.c --- */

/* The guest of this thread's host, announced; NULL: it has none here. With the
 * lock. */
struct worker *workers_hosted(struct workers *pool);

/* The host's guest is long at a job, and nobody has told. With the lock. */
bool workers_host_is_stuck(const struct workers *pool, int64_t now_ns);

/* Tell the guest's host, unless this visit's was told. Without the lock. */
void workers_tell_host(struct worker *guest);

#endif
