#include "worker_inside.h"

/* Jobs on a sockets' thread: who has read short calls runs them, behind the
 * event that brought them, as a guest of the pool (decision 48). It takes the
 * jobs that it has pushed itself; a worker takes them too when they have waited
 * for long. */

/* Longer jobs go to a worker at once. */
#define QUICK_NS 50000
/* Then the sockets have their turn, and workers the rest. */
#define STAY_NS 1000000

/* With the lock: the guest goes, and may be the last thing that the pool's end
 * waits for. */
static void
leave(struct worker *self, int64_t now_ns)
{
    struct workers *pool = self->pool;

    self->lead = NULL;
    self->host = NULL;
    if (pool->queued > 0)
        workers_wake_one(pool, now_ns);
    if (--pool->guests == 0)
        pthread_cond_signal(&pool->left);
}

static bool
is_lent(const struct worker *self)
{
    return !self->lead || lead_is_lent(self->lead);
}

/* With the lock: its next job. NULL: it goes. An older job of the workers has
 * the last free place. */
static struct job *
next_job(const struct workers *pool, const struct worker *self)
{
    struct job *job = pool->quick.first;
    unsigned places = pool->max_running - pool->running;

    if (!job || !is_lent(self) || places == 0 ||
        (places == 1 && workers_oldest(pool) != job))
        return NULL;
    return job;
}

void
workers_visit(struct worker *self)
{
    struct workers *pool = self->pool;
    int64_t begun_ns = workers_now(), now_ns = begun_ns;
    unsigned jobs = 0;
    struct job *job;

    workers_enter(self);
    self->clean_ns = now_ns;
    self->took_ns = 0;
    head_start_begin(&self->head_start, begun_ns);
    pthread_mutex_lock(&pool->lock);
    while (now_ns - begun_ns < STAY_NS &&
           (job = next_job(pool, self)) != NULL) {
        now_ns = workers_run(pool, self, job, now_ns);
        jobs++;
        if (head_start_due(&self->head_start, now_ns)) {
            pthread_mutex_unlock(&pool->lock);
            workers_hand_over(self); /* what is there begins to leave */
            pthread_mutex_lock(&pool->lock);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    workers_hand_over(self);
    head_start_end(&self->head_start, jobs, workers_now());
    workers_enter(NULL);
    pthread_mutex_lock(&pool->lock);
    leave(self, now_ns);
    pthread_mutex_unlock(&pool->lock);
}

static void
visit(void *with)
{
    workers_visit(with);
}

static bool
is_quick(const struct job *job)
{
    return job->kind && atomic_load_explicit(&job->kind->mean_ns,
                                             memory_order_relaxed) < QUICK_NS;
}

bool
workers_for_guest(struct workers *pool, struct lead *lead,
                  const struct job *job)
{
    struct worker *guest;

    if (!is_quick(job))
        return false;
    if (!lead)
        return workers_hosted(pool) != NULL;
    guest = &pool->guest[lead->number];
    if (guest->lead)
        return true;
    guest->lead = lead;
    pool->guests++;
    lead_put_behind(visit, guest);
    return true;
}

void
workers_relieve_guests(struct workers *pool, int64_t now_ns)
{
    for (unsigned i = 0; i < LEADS_MAX; i++) {
        const struct worker *guest = &pool->guest[i];

        if (guest->works && now_ns - guest->since_ns > PATIENCE_NS)
            lead_relieve(guest->lead);
    }
}
