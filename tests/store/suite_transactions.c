#include "suite_call.h"

#include "fault.h"

#include <stdio.h>

/* A handler's effect and the record of its call: both or neither. */

static void
open_transaction(struct suite_call *call, struct suite *suite)
{
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(call, suite, key, IDEM_MODE_TRANSACTION, 1);
    assert_int_equal(call_claim(call), IDEM_VERDICT_MINE);
    assert_non_null(call->ticket.tx);
}

/* The same key runs once more, to its end. */
static void
assert_runs_again(struct suite_call *call)
{
    assert_int_equal(suite_effects(call->suite, call->key), 0);
    assert_int_equal(call_claim(call), IDEM_VERDICT_MINE);
    assert_int_equal(call_effect(call, 1), IDEM_OK);
    assert_int_equal(call_complete(call, IDEM_OK, "again"), IDEM_VERDICT_MINE);
    assert_int_equal(suite_effects(call->suite, call->key), 1);
}

static void
an_effect_is_seen_with_its_record_and_not_before(void **state)
{
    struct suite_call call;

    open_transaction(&call, *state);
    assert_int_equal(call_effect(&call, 5), IDEM_OK);
    assert_int_equal(suite_effects(*state, call.key), 0);
    assert_int_equal(call_complete(&call, IDEM_OK, "5"), IDEM_VERDICT_MINE);
    assert_null(call.ticket.tx);
    assert_int_equal(suite_effects(*state, call.key), 1);
    call_close(&call);
}

static void
a_release_leaves_nothing_of_the_handler(void **state)
{
    struct suite_call call;

    open_transaction(&call, *state);
    assert_int_equal(call_effect(&call, 5), IDEM_OK);
    assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
    assert_null(call.ticket.tx);
    assert_runs_again(&call);
    call_close(&call);
}

/* semantics.md 4.4 b4: the record stands, the writes do not. */
static void
a_recorded_error_undoes_what_the_handler_wrote(void **state)
{
    struct suite_call call;

    open_transaction(&call, *state);
    assert_int_equal(call_effect(&call, 5), IDEM_OK);
    assert_int_equal(call_complete(&call, IDEM_NOT_FOUND, ""),
                     IDEM_VERDICT_MINE);
    assert_int_equal(suite_effects(*state, call.key), 0);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
    assert_int_equal(call.ticket.answer.status, IDEM_NOT_FOUND);
    call_close(&call);
}

/* B074, fault 19. */
static void
a_statement_that_failed_unheard_is_never_committed(void **state)
{
    struct suite_call call;

    open_transaction(&call, *state);
    assert_int_equal(call_effect(&call, 5), IDEM_OK);
    assert_int_not_equal(idem_sql(call.ticket.tx, NULL, NULL,
                                  "INSERT INTO nowhere VALUES (1)",
                                  IDEM_NO_VALUES),
                         IDEM_OK);
    assert_int_equal(call_complete(&call, IDEM_OK, "5"), IDEM_VERDICT_FAILED);
    assert_int_equal(call.ticket.error.status, IDEM_INTERNAL);
    assert_runs_again(&call);
    call_close(&call);
}

static void
nothing_runs_after_a_statement_that_failed(void **state)
{
    struct suite_call call;

    open_transaction(&call, *state);
    assert_int_not_equal(
        idem_sql(call.ticket.tx, NULL, NULL, "SELEC 1", IDEM_NO_VALUES),
        IDEM_OK);
    assert_int_not_equal(call_effect(&call, 5), IDEM_OK);
    assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
    assert_runs_again(&call);
    call_close(&call);
}

static void
an_error_after_a_statement_that_failed_is_recorded(void **state)
{
    struct suite_call call;

    open_transaction(&call, *state);
    assert_int_equal(call_effect(&call, -2000), IDEM_FAILED_PRECONDITION);
    assert_int_equal(call_complete(&call, IDEM_FAILED_PRECONDITION, ""),
                     IDEM_VERDICT_MINE);
    assert_int_equal(suite_effects(*state, call.key), 0);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
    call_close(&call);
}

