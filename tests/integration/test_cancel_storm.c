/* B045: hedged calls to two servers of one authority, given up at random from
 * other threads than those that started them. Each is told once, and no key has
 * two effects, whatever the callers were told.
 *
 *   test_cancel_storm [CALLS [CALLERS]], 20,000 from 8 in the long form */
#include "once_stage.h"

#include "postgres.h"

#include <idem/call.h>
#include <idem/policy.h>
#include <idem/standard.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLERS_MAX 64
#define CANCELLERS 2
#define AT_ONCE 16 /* of one caller */
#define HEDGE                                                                  \
    "{\"methodConfig\": [{\"name\": [{}], \"hedgingPolicy\": {"                \
    "\"maxAttempts\": 3, \"hedgingDelay\": \"0.005s\","                        \
    " \"nonFatalStatusCodes\": [\"UNAVAILABLE\"]}}]}"

struct storm {
    struct idem_channel *channel;
    pthread_mutex_t lock; /* guards the rest but told in each */
    pthread_cond_t changed;
    struct cell {
        struct storm *storm;
        unsigned caller;
        struct idem_call *call; /* NULL: not started yet */
        atomic_uint told;
        enum idem_status status;
        enum idem_effect effect;
    } * cells;
    unsigned flying[CALLERS_MAX];
    unsigned told;
};

static struct storm storm;
static unsigned calls = 1200, callers = 4;

static void
tell(struct idem_call *call, const effects_add_reply *reply,
     const struct idem_outcome *outcome)
{
    struct cell *cell = idem_call_user(call);

    (void)reply;
    atomic_fetch_add(&cell->told, 1);
    pthread_mutex_lock(&storm.lock);
    cell->status = outcome->status;
    cell->effect = outcome->effect;
    storm.flying[cell->caller]--;
    storm.told++;
    pthread_cond_broadcast(&storm.changed);
    pthread_mutex_unlock(&storm.lock);
}

static void
start(unsigned i)
{
    struct cell *cell = &storm.cells[i];
    char key[32];
    const struct idem_call_options options = {
        .key = key, .timeout_ms = 60000, .user = cell};
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct idem_call *call;

    snprintf(key, sizeof key, "storm-%u", i);
    request.amount = 1;
    call = effects_add_async(storm.channel, &request, &options, tell);
    pthread_mutex_lock(&storm.lock);
    cell->call = call;
    pthread_cond_broadcast(&storm.changed);
    pthread_mutex_unlock(&storm.lock);
}

static void *
call_on(void *with)
{
    unsigned caller = *(const unsigned *)with;

    for (unsigned i = caller; i < calls; i += callers) {
        storm.cells[i].caller = caller;
        pthread_mutex_lock(&storm.lock);
        while (storm.flying[caller] >= AT_ONCE)
            pthread_cond_wait(&storm.changed, &storm.lock);
        storm.flying[caller]++;
        pthread_mutex_unlock(&storm.lock);
        start(i);
    }
    return NULL;
}

static struct idem_call *
await_started(unsigned i)
{
    struct idem_call *call;

    pthread_mutex_lock(&storm.lock);
    while (!storm.cells[i].call)
        pthread_cond_wait(&storm.changed, &storm.lock);
    call = storm.cells[i].call;
    pthread_mutex_unlock(&storm.lock);
    return call;
}

/* Two cancel some calls both, some one, some none. */
static void *
cancel_some(void *with)
{
    unsigned seed = *(const unsigned *)with + 1;

    for (unsigned i = 0; i < calls; i++) {
        struct idem_call *call = await_started(i);

        if (rand_r(&seed) % 3 == 0)
            idem_call_cancel(call);
    }
    return NULL;
}

