/* kill -9 around the mark of a method that holds what was begun (faults 6, 7):
 * before it the key runs again when the lease is over, after it never. */
#include "doubt_site.h"

#include "child.h"
#include "effects.h"

#include <idem/reason.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define CALL_MS 20000

struct attempt {
    struct site *site;
    char key[96];
    enum idem_status status;
    struct idem_outcome outcome;
};

static void *
push(void *with)
{
    struct attempt *attempt = with;
    const struct idem_call_options options = {
        .key = attempt->key, .timeout_ms = CALL_MS, .wait_for_ready = true};
    const struct idem_clock *clock = idem_clock_system();
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;
    int64_t began_ns = clock->monotonic_ns(clock);

    request.amount = 7;
    attempt->status = effects_push_step(attempt->site->channel, &request, NULL,
                                        &options, &attempt->outcome);
    site_tell(attempt->site, CHECKER_RUN_ONCE, began_ns, &attempt->outcome, 0);
    return NULL;
}

/* The server dies there; the client's own repeat goes to the next one. A point
 * of the authority begins with a dot. */
static void
die_at(struct site *site, const char *point, struct attempt *attempt)
{
    const char *authority = site->postgres ? "postgres" : "sqlite";
    char plan[96];
    pthread_t thread;

    snprintf(plan, sizeof plan, "%s%s:1:kill", *point == '.' ? authority : "",
             point);
    *attempt = (struct attempt){.site = site};
    snprintf(attempt->key, sizeof attempt->key, "at%s", point);
    site_start(site, plan);
    pthread_create(&thread, NULL, push, attempt);
    if (!child_wait_until(site_is_dead, site, SITE_READY_MS))
        fail_msg("%s was not reached", plan);
    site_start(site, NULL);
    pthread_join(thread, NULL);
    print_message("at %s: %s %s\n", point, idem_status_name(attempt->status),
                  attempt->outcome.reason);
}

static void
stop(struct site *site)
{
    child_stop(site->server, SIGKILL);
}

/* Fault 6. */
static void
what_was_not_begun_runs_when_its_lease_is_over(void **state)
{
    static const char *const points[] = {
        ".claim.after",     "once.claim.after", "once.handler.before",
        "once.mark.before", ".mark.before",
    };
    struct site *site = *state;
    struct attempt attempt;

    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        die_at(site, points[i], &attempt);
        assert_int_equal(attempt.status, IDEM_OK);
        assert_int_equal(effects_pushes(site->push_log, attempt.key), 1);
        stop(site);
    }
}

static void
assert_held(struct attempt *attempt, unsigned pushes)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(attempt->status, IDEM_ABORTED);
        assert_string_equal(attempt->outcome.reason, IDEM_KEY_IN_DOUBT);
        assert_int_equal(attempt->outcome.effect, IDEM_EFFECT_IN_DOUBT);
        assert_int_equal(effects_pushes(attempt->site->push_log, attempt->key),
                         pushes);
        push(attempt);
    }
}

/* Fault 7. */
static void
what_was_begun_is_in_doubt_and_never_done_twice(void **state)
{
    static const struct {
        const char *point;
        unsigned pushes;
    } rows[] = {
        {".mark.after", 0}, {"once.mark.after", 0}, {"once.handler.after", 1}};
    struct site *site = *state;
    struct attempt attempt;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        die_at(site, rows[i].point, &attempt);
        assert_held(&attempt, rows[i].pushes);
        stop(site);
    }
}

/* Argument: "sqlite" or "postgres", the authority. */
int
main(int argc, char **argv)
{
#define TESTS(site)                                                            \
    cmocka_unit_test_setup_teardown(                                           \
        what_was_not_begun_runs_when_its_lease_is_over, site, site_down),      \
        cmocka_unit_test_setup_teardown(                                       \
            what_was_begun_is_in_doubt_and_never_done_twice, site, site_down)
    const struct CMUnitTest on_sqlite[] = {TESTS(site_on_sqlite)};
    const struct CMUnitTest on_postgres[] = {TESTS(site_on_postgres)};

    if (argc > 1 && strcmp(argv[1], "postgres") == 0)
        return cmocka_run_group_tests(on_postgres, NULL, NULL);
    return cmocka_run_group_tests(on_sqlite, NULL, NULL);
}
