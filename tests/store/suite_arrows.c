#include "suite_call.h"

#include <stdlib.h>
#include <string.h>

/* The arrows of the record's state machine, seen from outside. */

static const enum idem_mode modes[] = {IDEM_MODE_TRANSACTION, IDEM_MODE_LEASED};

#define EACH_MODE(mode)                                                        \
    (const enum idem_mode *mode = modes; mode < modes + 2; mode++)

/* B070, fault 1: three times in a row. */
static void
the_same_key_three_times_is_mine_once_and_then_done(void **state)
{
    struct suite *suite = *state;

    for
        EACH_MODE(mode)
        {
            char key[IDEM_KEY_MAX + 1];

            suite_key(suite, key);
            assert_int_equal(suite_claim_once(suite, key, *mode, 1),
                             IDEM_VERDICT_MINE);
            for (int i = 0; i < 2; i++)
                assert_int_equal(suite_claim_once(suite, key, *mode, 1),
                                 IDEM_VERDICT_DONE);
        }
}

static void
record_answer(struct suite *suite, const char *key, enum idem_mode mode,
              const struct idem_answer *answer)
{
    struct suite_call call;

    call_open(&call, suite, key, mode, 1);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    call.ticket.answer = *answer;
    assert_int_equal(call_do(&call, suite->store->ops->complete),
                     IDEM_VERDICT_MINE);
    call_close(&call);
}

static void
assert_bytes_equal(struct idem_bytes a, struct idem_bytes b)
{
    assert_true(idem_bytes_equal(a, b));
}

static void
assert_replayed(struct suite *suite, const char *key, enum idem_mode mode,
                const struct idem_answer *answer, bool repeat)
{
    struct suite_call call;

    call_open(&call, suite, key, mode, 1);
    call.ticket.repeat = repeat;
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
    assert_int_equal(call.ticket.answer.status, answer->status);
    assert_bytes_equal(call.ticket.answer.reply, answer->reply);
    assert_bytes_equal(call.ticket.answer.message, answer->message);
    assert_bytes_equal(call.ticket.answer.reason, answer->reason);
    assert_bytes_equal(call.ticket.answer.trailers, answer->trailers);
    assert_true(call.ticket.answer.first_at_ms > 0);
    assert_int_equal(call.ticket.answer.executions, 1);
    call_close(&call);
}

/* B012: no byte, one, NULs among them, a megabyte. */
static void
an_answer_of_any_size_is_replayed_byte_for_byte(void **state)
{
    static const size_t sizes[] = {0, 1, 5, 1 << 20};
    struct suite *suite = *state;
    uint8_t *bytes = calloc(1, 1 << 20);

    memcpy(bytes + 1, "\xff\x01", 2);
    memset(bytes + 9, 0xA5, (1 << 20) - 9);
    for
        EACH_MODE(mode)
        {
            for (size_t i = 0; i < 4; i++) {
                struct idem_answer answer = {
                    .status = IDEM_OK,
                    .reply = {bytes, sizes[i]},
                    .trailers = {(const uint8_t *)"\0t\0", 3},
                };
                char key[IDEM_KEY_MAX + 1];

                suite_key(suite, key);
                record_answer(suite, key, *mode, &answer);
                assert_replayed(suite, key, *mode, &answer, false);
                assert_replayed(suite, key, *mode, &answer, true);
            }
        }
    free(bytes);
}

/* B014: visible as the failure that it is. */
static void
a_recorded_error_is_replayed_with_its_words(void **state)
{
    struct suite *suite = *state;

    for
        EACH_MODE(mode)
        {
            struct idem_answer answer = {
                .status = IDEM_FAILED_PRECONDITION,
                .message = idem_bytes_of("not enough money"),
                .reason = idem_bytes_of("BALANCE"),
            };
            char key[IDEM_KEY_MAX + 1];

            suite_key(suite, key);
            record_answer(suite, key, *mode, &answer);
            assert_replayed(suite, key, *mode, &answer, false);
        }
}

/* B006: never OK before the first has committed. */
static void
a_rival_of_a_running_call_hears_running_at_once(void **state)
{
    struct suite *suite = *state;

    for
        EACH_MODE(mode)
        {
            struct suite_call first, rival;
            char key[IDEM_KEY_MAX + 1];

            suite_key(suite, key);
            call_open(&first, suite, key, *mode, 1);
            call_open(&rival, suite, key, *mode, 1);
            assert_int_equal(call_claim(&first), IDEM_VERDICT_MINE);
            assert_int_equal(call_claim(&rival), IDEM_VERDICT_RUNNING);
            assert_true(rival.ticket.wait_ms >= 0);
            assert_true(rival.ticket.wait_ms <= suite->factory->lease_ms);
            assert_int_equal(call_look(&rival), IDEM_VERDICT_RUNNING);
            assert_int_equal(call_complete(&first, IDEM_OK, "a"),
                             IDEM_VERDICT_MINE);
            assert_int_equal(call_claim(&rival), IDEM_VERDICT_DONE);
            assert_text(rival.ticket.answer.reply, "a");
            call_close(&first);
            call_close(&rival);
        }
}

