#include "suite_call.h"

/* Who lost the key changes nothing any more; another request is never answered
 * with this one's answer. */

/* A call that lost its lease, and the one that has it now. */
struct race {
    struct suite_call zombie, winner;
    char key[IDEM_KEY_MAX + 1];
};

static void
race_open(struct race *race, struct suite *suite)
{
    suite_key(suite, race->key);
    call_open(&race->zombie, suite, race->key, IDEM_MODE_LEASED, 1);
    call_open(&race->winner, suite, race->key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&race->zombie), IDEM_VERDICT_MINE);
    suite_pass_lease(suite);
    assert_int_equal(call_claim(&race->winner), IDEM_VERDICT_MINE);
}

/* The winner's answer stands and is what the third caller hears. */
static void
race_close(struct race *race)
{
    struct suite_call third;

    call_open(&third, race->winner.suite, race->key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&third), IDEM_VERDICT_DONE);
    assert_text(third.ticket.answer.reply, "winner");
    call_close(&third);
    call_close(&race->zombie);
    call_close(&race->winner);
}

/* D3: an answer that comes late. */
static void
a_late_completion_is_fenced(void **state)
{
    struct race race;

    race_open(&race, *state);
    assert_int_equal(call_complete(&race.zombie, IDEM_OK, "zombie"),
                     IDEM_VERDICT_FENCED);
    assert_int_equal(call_complete(&race.winner, IDEM_OK, "winner"),
                     IDEM_VERDICT_MINE);
    assert_int_equal(call_complete(&race.zombie, IDEM_OK, "zombie"),
                     IDEM_VERDICT_FENCED);
    race_close(&race);
}

/* A word that is written behind its call's back has no memory for the answer
 * that it finds. */
static void
a_late_word_wants_no_answer(void **state)
{
    struct idem_arena *zombies, *winners;
    struct race race;

    race_open(&race, *state);
    zombies = race.zombie.ticket.arena;
    winners = race.winner.ticket.arena;
    race.zombie.ticket.arena = race.winner.ticket.arena = NULL;
    assert_int_equal(call_complete(&race.winner, IDEM_OK, "winner"),
                     IDEM_VERDICT_MINE);
    assert_int_equal(call_complete(&race.zombie, IDEM_OK, "zombie"),
                     IDEM_VERDICT_FENCED);
    assert_int_equal(call_complete(&race.winner, IDEM_OK, "winner"),
                     IDEM_VERDICT_MINE);
    assert_int_equal(call_release(&race.winner), IDEM_VERDICT_FENCED);
    race.zombie.ticket.arena = zombies;
    race.winner.ticket.arena = winners;
    race_close(&race);
}

/* D2, fault 29: the way of failure is fenced as well. */
static void
a_late_release_is_fenced(void **state)
{
    struct race race;

    race_open(&race, *state);
    assert_int_equal(call_release(&race.zombie), IDEM_VERDICT_FENCED);
    assert_int_equal(call_complete(&race.winner, IDEM_OK, "winner"),
                     IDEM_VERDICT_MINE);
    assert_int_equal(call_release(&race.zombie), IDEM_VERDICT_FENCED);
    race_close(&race);
}

static void
a_late_doubt_is_fenced(void **state)
{
    struct race race;

    race_open(&race, *state);
    assert_int_equal(call_doubt(&race.zombie), IDEM_VERDICT_FENCED);
    assert_int_equal(call_complete(&race.winner, IDEM_OK, "winner"),
                     IDEM_VERDICT_MINE);
    assert_int_equal(call_doubt(&race.zombie), IDEM_VERDICT_FENCED);
    race_close(&race);
}

static void
a_late_renewal_is_fenced(void **state)
{
    struct race race;

    race_open(&race, *state);
    assert_int_equal(call_renew(&race.zombie), IDEM_VERDICT_FENCED);
    assert_int_equal(call_complete(&race.winner, IDEM_OK, "winner"),
                     IDEM_VERDICT_MINE);
    assert_int_equal(call_renew(&race.winner), IDEM_VERDICT_FENCED);
    race_close(&race);
}

static void
the_owner_of_a_done_record_cannot_release_it(void **state)
{
    struct race race;

    race_open(&race, *state);
    assert_int_equal(call_complete(&race.winner, IDEM_OK, "winner"),
                     IDEM_VERDICT_MINE);
    assert_int_equal(call_release(&race.winner), IDEM_VERDICT_FENCED);
    assert_int_equal(call_doubt(&race.winner), IDEM_VERDICT_FENCED);
    race_close(&race);
}

static void
a_renewed_lease_is_not_taken_over(void **state)
{
    struct suite *suite = *state;
    struct suite_call owner, rival;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(&owner, suite, key, IDEM_MODE_LEASED, 1);
    call_open(&rival, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&owner), IDEM_VERDICT_MINE);
    owner.ticket.lease_ms = suite->factory->lease_ms * 10;
    assert_int_equal(call_renew(&owner), IDEM_VERDICT_MINE);
    suite_pass_lease(suite);
    assert_int_equal(call_claim(&rival), IDEM_VERDICT_RUNNING);
    assert_true(rival.ticket.wait_ms > 0);
    assert_int_equal(call_complete(&owner, IDEM_OK, "owner"),
                     IDEM_VERDICT_MINE);
    call_close(&owner);
    call_close(&rival);
}

