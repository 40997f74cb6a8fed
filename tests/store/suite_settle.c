#include "suite_call.h"

/* What an operator may say of a key, and when it counts. */

static const struct idem_settlement it_did = {
    .took_effect = true,
    .by = {(const uint8_t *)"anna", 4},
    .why = {(const uint8_t *)"ticket 4711: the provider paid", 30},
};

static const struct idem_settlement it_did_not = {
    .by = {(const uint8_t *)"anna", 4},
    .why = {(const uint8_t *)"ticket 4712: the provider knows nothing", 39},
};

static enum idem_verdict
settle(struct suite_call *call, const struct idem_settlement *settlement,
       const char *reply)
{
    call->ticket.settlement = settlement;
    call->ticket.answer = (struct idem_answer){
        .status = IDEM_OK,
        .reply = idem_bytes_of(reply),
    };
    return call_do(call, call->suite->store->ops->settle);
}

/* An operator's ticket: the key alone, no request. */
static void
open_clerk(struct suite_call *clerk, struct suite *suite, const char *key)
{
    call_open(clerk, suite, key, IDEM_MODE_LEASED, 0);
    clerk->ticket.fingerprint = (struct idem_fingerprint){.version = 0};
    clerk->ticket.after_crash = IDEM_AFTER_CRASH_HOLD;
}

/* A call that was begun and is in doubt; its owner may come back. */
static void
leave_in_doubt(struct suite_call *owner, struct suite *suite, char *key)
{
    suite_key(suite, key);
    call_open(owner, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(owner), IDEM_VERDICT_MINE);
    assert_int_equal(call_doubt(owner), IDEM_VERDICT_MINE);
}

static void
doubt_that_took_effect_is_done_with_the_operators_answer(void **state)
{
    struct suite *suite = *state;
    struct suite_call owner, clerk, repeat;
    char key[IDEM_KEY_MAX + 1];

    leave_in_doubt(&owner, suite, key);
    open_clerk(&clerk, suite, key);
    assert_int_equal(call_look(&clerk), IDEM_VERDICT_DOUBT);
    assert_int_equal(clerk.ticket.token, owner.ticket.token);
    assert_int_equal(settle(&clerk, &it_did, "paid"), IDEM_VERDICT_MINE);

    call_open(&repeat, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&repeat), IDEM_VERDICT_DONE);
    assert_text(repeat.ticket.answer.reply, "paid");
    call_close(&repeat);
    call_close(&clerk);
    call_close(&owner);
}

static void
doubt_that_took_no_effect_runs_again(void **state)
{
    struct suite *suite = *state;
    struct suite_call owner, clerk, repeat;
    char key[IDEM_KEY_MAX + 1];

    leave_in_doubt(&owner, suite, key);
    open_clerk(&clerk, suite, key);
    assert_int_equal(call_look(&clerk), IDEM_VERDICT_DOUBT);
    assert_int_equal(settle(&clerk, &it_did_not, ""), IDEM_VERDICT_MINE);

    call_open(&repeat, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&repeat), IDEM_VERDICT_MINE);
    assert_true(repeat.ticket.token > owner.ticket.token);
    assert_int_equal(call_complete(&repeat, IDEM_OK, "again"),
                     IDEM_VERDICT_MINE);
    call_close(&repeat);
    call_close(&clerk);
    call_close(&owner);
}

/* D2, D3: whoever ran it comes back after the operator has spoken. */
static void
a_settled_key_is_fenced_from_its_late_owner(void **state)
{
    const struct idem_settlement *const settlements[] = {&it_did, &it_did_not};
    struct suite *suite = *state;

    for (int i = 0; i < 2; i++) {
        struct suite_call owner, clerk;
        char key[IDEM_KEY_MAX + 1];

        leave_in_doubt(&owner, suite, key);
        open_clerk(&clerk, suite, key);
        assert_int_equal(call_look(&clerk), IDEM_VERDICT_DOUBT);
        assert_int_equal(settle(&clerk, settlements[i], "operator"),
                         IDEM_VERDICT_MINE);
        assert_int_equal(call_complete(&owner, IDEM_OK, "operator"),
                         IDEM_VERDICT_FENCED);
        assert_int_equal(call_release(&owner), IDEM_VERDICT_FENCED);
        assert_int_equal(call_doubt(&owner), IDEM_VERDICT_FENCED);
        assert_int_equal(call_renew(&owner), IDEM_VERDICT_FENCED);
        call_close(&clerk);
        call_close(&owner);
    }
}

/* Between look and settle the owner came back and said how it ended. */
static void
a_settlement_of_what_is_not_in_doubt_any_more_changes_nothing(void **state)
{
    struct suite *suite = *state;
    struct suite_call owner, clerk;
    char key[IDEM_KEY_MAX + 1];

    leave_in_doubt(&owner, suite, key);
    open_clerk(&clerk, suite, key);
    assert_int_equal(call_look(&clerk), IDEM_VERDICT_DOUBT);
    assert_int_equal(call_complete(&owner, IDEM_OK, "owner"),
                     IDEM_VERDICT_MINE);
    assert_int_equal(settle(&clerk, &it_did_not, ""), IDEM_VERDICT_DONE);
    assert_text(clerk.ticket.answer.reply, "owner");
    assert_int_equal(settle(&clerk, &it_did, "other"), IDEM_VERDICT_DONE);
    assert_text(clerk.ticket.answer.reply, "owner");
    call_close(&clerk);
    call_close(&owner);
}

