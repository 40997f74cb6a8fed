#include "worker.h"

#include <pthread.h>
#include <stdlib.h>

#include <idem/clock.h>

/* A job that waited longer gets a further worker … */
#define PATIENCE_NS 100000
/* … but not while jobs take less than this: it would only be in the way. */
#define SHORT_NS 20000
#define LOOK_NS 1000000 /* how often the look-out looks */
#define LOOKS_IDLE 16   /* after so many looks at no work it sleeps */

/* Each sleeps on a condition of its own, so that a wake wakes the one meant.
 *
 * One of those that sleep is the look-out: while there is work it looks every
 * millisecond whether a job is stuck behind handlers that block, so neither a
 * push nor a pop has to wake anybody for that case. It goes to work itself only
 * when nobody else sleeps. */
struct worker {
    struct workers *pool;
    struct worker *next; /* of those that sleep in line */
    pthread_t thread;
    pthread_cond_t wake;
    bool woken;
    bool dirty;       /* jobs ran since the last idle; its own thread's */
    int64_t clean_ns; /* when idle ran, or the first job after it began */
};

struct workers {
    void (*idle)(void *with);
    void *with;

    pthread_mutex_t lock; /* guards all below and each job's fields */
    struct job *first, **last;
    unsigned queued, max_queued;
    unsigned awake;          /* workers that run or look for jobs */
    unsigned pops;           /* ever; wraps */
    int64_t moved_ns;        /* a worker last took a job, or was woken */
    struct worker *line;     /* asleep; last in, first out: warm caches */
    struct worker *look_out; /* NULL: nobody sleeps */
    bool look_out_rests;     /* it sleeps until there is work */
    bool stopping;

    unsigned count;
    struct worker worker[];
};

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

/* --- Sleeping and waking --- */

static void
wake(struct worker *worker)
{
    worker->woken = true;
    pthread_cond_signal(&worker->wake);
}

/* One more for the queue, if one sleeps. */
static void
wake_one(struct workers *pool, int64_t now_ns)
{
    struct worker *worker = pool->line;

    if (worker)
        pool->line = worker->next;
    else if (pool->look_out && !pool->look_out->woken)
        worker = pool->look_out;
    if (!worker)
        return;
    pool->awake++;
    pool->moved_ns = now_ns;
    wake(worker);
}

static void
wake_look_out(struct workers *pool)
{
    pool->look_out_rests = false;
    pthread_cond_signal(&pool->look_out->wake);
}

static void
look_out(struct workers *pool, struct worker *self)
{
    const struct idem_clock *clock = idem_clock_system();
    unsigned idle = 0, pops = pool->pops;
    int64_t now_ns;

    pool->look_out = self;
    while (!self->woken) {
        pool->look_out_rests = idle >= LOOKS_IDLE;
        clock->wait_until(clock, &self->wake, &pool->lock,
                          pool->look_out_rests ? INT64_MAX : now() + LOOK_NS);
        now_ns = now();
        if (is_stuck(pool, now_ns))
            wake_one(pool, now_ns);
        idle = pops == pool->pops && !pool->first ? idle + 1 : 0;
        pops = pool->pops;
    }
    pool->look_out = NULL;
    pool->look_out_rests = false;
}

static void
sleep_in_line(struct workers *pool, struct worker *self)
{
    self->next = pool->line;
    pool->line = self;
    while (!self->woken)
        pthread_cond_wait(&self->wake, &pool->lock);
}

static void
rest(struct workers *pool, struct worker *self)
{
    self->woken = false;
    pool->awake--;
    if (pool->look_out)
        sleep_in_line(pool, self);
    else
        look_out(pool, self);
}

/* --- Working --- */

static void
clean(struct worker *self, int64_t now_ns)
{
    self->dirty = false;
    self->clean_ns = now_ns;
    if (self->pool->idle)
        self->pool->idle(self->pool->with);
}

/* With the lock. NULL: the pool ends. */
static struct job *
next_job(struct workers *pool, struct worker *self, int64_t *before_ns)
{
    while (!pool->first) {
        *before_ns = INT64_MAX;
        if (self->dirty) {
            pthread_mutex_unlock(&pool->lock);
            clean(self, now());
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

static void *
work(void *arg)
{
    struct worker *self = arg;
    struct workers *pool = self->pool;
    int64_t now_ns, before_ns = INT64_MAX; /* when the job before began */
    struct job *job;

    pthread_mutex_lock(&pool->lock);
    while ((job = next_job(pool, self, &before_ns)) != NULL) {
        now_ns = now();
        if (now_ns - before_ns > SHORT_NS && oldest_waits_long(pool, now_ns))
            wake_one(pool, now_ns);
        pool->moved_ns = now_ns;
        before_ns = now_ns;
        pthread_mutex_unlock(&pool->lock);
        if (!self->dirty)
            self->clean_ns = now_ns;
        else if (now_ns - self->clean_ns > PATIENCE_NS)
            clean(self, now_ns);
        self->dirty = true;
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
    while (pool->count < threads)
        if (start(pool, &pool->worker[pool->count])) {
            pool->count++;
        } else {
            workers_free(pool);
            return NULL;
        }
    return pool;
}

void
workers_set_idle(struct workers *pool, void (*idle)(void *with), void *with)
{
    pool->idle = idle;
    pool->with = with;
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
    if (pool->look_out_rests)
        wake_look_out(pool);
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

    bool rests = pool->awake == 0 && pool->look_out_rests;

    pthread_mutex_unlock(&pool->lock);
    return rests;
}

void
workers_free(struct workers *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    while (pool->line || (pool->look_out && !pool->look_out->woken))
        wake_one(pool, 0);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->count; i++) {
        pthread_join(pool->worker[i].thread, NULL);
        pthread_cond_destroy(&pool->worker[i].wake);
    }
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
