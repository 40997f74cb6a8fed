#include "suite_call.h"

#include <stdio.h>

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)

/* Whose key is it, and does it still live? */

static int64_t
now_ms(const struct suite *suite)
{
    return suite->factory->wall_ms(suite->factory->with);
}

/* Claim and complete with another tenant and scope. */
static enum idem_verdict
claim_as(struct suite *suite, const char *key, const char *tenant,
         const char *scope)
{
    struct suite_call call;
    enum idem_verdict verdict;

    call_open(&call, suite, key, IDEM_MODE_LEASED, 1);
    call.ticket.id.tenant = idem_bytes_of(tenant);
    call.ticket.id.scope = scope;
    call_identify(&call);
    verdict = call_claim(&call);
    if (verdict == IDEM_VERDICT_MINE)
        assert_int_equal(call_complete(&call, IDEM_OK, tenant),
                         IDEM_VERDICT_MINE);
    if (verdict == IDEM_VERDICT_DONE)
        assert_text(call.ticket.answer.reply, tenant);
    call_close(&call);
    return verdict;
}

/* B019, B020, D7, fault 62. */
static void
the_same_key_of_another_tenant_or_method_is_another_key(void **state)
{
    static const char *const parties[][3] = {
        {"a", "s/A", "b:c"}, {"a:b", "s/A", "c"}, {"a", "s/B", "b:c"},
        {"", "s/A", "b:c"},  {"a", "s/Ab", ":c"}, {"a", "s/A", "b:"},
    };

    for (size_t i = 0; i < sizeof parties / sizeof *parties; i++)
        assert_int_equal(
            claim_as(*state, parties[i][2], parties[i][0], parties[i][1]),
            IDEM_VERDICT_MINE);
    for (size_t i = 0; i < sizeof parties / sizeof *parties; i++)
        assert_int_equal(
            claim_as(*state, parties[i][2], parties[i][0], parties[i][1]),
            IDEM_VERDICT_DONE);
}

/* B026, fault 61: keys that a careless store would read as something else. */
static void
odd_keys_are_only_keys(void **state)
{
    static const char *const keys[] = {
        "';DROP", "';drop", "$1", "*3\\r\\n$3\\r\\nSET",
        "%s%n",   "\\",     "\"", "NULL",
        "0",      "00",     "~",
    };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_int_equal(
            suite_claim_once(*state, keys[i], IDEM_MODE_TRANSACTION, (int)i),
            IDEM_VERDICT_MINE);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_int_equal(
            suite_claim_once(*state, keys[i], IDEM_MODE_TRANSACTION, (int)i),
            IDEM_VERDICT_DONE);
}

static void
the_longest_key_is_taken(void **state)
{
    char key[IDEM_KEY_MAX + 1];

    snprintf(key, sizeof key, "%0255d", 7);
    assert_int_equal(suite_claim_once(*state, key, IDEM_MODE_LEASED, 1),
                     IDEM_VERDICT_MINE);
    assert_int_equal(suite_claim_once(*state, key, IDEM_MODE_LEASED, 1),
                     IDEM_VERDICT_DONE);
}

static void
assert_expired(struct suite *suite, const char *key)
{
    struct suite_call call;

    call_open(&call, suite, key, IDEM_MODE_TRANSACTION, 1);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_EXPIRED);
    call.ticket.repeat = true;
    assert_int_equal(call_claim(&call), IDEM_VERDICT_EXPIRED);
    assert_int_equal(call_look(&call), IDEM_VERDICT_EXPIRED);
    assert_int_equal(call_abandon(&call), IDEM_VERDICT_EXPIRED);
    call_close(&call);
}

/* Fault 55. */
static void
a_key_whose_window_is_over_begins_nothing(void **state)
{
    char key[IDEM_KEY_MAX + 1];

    suite_key_at(key, now_ms(*state) - 61 * 60000, HOUR_MS);
    assert_expired(*state, key);
}

static void
a_key_of_a_forgotten_day_is_refused(void **state)
{
    char key[IDEM_KEY_MAX + 1];

    suite_key_at(key, now_ms(*state) - 1000 * DAY_MS, 2000 * DAY_MS);
    assert_expired(*state, key);
}

/* Fault 58: a client's clock that is ahead. */
static void
a_key_of_a_day_far_ahead_is_refused(void **state)
{
    char key[IDEM_KEY_MAX + 1];

    suite_key_at(key, now_ms(*state) + 10 * DAY_MS, DAY_MS);
    assert_expired(*state, key);
}

static void
a_key_of_tomorrow_is_taken(void **state)
{
    char key[IDEM_KEY_MAX + 1];

    suite_key_at(key, now_ms(*state) + DAY_MS, DAY_MS);
    assert_int_equal(suite_claim_once(*state, key, IDEM_MODE_TRANSACTION, 1),
                     IDEM_VERDICT_MINE);
    assert_int_equal(suite_claim_once(*state, key, IDEM_MODE_TRANSACTION, 1),
                     IDEM_VERDICT_DONE);
}

/* Fault 55: the record outlives the window. */
static void
a_done_key_is_replayed_after_its_window(void **state)
{
    struct suite *suite = *state;
    char key[IDEM_KEY_MAX + 1];

    suite_key_at(key, now_ms(suite), 1000);
    assert_int_equal(suite_claim_once(suite, key, IDEM_MODE_TRANSACTION, 1),
                     IDEM_VERDICT_MINE);
    suite->factory->pass_ms(suite->factory->with, 1100);
    assert_int_equal(suite_claim_once(suite, key, IDEM_MODE_TRANSACTION, 1),
                     IDEM_VERDICT_DONE);
}

static void
a_released_key_does_not_run_after_its_window(void **state)
{
    struct suite *suite = *state;
    struct suite_call call;
    char key[IDEM_KEY_MAX + 1];

    suite_key_at(key, now_ms(suite), 1000);
    call_open(&call, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
    suite->factory->pass_ms(suite->factory->with, 1100);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_EXPIRED);
    call_close(&call);
}

static void
maintenance_forgets_no_key_that_lives(void **state)
{
    struct suite *suite = *state;
    struct idem_error err = {0};
    char key[IDEM_KEY_MAX + 1];

    suite_key_at(key, now_ms(suite), DAY_MS);
    assert_int_equal(suite_claim_once(suite, key, IDEM_MODE_TRANSACTION, 1),
                     IDEM_VERDICT_MINE);
    for (int i = 0; i < 2; i++)
        assert_int_equal(suite->store->ops->maintain(suite->store, &err),
                         IDEM_OK);
    assert_int_equal(suite_claim_once(suite, key, IDEM_MODE_TRANSACTION, 1),
                     IDEM_VERDICT_DONE);
}

int
suite_run_keys(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            the_same_key_of_another_tenant_or_method_is_another_key),
        cmocka_unit_test(odd_keys_are_only_keys),
        cmocka_unit_test(the_longest_key_is_taken),
        cmocka_unit_test(a_key_whose_window_is_over_begins_nothing),
        cmocka_unit_test(a_key_of_a_forgotten_day_is_refused),
        cmocka_unit_test(a_key_of_a_day_far_ahead_is_refused),
        cmocka_unit_test(a_key_of_tomorrow_is_taken),
        cmocka_unit_test(a_done_key_is_replayed_after_its_window),
        cmocka_unit_test(a_released_key_does_not_run_after_its_window),
        cmocka_unit_test(maintenance_forgets_no_key_that_lives),
    };

    return cmocka_run_group_tests_name("keys", tests, suite_set_up,
                                       suite_tear_down);
}
