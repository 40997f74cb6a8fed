/* One of three servers is killed, frozen, drained and started again, under
 * load: a keyed call that has time left succeeds, once; one without a key is
 * repeated only when it was not sent or was turned away (B031, B098; rpc 101).
 *
 *   test_three_servers [ROUNDS] */
#include "support.h"

#include "child.h"
#include "effects.h"
#include "loopback.h"
#include "postgres.h"
#include "tempdir.h"

#include <idem/postgres.h>
#include <idem/standard.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define SERVERS 3
#define CALLERS 6       /* every other one without keys */
#define CALLS_MAX 50000 /* of one caller: more than it comes to */
#define HOLD_MS 3       /* so that some are in the middle */
#define STEP 40         /* calls that are told between two blows */
#define PATIENCE_MS 60000
#define TIME_LEFT_MS 120000 /* of each call: more than all blows take */

static unsigned rounds = 2;

struct seen {
    unsigned number; /* over all callers */
    struct idem_outcome outcome;
};

struct caller {
    struct site *site;
    pthread_t thread;
    bool keyed;
    unsigned at, n; /* its first number */
    struct seen *seen;
};

struct site {
    struct tempdir dir;
    char push_log[128], logs[SERVERS][128], addresses[SERVERS][64];
    struct postgres *postgres;
    pid_t servers[SERVERS];
    struct idem_channel *channel;
    struct caller callers[CALLERS];
    atomic_uint told, wanted;
    atomic_bool over;
};

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

/* --- Servers --- */

static void
start_server(struct site *site, unsigned i)
{
    const char *const words[] = {EFFECTS_SERVER,
                                 site->addresses[i],
                                 site->push_log,
                                 "postgres",
                                 postgres_conninfo(site->postgres),
                                 NULL};
    const struct child_options options = {.log = site->logs[i]};

    site->servers[i] = child_serve(&options, words);
    if (!site->servers[i]) {
        child_show(site->logs[i]);
        fail_msg("server %u does not listen", i);
    }
}

/* It drains, and ends by itself. */
static void
end_server(struct site *site, unsigned i)
{
    int status = child_stop(site->servers[i], SIGTERM);

    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        child_show(site->logs[i]);
        fail_msg("server %u: wait status %d", i, status);
    }
}

/* Silence of a connection ends it soon: that is how a frozen one is noticed. */
static void
open_channel(struct site *site)
{
    const struct idem_channel_options options = {
        .balancer = IDEM_BALANCER_ROUND_ROBIN,
        .keepalive_ms = 500,
        .keepalive_timeout_ms = 2000,
    };
    struct idem_error err;
    char target[256];

    snprintf(target, sizeof target, "list://%s,%s,%s", site->addresses[0],
             site->addresses[1], site->addresses[2]);
    must(idem_client_open(&site->channel, target, &options, &err), &err);
}

static int
set_up(void **state)
{
    struct site *site = calloc(1, sizeof *site);
    struct idem_error err;

    tempdir_open(&site->dir);
    tempdir_file(&site->dir, "pushes", site->push_log, sizeof site->push_log);
    site->postgres = postgres_start(NULL);
    must(idem_postgres_migrate(postgres_conninfo(site->postgres), NULL, &err),
         &err);
    postgres_sql(site->postgres, EFFECTS_SCHEMA);
    for (unsigned i = 0; i < SERVERS; i++) {
        char name[16];

        snprintf(name, sizeof name, "log-%u", i);
        tempdir_file(&site->dir, name, site->logs[i], sizeof site->logs[i]);
        snprintf(site->addresses[i], sizeof site->addresses[i],
                 "tcp://127.0.0.1:%u", loopback_free_port());
        start_server(site, i);
    }
    open_channel(site);
    *state = site;
    return 0;
}

static int
tear_down(void **state)
{
    struct site *site = *state;

    idem_channel_close(site->channel);
    for (unsigned i = 0; i < SERVERS; i++)
        child_stop(site->servers[i], SIGKILL);
    postgres_free(site->postgres);
    tempdir_close(&site->dir);
    free(site);
    return 0;
}

/* --- Load --- */

static void
call_once(struct caller *caller, struct seen *seen)
{
    struct site *site = caller->site;
    char text[32];
    const struct idem_call_options options = {
        .key = caller->keyed ? text : NULL, .timeout_ms = TIME_LEFT_MS};
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    snprintf(text, sizeof text, "call-%u", seen->number);
    request.amount = 1;
    request.hold_ms = HOLD_MS;
    request.note = text;
    if (caller->keyed)
        effects_add(site->channel, &request, NULL, &options, &seen->outcome);
    else
        effects_note(site->channel, &request, NULL, &options, &seen->outcome);
}

static void *
call_on(void *with)
{
    struct caller *caller = with;

    while (!atomic_load(&caller->site->over) && caller->n < CALLS_MAX) {
        struct seen *seen = &caller->seen[caller->n];

        seen->number = caller->at + caller->n;
        call_once(caller, seen);
        caller->n++;
        atomic_fetch_add(&caller->site->told, 1);
    }
    return NULL;
}

static void
start_load(struct site *site)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        struct caller *caller = &site->callers[i];

        *caller =
            (struct caller){.site = site,
                            .keyed = i % 2 == 0,
                            .at = i * CALLS_MAX,
                            .seen = calloc(CALLS_MAX, sizeof(struct seen))};
        assert_non_null(caller->seen);
        assert_int_equal(pthread_create(&caller->thread, NULL, call_on, caller),
                         0);
    }
}

