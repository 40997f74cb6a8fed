#include "worker.h"

#include "look_out.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <idem/clock.h>

/* A job that waited longer gets a further worker, and what a worker keeps is
 * let go … */
#define PATIENCE_NS 100000
/* … but no worker is woken while jobs take less than this: it would only be in
 * the way. */
#define SHORT_NS 20000

/* Each sleeps on a condition of its own, so that a wake wakes the one meant. */
struct worker {
    struct workers *pool;
    struct worker *next; /* of those that sleep in line */
    pthread_t thread;
    pthread_cond_t wake;
    bool woken;
    int64_t since_ns;     /* its job began; the pool's lock */
    int64_t clean_ns;     /* it kept nothing; its own thread's */
    _Atomic(void *) kept; /* taken by itself or the look-out */
};

/* While there is work the look-out sees whether a job, or what a worker keeps,
 * is stuck behind handlers that block, so neither a push nor a pop has to wake
 * anybody for that case. */
struct workers {
    void (*let_go)(void *kept);

    pthread_mutex_t lock; /* guards all below and each job's fields */
    struct job *first, **last;
    unsigned queued, max_queued;
    unsigned awake;      /* workers that run or look for jobs */
    unsigned pops;       /* ever; wraps */
    int64_t moved_ns;    /* a worker last took a job, or was woken */
    struct worker *line; /* asleep; last in, first out: warm caches */
    bool stopping;

    struct look_out look_out;
    unsigned pops_seen; /* by the look-out */

    unsigned count;
    struct worker worker[];
};

static _Thread_local struct worker *here; /* this thread's; NULL: it is none */

static int64_t
now(void)
{
    const struct idem_clock *clock = idem_clock_system();

    return clock->monotonic_ns(clock);
}

/* --- The queue --- */

static void
append(struct workers *pool, struct job *job)
{
    job->next = NULL;
    job->link = pool->last;
    *pool->last = job;
    pool->last = &job->next;
    pool->queued++;
}

static void
take_out(struct workers *pool, struct job *job)
{
    *job->link = job->next;
    if (job->next)
        job->next->link = job->link;
    else
        pool->last = job->link;
    job->next = NULL;
    job->link = NULL;
    pool->queued--;
}

static bool
oldest_waits_long(const struct workers *pool, int64_t now_ns)
{
    return pool->first && now_ns - pool->first->since_ns > PATIENCE_NS;
}

/* Nobody has come for the oldest job for long, nor is on the way. */
static bool
is_stuck(const struct workers *pool, int64_t now_ns)
{
    return oldest_waits_long(pool, now_ns) &&
           now_ns - pool->moved_ns > PATIENCE_NS;
}

/* --- What is kept back --- */

static void
hand_over(struct worker *worker)
{
    void *kept = atomic_exchange(&worker->kept, NULL);

    if (kept)
        worker->pool->let_go(kept);
}

/* With the lock. A worker that keeps something and is long at its job. */
static struct worker *
find_long_job(struct workers *pool, int64_t now_ns)
{
    for (unsigned i = 0; i < pool->count; i++)
        if (now_ns - pool->worker[i].since_ns > PATIENCE_NS &&
            atomic_load(&pool->worker[i].kept))
            return &pool->worker[i];
    return NULL;
}

bool
workers_here(void)
{
    return here != NULL;
}

void *
workers_kept(void)
{
    return atomic_load(&here->kept);
}

void *
workers_keep(void *kept)
{
    return atomic_exchange(&here->kept, kept);
}

void
workers_let_go(void)
{
    hand_over(here);
}

/* --- Sleeping and waking --- */

/* One more for the queue, if one sleeps. */
static void
wake_one(struct workers *pool, int64_t now_ns)
{
    struct worker *worker = pool->line;

    if (!worker)
        return;
    pool->line = worker->next;
    pool->awake++;
    pool->moved_ns = now_ns;
    worker->woken = true;
    pthread_cond_signal(&worker->wake);
}

static void
rest(struct workers *pool, struct worker *self)
{
    self->woken = false;
    pool->awake--;
    self->next = pool->line;
    pool->line = self;
    while (!self->woken)
        pthread_cond_wait(&self->wake, &pool->lock);
}

/* --- Looking out --- */

static bool
look(void *with)
{
    struct workers *pool = with;
    int64_t now_ns = now();
    bool work = pool->first || pool->pops != pool->pops_seen;
    struct worker *worker;

    pool->pops_seen = pool->pops;
    if (is_stuck(pool, now_ns))
        wake_one(pool, now_ns);
    while ((worker = find_long_job(pool, now_ns)) != NULL) {
        pthread_mutex_unlock(&pool->lock);
        hand_over(worker);
        pthread_mutex_lock(&pool->lock);
    }
    return work;
}

