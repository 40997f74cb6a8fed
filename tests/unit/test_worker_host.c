#include "support.h"

#include "worker.h"

#include <idem/call.h>

#include <pthread.h>
#include <string.h>

/* The test's thread lends itself to a pool (decision 55). A worker takes what
 * has waited for long, and on a busy machine that may be any job: each story is
 * told until the host has had its job itself. */

struct world {
    struct idem_host host; /* first: a host is its world */
    struct workers *pool;
    struct job_kind kind;
    struct job first, second;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    pthread_t home; /* the host's thread */
    bool open;      /* the gate, at which the first job waits at home */
    bool unmoved;   /* the host, when it is told: else it opens the gate */
    unsigned told, ran;
    bool first_at_home;
    pthread_t second_by;
};

static void
change(struct world *w, unsigned *count, bool opens)
{
    pthread_mutex_lock(&w->lock);
    w->open = w->open || opens;
    (*count)++;
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
stuck(struct idem_host *host)
{
    struct world *w = (struct world *)host;

    change(w, &w->told, !w->unmoved);
}

static bool
is_home(const struct world *w)
{
    return pthread_equal(pthread_self(), w->home);
}

static void
just_run(struct job *job)
{
    struct world *w =
        (struct world *)((char *)job - offsetof(struct world, first));

    w->first_at_home = is_home(w);
    change(w, &w->ran, true);
}

static void
pass_gate(struct job *job)
{
    struct world *w =
        (struct world *)((char *)job - offsetof(struct world, first));

    w->first_at_home = is_home(w);
    pthread_mutex_lock(&w->lock);
    while (w->first_at_home && !w->open)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    change(w, &w->ran, true);
}

static void
say_that_it_blocks(struct job *job)
{
    struct world *w =
        (struct world *)((char *)job - offsetof(struct world, first));

    w->first_at_home = is_home(w);
    workers_will_block();
    if (w->first_at_home)
        assert_int_equal(w->told, 1);
    change(w, &w->ran, true);
}

static void
run_second(struct job *job)
{
    struct world *w =
        (struct world *)((char *)job - offsetof(struct world, second));

    w->second_by = pthread_self();
    change(w, &w->ran, true);
}

static void
begin(struct world *w, void (*run)(struct job *job))
{
    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->host.stuck = stuck;
    w->home = pthread_self();
    w->first = (struct job){.run = run, .kind = &w->kind};
    w->second = (struct job){.run = run_second, .kind = &w->kind};
    w->pool = workers_new(3, 10);
    assert_non_null(w->pool);
}

static void
end(struct world *w)
{
    workers_free(w->pool);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

static void
push_and_run(struct world *w, struct job *job)
{
    workers_lend(&w->host);
    assert_true(workers_push(w->pool, job));
    workers_run_lent();
}

static void
a_host_runs_its_short_jobs_itself(void **state)
{
    struct world w;
    bool at_home;

    (void)state;
    do {
        begin(&w, just_run);
        push_and_run(&w, &w.first);
        await(&w, &w.ran, 1);
        at_home = w.first_at_home;
        end(&w);
        assert_int_equal(w.told, 0);
    } while (!at_home);
}

static void
a_job_of_a_kind_that_was_long_is_not_the_hosts(void **state)
{
    struct world w;

    (void)state;
    begin(&w, just_run);
    atomic_store(&w.kind.mean_ns, 900000);
    push_and_run(&w, &w.first);
    await(&w, &w.ran, 1);
    assert_false(w.first_at_home);
    end(&w);
}

/* The job waits for what the host does when it is told. */
static void
a_host_is_told_once_of_a_job_that_is_long(void **state)
{
    struct world w;
    bool at_home;

    (void)state;
    do {
        begin(&w, pass_gate);
        push_and_run(&w, &w.first);
        await(&w, &w.ran, 1);
        at_home = w.first_at_home;
        end(&w);
        assert_int_equal(w.told, at_home ? 1 : 0);
    } while (!at_home);
}

static void
a_job_that_will_block_tells_the_host_first(void **state)
{
    struct world w;
    bool at_home;

    (void)state;
    do {
        begin(&w, say_that_it_blocks);
        push_and_run(&w, &w.first);
        await(&w, &w.ran, 1);
        at_home = w.first_at_home;
        end(&w);
    } while (!at_home);
}

/* The first job waits for it: it is run by a worker. */
/* Which opens the gate. */
static void
what_waits_behind_a_job_that_is_long_goes_to_a_worker(void **state)
{
    struct world w;
    bool at_home;

    (void)state;
    do {
        begin(&w, pass_gate);
        w.unmoved = true;
        workers_lend(&w.host);
        w.first.next = &w.second;
        assert_null(workers_push_all(w.pool, &w.first));
        workers_run_lent();
        await(&w, &w.ran, 2);
        at_home = w.first_at_home;
        if (at_home)
            assert_false(pthread_equal(w.second_by, w.home));
        end(&w);
    } while (!at_home);
}

static void *
host_too(void *with)
{
    struct world *w = with;

    workers_lend(&w->host);
    assert_true(workers_push(w->pool, &w->second));
    workers_run_lent();
    return NULL;
}

struct out {
    struct world world; /* first: as the jobs expect */
    pthread_t other;
};

/* At home: another thread would be a host meanwhile. */
static void
start_the_other(struct job *job)
{
    struct world *w =
        (struct world *)((char *)job - offsetof(struct world, first));
    struct out *out = (struct out *)w;

    w->first_at_home = is_home(w);
    assert_int_equal(pthread_create(&out->other, NULL, host_too, w), 0);
    if (w->first_at_home)
        await(w, &w->ran, 1);
    change(w, &w->ran, true);
}

static void
two_threads_are_not_hosts_of_one_pool_at_once(void **state)
{
    struct out out;
    struct world *w = &out.world;
    bool at_home;

    (void)state;
    do {
        begin(w, start_the_other);
        push_and_run(w, &w->first);
        await(w, &w->ran, 2);
        pthread_join(out.other, NULL);
        at_home = w->first_at_home;
        if (at_home)
            assert_false(pthread_equal(w->second_by, out.other));
        end(w);
    } while (!at_home);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_runs_its_short_jobs_itself),
        cmocka_unit_test(a_job_of_a_kind_that_was_long_is_not_the_hosts),
        cmocka_unit_test(a_host_is_told_once_of_a_job_that_is_long),
        cmocka_unit_test(a_job_that_will_block_tells_the_host_first),
        cmocka_unit_test(what_waits_behind_a_job_that_is_long_goes_to_a_worker),
        cmocka_unit_test(two_threads_are_not_hosts_of_one_pool_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