/* Fault 31: over, but nobody took it. */
static void
a_renewal_after_the_lease_and_before_a_takeover_counts(void **state)
{
    struct suite *suite = *state;
    struct suite_call owner, rival;
    char key[IDEM_KEY_MAX + 1];
    int64_t token;

    suite_key(suite, key);
    call_open(&owner, suite, key, IDEM_MODE_LEASED, 1);
    call_open(&rival, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&owner), IDEM_VERDICT_MINE);
    token = owner.ticket.token;
    suite_pass_lease(suite);
    assert_int_equal(call_renew(&owner), IDEM_VERDICT_MINE);
    assert_int_equal(owner.ticket.token, token);
    assert_int_equal(call_claim(&rival), IDEM_VERDICT_RUNNING);
    assert_int_equal(call_complete(&owner, IDEM_OK, "owner"),
                     IDEM_VERDICT_MINE);
    call_close(&owner);
    call_close(&rival);
}

/* Repeated because the answer to the first was lost. */
static void
a_repeated_completion_finds_its_own_answer(void **state)
{
    struct suite *suite = *state;
    struct suite_call call;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(&call, suite, key, IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_complete(&call, IDEM_OK, "one"), IDEM_VERDICT_MINE);
    assert_int_equal(call_complete(&call, IDEM_OK, "one"), IDEM_VERDICT_MINE);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
    assert_text(call.ticket.answer.reply, "one");
    call_close(&call);
}

static void
assert_reused(struct suite_call *other)
{
    int request = other->ticket.fingerprint.raw[0];

    assert_int_equal(call_claim(other), IDEM_VERDICT_REUSED);
    assert_int_not_equal(other->ticket.recorded.raw[0], request);
    assert_true(other->ticket.first_at_ms > 0);
    assert_int_equal(call_look(other), IDEM_VERDICT_REUSED);
}

/* B004, fault 45: while it runs, after a release, in doubt, when done. */
static void
another_request_is_refused_whatever_the_state(void **state)
{
    struct suite *suite = *state;
    struct suite_call first, other;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(&first, suite, key, IDEM_MODE_LEASED, 1);
    call_open(&other, suite, key, IDEM_MODE_LEASED, 2);
    assert_int_equal(call_claim(&first), IDEM_VERDICT_MINE);
    assert_reused(&other);
    suite_pass_lease(suite);
    assert_reused(&other);
    assert_int_equal(call_release(&first), IDEM_VERDICT_MINE);
    assert_reused(&other);
    assert_int_equal(call_claim(&first), IDEM_VERDICT_MINE);
    assert_int_equal(call_doubt(&first), IDEM_VERDICT_MINE);
    assert_reused(&other);
    assert_int_equal(call_complete(&first, IDEM_OK, "100"), IDEM_VERDICT_MINE);
    assert_reused(&other);
    assert_int_equal(call_claim(&first), IDEM_VERDICT_DONE);
    assert_text(first.ticket.answer.reply, "100");
    call_close(&first);
    call_close(&other);
}

static void
another_request_is_refused_on_an_abandoned_key(void **state)
{
    struct suite *suite = *state;
    struct suite_call first, other;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(&first, suite, key, IDEM_MODE_LEASED, 1);
    call_open(&other, suite, key, IDEM_MODE_LEASED, 2);
    assert_int_equal(call_abandon(&first), IDEM_VERDICT_ABANDONED);
    assert_reused(&other);
    call_close(&first);
    call_close(&other);
}

/* Fault 46: another runtime wrote the same message. */
static void
the_canonical_hash_alone_makes_the_same_request(void **state)
{
    struct suite *suite = *state;
    struct suite_call other;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    assert_int_equal(suite_claim_once(suite, key, IDEM_MODE_LEASED, 1),
                     IDEM_VERDICT_MINE);
    call_open(&other, suite, key, IDEM_MODE_LEASED, 1);
    other.ticket.fingerprint.raw[0] ^= 1;
    assert_int_equal(call_claim(&other), IDEM_VERDICT_DONE);
    other.ticket.fingerprint.version++;
    assert_int_equal(call_claim(&other), IDEM_VERDICT_REUSED);
    call_close(&other);
}

int
suite_run_fences(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_completion_is_fenced),
        cmocka_unit_test(a_late_word_wants_no_answer),
        cmocka_unit_test(a_late_release_is_fenced),
        cmocka_unit_test(a_late_doubt_is_fenced),
        cmocka_unit_test(a_late_renewal_is_fenced),
        cmocka_unit_test(the_owner_of_a_done_record_cannot_release_it),
        cmocka_unit_test(a_renewed_lease_is_not_taken_over),
        cmocka_unit_test(
            a_renewal_after_the_lease_and_before_a_takeover_counts),
        cmocka_unit_test(a_repeated_completion_finds_its_own_answer),
        cmocka_unit_test(another_request_is_refused_whatever_the_state),
        cmocka_unit_test(another_request_is_refused_on_an_abandoned_key),
        cmocka_unit_test(the_canonical_hash_alone_makes_the_same_request),
    };

    return cmocka_run_group_tests_name("fences", tests, suite_set_up,
                                       suite_tear_down);
}
