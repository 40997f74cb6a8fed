/* kill -9 at every step that a call comes to, then the same call again (faults
 * 5, 6, 10, 11, 13, 14; B007, B008, B111; rpc 101).
 *
 * The steps are not listed here: a first call writes down the fault points that
 * it reaches, and each of them is then where a server dies. A new step cannot
 * escape. What a probe finds out is enumerated twice: the server that asks it
 * dies, too. */
#include "crash_site.h"

#include "child.h"
#include "effects.h"
#include "points.h"

#include <idem/reason.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READY_MS 20000
#define CALL_MS 20000
#define PLAN_SIZE (POINT_SIZE + 16) /* of a fault */

static bool on_postgres;

static int
up(void **state)
{
    return on_postgres ? crash_site_on_postgres_and_redis(state)
                       : crash_site_on_sqlite(state);
}

typedef enum idem_status call_fn(struct idem_channel *channel,
                                 const effects_add_request *request,
                                 effects_add_reply **reply,
                                 const struct idem_call_options *options,
                                 struct idem_outcome *outcome);

/* --- Calls --- */

struct attempt {
    struct crash_site *site;
    call_fn *call;
    char key[64];
    enum idem_status status;
    struct idem_outcome outcome;
    struct checker_call told;
    pthread_t thread;
};

static void
call(struct attempt *attempt)
{
    const struct idem_clock *clock = idem_clock_system();
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    struct idem_call_options options = {
        .key = attempt->key, .timeout_ms = CALL_MS, .wait_for_ready = true};
    struct checker_call *told = &attempt->told;
    effects_add_reply *reply = NULL;

    request.amount = 7;
    told->began_ns = clock->monotonic_ns(clock);
    attempt->status = attempt->call(attempt->site->channel, &request, &reply,
                                    &options, &attempt->outcome);
    told->ended_ns = clock->monotonic_ns(clock);
    if (reply) {
        told->reply = (uint64_t)reply->number + 1;
        told->foreign = reply->amount != request.amount;
    }
    effects_add_reply_free(reply);
}

static void *
run(void *arg)
{
    call(arg);
    return NULL;
}

static int64_t
rows(struct crash_site *site)
{
    effects_count_request request = EFFECTS_COUNT_REQUEST_INIT;
    struct idem_call_options options = {.wait_for_ready = true};
    effects_count_reply *reply;
    struct idem_outcome outcome;
    int64_t effects;

    if (effects_count(site->channel, &request, &reply, &options, &outcome) !=
        IDEM_OK)
        fail_msg("count: %s", outcome.message);
    effects = reply->effects;
    effects_count_reply_free(reply);
    return effects;
}

/* --- The checker --- */

static void
tell(struct attempt *attempt)
{
    struct checker_call *told = &attempt->told;

    told->key = attempt->key;
    told->status = attempt->status;
    told->effect = attempt->outcome.effect;
    told->final = attempt->outcome.final;
    told->reason = attempt->outcome.reason;
    checker_call(attempt->site->checker, told);
}

/* --- The enumerator --- */

static void
find_points(struct crash_site *site, call_fn *method, enum checker_runs runs,
            struct points *points)
{
    struct attempt attempt = {.site = site, .call = method, .key = "points"};

    checker_key(site->checker, attempt.key, runs, INT64_MAX);
    crash_site_start(site, "IDEM_FAULT_LOG", site->points);
    call(&attempt);
    assert_int_equal(attempt.status, IDEM_OK);
    tell(&attempt);
    child_stop(site->server, SIGKILL);
    points_read(points, site->points);
}

static void
plan_death(char plan[PLAN_SIZE], const char *point)
{
    snprintf(plan, PLAN_SIZE, "%s:1:kill", point);
}

static void
await_death(struct crash_site *site, const char *plan)
{
    if (!child_wait_until(crash_site_is_dead, site, READY_MS))
        fail_msg("%s: the server lives", plan);
}

/* Begin the call, whose server dies at this point. */
static void
start_to_die(struct attempt *attempt, enum checker_runs runs, const char *point)
{
    char plan[PLAN_SIZE];

    plan_death(plan, point);
    checker_key(attempt->site->checker, attempt->key, runs, INT64_MAX);
    crash_site_start(attempt->site, "IDEM_FAULT", plan);
    pthread_create(&attempt->thread, NULL, run, attempt);
    await_death(attempt->site, plan);
}

