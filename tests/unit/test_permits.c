/* Permits under many threads: never more out than there are, nobody is
 * forgotten in a line. */
#include "support.h"

#include "permits.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#define THREADS 8
#define ROUNDS 4000
#define LIMIT 3
#define METHOD_LIMIT 2

static struct permits permits;
static atomic_uint out, out_of_narrow, most, most_of_narrow, turned_away;

static const struct idem_method wide = {.name = "Wide"};
static const struct idem_method narrow = {.name = "Narrow"};
static const struct idem_limit_policy any = {0};
static const struct idem_limit_policy few = {.max_in_flight = METHOD_LIMIT,
                                             .max_waiting = 2};

struct caller {
    struct permit permit; /* first */
    sem_t called;
    unsigned number;
};

static void
called(struct permit *permit)
{
    sem_post(&((struct caller *)permit)->called);
}

static void
note_most(atomic_uint *highest, unsigned now)
{
    unsigned seen = atomic_load(highest);

    while (now > seen && !atomic_compare_exchange_weak(highest, &seen, now))
        continue;
}

/* With a permit. */
static void
work(bool is_narrow)
{
    note_most(&most, atomic_fetch_add(&out, 1) + 1);
    if (is_narrow)
        note_most(&most_of_narrow, atomic_fetch_add(&out_of_narrow, 1) + 1);
    sched_yield();
    if (is_narrow)
        atomic_fetch_sub(&out_of_narrow, 1);
    atomic_fetch_sub(&out, 1);
}

/* Every seventh that is in line gives up. */
static bool
wait_in_line(struct caller *caller, unsigned round)
{
    if (round % 7 == 0 && permits_withdraw(&permits, &caller->permit))
        return false;
    while (sem_wait(&caller->called) != 0)
        continue;
    return true;
}

static void
call(struct caller *caller, unsigned round)
{
    bool is_narrow = (caller->number + round) % 3 == 0;
    struct permit_wish wish = {.method = is_narrow ? &narrow : &wide,
                               .policy = is_narrow ? &few : &any,
                               .server = true,
                               .wait = round % 5 != 0};
    enum permit_take take;

    memset(&caller->permit, 0, sizeof caller->permit);
    caller->permit.called = called;
    take = permits_take(&permits, &caller->permit, &wish);
    if (take == PERMIT_NO_ROOM) {
        atomic_fetch_add(&turned_away, 1);
        return;
    }
    if (take == PERMIT_IN_LINE && !wait_in_line(caller, round))
        return;
    work(is_narrow);
    permits_end(&permits, &caller->permit, 0);
}

static void *
run(void *with)
{
    struct caller *caller = with;

    for (unsigned round = 0; round < ROUNDS; round++)
        call(caller, round);
    return NULL;
}

static void
never_are_more_out_than_there_are(void **state)
{
    struct caller callers[THREADS];
    pthread_t threads[THREADS];

    (void)state;
    permits_init(&permits, 0, LIMIT, 4);
    for (unsigned i = 0; i < THREADS; i++) {
        callers[i].number = i;
        sem_init(&callers[i].called, 0, 0);
        assert_int_equal(pthread_create(&threads[i], NULL, run, &callers[i]),
                         0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sem_destroy(&callers[i].called);
    }
    assert_in_range(most, 1, LIMIT);
    assert_in_range(most_of_narrow, 1, METHOD_LIMIT);
    assert_int_equal(permits_waiting(&permits), 0);
    assert_int_equal(atomic_load(&permits.in_line), 0);
    permits_fini(&permits);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_are_more_out_than_there_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
