/* kill -9 of a method with a probe (faults 7 to 9): the next call asks what
 * became of it, and only "not done" runs it again. */
#include "doubt_site.h"

#include "child.h"
#include "effects.h"

#include <idem/reason.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define CALL_MS 20000
#define SAYS(probed) ((probed) + 1)

struct attempt {
    struct site *site;
    char key[96];
    unsigned probe_says;
    enum idem_status status;
    struct idem_outcome outcome;
    int64_t number;
};

static void *
push(void *with)
{
    struct attempt *attempt = with;
    const struct idem_call_options options = {
        .key = attempt->key, .timeout_ms = CALL_MS, .wait_for_ready = true};
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    const struct idem_clock *clock = idem_clock_system();
    int64_t began_ns = clock->monotonic_ns(clock);
    effects_add_reply *reply;

    request.amount = 7;
    request.probe_says = attempt->probe_says;
    attempt->number = 0;
    attempt->status = effects_push_probe(attempt->site->channel, &request,
                                         &reply, &options, &attempt->outcome);
    if (attempt->status == IDEM_OK) {
        attempt->number = reply->number;
        effects_add_reply_free(reply);
    }
    site_tell(attempt->site, CHECKER_RUN_AGAIN, began_ns, &attempt->outcome,
              (uint64_t)attempt->number);
    return NULL;
}

/* The first execution dies there; the client's own repeat goes to the next
 * server, whose probe says so. */
static void
die_at(struct site *site, const char *point, unsigned probe_says,
       struct attempt *attempt)
{
    char plan[96];
    pthread_t thread;

    snprintf(plan, sizeof plan, "%s:1:kill", point);
    *attempt = (struct attempt){.site = site, .probe_says = probe_says};
    snprintf(attempt->key, sizeof attempt->key, "%s-%u", point, probe_says);
    site_start(site, plan);
    pthread_create(&thread, NULL, push, attempt);
    if (!child_wait_until(site_is_dead, site, SITE_READY_MS))
        fail_msg("%s was not reached", plan);
    site_start(site, NULL);
    pthread_join(thread, NULL);
}

static void
assert_pushes(const struct attempt *attempt, unsigned pushes)
{
    assert_int_equal(effects_pushes(attempt->site->push_log, attempt->key),
                     pushes);
}

static void
assert_done(struct attempt *attempt, enum idem_effect effect, unsigned pushes)
{
    assert_int_equal(attempt->status, IDEM_OK);
    assert_int_equal(attempt->outcome.effect, effect);
    assert_true(attempt->outcome.final);
    assert_true(attempt->number > 0);
    assert_pushes(attempt, pushes);
    push(attempt);
    assert_int_equal(attempt->outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_pushes(attempt, pushes);
}

static void
stop(struct site *site)
{
    child_stop(site->server, SIGKILL);
}

static void
what_was_done_is_found_and_recorded(void **state)
{
    struct site *site = *state;
    struct attempt attempt;

    die_at(site, "once.handler.after", 0, &attempt);
    assert_done(&attempt, IDEM_EFFECT_REPLAYED, 1);
    assert_true(attempt.outcome.first_at_ms > 0);
    stop(site);
}

static void
what_was_not_done_runs(void **state)
{
    struct site *site = *state;
    struct attempt attempt;

    die_at(site, "once.handler.before", 0, &attempt);
    assert_done(&attempt, IDEM_EFFECT_COMMITTED, 1);
    stop(site);
}

/* Until a probe knows. */
static void
what_nobody_knows_is_in_doubt(void **state)
{
    struct site *site = *state;
    struct attempt attempt;

    die_at(site, "once.handler.after", SAYS(IDEM_PROBED_UNKNOWN), &attempt);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(attempt.status, IDEM_ABORTED);
        assert_string_equal(attempt.outcome.reason, IDEM_KEY_IN_DOUBT);
        assert_int_equal(attempt.outcome.effect, IDEM_EFFECT_IN_DOUBT);
        assert_false(attempt.outcome.final);
        assert_non_null(strstr(attempt.outcome.message, "told to say so"));
        push(&attempt);
    }
    assert_pushes(&attempt, 1);
    attempt.probe_says = 0;
    push(&attempt);
    assert_done(&attempt, IDEM_EFFECT_REPLAYED, 1);
    stop(site);
}

/* Fault 9: the second execution carries the same key, so a downstream that
 * looks at it can tell. */
static void
a_probe_that_lies_repeats_the_same_key(void **state)
{
    struct site *site = *state;
    struct attempt attempt;

    die_at(site, "once.handler.after", SAYS(IDEM_PROBED_NOT_DONE), &attempt);
    assert_done(&attempt, IDEM_EFFECT_COMMITTED, 2);
    assert_int_equal(effects_pushes(site->push_log, NULL), 2);
    stop(site);
}

static void
a_server_that_dies_while_it_probes_changes_nothing(void **state)
{
    struct site *site = *state;
    struct attempt attempt;
    pthread_t thread;

    die_at(site, "once.handler.after", SAYS(IDEM_PROBED_UNKNOWN), &attempt);
    stop(site);
    site_start(site, "once.handler.after:1:kill");
    attempt.probe_says = 0;
    pthread_create(&thread, NULL, push, &attempt);
    if (!child_wait_until(site_is_dead, site, SITE_READY_MS))
        fail_msg("the probe was not asked");
    site_start(site, NULL);
    pthread_join(thread, NULL);
    assert_done(&attempt, IDEM_EFFECT_REPLAYED, 1);
    stop(site);
}

/* Argument: "sqlite" or "postgres", the authority. */
int
main(int argc, char **argv)
{
#define TEST(name, site) cmocka_unit_test_setup_teardown(name, site, site_down)
#define TESTS(site)                                                            \
    TEST(what_was_done_is_found_and_recorded, site),                           \
        TEST(what_was_not_done_runs, site),                                    \
        TEST(what_nobody_knows_is_in_doubt, site),                             \
        TEST(a_probe_that_lies_repeats_the_same_key, site),                    \
        TEST(a_server_that_dies_while_it_probes_changes_nothing, site)
    const struct CMUnitTest on_sqlite[] = {TESTS(site_on_sqlite)};
    const struct CMUnitTest on_postgres[] = {TESTS(site_on_postgres)};

    if (argc > 1 && strcmp(argv[1], "postgres") == 0)
        return cmocka_run_group_tests(on_postgres, NULL, NULL);
    return cmocka_run_group_tests(on_sqlite, NULL, NULL);
}
