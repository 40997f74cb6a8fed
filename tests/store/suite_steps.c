#include "suite_call.h"

/* Claims that are begun by a mark (semantics.md 3.5 and 4.3, a4). */

#define WINDOW_MS 1000

static void
open_step(struct suite_call *call, struct suite *suite, const char *key)
{
    call_open(call, suite, key, IDEM_MODE_LEASED, 1);
    call->ticket.after_crash = IDEM_AFTER_CRASH_HOLD;
    call->ticket.steps = true;
}

/* An owner that has claimed and is not heard of until its lease is over, and
 * another call. */
struct pair {
    struct suite_call owner, other;
};

static void
open_pair(struct pair *pair, struct suite *suite)
{
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    open_step(&pair->owner, suite, key);
    open_step(&pair->other, suite, key);
    assert_int_equal(call_claim(&pair->owner), IDEM_VERDICT_MINE);
}

static void
close_pair(struct pair *pair)
{
    call_close(&pair->other);
    call_close(&pair->owner);
}

/* Fault 6: also under HOLD. */
static void
a_claim_without_a_mark_is_run_again(void **state)
{
    struct suite *suite = *state;
    struct pair pair;

    open_pair(&pair, suite);
    assert_int_equal(call_claim(&pair.other), IDEM_VERDICT_RUNNING);
    suite_pass_lease(suite);
    assert_int_equal(call_claim(&pair.other), IDEM_VERDICT_MINE);
    assert_int_equal(pair.other.ticket.executions, 2);
    assert_true(pair.other.ticket.token > pair.owner.ticket.token);
    assert_int_equal(call_mark(&pair.owner, "late"), IDEM_VERDICT_FENCED);
    assert_int_equal(call_mark(&pair.other, "pay"), IDEM_VERDICT_MINE);
    assert_int_equal(call_complete(&pair.owner, IDEM_OK, "first"),
                     IDEM_VERDICT_FENCED);
    assert_int_equal(call_complete(&pair.other, IDEM_OK, "second"),
                     IDEM_VERDICT_MINE);
    close_pair(&pair);
}

/* Fault 7. */
static void
a_marked_one_is_held_in_doubt(void **state)
{
    struct suite *suite = *state;
    struct pair pair;

    open_pair(&pair, suite);
    assert_int_equal(call_mark(&pair.owner, "pay"), IDEM_VERDICT_MINE);
    suite_pass_lease(suite);
    assert_int_equal(call_claim(&pair.other), IDEM_VERDICT_DOUBT);
    assert_int_equal(call_mark(&pair.owner, "more"), IDEM_VERDICT_FENCED);
    assert_int_equal(call_complete(&pair.owner, IDEM_OK, "late"),
                     IDEM_VERDICT_MINE);
    close_pair(&pair);
}

static void
a_marked_one_that_may_run_again_is_marked_anew(void **state)
{
    struct suite *suite = *state;
    struct pair pair;

    open_pair(&pair, suite);
    assert_int_equal(call_mark(&pair.owner, "pay"), IDEM_VERDICT_MINE);
    suite_pass_lease(suite);
    pair.other.ticket.after_crash = IDEM_AFTER_CRASH_REEXECUTE;
    assert_int_equal(call_claim(&pair.other), IDEM_VERDICT_MINE);
    suite_pass_lease(suite);
    assert_int_equal(call_claim(&pair.owner), IDEM_VERDICT_MINE);
    assert_int_equal(pair.owner.ticket.executions, 3);
    close_pair(&pair);
}

static void
a_released_key_is_begun_by_its_next_mark(void **state)
{
    struct suite *suite = *state;
    struct pair pair;

    open_pair(&pair, suite);
    assert_int_equal(call_mark(&pair.owner, "pay"), IDEM_VERDICT_MINE);
    assert_int_equal(call_release(&pair.owner), IDEM_VERDICT_MINE);
    assert_int_equal(call_mark(&pair.owner, "pay"), IDEM_VERDICT_FENCED);
    assert_int_equal(call_claim(&pair.other), IDEM_VERDICT_MINE);
    suite_pass_lease(suite);
    assert_int_equal(call_claim(&pair.owner), IDEM_VERDICT_MINE);
    close_pair(&pair);
}

/* Whoever is late does not act, although nobody has taken the key. */
static void
a_mark_needs_a_lease_that_is_not_over(void **state)
{
    struct suite *suite = *state;
    struct pair pair;

    open_pair(&pair, suite);
    suite_pass_lease(suite);
    assert_int_equal(call_mark(&pair.owner, "pay"), IDEM_VERDICT_FENCED);
    assert_int_equal(call_renew(&pair.owner), IDEM_VERDICT_MINE);
    assert_int_equal(call_mark(&pair.owner, "pay"), IDEM_VERDICT_MINE);
    close_pair(&pair);
}

