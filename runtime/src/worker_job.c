#include "worker_inside.h"

#include "clock_held.h"

/* A kind's mean counts no job as longer than this, so that it forgets. */
#define TOOK_MAX_NS 1000000
#define MEAN_OF 8 /* jobs, more or less */

static _Thread_local struct worker *here; /* this thread's; NULL: it is none */

int64_t
workers_now(void)
{
    const struct idem_clock *clock = idem_clock_system();

    return clock->monotonic_ns(clock);
}

/* --- The queues --- */

void
workers_append(struct workers *pool, struct job *job, int64_t now_ns,
               bool quick)
{
    struct queue *queue = quick ? &pool->quick : &pool->jobs;

    job->since_ns = now_ns;
    job->number = pool->pushed++;
    job->quick = quick;
    job->next = NULL;
    job->link = queue->last;
    *queue->last = job;
    queue->last = &job->next;
    if (!queue->fresh)
        queue->fresh = job;
    pool->queued++;
}

void
workers_take_out(struct workers *pool, struct job *job)
{
    struct queue *queue = job->quick ? &pool->quick : &pool->jobs;

    if (queue->fresh == job)
        queue->fresh = job->next;
    *job->link = job->next;
    if (job->next)
        job->next->link = job->link;
    else
        queue->last = job->link;
    job->next = NULL;
    job->link = NULL;
    pool->queued--;
}

struct job *
workers_oldest(const struct workers *pool)
{
    struct job *job = pool->jobs.first, *quick = pool->quick.first;

    return !job || (quick && quick->number < job->number) ? quick : job;
}

bool
workers_oldest_waits_long(const struct workers *pool, int64_t now_ns)
{
    const struct job *oldest = workers_oldest(pool);

    return oldest && now_ns - oldest->since_ns > PATIENCE_NS;
}

bool
workers_is_stuck(const struct workers *pool, int64_t now_ns)
{
    return workers_oldest_waits_long(pool, now_ns) &&
           now_ns - pool->moved_ns > PATIENCE_NS;
}

bool
workers_has_room(const struct workers *pool)
{
    return pool->running < pool->max_running;
}

/* --- What is kept back --- */

void
workers_hand_over(struct worker *worker)
{
    void *kept = atomic_exchange(&worker->kept, NULL);

    if (kept)
        worker->pool->let_go(kept);
}

static bool
is_long_and_keeps(const struct worker *worker, int64_t now_ns)
{
    return now_ns - worker->since_ns > PATIENCE_NS &&
           atomic_load(&worker->kept);
}

struct worker *
workers_find_long_job(struct workers *pool, int64_t now_ns)
{
    for (unsigned i = 0; i < pool->count; i++)
        if (is_long_and_keeps(&pool->worker[i], now_ns))
            return &pool->worker[i];
    for (unsigned i = 0; i < GUESTS; i++)
        if (is_long_and_keeps(&pool->guest[i], now_ns))
            return &pool->guest[i];
    return NULL;
}

bool
workers_here(void)
{
    return here != NULL;
}

void
workers_enter(struct worker *self)
{
    here = self;
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
    workers_hand_over(here);
}

void
workers_will_block(void)
{
    if (!here)
        return;
    workers_hand_over(here);
    if (here->lead)
        lead_relieve(here->lead);
    if (here->host)
        workers_tell_host(here);
}

/* --- One job --- */

/* Between two jobs. */
static void
hand_over_in_time(struct worker *self, int64_t now_ns)
{
    bool keeps = atomic_load(&self->kept) != NULL;

    if (keeps && now_ns - self->clean_ns <= PATIENCE_NS)
        return;
    self->clean_ns = now_ns;
    if (keeps)
        workers_hand_over(self);
}

/* Jobs of one kind end on several threads: one of them may go uncounted. */
static void
note_took(struct job_kind *kind, int64_t took_ns)
{
    int64_t mean_ns =
        atomic_load_explicit(&kind->mean_ns, memory_order_relaxed);

    if (took_ns > TOOK_MAX_NS)
        took_ns = TOOK_MAX_NS;
    atomic_store_explicit(&kind->mean_ns,
                          mean_ns + (took_ns - mean_ns) / MEAN_OF,
                          memory_order_relaxed);
}

/* Returns the time; of a job that has read it behind the author's code, what it
 * was there. */
static int64_t
run_held(struct job *job, int64_t now_ns)
{
    const struct idem_clock *clock = clock_held();

    clock_hold_at(now_ns);
    job->run(job);
    now_ns = clock->monotonic_ns(clock);
    clock_let_go();
    return now_ns;
}

int64_t
workers_run(struct workers *pool, struct worker *self, struct job *job,
            int64_t now_ns)
{
    struct job_kind *kind = job->kind;
    int64_t end_ns;

    workers_take_out(pool, job);
    if (self->took_ns > SHORT_NS && workers_oldest_waits_long(pool, now_ns))
        workers_wake_one(pool, now_ns);
    pool->pops++;
    pool->running++;
    pool->moved_ns = now_ns;
    self->since_ns = now_ns;
    self->works = true;
    pthread_mutex_unlock(&pool->lock);
    hand_over_in_time(self, now_ns);
    end_ns = run_held(job, now_ns);
    self->took_ns = end_ns - now_ns;
    if (kind)
        note_took(kind, self->took_ns);
    pthread_mutex_lock(&pool->lock);
    self->works = false;
    pool->running--;
    return end_ns;
}