static void
a_handler_cannot_end_its_transaction(void **state)
{
    static const char *const commands[] = {
        "COMMIT",
        " ;; end",
        "-- a remark\nROLLBACK",
        "/* /* */ COMMIT -- */ */",
        "savepoint mine",
        "Set Transaction READ ONLY",
    };

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        struct suite_call call;

        open_transaction(&call, *state);
        assert_int_equal(call_effect(&call, 5), IDEM_OK);
        assert_int_equal(
            idem_sql(call.ticket.tx, NULL, NULL, commands[i], IDEM_NO_VALUES),
            IDEM_INTERNAL);
        assert_int_equal(call_complete(&call, IDEM_OK, ""),
                         IDEM_VERDICT_FAILED);
        assert_runs_again(&call);
        call_close(&call);
    }
}

static void
assert_in_doubt(struct suite *suite, const char *key)
{
    assert_int_equal(suite_claim_once(suite, key, IDEM_MODE_TRANSACTION, 1),
                     IDEM_VERDICT_DOUBT);
}

/* semantics.md 4.4 b5. */
static void
a_handler_that_commits_by_itself_is_in_doubt(void **state)
{
    struct suite *suite = *state;
    struct suite_call call;

    open_transaction(&call, suite);
    assert_int_equal(call_effect(&call, 5), IDEM_OK);
    suite->factory->commit_raw(call.ticket.tx);
    assert_int_equal(call_complete(&call, IDEM_OK, "5"), IDEM_VERDICT_DOUBT);
    assert_null(call.ticket.tx);
    assert_int_equal(suite_effects(suite, call.key), 1);
    assert_in_doubt(suite, call.key);
    call_close(&call);
}

static void
a_handler_that_commits_by_itself_and_fails_is_in_doubt(void **state)
{
    struct suite *suite = *state;
    struct suite_call call;

    open_transaction(&call, suite);
    assert_int_equal(call_effect(&call, 5), IDEM_OK);
    suite->factory->commit_raw(call.ticket.tx);
    assert_int_equal(call_release(&call), IDEM_VERDICT_DOUBT);
    assert_int_equal(suite_effects(suite, call.key), 1);
    assert_in_doubt(suite, call.key);
    call_close(&call);
}

static void
a_handler_that_rolls_back_by_itself_never_succeeds(void **state)
{
    struct suite *suite = *state;
    struct suite_call call;

    open_transaction(&call, suite);
    assert_int_equal(call_effect(&call, 5), IDEM_OK);
    suite->factory->roll_back_raw(call.ticket.tx);
    assert_int_equal(call_complete(&call, IDEM_OK, "5"), IDEM_VERDICT_DOUBT);
    assert_int_equal(suite_effects(suite, call.key), 0);
    assert_in_doubt(suite, call.key);
    call_close(&call);
}

/* A commit whose answer is lost: the next claim is the barrier. */
static void
a_commit_whose_answer_is_lost_is_found_by_the_next_claim(void **state)
{
#ifdef IDEM_FAULTS
    struct suite *suite = *state;
    struct suite_call call;
    char plan[64];

    snprintf(plan, sizeof plan, "%s.%s:1:error", suite->factory->name,
             suite->factory->lost_answer);
    open_transaction(&call, suite);
    assert_int_equal(call_effect(&call, 5), IDEM_OK);
    fault_set(plan);
    assert_int_equal(call_complete(&call, IDEM_OK, "5"), IDEM_VERDICT_UNKNOWN);
    fault_set(NULL);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
    assert_text(call.ticket.answer.reply, "5");
    assert_int_equal(suite_effects(suite, call.key), 1);
    call_close(&call);
#else
    (void)state;
    skip();
#endif
}

int
suite_run_transactions(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_effect_is_seen_with_its_record_and_not_before),
        cmocka_unit_test(a_release_leaves_nothing_of_the_handler),
        cmocka_unit_test(a_recorded_error_undoes_what_the_handler_wrote),
        cmocka_unit_test(a_statement_that_failed_unheard_is_never_committed),
        cmocka_unit_test(nothing_runs_after_a_statement_that_failed),
        cmocka_unit_test(an_error_after_a_statement_that_failed_is_recorded),
        cmocka_unit_test(a_handler_cannot_end_its_transaction),
        cmocka_unit_test(a_handler_that_commits_by_itself_is_in_doubt),
        cmocka_unit_test(
            a_handler_that_commits_by_itself_and_fails_is_in_doubt),
        cmocka_unit_test(a_handler_that_rolls_back_by_itself_never_succeeds),
        cmocka_unit_test(
            a_commit_whose_answer_is_lost_is_found_by_the_next_claim),
    };

    return cmocka_run_group_tests_name("transactions", tests, suite_set_up,
                                       suite_tear_down);
}
