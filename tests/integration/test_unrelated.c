/* Issue 3: very many duplicates wait for one slow call, on the server that runs
 * it and on another one, and hold up nobody else (semantics.md 3.2).
 *
 *    test_unrelated [DUPLICATES]      1,000 by default */
#include "once_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idem/clock.h>

#define OTHERS 40
#define LIMIT_MS 100

static unsigned duplicates = 1000;

struct tally {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned over, wrong;
};

static void
note(struct idem_call *call, const effects_add_reply *reply,
     const struct idem_outcome *outcome)
{
    struct tally *tally = idem_call_user(call);

    pthread_mutex_lock(&tally->lock);
    tally->over++;
    tally->wrong += outcome->status != IDEM_OK || reply->number != 1;
    pthread_cond_signal(&tally->changed);
    pthread_mutex_unlock(&tally->lock);
}

static void
start_one(struct idem_channel *channel, struct tally *tally)
{
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    const struct idem_call_options options = {
        .key = "slow", .user = tally, .timeout_ms = 120000};

    request.amount = 7;
    idem_call_release(effects_add_async(channel, &request, &options, note));
}

static void
await_all(struct tally *tally, unsigned n)
{
    pthread_mutex_lock(&tally->lock);
    while (tally->over < n)
        pthread_cond_wait(&tally->changed, &tally->lock);
    pthread_mutex_unlock(&tally->lock);
}

static int
compare(const void *a, const void *b)
{
    const double *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

/* The median: the machine may be busy with something else for a moment. */
static double
time_others(struct stage *stage, const char *name, stage_call_fn *call)
{
    const struct idem_clock *clock = idem_clock_system();
    double ms[OTHERS];

    for (int i = 0; i < OTHERS; i++) {
        char key[32];
        int64_t since_ns;
        struct called called;

        snprintf(key, sizeof(key), "%s-%d", name, i);
        since_ns = clock->monotonic_ns(clock);
        effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
        request.amount = 1;
        called = stage_call(stage, call, key, &request);
        ms[i] = (double)(clock->monotonic_ns(clock) - since_ns) / 1e6;
        assert_int_equal(called.status, IDEM_OK);
        called_free(&called);
    }
    qsort(ms, OTHERS, sizeof(ms[0]), compare);
    print_message("%s: median %.1f ms, longest %.1f ms\n", name, ms[OTHERS / 2],
                  ms[OTHERS - 1]);
    return ms[OTHERS / 2];
}

static void
others_are_answered_while_duplicates_wait(void **state)
{
    struct stage *stage = *state;
    struct tally tally = {.lock = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER};

    stage->effects.held_amount = 7;
    effects_hold(&stage->effects);
    start_one(stage->channels[0], &tally);
    effects_await(&stage->effects, 1);
    for (unsigned i = 0; i < duplicates; i++)
        start_one(stage->channels[i % stage->n], &tally);
    stage_await_attached(stage, 0, duplicates / stage->n);
    if (stage->n > 1)
        stage_await_attached(stage, 1, duplicates / 2 - 1);
    assert_true(time_others(stage, "transaction", effects_add) < LIMIT_MS);
    assert_true(time_others(stage, "group", effects_add_grouped) < LIMIT_MS);
    assert_true(time_others(stage, "statement", effects_add_stated) < LIMIT_MS);
    assert_true(time_others(stage, "leased", effects_push) < LIMIT_MS);
    assert_int_equal(tally.over, 0);
    effects_open(&stage->effects);
    await_all(&tally, duplicates + 1);
    assert_int_equal(tally.wrong, 0);
    assert_int_equal(stage_effects(stage), 1 + 3 * OTHERS);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            others_are_answered_while_duplicates_wait, stage_both, stage_down),
    };

    if (argc > 1)
        duplicates = (unsigned)strtoul(argv[1], NULL, 10) / 2 * 2;
    return cmocka_run_group_tests(tests, stage_servers_up, stage_servers_down);
}
