#include "support.h"

#include "worker.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

/* A gate that jobs wait at, and a count of what has happened. */
struct world {
    struct workers *pool;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    unsigned begun, done, let_go, told;
    unsigned order[64];
};

struct task {
    struct job job;
    struct world *world;
    unsigned number;
    bool blocks, keeps;
};

static void
run(struct job *job)
{
    struct task *task = (struct task *)job;
    struct world *w = task->world;

    pthread_mutex_lock(&w->lock);
    if (w->begun < 64)
        w->order[w->begun] = task->number;
    w->begun++;
    pthread_cond_broadcast(&w->changed);
    while (task->blocks && !w->open)
        pthread_cond_wait(&w->changed, &w->lock);
    if (task->keeps) {
        void *before = workers_keep(w);

        IDEM_ASSERT(!before || before == w);
    }
    w->done++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void
let_go(void *kept)
{
    struct world *w = kept;

    pthread_mutex_lock(&w->lock);
    w->let_go++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void
await(struct world *w, const unsigned *count, unsigned at_least)
{
    pthread_mutex_lock(&w->lock);
    while (*count < at_least)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static void
set_gate(struct world *w, bool open)
{
    pthread_mutex_lock(&w->lock);
    w->open = open;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void
begin(struct world *w, unsigned threads, unsigned max_queued)
{
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->pool = workers_new(threads, max_queued);
    assert_non_null(w->pool);
}

static void
end(struct world *w)
{
    workers_free(w->pool);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

static struct task
task_of(struct world *w, unsigned number, bool blocks)
{
    return (struct task){{.run = run}, w, number, blocks, false};
}

static void
one_worker_runs_jobs_in_their_order(void **state)
{
    struct world w = {0};
    struct task tasks[20];

    (void)state;
    begin(&w, 1, 100);
    for (unsigned i = 0; i < 20; i++) {
        tasks[i] = task_of(&w, i, i == 0);
        assert_true(workers_push(w.pool, &tasks[i].job));
    }
    set_gate(&w, true);
    await(&w, &w.done, 20);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(w.order[i], i);
    end(&w);
}

/* Nobody pushes or pops meanwhile: the look-out finds it. */
static void
a_job_behind_a_handler_that_blocks_gets_another_worker(void **state)
{
    struct world w = {0};
    struct task blocked[3], free_task = task_of(&w, 9, false);

    (void)state;
    begin(&w, 4, 100);
    for (unsigned i = 0; i < 3; i++) {
        blocked[i] = task_of(&w, i, true);
        assert_true(workers_push(w.pool, &blocked[i].job));
    }
    assert_true(workers_push(w.pool, &free_task.job));
    await(&w, &w.done, 1);
    await(&w, &w.begun, 4);
    set_gate(&w, true);
    await(&w, &w.done, 4);
    end(&w);
}

static void
after_a_long_rest_a_stuck_job_is_still_found(void **state)
{
    struct world w = {0};
    struct task first = task_of(&w, 0, false), stuck = task_of(&w, 1, true),
                second = task_of(&w, 2, false);

    (void)state;
    begin(&w, 2, 100);
    assert_true(workers_push(w.pool, &first.job));
    await(&w, &w.done, 1);
    for (unsigned round = 0; round < 3; round++) {
        while (!workers_rest(w.pool))
            sched_yield();
        set_gate(&w, false);
        assert_true(workers_push(w.pool, &stuck.job));
        await(&w, &w.begun, 2 + 2 * round);
        assert_true(workers_push(w.pool, &second.job));
        await(&w, &w.begun, 3 + 2 * round);
        set_gate(&w, true);
        await(&w, &w.done, 3 + 2 * round);
    }
    end(&w);
}

static void
a_full_queue_refuses(void **state)
{
    struct world w = {0};
    struct task running = task_of(&w, 0, true);
    struct task tasks[3];

    (void)state;
    begin(&w, 1, 2);
    assert_true(workers_push(w.pool, &running.job));
    await(&w, &w.begun, 1);
    for (unsigned i = 0; i < 3; i++) {
        tasks[i] = task_of(&w, i + 1, false);
        assert_true(workers_push(w.pool, &tasks[i].job) == (i < 2));
    }
    set_gate(&w, true);
    await(&w, &w.done, 3);
    end(&w);
}

/* Case B047: what nobody has begun can be taken out. */
static void
a_job_is_withdrawn_until_it_is_begun(void **state)
{
    struct world w = {0};
    struct task running = task_of(&w, 0, true), a = task_of(&w, 1, false),
                b = task_of(&w, 2, false);

    (void)state;
    begin(&w, 1, 10);
    assert_false(workers_withdraw(w.pool, &a.job));
    assert_true(workers_push(w.pool, &running.job));
    await(&w, &w.begun, 1);
    assert_true(workers_push(w.pool, &a.job));
    assert_true(workers_push(w.pool, &b.job));
    assert_true(workers_withdraw(w.pool, &b.job));
    assert_true(workers_withdraw(w.pool, &a.job));
    assert_false(workers_withdraw(w.pool, &a.job));
    assert_false(workers_withdraw(w.pool, &running.job));
    assert_true(workers_push(w.pool, &b.job));
    set_gate(&w, true);
    await(&w, &w.done, 2);
    assert_int_equal(w.order[1], 2);
    end(&w);
}

/* With the pool's lock; the world's comes after it. */
static void
waits(struct job *job)
{
    struct world *w = ((struct task *)job)->world;

    pthread_mutex_lock(&w->lock);
    w->told++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* The last one is told behind the others, so it tells that they were told once.
 */
static void
a_job_that_waits_is_told_so_once(void **state)
{
    struct world w = {0};
    struct task running = task_of(&w, 0, true), a = task_of(&w, 1, false),
                gone = task_of(&w, 2, false), b = task_of(&w, 3, false),
                last = task_of(&w, 4, false);

    (void)state;
    a.job.waits = gone.job.waits = b.job.waits = last.job.waits = waits;
    begin(&w, 1, 10);
    assert_true(workers_push(w.pool, &running.job));
    await(&w, &w.begun, 1);
    assert_true(workers_push(w.pool, &a.job));
    assert_true(workers_push(w.pool, &gone.job));
    assert_true(workers_push(w.pool, &b.job));
    await(&w, &w.told, 3);
    assert_true(workers_withdraw(w.pool, &gone.job));
    assert_true(workers_push(w.pool, &last.job));
    await(&w, &w.told, 4);
    set_gate(&w, true);
    await(&w, &w.done, 4);
    end(&w);
    assert_int_equal(w.told, 4);
}

static void
what_is_kept_is_let_go_after_the_last_job_of_a_run(void **state)
{
    struct world w = {0};
    struct task tasks[3];

    (void)state;
    begin(&w, 1, 10);
    workers_set_let_go(w.pool, let_go);
    for (unsigned i = 0; i < 3; i++) {
        tasks[i] = task_of(&w, i, false);
        tasks[i].keeps = true;
        assert_true(workers_push(w.pool, &tasks[i].job));
    }
    await(&w, &w.done, 3);
    await(&w, &w.let_go, 1);
    end(&w);
}

/* The only worker: nobody but the look-out can see it. */
static void
what_is_kept_is_let_go_while_the_next_job_blocks(void **state)
{
    struct world w = {0};
    struct task keeps = task_of(&w, 0, false), blocks = task_of(&w, 1, true);

    (void)state;
    begin(&w, 1, 10);
    workers_set_let_go(w.pool, let_go);
    keeps.keeps = true;
    keeps.job.next = &blocks.job;
    assert_null(workers_push_all(w.pool, &keeps.job));
    await(&w, &w.let_go, 1);
    assert_int_equal(w.done, 1);
    set_gate(&w, true);
    await(&w, &w.done, 2);
    end(&w);
    assert_int_equal(w.let_go, 1);
}

static void
free_runs_what_is_queued(void **state)
{
    struct world w = {0};
    struct task tasks[10];

    (void)state;
    begin(&w, 3, 10);
    for (unsigned i = 0; i < 10; i++) {
        tasks[i] = task_of(&w, i, false);
        assert_true(workers_push(w.pool, &tasks[i].job));
    }
    end(&w);
    assert_int_equal(w.done, 10);
}

#define PUSHERS 4
#define EACH 5000

static void *
push_many(void *arg)
{
    struct task *tasks = arg;

    for (unsigned i = 0; i < EACH; i++)
        while (!workers_push(tasks[i].world->pool, &tasks[i].job))
            sched_yield();
    return NULL;
}

static void
many_pushers_and_workers_lose_no_job(void **state)
{
    struct world w = {0};
    pthread_t threads[PUSHERS];
    struct task *tasks = calloc(PUSHERS * EACH, sizeof(*tasks));

    (void)state;
    begin(&w, 4, 50);
    for (unsigned i = 0; i < PUSHERS * EACH; i++)
        tasks[i] = task_of(&w, i, false);
    for (unsigned i = 0; i < PUSHERS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, push_many, tasks + i * EACH), 0);
    for (unsigned i = 0; i < PUSHERS; i++)
        pthread_join(threads[i], NULL);
    await(&w, &w.done, PUSHERS * EACH);
    end(&w);
    assert_int_equal(w.begun, PUSHERS * EACH);
    free(tasks);
}

/* One gate job occupies the only worker, so the rest is queued. */
static void
jobs_pushed_together_run_in_order_and_what_does_not_fit_comes_back(void **state)
{
    struct world w = {0};
    struct task tasks[6];
    struct job *left;

    (void)state;
    begin(&w, 1, 4);
    tasks[0] = task_of(&w, 0, true);
    assert_true(workers_push(w.pool, &tasks[0].job));
    await(&w, &w.begun, 1);
    for (unsigned i = 1; i < 6; i++)
        tasks[i] = task_of(&w, i, false);
    for (unsigned i = 1; i < 5; i++)
        tasks[i].job.next = &tasks[i + 1].job;
    left = workers_push_all(w.pool, &tasks[1].job);
    assert_ptr_equal(left, &tasks[5].job);
    assert_null(left->next);
    set_gate(&w, true);
    await(&w, &w.done, 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(w.order[i], i);
    end(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_worker_runs_jobs_in_their_order),
        cmocka_unit_test(
            a_job_behind_a_handler_that_blocks_gets_another_worker),
        cmocka_unit_test(after_a_long_rest_a_stuck_job_is_still_found),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(a_job_is_withdrawn_until_it_is_begun),
        cmocka_unit_test(
            jobs_pushed_together_run_in_order_and_what_does_not_fit_comes_back),
        cmocka_unit_test(a_job_that_waits_is_told_so_once),
        cmocka_unit_test(what_is_kept_is_let_go_after_the_last_job_of_a_run),
        cmocka_unit_test(what_is_kept_is_let_go_while_the_next_job_blocks),
        cmocka_unit_test(free_runs_what_is_queued),
        cmocka_unit_test(many_pushers_and_workers_lose_no_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
