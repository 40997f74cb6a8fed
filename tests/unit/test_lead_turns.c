#include "support.h"

#include "lead.h"
#include "worker.h"

#include <pthread.h>
#include <string.h>

#define WORLDS_MAX 100

/* A loop of two threads whose leader runs, step by step, what the test asks
 * for; and a pool whose guest it is. */

struct world {
    struct lead lead;
    pthread_t threads[2];
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    void (*next)(struct world *w); /* the leader's next step */
    bool over;
    unsigned led;         /* times that a thread began to lead */
    pthread_t leader;     /* the last one that did */
    bool open;            /* the gate */
    unsigned inside, ran; /* jobs at the gate, and behind it */
    pthread_t runner;     /* of the last job */
    unsigned order[2];    /* of the jobs, by number */

    struct workers *pool;
    struct job_kind kind, long_kind;
    struct job jobs[2];
};

static struct world world;

static void
change(struct world *w)
{
    pthread_cond_broadcast(&w->changed);
}

static void
await(struct world *w, const unsigned *count, unsigned at_least)
{
    pthread_mutex_lock(&w->lock);
    while (*count < at_least)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

/* One step. False: the world ends. */
static bool
lead_on(struct world *w)
{
    void (*step)(struct world *);

    pthread_mutex_lock(&w->lock);
    while (!w->next && !w->over)
        pthread_cond_wait(&w->changed, &w->lock);
    step = w->next;
    w->next = NULL;
    change(w);
    pthread_mutex_unlock(&w->lock);
    if (step)
        step(w);
    return step != NULL;
}

static void *
run(void *with)
{
    struct world *w = with;
    bool goes_on = true;

    while (goes_on) {
        lead_await(&w->lead);
        pthread_mutex_lock(&w->lock);
        w->led++;
        w->leader = pthread_self();
        change(w);
        pthread_mutex_unlock(&w->lock);
        do
            goes_on = lead_on(w);
        while (goes_on && (!lead_has_behind() || lead_run_behind(&w->lead)));
    }
    /* The other one ends too. */
    pthread_mutex_lock(&w->lead.lock);
    w->lead.vacant = true;
    pthread_cond_signal(&w->lead.vacancy);
    pthread_mutex_unlock(&w->lead.lock);
    return NULL;
}

static void
ask(struct world *w, void (*step)(struct world *w))
{
    pthread_mutex_lock(&w->lock);
    while (w->next)
        pthread_cond_wait(&w->changed, &w->lock);
    w->next = step;
    change(w);
    pthread_mutex_unlock(&w->lock);
}

static void
pass_gate(struct job *job)
{
    struct world *w = &world;

    workers_will_block();
    pthread_mutex_lock(&w->lock);
    w->runner = pthread_self();
    w->order[w->inside++] = (unsigned)(job - w->jobs);
    change(w);
    while (!w->open)
        pthread_cond_wait(&w->changed, &w->lock);
    w->ran++;
    change(w);
    pthread_mutex_unlock(&w->lock);
}

static struct world *
begin(unsigned workers)
{
    struct world *w = &world;

    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    lead_init(&w->lead, 0);
    w->pool = workers_new(workers, 10);
    assert_non_null(w->pool);
    for (unsigned i = 0; i < 2; i++) {
        w->jobs[i] = (struct job){.run = pass_gate, .kind = &w->kind};
        assert_int_equal(pthread_create(&w->threads[i], NULL, run, w), 0);
    }
    atomic_store(&w->lead.pair, true);
    return w;
}

static void
set_gate(struct world *w, bool open)
{
    pthread_mutex_lock(&w->lock);
    w->open = open;
    change(w);
    pthread_mutex_unlock(&w->lock);
}

static void
end(struct world *w)
{
    pthread_mutex_lock(&w->lock);
    w->over = true;
    change(w);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(w->threads[i], NULL);
    workers_free(w->pool);
    lead_fini(&w->lead);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

static void
push_first(struct world *w)
{
    assert_true(workers_push(w->pool, &w->jobs[0]));
}

static void
push_second(struct world *w)
{
    assert_true(workers_push(w->pool, &w->jobs[1]));
}

static void
push_and_withdraw(struct world *w)
{
    push_first(w);
    push_second(w);
    assert_true(workers_withdraw(w->pool, &w->jobs[0]));
}

/* A world whose leader waits at the gate in the first job. A worker takes what
 * has waited for a millisecond, on a busy machine also from a leader that did
 * not run: then another world. */
static struct world *
begin_in_a_job(pthread_t *leader)
{
    for (unsigned i = 0; i < WORLDS_MAX; i++) {
        struct world *w = begin(2);

        await(w, &w->led, 1);
        *leader = w->leader;
        ask(w, push_first);
        await(w, &w->inside, 1);
        if (pthread_equal(w->runner, *leader))
            return w;
        set_gate(w, true);
        await(w, &w->ran, 1);
        end(w);
    }
    fail_msg("no leader ran its job in %d worlds", WORLDS_MAX);
    return NULL;
}

static void
a_leader_that_will_block_is_relieved_by_the_other_thread(void **state)
{
    pthread_t first;
    struct world *w = begin_in_a_job(&first);

    (void)state;
    await(w, &w->led, 2);
    assert_false(pthread_equal(w->leader, first));
    set_gate(w, true);
    await(w, &w->ran, 1);
    end(w);
}

/* The leader lends itself to nobody while the other thread is out. */
static void
what_is_pushed_meanwhile_goes_to_a_worker(void **state)
{
    pthread_t first;
    struct world *w = begin_in_a_job(&first);

    (void)state;
    await(w, &w->led, 2);
    ask(w, push_second);
    await(w, &w->inside, 2);
    assert_false(pthread_equal(w->runner, w->threads[0]));
    assert_false(pthread_equal(w->runner, w->threads[1]));
    set_gate(w, true);
    await(w, &w->ran, 2);
    end(w);
}

static void
a_job_of_a_kind_that_was_long_goes_to_a_worker(void **state)
{
    struct world *w = begin(2);

    (void)state;
    set_gate(w, true);
    atomic_store(&w->kind.mean_ns, 900000);
    ask(w, push_first);
    await(w, &w->ran, 1);
    assert_false(pthread_equal(w->runner, w->threads[0]));
    assert_false(pthread_equal(w->runner, w->threads[1]));
    assert_int_equal(w->led, 1);
    end(w);
    assert_true(atomic_load(&w->kind.mean_ns) < 900000);
}

static void
a_job_that_waits_for_the_guest_is_withdrawn(void **state)
{
    struct world *w = begin(1);

    (void)state;
    set_gate(w, true);
    ask(w, push_and_withdraw);
    await(w, &w->ran, 1);
    end(w);
    assert_int_equal(w->ran, 1);
}

static void
push_short_and_long(struct world *w)
{
    w->jobs[1].kind = &w->long_kind;
    w->jobs[0].next = &w->jobs[1];
    assert_null(workers_push_all(w->pool, &w->jobs[0]));
}

/* The only place is the guest's or the worker's, as it comes. */
static void
a_long_job_does_not_overtake_the_short_one_before_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        struct world *w = begin(1);

        set_gate(w, true);
        atomic_store(&w->long_kind.mean_ns, 900000);
        ask(w, push_short_and_long);
        await(w, &w->ran, 2);
        assert_int_equal(w->order[0], 0);
        assert_int_equal(w->order[1], 1);
        end(w);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_leader_that_will_block_is_relieved_by_the_other_thread),
        cmocka_unit_test(what_is_pushed_meanwhile_goes_to_a_worker),
        cmocka_unit_test(a_job_of_a_kind_that_was_long_goes_to_a_worker),
        cmocka_unit_test(a_job_that_waits_for_the_guest_is_withdrawn),
        cmocka_unit_test(a_long_job_does_not_overtake_the_short_one_before_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
