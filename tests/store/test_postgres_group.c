#include "asked.h"

#include "store_postgres_batch.h"

#include <idem/call.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Work of mode LEASED that shares transactions: everybody gets the answer that
 * is meant for him, whatever his neighbours do (dedup.md 4 and 7). */

#define MANY 504
#define FEW 24
#define TOGETHER 12 /* that are not split over sessions */

/* --- Everything at once --- */

enum kind {
    CLAIMS_NEW,
    CLAIMS_DONE,
    CLAIMS_RUNNING,
    COMPLETES,
    COMPLETES_FENCED,
    RELEASES,
    DOUBTS,
    RENEWS,
    MARKS,
    KINDS,
};

static void
choose(struct postgres_world *world, struct asked *asked, unsigned i)
{
    struct idem_ticket *ticket = &asked->call.ticket;

    switch ((enum kind)(i % KINDS)) {
    case CLAIMS_NEW:
    case KINDS:
        call_close(&asked->call);
        asked_open(asked, world, i % 2 == 0);
        ask(asked, asked_ops(world)->claim, IDEM_VERDICT_MINE);
        break;
    case CLAIMS_DONE:
        ticket->repeat = i % 2 == 0;
        ask(asked, asked_ops(world)->claim, IDEM_VERDICT_DONE);
        break;
    case CLAIMS_RUNNING:
        ask(asked, asked_ops(world)->claim, IDEM_VERDICT_RUNNING);
        break;
    case COMPLETES:
        ask_to_complete(asked, world, i, IDEM_VERDICT_MINE);
        break;
    case COMPLETES_FENCED:
        ticket->token++;
        ask_to_complete(asked, world, i, IDEM_VERDICT_FENCED);
        break;
    case RELEASES:
        ask(asked, asked_ops(world)->release, IDEM_VERDICT_MINE);
        break;
    case DOUBTS:
        ask(asked, asked_ops(world)->doubt, IDEM_VERDICT_MINE);
        break;
    case RENEWS:
        ask(asked, asked_ops(world)->renew, IDEM_VERDICT_MINE);
        break;
    case MARKS:
        ticket->step = "acting";
        ask(asked, asked_ops(world)->mark, IDEM_VERDICT_MINE);
        break;
    }
}

static void
assert_record_says(struct postgres_world *world, const struct asked *asked,
                   const char *what)
{
    const char *table =
        asked->call.ticket.id.key.minted ? "idem_record" : "idem_record_opaque";

    if (postgres_sql(world->postgres,
                     "SELECT count(*) FROM %s WHERE key_text = '%s' AND %s",
                     table, asked->call.key, what) != 1)
        fail_msg("%s: not %s", asked->call.key, what);
}

static void
assert_recorded(struct postgres_world *world, const struct asked *asked,
                enum kind kind)
{
    static const char *const says[KINDS] = {
        [CLAIMS_NEW] = "state = 'RUNNING' AND token = 1",
        [CLAIMS_RUNNING] = "state = 'RUNNING' AND token = 1",
        [COMPLETES_FENCED] = "state = 'RUNNING' AND token = 1",
        [RELEASES] = "state = 'RELEASED'",
        [DOUBTS] = "state = 'DOUBT'",
        [RENEWS] = "state = 'RUNNING' AND step IS NULL",
        [MARKS] = "state = 'RUNNING' AND step = 'acting'",
    };

    if (kind == CLAIMS_DONE || kind == COMPLETES)
        assert_asked_replays(world, asked);
    else
        assert_record_says(world, asked, says[kind]);
}

static void
every_call_of_many_gets_its_own_answer(void **state)
{
    struct postgres_world *world = *state;
    struct asked *asked = calloc(MANY, sizeof(*asked));

    assert_non_null(asked);
    for (unsigned i = 0; i < MANY; i++)
        asked_open(&asked[i], world, i % 2 == 0);
    asked_claim(world, asked, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        asked[i].op = NULL;
        if (i % KINDS == CLAIMS_DONE)
            ask_to_complete(&asked[i], world, i, IDEM_VERDICT_MINE);
    }
    asked_together(world, asked, MANY);
    for (unsigned i = 0; i < MANY; i++)
        choose(world, &asked[i], i);
    asked_together(world, asked, MANY);
    assert_asked(asked, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        if (i % KINDS == CLAIMS_DONE)
            assert_text(asked[i].call.ticket.answer.reply, asked[i].reply);
        assert_recorded(world, &asked[i], (enum kind)(i % KINDS));
        call_close(&asked[i].call);
    }
    free(asked);
}

static void
those_that_wait_share_a_commit(void **state)
{
    struct postgres_world *world = *state;
    struct asked asked[FEW];

    for (unsigned i = 0; i < FEW; i++) {
        asked_open(&asked[i], world, true);
        asked[i].call.ticket.id.scope = "shop.v1.Shop/Share";
        call_identify(&asked[i].call);
    }
    asked_claim(world, asked, FEW);
    assert_in_range(
        postgres_sql(world->postgres,
                     "SELECT count(DISTINCT xmin::text) FROM idem_record "
                     "WHERE scope = 'shop.v1.Shop/Share'"),
        1, FEW / 2);
    for (unsigned i = 0; i < FEW; i++)
        call_close(&asked[i].call);
}

