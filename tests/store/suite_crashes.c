#include "suite_call.h"

#include "fault.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that dies at a fault point, and what the next one finds. */

#ifdef IDEM_FAULTS

/* In the child: one call to its end, or to the fault. */
typedef void life_fn(struct suite_call *call);

static void
live_in_steps(struct suite_call *call)
{
    if (call_claim(call) != IDEM_VERDICT_MINE)
        return;
    if (call->ticket.mode == IDEM_MODE_TRANSACTION)
        (void)call_effect(call, 1);
    (void)call_complete(call, IDEM_OK, "lived");
}

static void
live_in_one(struct suite_call *call)
{
    call_add_effect(call, 1);
    (void)call_run(call);
}

static void
die_living(struct suite *suite, const char *key, enum idem_mode mode,
           life_fn *live, const char *point)
{
    struct suite_call call;
    char plan[128];
    pid_t child;
    int status;

    snprintf(plan, sizeof plan, "%s.%s:1:kill", suite->factory->name, point);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fault_set(plan);
        suite->store = suite->factory->open(suite->factory->with);
        call_open(&call, suite, key, mode, 1);
        live(&call);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_msg("%s was not reached", plan);
}

static void
die_at(struct suite *suite, const char *key, enum idem_mode mode,
       const char *point)
{
    die_living(suite, key, mode, live_in_steps, point);
}

static void
reopen(struct suite *suite)
{
    suite->store = suite->factory->open(suite->factory->with);
    assert_non_null(suite->store);
}

static void
shut(struct suite *suite)
{
    idem_store_free(suite->store);
    suite->store = NULL;
}

/* Faults 5, 13, 14. */
static void
a_crash_before_the_commit_leaves_nothing(void **state)
{
    struct suite *suite = *state;
    const char *const *point = suite->factory->before_commit;

    for (; *point; point++) {
        char key[IDEM_KEY_MAX + 1];

        suite_key(suite, key);
        die_at(suite, key, IDEM_MODE_TRANSACTION, *point);
        reopen(suite);
        assert_int_equal(suite_effects(suite, key), 0);
        assert_int_equal(suite_claim_once(suite, key, IDEM_MODE_TRANSACTION, 1),
                         IDEM_VERDICT_MINE);
        shut(suite);
    }
}

/* Fault 11 and B006: what was committed is replayed. */
static void
a_crash_after_the_commit_leaves_effect_and_record(void **state)
{
    struct suite *suite = *state;
    const char *const *point = suite->factory->after_commit;

    for (; *point; point++) {
        struct suite_call call;
        char key[IDEM_KEY_MAX + 1];

        suite_key(suite, key);
        die_at(suite, key, IDEM_MODE_TRANSACTION, *point);
        reopen(suite);
        assert_int_equal(suite_effects(suite, key), 1);
        call_open(&call, suite, key, IDEM_MODE_TRANSACTION, 1);
        assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
        assert_text(call.ticket.answer.reply, "lived");
        call_close(&call);
        shut(suite);
    }
}

/* Faults 5, 13, 14 in one operation. */
static void
a_crash_before_the_commit_of_a_run_leaves_nothing(void **state)
{
    struct suite *suite = *state;
    const char *const *point = suite->factory->before_run_commit;

    for (; *point; point++) {
        struct suite_call call;
        char key[IDEM_KEY_MAX + 1];

        suite_key(suite, key);
        die_living(suite, key, IDEM_MODE_TRANSACTION, live_in_one, *point);
        reopen(suite);
        assert_int_equal(suite_effects(suite, key), 0);
        call_open(&call, suite, key, IDEM_MODE_TRANSACTION, 1);
        call_add_effect(&call, 1);
        assert_int_equal(call_run(&call), IDEM_VERDICT_MINE);
        assert_int_equal(suite_effects(suite, key), 1);
        call_close(&call);
        shut(suite);
    }
}

