#include "worker_inside.h"

#include <stdlib.h>

/* --- Sleeping and waking --- */

void
workers_wake_one(struct workers *pool, int64_t now_ns)
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

static void
tell_waiting(struct queue *queue, int64_t now_ns)
{
    struct job *job;

    while ((job = queue->fresh) && now_ns - job->since_ns > PATIENCE_NS) {
        queue->fresh = job->next;
        if (job->waits)
            job->waits(job);
    }
}

static bool
look(void *with)
{
    struct workers *pool = with;
    int64_t now_ns = workers_now();
    bool work = pool->queued || pool->guests || pool->pops != pool->pops_seen;
    struct worker *worker;

    pool->pops_seen = pool->pops;
    tell_waiting(&pool->jobs, now_ns);
    tell_waiting(&pool->quick, now_ns);
    if (workers_is_stuck(pool, now_ns))
        workers_wake_one(pool, now_ns);
    workers_relieve_guests(pool, now_ns);
    if (workers_host_is_stuck(pool, now_ns)) {
        pthread_mutex_unlock(&pool->lock);
        workers_tell_host(&pool->guest[HOSTED]);
        pthread_mutex_lock(&pool->lock);
    }
    while ((worker = workers_find_long_job(pool, now_ns)) != NULL) {
        pthread_mutex_unlock(&pool->lock);
        workers_hand_over(worker);
        pthread_mutex_lock(&pool->lock);
    }
    return work;
}

/* --- Working --- */

/* With the lock: what a worker may begin; NULL: nothing. What a guest is about
 * to run is left to it, unless it has waited for long or others wait behind it:
 * nothing overtakes it. */
static struct job *
job_for_worker(const struct workers *pool)
{
    struct job *job = workers_oldest(pool);
    bool left_to_guest = job && job->quick && !pool->jobs.first &&
                         pool->guests > 0 &&
                         !workers_oldest_waits_long(pool, workers_now());

    return left_to_guest || !workers_has_room(pool) ? NULL : job;
}

/* With the lock. NULL: the pool ends. */
static struct job *
next_job(struct workers *pool, struct worker *self, int64_t *now_ns)
{
    struct job *job;

    while ((job = job_for_worker(pool)) == NULL) {
        if (atomic_load(&self->kept)) {
            pthread_mutex_unlock(&pool->lock);
            workers_hand_over(self);
            pthread_mutex_lock(&pool->lock);
        } else if (pool->stopping && pool->queued == 0) {
            return NULL;
        } else {
            rest(pool, self);
        }
        self->took_ns = 0;
        *now_ns = workers_now();
    }
    return job;
}

static void *
work(void *arg)
{
    struct worker *self = arg;
    struct workers *pool = self->pool;
    int64_t now_ns = workers_now();
    struct job *job;

    workers_enter(self);
    pthread_mutex_lock(&pool->lock);
    while ((job = next_job(pool, self, &now_ns)) != NULL)
        now_ns = workers_run(pool, self, job, now_ns);
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
    while (pool->guests > 0)
        pthread_cond_wait(&pool->left, &pool->lock);
    while (pool->line)
        workers_wake_one(pool, 0);
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

static void
free_pool(struct workers *pool)
{
    pthread_cond_destroy(&pool->left);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

struct workers *
workers_new(unsigned threads, unsigned max_queued)
{
    struct workers *pool =
        calloc(1, sizeof(*pool) + threads * sizeof(struct worker));

    if (!pool)
        return NULL;
    pool->jobs.last = &pool->jobs.first;
    pool->quick.last = &pool->quick.first;
    pool->max_queued = max_queued;
    pool->awake = pool->max_running = threads;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->left, NULL);
    for (unsigned i = 0; i < GUESTS; i++)
        pool->guest[i].pool = pool;
    if (start_all(pool, threads))
        return pool;
    free_pool(pool);
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
    int64_t now_ns = workers_now();
    struct lead *lead = lead_here();

    pthread_mutex_lock(&pool->lock);
    while (first && !pool->stopping && pool->queued < pool->max_queued) {
        struct job *job = first;

        first = job->next;
        workers_append(pool, job, now_ns, workers_for_guest(pool, lead, job));
    }
    if ((pool->jobs.first && pool->awake == 0) ||
        workers_is_stuck(pool, now_ns))
        workers_wake_one(pool, now_ns);
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
        workers_take_out(pool, job);
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
    free_pool(pool);
}