static void
blow(void)
{
    unsigned numbers[CALLERS_MAX];
    pthread_t threads[CALLERS_MAX], cancellers[CANCELLERS];

    for (unsigned i = 0; i < CALLERS_MAX; i++)
        numbers[i] = i;
    for (unsigned i = 0; i < callers; i++)
        pthread_create(&threads[i], NULL, call_on, &numbers[i]);
    for (unsigned i = 0; i < CANCELLERS; i++)
        pthread_create(&cancellers[i], NULL, cancel_some, &numbers[i]);
    for (unsigned i = 0; i < callers; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < CANCELLERS; i++)
        pthread_join(cancellers[i], NULL);
    pthread_mutex_lock(&storm.lock);
    while (storm.told < calls)
        pthread_cond_wait(&storm.changed, &storm.lock);
    pthread_mutex_unlock(&storm.lock);
    for (unsigned i = 0; i < calls; i++)
        idem_call_release(storm.cells[i].call);
}

static void
open_storm(const struct stage *stage)
{
    const struct idem_policy_options policy = {.config_json = HEDGE,
                                               .ignore_environment = true};
    const struct idem_channel_options options = {
        .policy = &policy, .balancer = IDEM_BALANCER_ROUND_ROBIN};
    struct idem_error err;
    char target[160];

    memset(&storm, 0, sizeof storm);
    storm.cells = calloc(calls, sizeof *storm.cells);
    assert_non_null(storm.cells);
    pthread_mutex_init(&storm.lock, NULL);
    pthread_cond_init(&storm.changed, NULL);
    snprintf(target, sizeof target, "list://%s,%s",
             idem_server_address(stage->servers[0], 0),
             idem_server_address(stage->servers[1], 0));
    if (idem_client_open(&storm.channel, target, &options, &err))
        fail_msg("%s", err.message);
}

static unsigned
cells_that(bool (*are)(const struct cell *cell))
{
    unsigned n = 0;

    for (unsigned i = 0; i < calls; i++)
        n += are(&storm.cells[i]);
    return n;
}

static bool
was_told_once(const struct cell *cell)
{
    return atomic_load(&cell->told) == 1;
}

static bool
was_done(const struct cell *cell)
{
    return cell->status == IDEM_OK;
}

static bool
was_not_begun(const struct cell *cell)
{
    return cell->effect == IDEM_EFFECT_NOT_SENT ||
           cell->effect == IDEM_EFFECT_REFUSED;
}

static bool
was_given_up(const struct cell *cell)
{
    return cell->status == IDEM_CANCELLED;
}

static void
of_a_cancel_storm_each_call_is_told_once_and_no_key_acts_twice(void **state)
{
    struct stage *stage = *state;
    int64_t effects;

    open_storm(stage);
    blow();
    idem_channel_close(storm.channel);
    stage_rebuild(stage, NULL, NULL); /* what was given up is over as well */

    effects = stage_effects(stage);
    print_message("%u OK, %u given up, %u not begun, %d effects\n",
                  cells_that(was_done), cells_that(was_given_up),
                  cells_that(was_not_begun), (int)effects);
    assert_int_equal(cells_that(was_told_once), calls);
    assert_int_equal(cells_that(was_done) + cells_that(was_given_up), calls);
    assert_int_equal(
        postgres_sql(stage_postgres(),
                     "SELECT count(*) - count(DISTINCT key) FROM effects"),
        0);
    assert_true(effects >= cells_that(was_done));
    assert_true(effects <= calls - cells_that(was_not_begun));
    pthread_cond_destroy(&storm.changed);
    pthread_mutex_destroy(&storm.lock);
    free(storm.cells);
}

/* From 1 to most. */
static unsigned
number_of(const char *text, unsigned most)
{
    unsigned long number = strtoul(text, NULL, 10);

    return number < 1 ? 1 : number > most ? most : (unsigned)number;
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            of_a_cancel_storm_each_call_is_told_once_and_no_key_acts_twice,
            stage_both, stage_down),
    };

    if (argc > 1)
        calls = number_of(argv[1], 1000000);
    if (argc > 2)
        callers = number_of(argv[2], CALLERS_MAX);
    return cmocka_run_group_tests(tests, stage_servers_up, stage_servers_down);
}