/* Fault 11 and B006 in one operation. */
static void
a_crash_after_the_commit_of_a_run_leaves_effect_and_record(void **state)
{
    struct suite *suite = *state;
    const char *const *point = suite->factory->after_run_commit;

    for (; *point; point++) {
        struct suite_call call;
        char key[IDEM_KEY_MAX + 1];

        suite_key(suite, key);
        die_living(suite, key, IDEM_MODE_TRANSACTION, live_in_one, *point);
        reopen(suite);
        assert_int_equal(suite_effects(suite, key), 1);
        call_open(&call, suite, key, IDEM_MODE_TRANSACTION, 1);
        call_add_effect(&call, 1);
        assert_int_equal(call_run(&call), IDEM_VERDICT_DONE);
        assert_text(call.ticket.answer.reply, "ran");
        assert_int_equal(suite_effects(suite, key), 1);
        call_close(&call);
        shut(suite);
    }
}

/* B007, fault 6: blocked for its lease and no longer. */
static void
a_lease_of_a_dead_process_ends(void **state)
{
    struct suite *suite = *state;
    struct suite_call call;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    die_at(suite, key, IDEM_MODE_LEASED, "claim.after");
    reopen(suite);
    call_open(&call, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_look(&call), IDEM_VERDICT_RUNNING);
    suite_pass_lease(suite);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call.ticket.executions, 2);
    assert_int_equal(call_complete(&call, IDEM_OK, "second"),
                     IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
    assert_int_equal(call.ticket.answer.executions, 2);
    call_close(&call);
    shut(suite);
}

/* Fault 7. */
static void
a_held_lease_of_a_dead_process_is_in_doubt(void **state)
{
    struct suite *suite = *state;
    struct suite_call call;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    die_at(suite, key, IDEM_MODE_LEASED, "complete.before");
    reopen(suite);
    suite_pass_lease(suite);
    call_open(&call, suite, key, IDEM_MODE_LEASED, 1);
    call.ticket.after_crash = IDEM_AFTER_CRASH_HOLD;
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DOUBT);
    call_close(&call);
    shut(suite);
}

static void
a_lease_that_was_not_committed_is_not_there(void **state)
{
    struct suite *suite = *state;
    struct suite_call call;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    die_at(suite, key, IDEM_MODE_LEASED, "claim.before");
    reopen(suite);
    call_open(&call, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_look(&call), IDEM_VERDICT_ABSENT);
    call_close(&call);
    shut(suite);
}

static void
a_completed_lease_survives_the_process(void **state)
{
    struct suite *suite = *state;
    struct suite_call call;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    die_at(suite, key, IDEM_MODE_LEASED, "complete.after");
    reopen(suite);
    call_open(&call, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
    assert_text(call.ticket.answer.reply, "lived");
    call_close(&call);
    shut(suite);
}

int
suite_run_crashes(const struct suite_factory *factory)
{
    static struct suite suite;
    suite = (struct suite){.factory = factory, .minted = true};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(a_crash_before_the_commit_leaves_nothing,
                                  &suite),
        cmocka_unit_test_prestate(
            a_crash_after_the_commit_leaves_effect_and_record, &suite),
        cmocka_unit_test_prestate(
            a_crash_before_the_commit_of_a_run_leaves_nothing, &suite),
        cmocka_unit_test_prestate(
            a_crash_after_the_commit_of_a_run_leaves_effect_and_record, &suite),
        cmocka_unit_test_prestate(a_lease_of_a_dead_process_ends, &suite),
        cmocka_unit_test_prestate(a_held_lease_of_a_dead_process_is_in_doubt,
                                  &suite),
        cmocka_unit_test_prestate(a_lease_that_was_not_committed_is_not_there,
                                  &suite),
        cmocka_unit_test_prestate(a_completed_lease_survives_the_process,
                                  &suite),
    };

    return cmocka_run_group_tests_name("crashes", tests, NULL, NULL);
}

#else

int
suite_run_crashes(const struct suite_factory *factory)
{
    (void)factory;
    return 0;
}

#endif