/* --- Working --- */

/* With the lock. NULL: the pool ends. */
static struct job *
next_job(struct workers *pool, struct worker *self, int64_t *before_ns)
{
    while (!pool->first) {
        *before_ns = INT64_MAX;
        if (atomic_load(&self->kept)) {
            pthread_mutex_unlock(&pool->lock);
            hand_over(self);
            pthread_mutex_lock(&pool->lock);
        } else if (pool->stopping) {
            return NULL;
        } else {
            rest(pool, self);
        }
    }

    struct job *job = pool->first;

    take_out(pool, job);
    pool->pops++;
    return job;
}

/* Between two jobs. */
static void
hand_over_in_time(struct worker *self, int64_t now_ns)
{
    bool keeps = atomic_load(&self->kept) != NULL;

    if (keeps && now_ns - self->clean_ns <= PATIENCE_NS)
        return;
    self->clean_ns = now_ns;
    if (keeps)
        hand_over(self);
}

static void *
work(void *arg)
{
    struct worker *self = arg;
    struct workers *pool = self->pool;
    int64_t now_ns, before_ns = INT64_MAX; /* when the job before began */
    struct job *job;

    here = self;
    pthread_mutex_lock(&pool->lock);
    while ((job = next_job(pool, self, &before_ns)) != NULL) {
        now_ns = now();
        if (now_ns - before_ns > SHORT_NS && oldest_waits_long(pool, now_ns))
            wake_one(pool, now_ns);
        pool->moved_ns = now_ns;
        before_ns = now_ns;
        self->since_ns = now_ns;
        pthread_mutex_unlock(&pool->lock);
        hand_over_in_time(self, now_ns);
        job->run(job);
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static bool
start(struct workers *pool, struct worker *worker)
{
    worker->pool = pool;
    pthread_cond_init(&worker->wake, NULL);
    if (pthread_create(&worker->thread, NULL, work, worker) == 0)
        return true;
    pthread_cond_destroy(&worker->wake);
    return false;
}

/* --- From outside --- */

/* Those that were started. */
static void
end_workers(struct workers *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    while (pool->line)
        wake_one(pool, 0);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->count; i++) {
        pthread_join(pool->worker[i].thread, NULL);
        pthread_cond_destroy(&pool->worker[i].wake);
    }
}

/* The look-out comes last, when there is somebody to look at. */
static bool
start_all(struct workers *pool, unsigned threads)
{
    while (pool->count < threads && start(pool, &pool->worker[pool->count]))
        pool->count++;
    if (pool->count == threads &&
        look_out_start(&pool->look_out, &pool->lock, look, pool))
        return true;
    end_workers(pool);
    return false;
}

struct workers *
workers_new(unsigned threads, unsigned max_queued)
{
    struct workers *pool =
        calloc(1, sizeof(*pool) + threads * sizeof(struct worker));

    if (!pool)
        return NULL;
    pool->last = &pool->first;
    pool->max_queued = max_queued;
    pool->awake = threads;
    pthread_mutex_init(&pool->lock, NULL);
    if (start_all(pool, threads))
        return pool;
    pthread_mutex_destroy(&pool->lock);
    free(pool);
    return NULL;
}

void
workers_set_let_go(struct workers *pool, void (*let_go)(void *kept))
{
    pool->let_go = let_go;
}

struct job *
workers_push_all(struct workers *pool, struct job *first)
{
    int64_t now_ns = now();

    pthread_mutex_lock(&pool->lock);
    while (first && !pool->stopping && pool->queued < pool->max_queued) {
        struct job *job = first;

        first = job->next;
        job->since_ns = now_ns;
        append(pool, job);
    }
    if (pool->first && (pool->awake == 0 || is_stuck(pool, now_ns)))
        wake_one(pool, now_ns);
    look_out_wake(&pool->look_out);
    pthread_mutex_unlock(&pool->lock);
    return first;
}

bool
workers_push(struct workers *pool, struct job *job)
{
    job->next = NULL;
    return !workers_push_all(pool, job);
}

bool
workers_withdraw(struct workers *pool, struct job *job)
{
    pthread_mutex_lock(&pool->lock);

    bool waited = job->link != NULL;

    if (waited)
        take_out(pool, job);
    pthread_mutex_unlock(&pool->lock);
    return waited;
}

bool
workers_rest(struct workers *pool)
{
    pthread_mutex_lock(&pool->lock);

    bool rests = pool->awake == 0 && pool->look_out.rests;

    pthread_mutex_unlock(&pool->lock);
    return rests;
}

void
workers_free(struct workers *pool)
{
    if (!pool)
        return;
    end_workers(pool);
    look_out_end(&pool->look_out);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
