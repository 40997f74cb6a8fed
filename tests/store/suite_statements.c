#include "suite_call.h"

#include "fault.h"

#include <stdio.h>

#define CROWD 50

/* Transaction STATEMENT: claim, statements, answer and record in one operation,
 * which shares its commit with others and touches none of them. */

static void
open_new(struct suite_call *call, struct suite *suite)
{
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(call, suite, key, IDEM_MODE_TRANSACTION, 1);
}

/* The same key and request once more. */
static enum idem_verdict
run_again(struct suite_call *call)
{
    struct suite_call again;
    enum idem_verdict verdict;

    call_open(&again, call->suite, call->key, IDEM_MODE_TRANSACTION, 1);
    call_add_effect(&again, 1);
    verdict = call_run(&again);
    if (verdict == IDEM_VERDICT_DONE)
        call->says = again.ticket.answer.status;
    call_close(&again);
    return verdict;
}

static void
an_effect_its_answer_and_its_record_are_one(void **state)
{
    struct suite_call call;

    open_new(&call, *state);
    call_add_effect(&call, 7);
    assert_int_equal(call_run(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call.number, 7);
    assert_int_equal(suite_effects(*state, call.key), 1);
    assert_int_equal(run_again(&call), IDEM_VERDICT_DONE);
    assert_int_equal(suite_effects(*state, call.key), 1);
    call_close(&call);
}

/* Its half is asked before the row is there, and runs once. */
static void
a_reply_that_comes_first_has_no_rows(void **state)
{
    struct suite_call call;

    open_new(&call, *state);
    call_add_effect(&call, 7);
    idem_statements_reply_first(&call.statements);
    assert_int_equal(call_run(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call.number, 0);
    assert_int_equal(call.failed, IDEM_OK);
    assert_text(call.ticket.answer.reply, "ran");
    assert_true(call.ticket.answer.first_at_ms > 0);
    assert_int_equal(suite_effects(*state, call.key), 1);
    assert_int_equal(run_again(&call), IDEM_VERDICT_DONE);
    assert_int_equal(suite_effects(*state, call.key), 1);
    call_close(&call);
}

static void
statements_run_in_the_order_in_which_they_were_added(void **state)
{
    struct suite_call call;

    open_new(&call, *state);
    call_add_effect(&call, 7);
    call_add_effect(&call, 8);
    idem_statement_add(&call.statements,
                       "SELECT sum(amount) FROM effects WHERE key = $1",
                       IDEM_VALUES(idem_text(call.key)));
    assert_int_equal(call_run(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call.number, 15);
    call_close(&call);
}

static void
a_first_half_without_statements_is_recorded_too(void **state)
{
    struct suite_call call;

    open_new(&call, *state);
    call.says = IDEM_INVALID_ARGUMENT;
    assert_int_equal(call_run(&call), IDEM_VERDICT_MINE);
    assert_int_equal(run_again(&call), IDEM_VERDICT_DONE);
    assert_int_equal(call.says, IDEM_INVALID_ARGUMENT);
    assert_int_equal(suite_effects(*state, call.key), 0);
    call_close(&call);
}

/* B041, semantics.md 4.4 b4. */
static void
a_final_no_undoes_what_was_written_and_is_recorded(void **state)
{
    struct suite_call call;

    open_new(&call, *state);
    call_add_effect(&call, 7);
    call.says = IDEM_NOT_FOUND;
    assert_int_equal(call_run(&call), IDEM_VERDICT_MINE);
    assert_int_equal(suite_effects(*state, call.key), 0);
    assert_int_equal(run_again(&call), IDEM_VERDICT_DONE);
    assert_int_equal(call.says, IDEM_NOT_FOUND);
    call_close(&call);
}

static void
an_error_that_is_not_recorded_leaves_nothing(void **state)
{
    struct suite_call call;

    open_new(&call, *state);
    call_add_effect(&call, 7);
    call.says = IDEM_UNAVAILABLE;
    call.released = true;
    assert_int_equal(call_run(&call), IDEM_VERDICT_MINE);
    assert_int_equal(suite_effects(*state, call.key), 0);
    assert_int_equal(run_again(&call), IDEM_VERDICT_MINE);
    assert_int_equal(suite_effects(*state, call.key), 1);
    call_close(&call);
}

static void
another_request_with_the_key_is_refused(void **state)
{
    struct suite_call call, other;

    open_new(&call, *state);
    call_add_effect(&call, 7);
    assert_int_equal(call_run(&call), IDEM_VERDICT_MINE);
    call_open(&other, *state, call.key, IDEM_MODE_TRANSACTION, 2);
    call_add_effect(&other, 7);
    assert_int_equal(call_run(&other), IDEM_VERDICT_REUSED);
    assert_int_equal(suite_effects(*state, call.key), 1);
    call_close(&other);
    call_close(&call);
}

static void
an_abandoned_key_does_not_run(void **state)
{
    struct suite_call call;

    open_new(&call, *state);
    assert_int_equal(call_abandon(&call), IDEM_VERDICT_ABANDONED);
    call_add_effect(&call, 7);
    assert_int_equal(call_run(&call), IDEM_VERDICT_ABANDONED);
    assert_int_equal(suite_effects(*state, call.key), 0);
    call_close(&call);
}

static void
a_released_key_runs(void **state)
{
    struct suite_call call, leased;

    open_new(&call, *state);
    call_open(&leased, *state, call.key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&leased), IDEM_VERDICT_MINE);
    call_add_effect(&call, 7);
    assert_int_equal(call_run(&call), IDEM_VERDICT_RUNNING);
    assert_int_equal(call_release(&leased), IDEM_VERDICT_MINE);
    assert_int_equal(call_run(&call), IDEM_VERDICT_MINE);
    assert_int_equal(suite_effects(*state, call.key), 1);
    assert_int_equal(run_again(&call), IDEM_VERDICT_DONE);
    call_close(&leased);
    call_close(&call);
}

static void
a_statement_that_fails_is_told_and_its_answer_recorded(void **state)
{
    struct suite_call call;

    open_new(&call, *state);
    call_add_effect(&call, 7);
    call_add_effect(&call, -2000); /* CHECK */
    assert_int_equal(call_run(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call.failed, IDEM_FAILED_PRECONDITION);
    assert_int_equal(suite_effects(*state, call.key), 0);
    assert_int_equal(run_again(&call), IDEM_VERDICT_DONE);
    assert_int_equal(call.says, IDEM_FAILED_PRECONDITION);
    call_close(&call);
}

static void
a_statement_that_cannot_be_run_is_a_fault_of_the_program(void **state)
{
    struct suite_call call;

    open_new(&call, *state);
    idem_statement_add(&call.statements, "SELEC 1", IDEM_NO_VALUES);
    call.released = true;
    assert_int_equal(call_run(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call.failed, IDEM_INTERNAL);
    call_close(&call);
}

/* B074: there is no way to swallow a failure. */
static void
transaction_commands_and_settings_are_not_added(void **state)
{
    static const char *const texts[] = {"COMMIT", "SET x = 1",
                                        "ATTACH 'a' AS b"};

    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct suite_call call;

        open_new(&call, *state);
        idem_statement_add(&call.statements, texts[i], IDEM_NO_VALUES);
        assert_int_equal(call.statements.error.status, IDEM_INTERNAL);
        assert_int_equal(call.statements.n, 0);
        call_close(&call);
    }
}

/* --- Many at once --- */

struct crowd {
    struct suite_call calls[CROWD];
};

static void
crowd_open(struct crowd *crowd, struct suite *suite)
{
    for (unsigned i = 0; i < CROWD; i++) {
        open_new(&crowd->calls[i], suite);
        call_add_effect(&crowd->calls[i], i);
    }
}

static void
crowd_run(struct crowd *crowd)
{
    struct idem_store *store = crowd->calls[0].suite->store;

    for (unsigned i = 0; i < CROWD; i++)
        call_start(&crowd->calls[i], store->ops->run);
    for (unsigned i = 0; i < CROWD; i++)
        (void)call_await(&crowd->calls[i]);
}

/* All but these: ran, and is there once. */
static void
crowd_close_all_but(struct crowd *crowd, const struct suite_call *one,
                    const struct suite_call *two)
{
    for (unsigned i = 0; i < CROWD; i++) {
        struct suite_call *call = &crowd->calls[i];

        if (call != one && call != two) {
            assert_int_equal(call->ticket.verdict, IDEM_VERDICT_MINE);
            assert_int_equal(call->number,
                             call->statements.reply_first ? 0 : i);
            assert_text(call->ticket.answer.reply, "ran");
            assert_int_equal(suite_effects(call->suite, call->key), 1);
        }
        call_close(call);
    }
}

static void
crowd_close(struct crowd *crowd, unsigned but)
{
    crowd_close_all_but(crowd, but < CROWD ? &crowd->calls[but] : NULL, NULL);
}

static void
each_of_many_gets_the_rows_of_its_own(void **state)
{
    static struct crowd crowd;

    crowd_open(&crowd, *state);
    crowd_run(&crowd);
    crowd_close(&crowd, CROWD);
}

/* Issue 3, item 6: one poisoned row does not fail its neighbours. */
static void
one_that_fails_among_fifty_fails_alone(void **state)
{
    static struct crowd crowd;
    struct suite_call *bad = &crowd.calls[CROWD / 2];

    crowd_open(&crowd, *state);
    call_add_effect(bad, -2000);
    crowd_run(&crowd);
    assert_int_equal(bad->ticket.verdict, IDEM_VERDICT_MINE);
    assert_int_equal(bad->ticket.answer.status, IDEM_FAILED_PRECONDITION);
    assert_int_equal(suite_effects(*state, bad->key), 0);
    crowd_close(&crowd, CROWD / 2);
}

/* The reply of all but every nth comes first. */
static void
crowd_foretell(struct crowd *crowd, unsigned nth)
{
    for (unsigned i = 0; i < CROWD; i++)
        if (nth == 0 || i % nth != 0)
            idem_statements_reply_first(&crowd->calls[i].statements);
}

/* Whatever each was told before it ran: a statement that fails is the last
 * word, a "no" undoes. Of some shares all replies come first, of some a few. */
static void
replies_that_come_first_are_as_good_as_the_others(void **state)
{
    static struct crowd crowd;
    static const unsigned nths[] = {0, 5};

    for (unsigned i = 0; i < 2; i++) {
        struct suite_call *bad = &crowd.calls[CROWD / 2];
        struct suite_call *no = &crowd.calls[CROWD / 3];

        crowd_open(&crowd, *state);
        call_add_effect(bad, -2000);
        no->says = IDEM_NOT_FOUND;
        crowd_foretell(&crowd, nths[i]);
        crowd_run(&crowd);
        assert_int_equal(bad->ticket.answer.status, IDEM_FAILED_PRECONDITION);
        assert_int_equal(suite_effects(*state, bad->key), 0);
        assert_int_equal(suite_effects(*state, no->key), 0);
        assert_int_equal(run_again(no), IDEM_VERDICT_DONE);
        assert_int_equal(no->says, IDEM_NOT_FOUND);
        crowd_close_all_but(&crowd, bad, no);
    }
}

static void
a_final_no_among_fifty_undoes_its_own_only(void **state)
{
    static struct crowd crowd;
    struct suite_call *bad = &crowd.calls[CROWD / 3];

    crowd_open(&crowd, *state);
    bad->says = IDEM_NOT_FOUND;
    crowd_run(&crowd);
    assert_int_equal(bad->ticket.verdict, IDEM_VERDICT_MINE);
    assert_int_equal(suite_effects(*state, bad->key), 0);
    assert_int_equal(run_again(bad), IDEM_VERDICT_DONE);
    crowd_close(&crowd, CROWD / 3);
}

/* Every fourth is recorded already, and one says "no". */
static void
old_keys_among_new_ones_are_answered_from_their_records(void **state)
{
    static struct crowd crowd;

    crowd_open(&crowd, *state);
    for (unsigned i = 0; i < CROWD; i += 4)
        assert_int_equal(run_again(&crowd.calls[i]), IDEM_VERDICT_MINE);
    crowd_run(&crowd);
    for (unsigned i = 0; i < CROWD; i++) {
        struct suite_call *call = &crowd.calls[i];

        assert_int_equal(call->ticket.verdict,
                         i % 4 ? IDEM_VERDICT_MINE : IDEM_VERDICT_DONE);
        assert_int_equal(suite_effects(*state, call->key), 1);
        call_close(call);
    }
}

/* Two of one key at once, by the one store; in a server flight.c is before. */
static void
of_one_key_at_once_one_has_an_effect(void **state)
{
    struct suite *suite = *state;

    for (unsigned round = 0; round < 20; round++) {
        struct suite_call calls[4];
        char key[IDEM_KEY_MAX + 1];
        unsigned mine = 0;

        suite_key(suite, key);
        for (unsigned i = 0; i < 4; i++) {
            call_open(&calls[i], suite, key, IDEM_MODE_TRANSACTION, 1);
            call_add_effect(&calls[i], 1);
            call_start(&calls[i], suite->store->ops->run);
        }
        for (unsigned i = 0; i < 4; i++) {
            enum idem_verdict verdict = call_await(&calls[i]);

            mine += verdict == IDEM_VERDICT_MINE;
            if (verdict != IDEM_VERDICT_MINE && verdict != IDEM_VERDICT_RUNNING)
                assert_int_equal(verdict, IDEM_VERDICT_DONE);
            call_close(&calls[i]);
        }
        assert_int_equal(mine, 1);
        assert_int_equal(suite_effects(suite, key), 1);
    }
}

#ifdef IDEM_FAULTS

/* Fault 16, B045: the answer of the COMMIT is lost; asked again it is found. */
static void
a_run_whose_answer_was_lost_is_there_once(void **state)
{
    struct suite *suite = *state;
    struct suite_call call;
    enum idem_verdict verdict;
    char plan[128];

    open_new(&call, suite);
    call_add_effect(&call, 1);
    snprintf(plan, sizeof plan, "%s.%s:1:error", suite->factory->name,
             suite->factory->lost_run);
    fault_set(plan);
    verdict = call_run(&call);
    fault_set(NULL);
    if (verdict != IDEM_VERDICT_UNKNOWN)
        assert_int_equal(verdict, IDEM_VERDICT_DONE);
    assert_int_equal(call_run(&call), IDEM_VERDICT_DONE);
    assert_text(call.ticket.answer.reply, "ran");
    assert_int_equal(suite_effects(suite, call.key), 1);
    call_close(&call);
}

#endif

int
suite_run_statements(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_effect_its_answer_and_its_record_are_one),
        cmocka_unit_test(a_reply_that_comes_first_has_no_rows),
        cmocka_unit_test(statements_run_in_the_order_in_which_they_were_added),
        cmocka_unit_test(a_first_half_without_statements_is_recorded_too),
        cmocka_unit_test(a_final_no_undoes_what_was_written_and_is_recorded),
        cmocka_unit_test(an_error_that_is_not_recorded_leaves_nothing),
        cmocka_unit_test(another_request_with_the_key_is_refused),
        cmocka_unit_test(an_abandoned_key_does_not_run),
        cmocka_unit_test(a_released_key_runs),
        cmocka_unit_test(
            a_statement_that_fails_is_told_and_its_answer_recorded),
        cmocka_unit_test(
            a_statement_that_cannot_be_run_is_a_fault_of_the_program),
        cmocka_unit_test(transaction_commands_and_settings_are_not_added),
        cmocka_unit_test(each_of_many_gets_the_rows_of_its_own),
        cmocka_unit_test(one_that_fails_among_fifty_fails_alone),
        cmocka_unit_test(replies_that_come_first_are_as_good_as_the_others),
        cmocka_unit_test(a_final_no_among_fifty_undoes_its_own_only),
        cmocka_unit_test(
            old_keys_among_new_ones_are_answered_from_their_records),
        cmocka_unit_test(of_one_key_at_once_one_has_an_effect),
#ifdef IDEM_FAULTS
        cmocka_unit_test(a_run_whose_answer_was_lost_is_there_once),
#endif
    };

    return cmocka_run_group_tests_name("statements", tests, suite_set_up,
                                       suite_tear_down);
}