/* A thread that posts many in one go wakes nobody before the last of them. */
static void
start_all(void *with)
{
    struct asked *asked = with;

    for (unsigned i = 0; i < TOGETHER; i++)
        call_start(&asked[i].call, asked[i].op);
}

static void
what_a_thread_posts_in_one_go_is_one_batch(void **state)
{
    struct postgres_world *world = *state;
    struct asked asked[TOGETHER];

    for (unsigned i = 0; i < TOGETHER; i++) {
        asked_open(&asked[i], world, true);
        asked[i].call.ticket.id.scope = "shop.v1.Shop/Burst";
        call_identify(&asked[i].call);
        ask(&asked[i], asked_ops(world)->claim, IDEM_VERDICT_MINE);
    }
    idem_call_resume_all(start_all, asked);
    for (unsigned i = 0; i < TOGETHER; i++)
        (void)call_await(&asked[i].call);
    assert_asked(asked, TOGETHER);
    assert_int_equal(
        postgres_sql(world->postgres,
                     "SELECT count(DISTINCT xmin::text) FROM idem_record "
                     "WHERE scope = 'shop.v1.Shop/Burst'"),
        1);
    for (unsigned i = 0; i < TOGETHER; i++)
        call_close(&asked[i].call);
}

/* --- Neighbours --- */

static void
a_poisoned_claim_fails_alone(void **state)
{
    struct postgres_world *world = *state;
    struct asked asked[FEW];

    for (unsigned i = 0; i < FEW; i++) {
        asked_open(&asked[i], world, i % 2 == 0);
        ask(&asked[i], asked_ops(world)->claim, IDEM_VERDICT_MINE);
    }
    asked[7].call.ticket.lease_ms = INT64_MAX; /* 22008: no such time */
    asked[7].verdict = IDEM_VERDICT_FAILED;
    asked[14].call.ticket.id.scope = "shop\xff"; /* 22021: no UTF-8 */
    asked[14].verdict = IDEM_VERDICT_FAILED;
    asked_together(world, asked, FEW);
    assert_asked(asked, FEW);
    assert_int_equal(asked[14].call.ticket.error.status, IDEM_INVALID_ARGUMENT);
    for (unsigned i = 0; i < FEW; i++)
        call_close(&asked[i].call);
}

/* Its batch is undone when its claim was plain, and goes again by ON CONFLICT;
 * the rounds are of both kinds (decision 56). */
static void
a_claim_that_meets_a_record_harms_no_neighbour(void **state)
{
    struct postgres_world *world = *state;
    struct asked asked[FEW];

    for (unsigned round = 0; round < 3 * WARY_LEAST; round++) {
        for (unsigned i = 0; i < FEW; i++) {
            asked_open(&asked[i], world, true);
            if (i % 2 == 0)
                ask(&asked[i], asked_ops(world)->claim, IDEM_VERDICT_MINE);
        }
        asked_together(world, asked, FEW);
        assert_asked(asked, FEW);
        call_close(&asked[1].call);
        call_open(&asked[1].call, &world->suite, asked[0].call.key,
                  IDEM_MODE_LEASED, 1);
        for (unsigned i = 1; i < FEW; i++) {
            if (i % 2 == 0)
                ask_to_complete(&asked[i], world, i, IDEM_VERDICT_MINE);
            else
                ask(&asked[i], asked_ops(world)->claim,
                    i == 1 ? IDEM_VERDICT_RUNNING : IDEM_VERDICT_MINE);
        }
        asked[0].op = NULL;
        asked_together(world, asked, FEW);
        assert_asked(asked, FEW);
        assert_record_says(world, &asked[0], "state = 'RUNNING' AND token = 1");
        assert_record_says(world, &asked[2], "state = 'DONE'");
        assert_record_says(world, &asked[3], "state = 'RUNNING' AND token = 1");
        for (unsigned i = 0; i < FEW; i++)
            call_close(&asked[i].call);
    }
}

/* As after a failover to a standby that had not been told: the key that has no
 * record any more must not get one by its completion. */
static void
a_completion_whose_record_vanished_is_fenced_alone(void **state)
{
    struct postgres_world *world = *state;
    struct asked asked[FEW];

    for (unsigned i = 0; i < FEW; i++)
        asked_open(&asked[i], world, i % 2 == 0);
    asked_claim(world, asked, FEW);
    for (unsigned i = 3; i < 5; i++)
        postgres_sql(world->postgres, "DELETE FROM %s WHERE key_text = '%s'",
                     i % 2 ? "idem_record_opaque" : "idem_record",
                     asked[i].call.key);
    for (unsigned i = 0; i < FEW; i++)
        ask_to_complete(&asked[i], world, i,
                        i == 3 || i == 4 ? IDEM_VERDICT_FENCED
                                         : IDEM_VERDICT_MINE);
    asked_together(world, asked, FEW);
    assert_asked(asked, FEW);
    for (unsigned i = 0; i < FEW; i++) {
        if (i == 3 || i == 4)
            assert_int_equal(call_look(&asked[i].call), IDEM_VERDICT_ABSENT);
        else
            assert_asked_replays(world, &asked[i]);
        call_close(&asked[i].call);
    }
}