/* Kill the server at this point of the call, start another, let the client's
 * retry go on, and call once more. */
static void
crash_at(struct crash_site *site, call_fn *method, enum checker_runs runs,
         const char *point, struct attempt *first, struct attempt *again)
{
    *first = (struct attempt){.site = site, .call = method};
    snprintf(first->key, sizeof(first->key), "at-%.50s", point);
    *again = *first;
    start_to_die(first, runs, point);
    crash_site_start(site, NULL, NULL);
    pthread_join(first->thread, NULL);
    call(again);
    tell(first);
    tell(again);
}

static void
complain(const char *point, const struct attempt *attempt)
{
    print_message("at %s: %s, %s, %s: %s\n", point,
                  idem_status_name(attempt->status),
                  idem_effect_name(attempt->outcome.effect),
                  attempt->outcome.reason, attempt->outcome.message);
}

static void
have_one_effect_wherever_its_server_dies(struct crash_site *site,
                                         call_fn *method)
{
    struct points points;
    struct attempt first, again;

    find_points(site, method, CHECKER_RUN_ONCE, &points);
    for (unsigned i = 0; i < points.n; i++) {
        crash_at(site, method, CHECKER_RUN_ONCE, points.name[i], &first,
                 &again);
        complain(points.name[i], &first);
        assert_int_equal(first.status, IDEM_OK);
        assert_int_equal(again.status, IDEM_OK);
        assert_int_equal(again.outcome.effect, IDEM_EFFECT_REPLAYED);
        assert_int_equal(rows(site), i + 2);
        child_stop(site->server, SIGKILL);
    }
    crash_site_check(site);
}

static void
a_transaction_has_one_effect_wherever_its_server_dies(void **state)
{
    have_one_effect_wherever_its_server_dies(*state, effects_add);
}

static void
so_has_one_that_states_its_statements(void **state)
{
    have_one_effect_wherever_its_server_dies(*state, effects_add_stated);
}

static void
so_has_one_of_a_group(void **state)
{
    if (!on_postgres)
        skip(); /* sqlite groups nothing */
    have_one_effect_wherever_its_server_dies(*state, effects_add_grouped);
}

static bool
is_in_doubt(const struct attempt *attempt)
{
    return attempt->status == IDEM_ABORTED &&
           attempt->outcome.effect == IDEM_EFFECT_IN_DOUBT &&
           strcmp(attempt->outcome.reason, IDEM_KEY_IN_DOUBT) == 0;
}

static void
hold_wherever_its_server_dies(struct crash_site *site, call_fn *method)
{
    struct points points;
    struct attempt first, again;
    unsigned pushes;

    find_points(site, method, CHECKER_RUN_ONCE, &points);
    for (unsigned i = 0; i < points.n; i++) {
        crash_at(site, method, CHECKER_RUN_ONCE, points.name[i], &first,
                 &again);
        complain(points.name[i], &first);
        pushes = effects_pushes(site->push_log, first.key);
        assert_true(pushes <= 1);
        assert_int_equal(first.status, again.status);
        if (is_in_doubt(&first))
            assert_true(is_in_doubt(&again));
        else {
            assert_int_equal(first.status, IDEM_OK);
            assert_int_equal(again.outcome.effect, IDEM_EFFECT_REPLAYED);
            assert_int_equal(pushes, 1);
        }
        child_stop(site->server, SIGKILL);
    }
    crash_site_check(site);
}

static void
a_held_key_is_done_once_or_in_doubt_wherever_its_server_dies(void **state)
{
    hold_wherever_its_server_dies(*state, effects_push);
}

static void
so_is_one_that_marks_its_steps(void **state)
{
    hold_wherever_its_server_dies(*state, effects_push_step);
}

/* Fault 10: the other system de-duplicates on the key that it is given, so that
 * it may be given it twice. */
