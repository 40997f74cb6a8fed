#include "support.h"

#include <pthread.h>
#include <string.h>

#include <idem/key.h>
#include <idem/reason.h>

#include "payments_world.h"

static void
a_charge_takes_money_once_however_often_it_is_repeated(void **state)
{
    struct payments_world *world = *state;
    struct idem_outcome first, again;

    world_open(world, "alice", 100);
    assert_int_equal(world_charge(world, NULL, "alice", 30, "", &first), 70);
    assert_int_equal(first.effect, IDEM_EFFECT_COMMITTED);
    assert_true(first.final);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            world_charge(world, first.key, "alice", 30, "", &again), 70);
        assert_int_equal(again.effect, IDEM_EFFECT_REPLAYED);
        assert_string_equal(again.key, first.key);
    }
    assert_int_equal(world_balance(world, "alice"), 70);
    assert_int_equal(world_entries(world, "alice"), 1);
}

/* Fault 50: no effect follows a final "no". */
static void
a_late_duplicate_of_a_refused_charge_is_refused_after_the_top_up(void **state)
{
    struct payments_world *world = *state;
    struct idem_outcome refused, late;

    world_open(world, "poor", 10);
    world_open(world, "rich", 1000);
    assert_int_equal(world_charge(world, NULL, "poor", 50, "", &refused), -1);
    assert_int_equal(refused.status, IDEM_FAILED_PRECONDITION);
    assert_true(refused.final);
    assert_int_equal(refused.effect, IDEM_EFFECT_ROLLED_BACK);

    assert_int_equal(world_transfer(world, "rich", "poor", 500, NULL), 500);
    assert_int_equal(world_charge(world, refused.key, "poor", 50, "", &late),
                     -1);
    assert_int_equal(late.status, IDEM_FAILED_PRECONDITION);
    assert_int_equal(late.effect, IDEM_EFFECT_REPLAYED);
    assert_string_equal(late.message, refused.message);
    assert_int_equal(world_balance(world, "poor"), 510);
}