/* --- The connection is cut --- */

static void
ask_of_all_kinds(struct postgres_world *world, struct asked *asked)
{
    for (unsigned i = 0; i < FEW; i++) {
        unsigned kind = i % KINDS;

        if (kind == CLAIMS_DONE || kind == CLAIMS_RUNNING ||
            kind == COMPLETES_FENCED)
            kind = COMPLETES;
        choose(world, &asked[i], kind);
        if (kind == COMPLETES)
            ask_to_complete(&asked[i], world, i, IDEM_VERDICT_MINE);
    }
}

static void
cut_and_judge(struct postgres_world *world, enum tcp_proxy_cut cut,
              const char *needle)
{
    struct asked asked[FEW];
    unsigned cuts = tcp_proxy_cuts(world->proxy);

    for (unsigned i = 0; i < FEW; i++)
        asked_open(&asked[i], world, i % 2 == 0);
    asked_claim(world, asked, FEW);
    ask_of_all_kinds(world, asked);
    tcp_proxy_cut(world->proxy, cut, needle, 1);
    asked_together(world, asked, FEW);
    assert_asked(asked, FEW);
    assert_int_equal(tcp_proxy_cuts(world->proxy), cuts + 1);
    for (unsigned i = 0; i < FEW; i++) {
        if (asked[i].op == asked_ops(world)->complete)
            assert_asked_replays(world, &asked[i]);
        if (asked[i].op == asked_ops(world)->claim)
            assert_int_equal(asked[i].call.ticket.executions, 1);
        call_close(&asked[i].call);
    }
    tcp_proxy_cut(world->proxy, TCP_PROXY_CUT_NEVER, "", 0);
}

/* Faults 17, 18; M1. The needles are of the claim, the completion and the mark;
 * what else is in the batch goes with them. */
static void
a_batch_that_is_cut_is_sent_again_and_known_again(void **state)
{
    static const char *const needles[] = {"shop.v1.Shop/Buy", "reply-",
                                          "acting"};

    for (unsigned i = 0; i < sizeof(needles) / sizeof(needles[0]); i++) {
        cut_and_judge(*state, TCP_PROXY_CUT_BEFORE, needles[i]);
        cut_and_judge(*state, TCP_PROXY_CUT_AFTER, needles[i]);
    }
}

/* --- Two servers --- */

static void
two_servers_that_claim_the_same_keys_do_not_deadlock(void **state)
{
    enum { KEYS = 200 };
    struct postgres_world *world = *state;
    struct suite other = world->suite;
    struct suite_call *ours = calloc(KEYS, sizeof(*ours));
    struct suite_call *theirs = calloc(KEYS, sizeof(*theirs));
    int64_t deadlocks = postgres_sql(
        world->postgres, "SELECT sum(deadlocks) FROM pg_stat_database");

    assert_true(ours && theirs);
    other.store = world_store(world);
    for (unsigned i = 0; i < KEYS; i++) {
        char key[IDEM_KEY_MAX + 1];

        suite_key(&world->suite, key);
        call_open(&ours[i], &world->suite, key, IDEM_MODE_LEASED, 1);
        call_open(&theirs[i], &other, key, IDEM_MODE_LEASED, 1);
    }
    for (unsigned i = 0; i < KEYS; i++) {
        call_start(&ours[i], asked_ops(world)->claim);
        call_start(&theirs[KEYS - 1 - i], asked_ops(world)->claim);
    }
    for (unsigned i = 0; i < KEYS; i++) {
        enum idem_verdict mine = call_await(&ours[i]);
        enum idem_verdict his = call_await(&theirs[i]);

        assert_true((mine == IDEM_VERDICT_MINE) != (his == IDEM_VERDICT_MINE));
        assert_true(mine == IDEM_VERDICT_RUNNING ||
                    his == IDEM_VERDICT_RUNNING);
        call_close(&ours[i]);
        call_close(&theirs[i]);
    }
    idem_store_free(other.store);
    assert_int_equal(
        postgres_sql(world->postgres,
                     "SELECT sum(deadlocks) FROM pg_stat_database"),
        deadlocks);
    free(ours);
    free(theirs);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_of_many_gets_its_own_answer),
        cmocka_unit_test(those_that_wait_share_a_commit),
        cmocka_unit_test(what_a_thread_posts_in_one_go_is_one_batch),
        cmocka_unit_test(a_poisoned_claim_fails_alone),
        cmocka_unit_test(a_claim_that_meets_a_record_harms_no_neighbour),
        cmocka_unit_test(a_completion_whose_record_vanished_is_fenced_alone),
        cmocka_unit_test(a_batch_that_is_cut_is_sent_again_and_known_again),
        cmocka_unit_test(two_servers_that_claim_the_same_keys_do_not_deadlock),
    };

    return cmocka_run_group_tests(tests, asked_set_up, asked_tear_down);
}