static void
do_wherever_its_server_dies(struct crash_site *site, call_fn *method,
                            unsigned pushes_max)
{
    struct points points;
    struct attempt first, again;
    unsigned pushes;

    find_points(site, method, CHECKER_RUN_AGAIN, &points);
    for (unsigned i = 0; i < points.n; i++) {
        crash_at(site, method, CHECKER_RUN_AGAIN, points.name[i], &first,
                 &again);
        complain(points.name[i], &first);
        assert_int_equal(first.status, IDEM_OK);
        assert_int_equal(again.status, IDEM_OK);
        assert_int_equal(again.outcome.effect, IDEM_EFFECT_REPLAYED);
        pushes = effects_pushes(site->push_log, first.key);
        assert_true(pushes >= 1 && pushes <= pushes_max);
        child_stop(site->server, SIGKILL);
    }
    crash_site_check(site);
}

static void
a_key_that_may_run_again_is_done_wherever_its_server_dies(void **state)
{
    do_wherever_its_server_dies(*state, effects_push_again, 2);
}

/* Its probe tells the truth. */
static void
a_key_that_is_probed_is_done_once_wherever_its_server_dies(void **state)
{
    do_wherever_its_server_dies(*state, effects_push_probe, 1);
}

/* --- A server dies, and so does the next one, which asks the probe --- */

/* The first server dies there; the second one has that variable, for its own
 * faults, while the same call goes on. */
static void
begin_again(struct crash_site *site, const char *point, struct attempt *attempt,
            const char *variable, const char *value)
{
    attempt->site = site;
    attempt->call = effects_push_probe;
    start_to_die(attempt, CHECKER_RUN_AGAIN, point);
    crash_site_start(site, variable, value);
}

static void
end_once(struct crash_site *site, const char *point, struct attempt *attempt)
{
    pthread_join(attempt->thread, NULL);
    complain(point, attempt);
    assert_int_equal(attempt->status, IDEM_OK);
    assert_int_equal(effects_pushes(site->push_log, attempt->key), 1);
    tell(attempt);
    child_stop(site->server, SIGKILL);
}

static void
probe_twice(struct crash_site *site, const char *first)
{
    struct attempt found = {.key = "found"};
    struct points points;

    begin_again(site, first, &found, "IDEM_FAULT_LOG", site->points);
    end_once(site, first, &found);
    points_read(&points, site->points);
    for (unsigned i = 0; i < points.n; i++) {
        struct attempt attempt = {0};
        char plan[PLAN_SIZE];

        plan_death(plan, points.name[i]);
        snprintf(attempt.key, sizeof(attempt.key), "then-%.50s",
                 points.name[i]);
        begin_again(site, first, &attempt, "IDEM_FAULT", plan);
        await_death(site, plan);
        crash_site_start(site, NULL, NULL);
        end_once(site, points.name[i], &attempt);
    }
    crash_site_check(site);
}

/* Fault 9: what is to be found is that it was done. */
static void
a_probe_of_what_was_done_may_die_anywhere(void **state)
{
    probe_twice(*state, "once.handler.after");
}

/* … and that it was not, so that the handler runs behind the probe. */
static void
so_may_one_of_what_was_not_done(void **state)
{
    probe_twice(*state, "once.handler.before");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, crash_site_down)

/* Arguments: "sqlite" or "postgres", the authority; "transaction", "leased" or
 * "probe", what a method says. */
int
main(int argc, char **argv)
{
    const struct CMUnitTest transaction[] = {
        TEST(a_transaction_has_one_effect_wherever_its_server_dies),
        TEST(so_has_one_that_states_its_statements),
        TEST(so_has_one_of_a_group),
    };
    const struct CMUnitTest leased[] = {
        TEST(a_held_key_is_done_once_or_in_doubt_wherever_its_server_dies),
        TEST(so_is_one_that_marks_its_steps),
        TEST(a_key_that_may_run_again_is_done_wherever_its_server_dies),
    };
    const struct CMUnitTest probe[] = {
        TEST(a_key_that_is_probed_is_done_once_wherever_its_server_dies),
        TEST(a_probe_of_what_was_done_may_die_anywhere),
        TEST(so_may_one_of_what_was_not_done),
    };

    IDEM_ASSERT(argc == 3);
    on_postgres = strcmp(argv[1], "postgres") == 0;
    if (strcmp(argv[2], "transaction") == 0)
        return cmocka_run_group_tests(transaction, NULL, NULL);
    if (strcmp(argv[2], "leased") == 0)
        return cmocka_run_group_tests(leased, NULL, NULL);
    return cmocka_run_group_tests(probe, NULL, NULL);
}
