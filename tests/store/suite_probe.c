#include "suite_call.h"

/* What an execution that ended half-way has left is lent, under the next token,
 * to a call that has a probe (semantics.md 3.5; faults 7 to 9). */

struct pair {
    struct suite_call owner, other;
};

static void
open_pair(struct pair *pair, struct suite *suite)
{
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(&pair->owner, suite, key, IDEM_MODE_LEASED, 1);
    call_open(&pair->other, suite, key, IDEM_MODE_LEASED, 1);
    pair->owner.ticket.after_crash = IDEM_AFTER_CRASH_PROBE;
    pair->other.ticket.after_crash = IDEM_AFTER_CRASH_PROBE;
}

static void
close_pair(struct pair *pair)
{
    call_close(&pair->other);
    call_close(&pair->owner);
}

static void
claim_and_die(struct pair *pair)
{
    assert_int_equal(call_claim(&pair->owner), IDEM_VERDICT_MINE);
    assert_false(pair->owner.ticket.probe);
    assert_int_equal(call_claim(&pair->other), IDEM_VERDICT_RUNNING);
    suite_pass_lease(pair->owner.suite);
}

static void
a_lapsed_key_is_lent_to_a_probe(void **state)
{
    struct suite *suite = *state;
    struct pair pair;

    open_pair(&pair, suite);
    claim_and_die(&pair);
    assert_int_equal(call_claim(&pair.other), IDEM_VERDICT_MINE);
    assert_true(pair.other.ticket.probe);
    assert_true(pair.other.ticket.token > pair.owner.ticket.token);
    assert_int_equal(call_complete(&pair.owner, IDEM_OK, "late"),
                     IDEM_VERDICT_FENCED);
    assert_int_equal(call_complete(&pair.other, IDEM_OK, "found"),
                     IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&pair.owner), IDEM_VERDICT_DONE);
    close_pair(&pair);
}

static void
a_key_in_doubt_is_lent_again_and_again(void **state)
{
    struct suite *suite = *state;
    struct pair pair;

    open_pair(&pair, suite);
    assert_int_equal(call_claim(&pair.owner), IDEM_VERDICT_MINE);
    assert_int_equal(call_doubt(&pair.owner), IDEM_VERDICT_MINE);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(call_claim(&pair.other), IDEM_VERDICT_MINE);
        assert_true(pair.other.ticket.probe);
        assert_int_equal(call_claim(&pair.owner), IDEM_VERDICT_RUNNING);
        assert_int_equal(call_doubt(&pair.other), IDEM_VERDICT_MINE);
    }
    assert_int_equal(call_look(&pair.other), IDEM_VERDICT_DOUBT);
    pair.other.ticket.after_crash = IDEM_AFTER_CRASH_HOLD;
    assert_int_equal(call_claim(&pair.other), IDEM_VERDICT_DOUBT);
    close_pair(&pair);
}

/* It was begun before: whoever dies while it asks leaves it begun. */
static void
a_probe_that_dies_is_followed_by_a_probe(void **state)
{
    struct suite *suite = *state;
    struct pair pair;

    open_pair(&pair, suite);
    pair.owner.ticket.steps = pair.other.ticket.steps = true;
    assert_int_equal(call_claim(&pair.owner), IDEM_VERDICT_MINE);
    assert_int_equal(call_mark(&pair.owner, "pay"), IDEM_VERDICT_MINE);
    suite_pass_lease(suite);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(call_claim(&pair.other), IDEM_VERDICT_MINE);
        assert_true(pair.other.ticket.probe);
        suite_pass_lease(suite);
    }
    close_pair(&pair);
}

static void
what_was_not_begun_needs_no_probe(void **state)
{
    struct suite *suite = *state;
    struct pair pair;

    open_pair(&pair, suite);
    pair.owner.ticket.steps = pair.other.ticket.steps = true;
    claim_and_die(&pair);
    assert_int_equal(call_claim(&pair.other), IDEM_VERDICT_MINE);
    assert_false(pair.other.ticket.probe);
    close_pair(&pair);
}

/* NOT_DONE and then a handler that gives the key back. */
static void
a_lent_key_can_be_released(void **state)
{
    struct suite *suite = *state;
    struct pair pair;

    open_pair(&pair, suite);
    claim_and_die(&pair);
    assert_int_equal(call_claim(&pair.other), IDEM_VERDICT_MINE);
    assert_int_equal(call_release(&pair.other), IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&pair.owner), IDEM_VERDICT_MINE);
    assert_false(pair.owner.ticket.probe);
    assert_int_equal(pair.owner.ticket.executions, 3);
    close_pair(&pair);
}

int
suite_run_probe(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lapsed_key_is_lent_to_a_probe),
        cmocka_unit_test(a_key_in_doubt_is_lent_again_and_again),
        cmocka_unit_test(a_probe_that_dies_is_followed_by_a_probe),
        cmocka_unit_test(what_was_not_begun_needs_no_probe),
        cmocka_unit_test(a_lent_key_can_be_released),
    };

    return cmocka_run_group_tests_name("probe", tests, suite_set_up,
                                       suite_tear_down);
}
