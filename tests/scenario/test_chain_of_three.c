/* A calls B, B calls C, each from inside its handler and each with an effect of
 * its own; B is killed with -9 in the middle of that, again and again. The keys
 * follow from one another, so that what runs again asks for the same: every
 * call that has time left succeeds, with one effect at each.
 *
 *   test_chain_of_three [KILLS] */
#include "support.h"

#include "child.h"
#include "loopback.h"
#include "postgres.h"
#include "relay.idem.h"
#include "tempdir.h"

#include <idem/postgres.h>
#include <idem/standard.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define LINKS 3
#define MIDDLE 1
#define CALLERS 6
#define HOLD_MS 3 /* at each link, so that B is nearly always in the middle */
#define STEP 15   /* calls that are told between two kills */
#define PATIENCE_MS 60000
#define TIME_LEFT_MS 120000 /* of each call: more than all kills take */

static unsigned kills = 4;

struct caller {
    struct site *site;
    pthread_t thread;
    unsigned i, n;
    int64_t repeats;
    struct idem_outcome last;
};

struct site {
    struct tempdir dir;
    struct postgres *postgres;
    char logs[LINKS][128], addresses[LINKS][64];
    pid_t servers[LINKS];
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
start_link(struct site *site, unsigned i)
{
    char table[] = "effects_a";
    const char *const words[] = {RELAY_SERVER,
                                 site->addresses[i],
                                 postgres_conninfo(site->postgres),
                                 table,
                                 i + 1 < LINKS ? site->addresses[i + 1] : NULL,
                                 NULL};
    const struct child_options options = {.log = site->logs[i]};

    table[8] = (char)('a' + i);
    site->servers[i] = child_serve(&options, words);
    if (!site->servers[i]) {
        child_show(site->logs[i]);
        fail_msg("link %u does not listen", i);
    }
}

static int
set_up(void **state)
{
    struct site *site = calloc(1, sizeof *site);
    struct idem_error err;

    tempdir_open(&site->dir);
    site->postgres = postgres_start(NULL);
    must(idem_postgres_migrate(postgres_conninfo(site->postgres), NULL, &err),
         &err);
    for (unsigned i = 0; i < LINKS; i++) {
        char text[16];

        postgres_sql(site->postgres,
                     "CREATE TABLE effects_%c (key TEXT, amount BIGINT)",
                     (char)('a' + i));
        snprintf(text, sizeof text, "log-%u", i);
        tempdir_file(&site->dir, text, site->logs[i], sizeof site->logs[i]);
        snprintf(site->addresses[i], sizeof site->addresses[i],
                 "tcp://127.0.0.1:%u", loopback_free_port());
    }
    for (unsigned i = LINKS; i > 0; i--)
        start_link(site, i - 1);
    must(idem_client_open(&site->channel, site->addresses[0], NULL, &err),
         &err);
    *state = site;
    return 0;
}

static int
tear_down(void **state)
{
    struct site *site = *state;

    idem_channel_close(site->channel);
    for (unsigned i = 0; i < LINKS; i++)
        child_stop(site->servers[i], SIGKILL);
    postgres_free(site->postgres);
    tempdir_close(&site->dir);
    free(site);
    return 0;
}

/* --- Load --- */

static bool
call_once(struct caller *caller)
{
    char key[32];
    const struct idem_call_options options = {.key = key,
                                              .timeout_ms = TIME_LEFT_MS};
    relay_pass_request request = RELAY_PASS_REQUEST_INIT;
    relay_pass_reply *reply = NULL;

    snprintf(key, sizeof key, "chain-%u-%u", caller->i, caller->n);
    request.amount = caller->n;
    request.hold_ms = HOLD_MS;
    if (relay_pass(caller->site->channel, &request, &reply, &options,
                   &caller->last) != IDEM_OK)
        return false;
    caller->repeats += reply->repeats;
    relay_pass_reply_free(reply);
    return true;
}

static void *
call_on(void *with)
{
    struct caller *caller = with;

    while (!atomic_load(&caller->site->over) && call_once(caller)) {
        caller->n++;
        atomic_fetch_add(&caller->site->told, 1);
    }
    return NULL;
}

static bool
enough_are_told(void *with)
{
    struct site *site = with;

    return atomic_load(&site->told) >= atomic_load(&site->wanted);
}

static void
await_calls(struct site *site)
{
    atomic_store(&site->wanted, atomic_load(&site->told) + STEP);
    if (!child_wait_until(enough_are_told, site, PATIENCE_MS))
        fail_msg("%u calls are told, not %u", atomic_load(&site->told),
                 atomic_load(&site->wanted));
}

static void
run_load_under_kills(struct site *site)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        site->callers[i] = (struct caller){.site = site, .i = i};
        assert_int_equal(pthread_create(&site->callers[i].thread, NULL, call_on,
                                        &site->callers[i]),
                         0);
    }
    await_calls(site);
    for (unsigned i = 0; i < kills; i++) {
        child_stop(site->servers[MIDDLE], SIGKILL);
        start_link(site, MIDDLE);
        await_calls(site);
    }
    atomic_store(&site->over, true);
    for (unsigned i = 0; i < CALLERS; i++)
        pthread_join(site->callers[i].thread, NULL);
}

/* --- What came of it --- */

static void
check_link(struct site *site, unsigned i, int64_t n, int64_t sum)
{
    char table = (char)('a' + i);

    assert_int_equal(
        postgres_sql(site->postgres, "SELECT count(*) FROM effects_%c", table),
        n);
    assert_int_equal(postgres_sql(site->postgres,
                                  "SELECT count(DISTINCT key) FROM effects_%c",
                                  table),
                     n);
    assert_int_equal(postgres_sql(site->postgres,
                                  "SELECT sum(amount) FROM effects_%c", table),
                     sum);
}

static void
a_chain_whose_middle_is_killed_has_one_effect_at_each(void **state)
{
    struct site *site = *state;
    int64_t n = 0, sum = 0, repeats = 0;

    run_load_under_kills(site);
    for (unsigned i = 0; i < CALLERS; i++) {
        const struct caller *caller = &site->callers[i];

        if (caller->last.status != IDEM_OK)
            fail_msg("a call with time left: %s, %s, %s",
                     idem_status_name(caller->last.status),
                     idem_stop_name(caller->last.stop), caller->last.message);
        n += caller->n;
        sum += (int64_t)caller->n * (caller->n - 1) / 2;
        repeats += caller->repeats;
    }
    print_message("%lld calls, %u kills, %lld calls between links repeated\n",
                  (long long)n, kills, (long long)repeats);
    assert_true(repeats > 0); /* they were in the middle */
    for (unsigned i = 0; i < LINKS; i++)
        check_link(site, i, n, sum);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_chain_whose_middle_is_killed_has_one_effect_at_each, set_up,
            tear_down),
    };

    if (argc > 1)
        kills = (unsigned)strtoul(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