/* B010, fault 51. */
static void
a_released_key_runs_again(void **state)
{
    struct suite *suite = *state;

    for
        EACH_MODE(mode)
        {
            struct suite_call call;
            char key[IDEM_KEY_MAX + 1];

            suite_key(suite, key);
            call_open(&call, suite, key, *mode, 1);
            assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
            assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
            assert_int_equal(call_look(&call), IDEM_VERDICT_ABSENT);
            assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
            assert_int_equal(call_complete(&call, IDEM_OK, "b"),
                             IDEM_VERDICT_MINE);
            assert_int_equal(call_look(&call), IDEM_VERDICT_DONE);
            call_close(&call);
        }
}

static void
a_released_lease_gives_a_higher_token(void **state)
{
    struct suite *suite = *state;
    struct suite_call call;
    char key[IDEM_KEY_MAX + 1];
    int64_t token;

    suite_key(suite, key);
    call_open(&call, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    token = call.ticket.token;
    assert_true(token > 0);
    assert_int_equal(call.ticket.executions, 1);
    assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_true(call.ticket.token > token);
    assert_int_equal(call.ticket.executions, 2);
    assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
    call_close(&call);
}

static void
a_lease_that_is_over_is_taken_over_when_it_may_run_again(void **state)
{
    struct suite *suite = *state;
    struct suite_call lost, next;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(&lost, suite, key, IDEM_MODE_LEASED, 1);
    call_open(&next, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&lost), IDEM_VERDICT_MINE);
    suite_pass_lease(suite);
    assert_int_equal(call_look(&next), IDEM_VERDICT_RUNNING);
    assert_int_equal(next.ticket.wait_ms, 0);
    assert_int_equal(call_claim(&next), IDEM_VERDICT_MINE);
    assert_true(next.ticket.token > lost.ticket.token);
    assert_int_equal(next.ticket.executions, 2);
    assert_int_equal(call_complete(&next, IDEM_OK, "n"), IDEM_VERDICT_MINE);
    call_close(&lost);
    call_close(&next);
}

/* Fault 7. */
static void
a_lease_that_is_over_is_in_doubt_when_it_must_be_held(void **state)
{
    struct suite *suite = *state;
    struct suite_call lost, next;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(&lost, suite, key, IDEM_MODE_LEASED, 1);
    call_open(&next, suite, key, IDEM_MODE_LEASED, 1);
    next.ticket.after_crash = IDEM_AFTER_CRASH_HOLD;
    assert_int_equal(call_claim(&lost), IDEM_VERDICT_MINE);
    suite_pass_lease(suite);
    assert_int_equal(call_look(&next), IDEM_VERDICT_DOUBT);
    assert_int_equal(call_claim(&next), IDEM_VERDICT_DOUBT);
    next.ticket.after_crash = IDEM_AFTER_CRASH_REEXECUTE;
    assert_int_equal(call_claim(&next), IDEM_VERDICT_DOUBT);
    call_close(&lost);
    call_close(&next);
}

static void
doubt_ends_by_its_owner_alone(void **state)
{
    struct suite *suite = *state;
    struct suite_call owner, other;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(&owner, suite, key, IDEM_MODE_LEASED, 1);
    call_open(&other, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&owner), IDEM_VERDICT_MINE);
    assert_int_equal(call_doubt(&owner), IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&other), IDEM_VERDICT_DOUBT);
    assert_int_equal(call_abandon(&other), IDEM_VERDICT_DOUBT);
    assert_int_equal(call_look(&other), IDEM_VERDICT_DOUBT);
    assert_int_equal(call_complete(&owner, IDEM_OK, "late"), IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&other), IDEM_VERDICT_DONE);
    assert_text(other.ticket.answer.reply, "late");
    call_close(&owner);
    call_close(&other);
}