static void
a_transfer_that_cannot_arrive_does_not_leave(void **state)
{
    struct payments_world *world = *state;
    struct idem_outcome outcome;

    world_open(world, "alice", 100);
    assert_int_equal(world_transfer(world, "alice", "nobody", 40, &outcome),
                     -1);
    assert_int_equal(outcome.status, IDEM_NOT_FOUND);
    assert_int_equal(outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_int_equal(world_balance(world, "alice"), 100);
    assert_int_equal(world_entries(world, "alice"), 0);
}

static void
a_transfer_moves_both_balances_or_says_why_not(void **state)
{
    struct payments_world *world = *state;
    struct idem_outcome outcome;

    world_open(world, "alice", 100);
    world_open(world, "bob", 0);
    assert_int_equal(world_transfer(world, "alice", "bob", 40, &outcome), 60);
    assert_int_equal(world_balance(world, "bob"), 40);
    world_transfer(world, "alice", "bob", 61, &outcome);
    assert_int_equal(outcome.status, IDEM_FAILED_PRECONDITION);
    world_transfer(world, "alice", "alice", 1, &outcome);
    assert_int_equal(outcome.status, IDEM_INVALID_ARGUMENT);
    assert_int_equal(world_balance(world, "alice"), 60);
}

/* Fault 45. */
static void
the_same_key_with_another_amount_changes_nothing(void **state)
{
    struct payments_world *world = *state;
    struct idem_outcome first, other;

    world_open(world, "alice", 100);
    world_charge(world, NULL, "alice", 30, "", &first);
    assert_int_equal(world_charge(world, first.key, "alice", 31, "", &other),
                     -1);
    assert_int_equal(other.status, IDEM_INVALID_ARGUMENT);
    assert_string_equal(other.reason, IDEM_KEY_REUSED);
    assert_int_equal(other.effect, IDEM_EFFECT_REFUSED);
    assert_int_equal(world_balance(world, "alice"), 70);
}

/* B125: one intent with two keys. */
static void
an_order_is_paid_once_even_under_two_keys(void **state)
{
    struct payments_world *world = *state;
    struct idem_outcome first, second;

    world_open(world, "alice", 100);
    assert_int_equal(world_charge(world, NULL, "alice", 30, "order-1", &first),
                     70);
    assert_int_equal(world_charge(world, NULL, "alice", 30, "order-1", &second),
                     -1);
    assert_string_not_equal(first.key, second.key);
    assert_int_equal(second.status, IDEM_ALREADY_EXISTS);
    assert_non_null(strstr(second.message, "alice/1"));
    assert_int_equal(world_balance(world, "alice"), 70);
    assert_int_equal(world_entries(world, "alice"), 1);
}

struct rival {
    struct payments_world *world;
    pthread_barrier_t *start;
    const char *key, *order;
    struct idem_outcome outcome;
};

static void *
charge_at_the_start(void *argument)
{
    struct rival *rival = argument;

    pthread_barrier_wait(rival->start);
    world_charge(rival->world, rival->key, "alice", 30, rival->order,
                 &rival->outcome);
    return NULL;
}

/* Let n threads charge at once; how many ended with this status and effect. */
static unsigned
race(struct payments_world *world, const char *key, const char *order,
     enum idem_effect effect)
{
    enum { RIVALS = 20 };
    struct rival rivals[RIVALS];
    pthread_t threads[RIVALS];
    pthread_barrier_t start;
    unsigned seen = 0;

    pthread_barrier_init(&start, NULL, RIVALS);
    for (int i = 0; i < RIVALS; i++) {
        rivals[i] = (struct rival){world, &start, key, order, {0}};
        assert_int_equal(
            pthread_create(&threads[i], NULL, charge_at_the_start, &rivals[i]),
            0);
    }
    for (int i = 0; i < RIVALS; i++) {
        pthread_join(threads[i], NULL);
        seen += rivals[i].outcome.effect == effect;
    }
    pthread_barrier_destroy(&start);
    return seen;
}

static void
twenty_clicks_at_once_are_one_charge(void **state)
{
    struct payments_world *world = *state;

    world_open(world, "alice", 1000);
    assert_int_equal(race(world, "one-click", "", IDEM_EFFECT_COMMITTED), 1);
    assert_int_equal(world_balance(world, "alice"), 970);
    assert_int_equal(race(world, "one-click", "", IDEM_EFFECT_REPLAYED), 20);
}

/* B125, at once. */
static void
twenty_keys_at_once_pay_an_order_once(void **state)
{
    struct payments_world *world = *state;

    world_open(world, "alice", 1000);
    assert_int_equal(race(world, NULL, "order-1", IDEM_EFFECT_COMMITTED), 1);
    assert_int_equal(world_balance(world, "alice"), 970);
    assert_int_equal(world_entries(world, "alice"), 1);
}

static void
an_account_is_opened_once_a_name(void **state)
{
    struct payments_world *world = *state;

    assert_int_equal(world_open(world, "alice", 100), 100);
    world_charge(world, NULL, "alice", 30, "", NULL);
    assert_int_equal(world_open(world, "alice", 100), 100);
    assert_int_equal(world_open(world, "alice", 999), -1);
    assert_int_equal(world_balance(world, "alice"), 70);
}

static void
a_wrong_amount_or_account_is_named(void **state)
{
    struct payments_world *world = *state;
    struct idem_outcome outcome;

    world_open(world, "alice", 100);
    world_charge(world, NULL, "alice", 0, "", &outcome);
    assert_int_equal(outcome.status, IDEM_INVALID_ARGUMENT);
    world_charge(world, NULL, "alice", -5, "", &outcome);
    assert_int_equal(outcome.status, IDEM_INVALID_ARGUMENT);
    world_charge(world, NULL, "alice", INT64_MAX, "", &outcome);
    assert_int_equal(outcome.status, IDEM_INVALID_ARGUMENT);
    world_charge(world, NULL, "nobody", 5, "", &outcome);
    assert_int_equal(outcome.status, IDEM_NOT_FOUND);
    assert_non_null(strstr(outcome.message, "nobody"));
    assert_int_equal(world_balance(world, "alice"), 100);
}

static void
the_books_answer_after_a_restart(void **state)
{
    struct payments_world *world = *state;
    struct idem_outcome first, again;

    world_open(world, "alice", 100);
    world_charge(world, NULL, "alice", 30, "", &first);
    payments_world_restart(world);
    assert_int_equal(world_charge(world, first.key, "alice", 30, "", &again),
                     70);
    assert_int_equal(again.effect, IDEM_EFFECT_REPLAYED);
    assert_true(again.first_at_ms > 0);
    assert_int_equal(world_balance(world, "alice"), 70);
}

static void
a_payout_is_paid_once_by_the_provider(void **state)
{
    struct payments_world *world = *state;
    struct idem_outcome first, again;
    char reference[64], repeated[64];

    world_payout(world, NULL, "bank-1", 30, reference, sizeof reference,
                 &first);
    assert_int_equal(first.status, IDEM_OK);
    world_payout(world, first.key, "bank-1", 30, repeated, sizeof repeated,
                 &again);
    assert_string_equal(repeated, reference);
    assert_int_equal(again.effect, IDEM_EFFECT_REPLAYED);
    assert_int_equal(world_paid(world), 1);
    world_payout(world, NULL, "bank-1", 30, repeated, sizeof repeated, &again);
    assert_string_not_equal(repeated, reference);
    assert_int_equal(world_paid(world), 2);
}

/* The provider knows keys and no tenants. */
static void
two_tenants_with_the_same_key_are_paid_twice(void **state)
{
    struct payments_world *world = *state;
    struct idem_outcome first, second, again;
    char acme[64], evil[64], repeated[64];

    payments_world_be("acme");
    world_payout(world, "order-1", "bank-1", 30, acme, sizeof acme, &first);
    payments_world_be("evil");
    world_payout(world, "order-1", "bank-1", 30, evil, sizeof evil, &second);
    assert_int_equal(first.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(second.effect, IDEM_EFFECT_COMMITTED);
    assert_string_not_equal(acme, evil);
    assert_int_equal(world_paid(world), 2);
    payments_world_be("acme");
    world_payout(world, "order-1", "bank-1", 30, repeated, sizeof repeated,
                 &again);
    assert_int_equal(again.effect, IDEM_EFFECT_REPLAYED);
    assert_string_equal(repeated, acme);
}

/* Fault 51: UNAVAILABLE from the handler releases the key. */
static void
a_payout_without_a_provider_may_be_tried_again(void **state)
{
    struct payments_world *world = *state;
    struct idem_outcome first, again;
    char reference[64];

    payments_world_stop_provider(world);
    world_payout(world, NULL, "bank-1", 30, reference, sizeof reference,
                 &first);
    assert_int_equal(first.status, IDEM_UNAVAILABLE);
    assert_false(first.final);

    payments_world_start_provider(world);
    world_payout(world, first.key, "bank-1", 30, reference, sizeof reference,
                 &again);
    assert_int_equal(again.status, IDEM_OK);
    assert_int_equal(world_paid(world), 1);
}

static void
a_destination_with_a_line_end_does_not_reach_the_provider(void **state)
{
    struct payments_world *world = *state;
    struct idem_outcome outcome;
    char reference[64];

    world_payout(world, NULL, "bank-1 5\nPAY k bank-2", 30, reference,
                 sizeof reference, &outcome);
    assert_int_equal(outcome.status, IDEM_INVALID_ARGUMENT);
    assert_int_equal(world_paid(world), 0);
}

static void
entries_are_listed_by_pages(void **state)
{
    struct payments_world *world = *state;
    payments_list_entries_request request = PAYMENTS_LIST_ENTRIES_REQUEST_INIT;
    payments_list_entries_reply *reply;

    world_open(world, "alice", 100);
    for (int i = 1; i <= 5; i++)
        world_charge(world, NULL, "alice", i, i == 4 ? "order-4" : "", NULL);
    request.account = "alice";
    request.after = 2;
    request.limit = 2;
    assert_int_equal(
        payments_list_entries(world->channel, &request, &reply, NULL, NULL),
        IDEM_OK);
    assert_int_equal(reply->n_entries, 2);
    assert_int_equal(reply->entries[0]->number, 3);
    assert_int_equal(reply->entries[1]->amount, -4);
    assert_string_equal(reply->entries[0]->order_id, "");
    assert_string_equal(reply->entries[1]->order_id, "order-4");
    payments_list_entries_reply_free(reply);
}

#define IN_A_WORLD(test)                                                       \
    cmocka_unit_test_setup_teardown(test, payments_world_open,                 \
                                    payments_world_close)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_charge_takes_money_once_however_often_it_is_repeated),
        IN_A_WORLD(
            a_late_duplicate_of_a_refused_charge_is_refused_after_the_top_up),
        IN_A_WORLD(a_transfer_that_cannot_arrive_does_not_leave),
        IN_A_WORLD(a_transfer_moves_both_balances_or_says_why_not),
        IN_A_WORLD(the_same_key_with_another_amount_changes_nothing),
        IN_A_WORLD(an_order_is_paid_once_even_under_two_keys),
        IN_A_WORLD(twenty_clicks_at_once_are_one_charge),
        IN_A_WORLD(twenty_keys_at_once_pay_an_order_once),
        IN_A_WORLD(an_account_is_opened_once_a_name),
        IN_A_WORLD(a_wrong_amount_or_account_is_named),
        IN_A_WORLD(the_books_answer_after_a_restart),
        IN_A_WORLD(a_payout_is_paid_once_by_the_provider),
        IN_A_WORLD(two_tenants_with_the_same_key_are_paid_twice),
        IN_A_WORLD(a_payout_without_a_provider_may_be_tried_again),
        IN_A_WORLD(a_destination_with_a_line_end_does_not_reach_the_provider),
        IN_A_WORLD(entries_are_listed_by_pages),
    };

    return cmocka_run_group_tests_name("payments on SQLite", tests, NULL,
                                       NULL) +
           cmocka_run_group_tests_name("payments on PostgreSQL", tests,
                                       payments_world_use_postgres,
                                       payments_world_leave_postgres);
}