static void
an_abandoned_key_that_was_not_begun_never_ran(void **state)
{
    struct suite *suite = *state;
    struct pair pair;

    open_pair(&pair, suite);
    assert_int_equal(call_abandon(&pair.other), IDEM_VERDICT_RUNNING);
    suite_pass_lease(suite);
    assert_int_equal(call_look(&pair.other), IDEM_VERDICT_RUNNING);
    assert_int_equal(call_abandon(&pair.other), IDEM_VERDICT_ABANDONED);
    assert_int_equal(call_renew(&pair.owner), IDEM_VERDICT_FENCED);
    assert_int_equal(call_mark(&pair.owner, "pay"), IDEM_VERDICT_FENCED);
    assert_int_equal(call_claim(&pair.other), IDEM_VERDICT_ABANDONED);
    assert_int_equal(pair.other.ticket.first_at_ms, 0);
    close_pair(&pair);
}

static void
an_abandoned_key_that_was_begun_is_in_doubt(void **state)
{
    struct suite *suite = *state;
    struct pair pair;

    open_pair(&pair, suite);
    assert_int_equal(call_mark(&pair.owner, "pay"), IDEM_VERDICT_MINE);
    suite_pass_lease(suite);
    assert_int_equal(call_abandon(&pair.other), IDEM_VERDICT_DOUBT);
    close_pair(&pair);
}

static void
a_claim_after_the_window_says_that_it_never_ran(void **state)
{
    struct suite *suite = *state;
    const struct suite_factory *factory = suite->factory;
    struct suite_call owner, other;
    char key[IDEM_KEY_MAX + 1];

    if (!suite->minted)
        skip();
    suite_key_at(key, factory->wall_ms(factory->with), WINDOW_MS);
    open_step(&owner, suite, key);
    open_step(&other, suite, key);
    assert_int_equal(call_claim(&owner), IDEM_VERDICT_MINE);
    suite_pass_lease(suite);
    factory->pass_ms(factory->with, WINDOW_MS + 1);
    assert_int_equal(call_claim(&other), IDEM_VERDICT_ABANDONED);
    assert_int_equal(call_mark(&owner, "pay"), IDEM_VERDICT_FENCED);
    call_close(&other);
    call_close(&owner);
}

static int64_t
records_at(struct suite *suite, struct suite_call *call, const char *step)
{
    const struct idem_store_ops *ops = suite->store->ops;
    struct idem_rows *rows;
    struct idem_error err;
    struct idem_tx *tx =
        ops->begin_read(suite->store, call->ticket.arena, INT64_MAX, &err);
    int64_t count;

    assert_non_null(tx);
    if (idem_sql(tx, &rows, &err,
                 suite->minted ? "SELECT count(*) FROM idem_record "
                                 "WHERE step = $1"
                               : "SELECT count(*) FROM idem_record_opaque "
                                 "WHERE step = $1",
                 IDEM_VALUES(idem_text(step))) != IDEM_OK)
        fail_msg("%s", err.message);
    count = idem_rows_int(rows, 0, 0);
    ops->end_read(suite->store, tx);
    return count;
}

static void
the_record_names_the_last_step(void **state)
{
    struct suite *suite = *state;
    struct pair pair;

    open_pair(&pair, suite);
    assert_int_equal(call_mark(&pair.owner, "charge"), IDEM_VERDICT_MINE);
    assert_int_equal(records_at(suite, &pair.owner, "charge"), 1);
    assert_int_equal(call_mark(&pair.owner, "mail"), IDEM_VERDICT_MINE);
    assert_int_equal(records_at(suite, &pair.owner, "charge"), 0);
    assert_int_equal(records_at(suite, &pair.owner, "mail"), 1);
    assert_int_equal(call_complete(&pair.owner, IDEM_OK, "done"),
                     IDEM_VERDICT_MINE);
    close_pair(&pair);
}

int
suite_run_steps(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_without_a_mark_is_run_again),
        cmocka_unit_test(a_marked_one_is_held_in_doubt),
        cmocka_unit_test(a_marked_one_that_may_run_again_is_marked_anew),
        cmocka_unit_test(a_released_key_is_begun_by_its_next_mark),
        cmocka_unit_test(a_mark_needs_a_lease_that_is_not_over),
        cmocka_unit_test(an_abandoned_key_that_was_not_begun_never_ran),
        cmocka_unit_test(an_abandoned_key_that_was_begun_is_in_doubt),
        cmocka_unit_test(a_claim_after_the_window_says_that_it_never_ran),
        cmocka_unit_test(the_record_names_the_last_step),
    };

    return cmocka_run_group_tests_name("steps", tests, suite_set_up,
                                       suite_tear_down);
}