static void
doubt_that_is_released_runs_again(void **state)
{
    struct suite *suite = *state;
    struct suite_call call;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(&call, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_doubt(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
    call_close(&call);
}

/* Fault 73: before any attempt. */
static void
an_abandoned_key_never_runs(void **state)
{
    struct suite *suite = *state;

    for
        EACH_MODE(mode)
        {
            struct suite_call call;
            char key[IDEM_KEY_MAX + 1];

            suite_key(suite, key);
            call_open(&call, suite, key, *mode, 1);
            call.ticket.fingerprint.version = 0;
            assert_int_equal(call_abandon(&call), IDEM_VERDICT_ABANDONED);
            assert_int_equal(call_abandon(&call), IDEM_VERDICT_ABANDONED);
            assert_int_equal(suite_claim_once(suite, key, *mode, 7),
                             IDEM_VERDICT_ABANDONED);
            assert_int_equal(call_look(&call), IDEM_VERDICT_ABANDONED);
            assert_int_equal(call.ticket.first_at_ms, 0);
            call_close(&call);
        }
}

/* Fault 75. */
static void
abandon_of_a_done_key_gives_its_answer(void **state)
{
    struct suite *suite = *state;
    struct suite_call call;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    assert_int_equal(suite_claim_once(suite, key, IDEM_MODE_TRANSACTION, 1),
                     IDEM_VERDICT_MINE);
    call_open(&call, suite, key, IDEM_MODE_TRANSACTION, 2);
    assert_int_equal(call_abandon(&call), IDEM_VERDICT_DONE);
    assert_text(call.ticket.answer.reply, "done");
    call_close(&call);
}

static void
abandon_waits_for_a_lease_and_then_says_doubt(void **state)
{
    struct suite *suite = *state;
    struct suite_call owner, other;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(&owner, suite, key, IDEM_MODE_LEASED, 1);
    call_open(&other, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&owner), IDEM_VERDICT_MINE);
    assert_int_equal(call_abandon(&other), IDEM_VERDICT_RUNNING);
    suite_pass_lease(suite);
    assert_int_equal(call_abandon(&other), IDEM_VERDICT_DOUBT);
    assert_int_equal(call_claim(&other), IDEM_VERDICT_DOUBT);
    call_close(&owner);
    call_close(&other);
}

/* What its execution did outside is not known: whoever asks is told that there
 * was one. */
static void
a_released_key_can_be_abandoned(void **state)
{
    struct suite *suite = *state;
    struct suite_call owner, other;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(&owner, suite, key, IDEM_MODE_LEASED, 1);
    call_open(&other, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&owner), IDEM_VERDICT_MINE);
    assert_int_equal(call_release(&owner), IDEM_VERDICT_MINE);
    assert_int_equal(call_abandon(&other), IDEM_VERDICT_ABANDONED);
    assert_true(other.ticket.first_at_ms > 0);
    assert_int_equal(call_look(&other), IDEM_VERDICT_ABANDONED);
    assert_true(other.ticket.first_at_ms > 0);
    assert_int_equal(call_claim(&owner), IDEM_VERDICT_ABANDONED);
    assert_true(owner.ticket.first_at_ms > 0);
    call_close(&owner);
    call_close(&other);
}

static void
a_key_that_was_never_seen_is_absent(void **state)
{
    struct suite *suite = *state;
    struct suite_call call;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(&call, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_look(&call), IDEM_VERDICT_ABSENT);
    assert_int_equal(call_look(&call), IDEM_VERDICT_ABSENT);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_release(&call), IDEM_VERDICT_MINE);
    call_close(&call);
}

int
suite_run_arrows(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_key_three_times_is_mine_once_and_then_done),
        cmocka_unit_test(an_answer_of_any_size_is_replayed_byte_for_byte),
        cmocka_unit_test(a_recorded_error_is_replayed_with_its_words),
        cmocka_unit_test(a_rival_of_a_running_call_hears_running_at_once),
        cmocka_unit_test(a_released_key_runs_again),
        cmocka_unit_test(a_released_lease_gives_a_higher_token),
        cmocka_unit_test(
            a_lease_that_is_over_is_taken_over_when_it_may_run_again),
        cmocka_unit_test(a_lease_that_is_over_is_in_doubt_when_it_must_be_held),
        cmocka_unit_test(doubt_ends_by_its_owner_alone),
        cmocka_unit_test(doubt_that_is_released_runs_again),
        cmocka_unit_test(an_abandoned_key_never_runs),
        cmocka_unit_test(abandon_of_a_done_key_gives_its_answer),
        cmocka_unit_test(abandon_waits_for_a_lease_and_then_says_doubt),
        cmocka_unit_test(a_released_key_can_be_abandoned),
        cmocka_unit_test(a_key_that_was_never_seen_is_absent),
    };

    return cmocka_run_group_tests_name("arrows", tests, suite_set_up,
                                       suite_tear_down);
}
