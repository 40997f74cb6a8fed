#include "suite_call.h"

#include <string.h>

/* A key that somebody abandons, by one server, while another one runs it. */

#define RACES 200 /* of minted keys; a tenth of opaque ones */
#define BATCH 4   /* of them at a time: half of them keep a connection */

/* The same database through a store of its own, as another server has. */
static struct suite
another_server(const struct suite *suite)
{
    struct suite other = *suite;

    other.store = suite->factory->open(suite->factory->with);
    return other;
}

/* It ran, so that an abandon then and afterwards says so. */
static void
judge_run(struct suite_call *abandon)
{
    if (abandon->ticket.verdict == IDEM_VERDICT_RUNNING)
        (void)call_abandon(abandon);
    assert_int_equal(abandon->ticket.verdict, IDEM_VERDICT_DONE);
    assert_text(abandon->ticket.answer.reply, "ran");
}

/* It did not, whatever it was told when it met the abandon at work. */
static void
judge_refused(struct suite_call *claim, const struct suite_call *abandon)
{
    assert_int_equal(abandon->ticket.verdict, IDEM_VERDICT_ABANDONED);
    if (claim->ticket.verdict != IDEM_VERDICT_RUNNING)
        assert_int_equal(claim->ticket.verdict, IDEM_VERDICT_ABANDONED);
    assert_int_equal(call_claim(claim), IDEM_VERDICT_ABANDONED);
}

struct race {
    struct suite_call claim, abandon;
};

/* Neither waits for the other. */
static void
start(struct race *race, struct suite *suite, struct suite *other, unsigned i)
{
    enum idem_mode mode = i & 1 ? IDEM_MODE_LEASED : IDEM_MODE_TRANSACTION;
    char key[IDEM_KEY_MAX + 1];

    suite_key(suite, key);
    call_open(&race->claim, suite, key, mode, 1);
    call_open(&race->abandon, other, key, mode, 1);
    race->abandon.ticket.fingerprint.version = 0;
    if (i & 2)
        call_start(&race->abandon, other->store->ops->abandon);
    call_start(&race->claim, suite->store->ops->claim);
    if (!(i & 2))
        call_start(&race->abandon, other->store->ops->abandon);
}

/* Did it run? */
static bool
finish(struct race *race)
{
    bool ran = call_await(&race->claim) == IDEM_VERDICT_MINE;

    if (ran)
        assert_int_equal(call_complete(&race->claim, IDEM_OK, "ran"),
                         IDEM_VERDICT_MINE);
    (void)call_await(&race->abandon);
    if (ran)
        judge_run(&race->abandon);
    else
        judge_refused(&race->claim, &race->abandon);
    call_close(&race->abandon);
    call_close(&race->claim);
    return ran;
}

/* On sqlite the other server is another process, which waits for each open
 * transaction: it would wait for a whole batch of them. */
static unsigned
batch_of(const struct suite *suite)
{
    return strcmp(suite->store->ops->name, "sqlite") == 0 ? 1 : BATCH;
}

/* Fault 74, scaled. */
static void
of_a_claim_and_an_abandon_elsewhere_exactly_one_wins(void **state)
{
    struct suite *suite = *state;
    struct suite other = another_server(suite);
    unsigned ran = 0, races = suite->minted ? RACES : RACES / 10;
    unsigned batch = batch_of(suite);
    struct race race[BATCH];

    for (unsigned i = 0; i < races; i += batch) {
        for (unsigned j = 0; j < batch; j++)
            start(&race[j], suite, &other, i + j);
        for (unsigned j = 0; j < batch; j++)
            ran += finish(&race[j]);
    }
    print_message("%u of %u ran\n", ran, races);
    assert_in_range(ran, 1, races - 1);
    idem_store_free(other.store);
}

/* As a server does: until it is known. */
static enum idem_verdict
run_until_known(struct suite_call *call)
{
    enum idem_verdict verdict = call_await(call);

    while (verdict == IDEM_VERDICT_RUNNING || verdict == IDEM_VERDICT_CONFLICT)
        verdict = call_run(call);
    return verdict;
}

/* Fault 74, with transaction STATEMENT, which takes no lock that tells of it.
 */
static void
of_a_statement_and_an_abandon_elsewhere_exactly_one_wins(void **state)
{
    struct suite *suite = *state;
    struct suite other = another_server(suite);
    unsigned ran = 0;

    for (unsigned i = 0; i < RACES / 10; i++) {
        struct suite_call run, abandon;
        char key[IDEM_KEY_MAX + 1];
        bool mine;

        suite_key(suite, key);
        call_open(&run, suite, key, IDEM_MODE_TRANSACTION, 1);
        call_open(&abandon, &other, key, IDEM_MODE_TRANSACTION, 1);
        abandon.ticket.fingerprint.version = 0;
        call_add_effect(&run, 1);
        call_start(&run, suite->store->ops->run);
        call_start(&abandon, other.store->ops->abandon);
        mine = run_until_known(&run) == IDEM_VERDICT_MINE;
        (void)call_await(&abandon);
        if (mine)
            judge_run(&abandon);
        else
            assert_int_equal(run.ticket.verdict, IDEM_VERDICT_ABANDONED);
        assert_int_equal(suite_effects(suite, key), mine);
        ran += mine;
        call_close(&abandon);
        call_close(&run);
    }
    print_message("%u of %u ran\n", ran, RACES / 10);
    idem_store_free(other.store);
}

/* Fault 73 and D8: the first late attempt does not use the refusal up, nor does
 * maintenance. */
static void
every_late_attempt_of_an_abandoned_key_is_refused(void **state)
{
    static const enum idem_mode modes[] = {IDEM_MODE_TRANSACTION,
                                           IDEM_MODE_LEASED};
    struct suite *suite = *state;

    for (int i = 0; i < 2; i++) {
        struct suite_call abandon, late;
        char key[IDEM_KEY_MAX + 1];

        suite_key(suite, key);
        call_open(&abandon, suite, key, modes[i], 1);
        abandon.ticket.fingerprint.version = 0;
        assert_int_equal(call_abandon(&abandon), IDEM_VERDICT_ABANDONED);
        for (int j = 0; j < 4; j++) {
            call_open(&late, suite, key, modes[i], 1);
            late.ticket.repeat = j % 2;
            assert_int_equal(call_claim(&late), IDEM_VERDICT_ABANDONED);
            call_close(&late);
            assert_int_equal(suite->store->ops->maintain(suite->store, NULL),
                             IDEM_OK);
        }
        assert_int_equal(call_abandon(&abandon), IDEM_VERDICT_ABANDONED);
        call_close(&abandon);
    }
}

int
suite_run_abandon(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_claim_and_an_abandon_elsewhere_exactly_one_wins),
        cmocka_unit_test(
            of_a_statement_and_an_abandon_elsewhere_exactly_one_wins),
        cmocka_unit_test(every_late_attempt_of_an_abandoned_key_is_refused),
    };

    return cmocka_run_group_tests_name("abandon", tests, suite_set_up,
                                       suite_tear_down);
}