static void
end_load(struct site *site)
{
    atomic_store(&site->over, true);
    for (unsigned i = 0; i < CALLERS; i++)
        pthread_join(site->callers[i].thread, NULL);
}

static bool
enough_are_told(void *with)
{
    struct site *site = with;

    return atomic_load(&site->told) >= atomic_load(&site->wanted);
}

static void
await_calls(struct site *site, const char *when)
{
    atomic_store(&site->wanted, atomic_load(&site->told) + STEP);
    if (!child_wait_until(enough_are_told, site, PATIENCE_MS))
        fail_msg("%s: %u calls are told, not %u", when,
                 atomic_load(&site->told), atomic_load(&site->wanted));
}

/* --- Blows --- */

static void
kill_and_start(struct site *site, unsigned i)
{
    child_stop(site->servers[i], SIGKILL);
    await_calls(site, "one is killed");
    start_server(site, i);
    await_calls(site, "it is there again");
}

static void
freeze_and_thaw(struct site *site, unsigned i)
{
    kill(site->servers[i], SIGSTOP);
    await_calls(site, "one is frozen");
    kill(site->servers[i], SIGCONT);
    await_calls(site, "it goes on");
}

static void
drain_and_start(struct site *site, unsigned i)
{
    end_server(site, i);
    await_calls(site, "one is drained");
    start_server(site, i);
    await_calls(site, "it is there again");
}

/* --- What came of it --- */

static void
check_keyed(struct site *site)
{
    unsigned n = 0, repeated = 0;

    for (unsigned i = 0; i < CALLERS; i++) {
        const struct caller *caller = &site->callers[i];

        for (unsigned j = 0; caller->keyed && j < caller->n; j++, n++) {
            const struct idem_outcome *outcome = &caller->seen[j].outcome;

            if (outcome->status != IDEM_OK)
                fail_msg("a keyed call with time left: %s, %s, %s",
                         idem_status_name(outcome->status),
                         idem_stop_name(outcome->stop), outcome->message);
            repeated += outcome->attempts > 1;
        }
    }
    print_message("%u keyed calls, %u of several attempts\n", n, repeated);
    assert_true(repeated > 0); /* the blows hit some */
    assert_int_equal(
        postgres_sql(site->postgres, "SELECT count(*) FROM effects"), n);
    assert_int_equal(
        postgres_sql(site->postgres, "SELECT count(DISTINCT key) FROM effects"),
        n);
}

/* How often each number stands in the log. */
static unsigned char *
read_log(const struct site *site)
{
    unsigned char *times = calloc(CALLERS * CALLS_MAX, 1);
    FILE *log = fopen(site->push_log, "r");
    unsigned number;

    assert_non_null(times);
    assert_non_null(log);
    while (fscanf(log, "call-%u %*d\n", &number) == 1) {
        assert_true(number < CALLERS * CALLS_MAX);
        times[number]++;
    }
    assert_true(feof(log));
    fclose(log);
    return times;
}

static bool
may_have_run(const struct idem_outcome *outcome, unsigned times)
{
    switch (outcome->effect) {
    case IDEM_EFFECT_NOT_SENT:
    case IDEM_EFFECT_REFUSED:
        return times == 0;
    case IDEM_EFFECT_COMMITTED:
        return times == 1;
    case IDEM_EFFECT_ROLLED_BACK:
    case IDEM_EFFECT_REPLAYED:
        return false; /* its handler never says so, and it has no record */
    case IDEM_EFFECT_IN_DOUBT:
        return times <= 1;
    }
    return false;
}

static void
check_unkeyed(struct site *site)
{
    unsigned char *times = read_log(site);
    unsigned n = 0, doubts = 0;

    for (unsigned i = 0; i < CALLERS; i++) {
        const struct caller *caller = &site->callers[i];

        for (unsigned j = 0; !caller->keyed && j < caller->n; j++, n++) {
            const struct seen *seen = &caller->seen[j];

            doubts += seen->outcome.effect == IDEM_EFFECT_IN_DOUBT;
            if (!may_have_run(&seen->outcome, times[seen->number]))
                fail_msg("a call without a key ran %u times: %s, %s",
                         times[seen->number],
                         idem_effect_name(seen->outcome.effect),
                         seen->outcome.message);
        }
    }
    print_message("%u calls without a key, %u in doubt\n", n, doubts);
    free(times);
}

static void
one_of_three_servers_fails_in_every_way_under_load(void **state)
{
    struct site *site = *state;

    start_load(site);
    await_calls(site, "all are there");
    for (unsigned round = 0; round < rounds; round++) {
        kill_and_start(site, round % SERVERS);
        freeze_and_thaw(site, (round + 1) % SERVERS);
        drain_and_start(site, (round + 2) % SERVERS);
    }
    end_load(site);
    for (unsigned i = 0; i < SERVERS; i++) {
        end_server(site, i); /* what was late has run */
        site->servers[i] = 0;
    }
    check_keyed(site);
    check_unkeyed(site);
    for (unsigned i = 0; i < CALLERS; i++)
        free(site->callers[i].seen);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            one_of_three_servers_fails_in_every_way_under_load, set_up,
            tear_down),
    };

    if (argc > 1)
        rounds = (unsigned)strtoul(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