/* The operator looked at one execution; the doubt is of the next one. */
static void
a_settlement_of_an_earlier_execution_is_fenced(void **state)
{
    struct suite *suite = *state;
    struct suite_call owner, clerk, next;
    char key[IDEM_KEY_MAX + 1];

    leave_in_doubt(&owner, suite, key);
    open_clerk(&clerk, suite, key);
    assert_int_equal(call_look(&clerk), IDEM_VERDICT_DOUBT);
    assert_int_equal(call_release(&owner), IDEM_VERDICT_MINE);
    call_open(&next, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&next), IDEM_VERDICT_MINE);
    assert_int_equal(settle(&clerk, &it_did_not, ""), IDEM_VERDICT_RUNNING);
    assert_int_equal(call_doubt(&next), IDEM_VERDICT_MINE);
    assert_int_equal(settle(&clerk, &it_did, "paid"), IDEM_VERDICT_FENCED);
    assert_int_equal(call_look(&clerk), IDEM_VERDICT_DOUBT);
    assert_int_equal(settle(&clerk, &it_did, "paid"), IDEM_VERDICT_MINE);
    call_close(&next);
    call_close(&clerk);
    call_close(&owner);
}

static void
a_settlement_that_is_repeated_is_one(void **state)
{
    const struct idem_settlement *const settlements[] = {&it_did, &it_did_not};
    struct suite *suite = *state;

    for (int i = 0; i < 2; i++) {
        struct suite_call owner, clerk;
        char key[IDEM_KEY_MAX + 1];

        leave_in_doubt(&owner, suite, key);
        open_clerk(&clerk, suite, key);
        assert_int_equal(call_look(&clerk), IDEM_VERDICT_DOUBT);
        for (int j = 0; j < 2; j++)
            assert_int_equal(settle(&clerk, settlements[i], "paid"),
                             IDEM_VERDICT_MINE);
        call_close(&clerk);
        call_close(&owner);
    }
    {
        struct suite_call owner, clerk;
        char key[IDEM_KEY_MAX + 1];

        leave_in_doubt(&owner, suite, key);
        open_clerk(&clerk, suite, key);
        assert_int_equal(call_look(&clerk), IDEM_VERDICT_DOUBT);
        assert_int_equal(settle(&clerk, &it_did, "paid"), IDEM_VERDICT_MINE);
        assert_int_equal(settle(&clerk, &it_did, "not paid"),
                         IDEM_VERDICT_DONE);
        assert_text(clerk.ticket.answer.reply, "paid");
        call_close(&clerk);
        call_close(&owner);
    }
}

/* Fault 7: the server died in the middle and nobody has repeated the call. */
static void
a_lease_that_is_over_can_be_settled_and_one_that_is_not_cannot(void **state)
{
    struct suite *suite = *state;
    struct suite_call owner, clerk;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(&owner, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&owner), IDEM_VERDICT_MINE);
    open_clerk(&clerk, suite, key);
    assert_int_equal(call_look(&clerk), IDEM_VERDICT_RUNNING);
    clerk.ticket.token = owner.ticket.token;
    assert_int_equal(settle(&clerk, &it_did, "paid"), IDEM_VERDICT_RUNNING);
    suite_pass_lease(suite);
    assert_int_equal(call_look(&clerk), IDEM_VERDICT_DOUBT);
    assert_int_equal(settle(&clerk, &it_did, "paid"), IDEM_VERDICT_MINE);
    assert_int_equal(call_renew(&owner), IDEM_VERDICT_FENCED);
    assert_int_equal(call_look(&clerk), IDEM_VERDICT_DONE);
    call_close(&clerk);
    call_close(&owner);
}

static void
a_key_without_a_record_or_without_doubt_is_not_settled(void **state)
{
    struct suite *suite = *state;
    struct suite_call clerk;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    open_clerk(&clerk, suite, key);
    assert_int_equal(settle(&clerk, &it_did, "paid"), IDEM_VERDICT_ABSENT);
    assert_int_equal(call_abandon(&clerk), IDEM_VERDICT_ABANDONED);
    assert_int_equal(settle(&clerk, &it_did, "paid"), IDEM_VERDICT_ABANDONED);
    call_close(&clerk);
}

int
suite_run_settle(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            doubt_that_took_effect_is_done_with_the_operators_answer),
        cmocka_unit_test(doubt_that_took_no_effect_runs_again),
        cmocka_unit_test(a_settled_key_is_fenced_from_its_late_owner),
        cmocka_unit_test(
            a_settlement_of_what_is_not_in_doubt_any_more_changes_nothing),
        cmocka_unit_test(a_settlement_of_an_earlier_execution_is_fenced),
        cmocka_unit_test(a_settlement_that_is_repeated_is_one),
        cmocka_unit_test(
            a_lease_that_is_over_can_be_settled_and_one_that_is_not_cannot),
        cmocka_unit_test(
            a_key_without_a_record_or_without_doubt_is_not_settled),
    };

    return cmocka_run_group_tests_name("settle", tests, suite_set_up,
                                       suite_tear_down);
}
