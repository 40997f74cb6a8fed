#include "postgres_world.h"

#include <idem/call.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Work of mode LEASED that shares transactions: everybody gets the answer that
 * is meant for him, whatever his neighbours do (dedup.md 4 and 7). */

#define NS_PER_MS INT64_C(1000000)
#define MANY 504
#define FEW 24
#define TOGETHER 12 /* that are not split over sessions */
#define REPLY_MAX 24
#define DAY_MS INT64_C(86400000)

/* A call, what is asked of it, and what the answer is to be. */
struct asked {
    struct suite_call call;
    suite_op_fn *op;
    enum idem_verdict verdict;
    char reply[REPLY_MAX];
};

static const struct idem_store_ops *
ops(const struct postgres_world *world)
{
    return world->suite.store->ops;
}

static void
open_asked(struct asked *asked, struct postgres_world *world, bool minted)
{
    const struct idem_clock *clock = world->factory.clock;
    char key[IDEM_KEY_MAX + 1];

    if (minted) { /* not by suite_key, which asks the database each time */
        suite_key_at(key, clock->wall_ms(clock), DAY_MS);
    } else {
        world->suite.minted = false;
        suite_key(&world->suite, key);
        world->suite.minted = true;
    }
    call_open(&asked->call, &world->suite, key, IDEM_MODE_LEASED, 1);
    asked->op = NULL;
}

/* The database is silent until all have asked, so that they share batches. */
static void
ask_together(struct postgres_world *world, struct asked *asked, unsigned n)
{
    tcp_proxy_hold(world->proxy, 1);
    for (unsigned i = 0; i < n; i++)
        if (asked[i].op)
            call_start(&asked[i].call, asked[i].op);
    tcp_proxy_hold(world->proxy, 0);
    for (unsigned i = 0; i < n; i++)
        if (asked[i].op)
            (void)call_await(&asked[i].call);
}

static void
assert_answers(const struct asked *asked, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (asked[i].op && asked[i].call.ticket.verdict != asked[i].verdict)
            fail_msg("call %u: verdict %d and not %d: %s", i,
                     asked[i].call.ticket.verdict, asked[i].verdict,
                     asked[i].call.ticket.error.message);
}

static void
ask(struct asked *asked, suite_op_fn *op, enum idem_verdict verdict)
{
    asked->op = op;
    asked->verdict = verdict;
}

static void
ask_complete(struct asked *asked, const struct postgres_world *world,
             unsigned number, enum idem_verdict verdict)
{
    snprintf(asked->reply, sizeof(asked->reply), "reply-%u", number);
    asked->call.ticket.answer =
        (struct idem_answer){.reply = idem_bytes_of(asked->reply)};
    ask(asked, ops(world)->complete, verdict);
}

static void
claim_all(struct postgres_world *world, struct asked *asked, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        ask(&asked[i], ops(world)->claim, IDEM_VERDICT_MINE);
    ask_together(world, asked, n);
    assert_answers(asked, n);
}

static void
complete_all(struct postgres_world *world, struct asked *asked, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        ask_complete(&asked[i], world, i, IDEM_VERDICT_MINE);
    ask_together(world, asked, n);
    assert_answers(asked, n);
}

/* A claim by somebody else: the recorded answer is this call's own. */
static void
assert_replays(struct postgres_world *world, const struct asked *asked)
{
    struct suite_call repeat;

    call_open(&repeat, &world->suite, asked->call.key, IDEM_MODE_LEASED, 1);
    repeat.ticket.repeat = true;
    assert_int_equal(call_claim(&repeat), IDEM_VERDICT_DONE);
    assert_text(repeat.ticket.answer.reply, asked->reply);
    call_close(&repeat);
}

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
        open_asked(asked, world, i % 2 == 0);
        ask(asked, ops(world)->claim, IDEM_VERDICT_MINE);
        break;
    case CLAIMS_DONE:
        ticket->repeat = i % 2 == 0;
        ask(asked, ops(world)->claim, IDEM_VERDICT_DONE);
        break;
    case CLAIMS_RUNNING:
        ask(asked, ops(world)->claim, IDEM_VERDICT_RUNNING);
        break;
    case COMPLETES:
        ask_complete(asked, world, i, IDEM_VERDICT_MINE);
        break;
    case COMPLETES_FENCED:
        ticket->token++;
        ask_complete(asked, world, i, IDEM_VERDICT_FENCED);
        break;
    case RELEASES:
        ask(asked, ops(world)->release, IDEM_VERDICT_MINE);
        break;
    case DOUBTS:
        ask(asked, ops(world)->doubt, IDEM_VERDICT_MINE);
        break;
    case RENEWS:
        ask(asked, ops(world)->renew, IDEM_VERDICT_MINE);
        break;
    case MARKS:
        ticket->step = "acting";
        ask(asked, ops(world)->mark, IDEM_VERDICT_MINE);
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
        assert_replays(world, asked);
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
        open_asked(&asked[i], world, i % 2 == 0);
    claim_all(world, asked, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        asked[i].op = NULL;
        if (i % KINDS == CLAIMS_DONE)
            ask_complete(&asked[i], world, i, IDEM_VERDICT_MINE);
    }
    ask_together(world, asked, MANY);
    for (unsigned i = 0; i < MANY; i++)
        choose(world, &asked[i], i);
    ask_together(world, asked, MANY);
    assert_answers(asked, MANY);
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
        open_asked(&asked[i], world, true);
        asked[i].call.ticket.id.scope = "shop.v1.Shop/Share";
        call_identify(&asked[i].call);
    }
    claim_all(world, asked, FEW);
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
        open_asked(&asked[i], world, true);
        asked[i].call.ticket.id.scope = "shop.v1.Shop/Burst";
        call_identify(&asked[i].call);
        ask(&asked[i], ops(world)->claim, IDEM_VERDICT_MINE);
    }
    idem_call_resume_all(start_all, asked);
    for (unsigned i = 0; i < TOGETHER; i++)
        (void)call_await(&asked[i].call);
    assert_answers(asked, TOGETHER);
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
        open_asked(&asked[i], world, i % 2 == 0);
        ask(&asked[i], ops(world)->claim, IDEM_VERDICT_MINE);
    }
    asked[7].call.ticket.lease_ms = INT64_MAX; /* 22008: no such time */
    asked[7].verdict = IDEM_VERDICT_FAILED;
    asked[14].call.ticket.id.scope = "shop\xff"; /* 22021: no UTF-8 */
    asked[14].verdict = IDEM_VERDICT_FAILED;
    ask_together(world, asked, FEW);
    assert_answers(asked, FEW);
    assert_int_equal(asked[14].call.ticket.error.status, IDEM_INVALID_ARGUMENT);
    for (unsigned i = 0; i < FEW; i++)
        call_close(&asked[i].call);
}

/* As after a failover to a standby that had not been told: the key that has no
 * record any more must not get one by its completion. */
static void
a_completion_whose_record_vanished_is_fenced_alone(void **state)
{
    struct postgres_world *world = *state;
    struct asked asked[FEW];

    for (unsigned i = 0; i < FEW; i++)
        open_asked(&asked[i], world, i % 2 == 0);
    claim_all(world, asked, FEW);
    for (unsigned i = 3; i < 5; i++)
        postgres_sql(world->postgres, "DELETE FROM %s WHERE key_text = '%s'",
                     i % 2 ? "idem_record_opaque" : "idem_record",
                     asked[i].call.key);
    for (unsigned i = 0; i < FEW; i++)
        ask_complete(&asked[i], world, i,
                     i == 3 || i == 4 ? IDEM_VERDICT_FENCED
                                      : IDEM_VERDICT_MINE);
    ask_together(world, asked, FEW);
    assert_answers(asked, FEW);
    for (unsigned i = 0; i < FEW; i++) {
        if (i == 3 || i == 4)
            assert_int_equal(call_look(&asked[i].call), IDEM_VERDICT_ABSENT);
        else
            assert_replays(world, &asked[i]);
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
            ask_complete(&asked[i], world, i, IDEM_VERDICT_MINE);
    }
}

static void
cut_and_judge(struct postgres_world *world, enum tcp_proxy_cut cut,
              const char *needle)
{
    struct asked asked[FEW];
    unsigned cuts = tcp_proxy_cuts(world->proxy);

    for (unsigned i = 0; i < FEW; i++)
        open_asked(&asked[i], world, i % 2 == 0);
    claim_all(world, asked, FEW);
    ask_of_all_kinds(world, asked);
    tcp_proxy_cut(world->proxy, cut, needle, 1);
    ask_together(world, asked, FEW);
    assert_answers(asked, FEW);
    assert_int_equal(tcp_proxy_cuts(world->proxy), cuts + 1);
    for (unsigned i = 0; i < FEW; i++) {
        if (asked[i].op == ops(world)->complete)
            assert_replays(world, &asked[i]);
        if (asked[i].op == ops(world)->claim)
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
        call_start(&ours[i], ops(world)->claim);
        call_start(&theirs[KEYS - 1 - i], ops(world)->claim);
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

/* --- Too many, too late --- */

static int64_t
now_ns(void)
{
    const struct idem_clock *clock = idem_clock_system();

    return clock->monotonic_ns(clock);
}

static void
beyond_a_bound_claims_are_refused_before_anything(void **state)
{
    enum { CLAIMS = 8 * 512 + 2 * 512 + 100 };
    struct postgres_world *world = *state;
    struct asked *asked = calloc(CLAIMS, sizeof(*asked));
    struct asked before;
    unsigned refused = 0;

    assert_non_null(asked);
    open_asked(&before, world, true);
    assert_int_equal(call_claim(&before.call), IDEM_VERDICT_MINE);
    for (unsigned i = 0; i < CLAIMS; i++)
        open_asked(&asked[i], world, true);
    tcp_proxy_hold(world->proxy, 1);
    for (unsigned i = 0; i < CLAIMS; i++)
        call_start(&asked[i].call, ops(world)->claim);
    ask_complete(&before, world, 0, IDEM_VERDICT_MINE);
    call_start(&before.call, before.op);
    assert_int_equal(call_await(&asked[CLAIMS - 1].call), IDEM_VERDICT_FAILED);
    tcp_proxy_hold(world->proxy, 0);
    assert_int_equal(call_await(&before.call), IDEM_VERDICT_MINE);
    for (unsigned i = 0; i < CLAIMS; i++) {
        if (call_await(&asked[i].call) == IDEM_VERDICT_FAILED) {
            assert_int_equal(asked[i].call.ticket.error.status,
                             IDEM_RESOURCE_EXHAUSTED);
            refused++;
        }
        call_close(&asked[i].call);
    }
    assert_in_range(refused, 100, CLAIMS - 8 * 512);
    call_close(&before.call);
    free(asked);
}

/* B082. */
static void
a_late_call_is_told_so_while_its_neighbours_wait(void **state)
{
    struct postgres_world *world = *state;
    struct asked asked[FEW];

    for (unsigned i = 0; i < FEW; i++)
        open_asked(&asked[i], world, true);
    tcp_proxy_hold(world->proxy, 1);
    for (unsigned i = 0; i < FEW; i++) {
        if (i % 2)
            asked[i].call.ticket.deadline_ns = now_ns() + 300 * NS_PER_MS;
        call_start(&asked[i].call, ops(world)->claim);
    }
    for (unsigned i = 1; i < FEW; i += 2) {
        assert_int_equal(call_await(&asked[i].call), IDEM_VERDICT_FAILED);
        assert_int_equal(asked[i].call.ticket.error.status,
                         IDEM_DEADLINE_EXCEEDED);
    }
    tcp_proxy_hold(world->proxy, 0);
    for (unsigned i = 0; i < FEW; i += 2)
        assert_int_equal(call_await(&asked[i].call), IDEM_VERDICT_MINE);
    for (unsigned i = 0; i < FEW; i++) {
        if (i % 2) {
            asked[i].call.ticket.deadline_ns = INT64_MAX;
            assert_int_equal(call_claim(&asked[i].call), IDEM_VERDICT_MINE);
            assert_int_equal(asked[i].call.ticket.executions, 1);
        }
        call_close(&asked[i].call);
    }
}

/* --- Plans --- */

static int64_t
tuples_read(struct postgres_world *world, const char *column)
{
    return postgres_sql(world->postgres,
                        "SELECT coalesce(sum(%s), 0)::bigint FROM "
                        "pg_stat_user_tables AS t JOIN pg_stat_user_indexes AS "
                        "i USING (relid) WHERE t.relname LIKE 'idem_record%%'",
                        column);
}

/* A session tells what it has read when it ends, at the latest. */
static void
end_sessions(struct postgres_world *world)
{
    idem_store_free(world->suite.store);
    world->suite.store = NULL;
    assert_true(postgres_wait(world->postgres, 20000,
                              "SELECT (count(*) = 0)::int FROM "
                              "pg_stat_activity WHERE application_name = "
                              "'idem'"));
}

/* Claims, completions and replays in batches of n, and what the database read
 * for them. */
static void
assert_reads_by_key(struct postgres_world *world, unsigned n,
                    const char *partition)
{
    struct asked *asked = calloc(n, sizeof(*asked));
    int64_t scanned = tuples_read(world, "seq_tup_read"), looked_up;
    int64_t before = tuples_read(world, "idx_tup_read"), after;

    assert_non_null(asked);
    for (unsigned i = 0; i < n; i++)
        open_asked(&asked[i], world, i % 2 == 0);
    claim_all(world, asked, n);
    complete_all(world, asked, n);
    for (unsigned i = 0; i < n; i++) {
        asked[i].call.ticket.repeat = true;
        ask(&asked[i], ops(world)->claim, IDEM_VERDICT_DONE);
    }
    ask_together(world, asked, n);
    assert_answers(asked, n);
    for (unsigned i = 0; i < n; i++)
        call_close(&asked[i].call);
    free(asked);
    end_sessions(world);
    after = tuples_read(world, "seq_tup_read");
    looked_up = tuples_read(world, "idx_tup_read") - before;
    print_message("%s, batches of %u: %.2f by index, %.2f by scans a call\n",
                  partition, n, (double)looked_up / n,
                  (double)(after - scanned) / n);
    assert_int_equal(after, scanned);
    assert_in_range(looked_up, 2 * n, 4 * n);
}

static void
read_by_key_at_every_size(struct postgres_world *world, const char *partition,
                          const char *prepare)
{
    static const unsigned sizes[] = {1, 16, 256};

    for (unsigned i = 0; i < 3; i++) {
        postgres_sql(world->postgres, "%s", prepare);
        world_reopen(world);
        assert_reads_by_key(world, sizes[i], partition);
    }
}

#define FILL(table, columns, values)                                           \
    "INSERT INTO " table " (key, state, token, executions, done_at, tenant, "  \
    "scope, key_text, status" columns ") SELECT (lpad(to_hex(floor(extract("   \
    "epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || "             \
    "substr(md5(random()::text), 1, 20))::uuid, 'DONE', 1, 1, now(), '', '', " \
    "'', 0" values " FROM generate_series(1, 20000); "

/* dedup.md 6d. */
static void
a_key_is_looked_up_whatever_the_planner_believes(void **state)
{
    static const char fresh[] = "TRUNCATE idem_record, idem_record_opaque";
    static const char analyzed[] = "TRUNCATE idem_record, idem_record_opaque; "
                                   "ANALYZE idem_record, idem_record_opaque";
    static const char full[] =
        "TRUNCATE idem_record, idem_record_opaque; " FILL("idem_record", "", "")
            FILL("idem_record_opaque", ", reap_at, gone_at",
                 ", now() + interval '1 day', now() + interval '1 day'") //
        "ANALYZE idem_record, idem_record_opaque";

    read_by_key_at_every_size(*state, "fresh", fresh);
    read_by_key_at_every_size(*state, "empty and analyzed", analyzed);
    read_by_key_at_every_size(*state, "full", full);
}

static int
set_up(void **state)
{
    struct postgres_world *world = world_open(false);

    world->options.statement_timeout_ms = 60000;
    world_reopen(world);
    *state = world;
    return 0;
}

static int
tear_down(void **state)
{
    world_close(*state);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_of_many_gets_its_own_answer),
        cmocka_unit_test(those_that_wait_share_a_commit),
        cmocka_unit_test(what_a_thread_posts_in_one_go_is_one_batch),
        cmocka_unit_test(a_poisoned_claim_fails_alone),
        cmocka_unit_test(a_completion_whose_record_vanished_is_fenced_alone),
        cmocka_unit_test(a_batch_that_is_cut_is_sent_again_and_known_again),
        cmocka_unit_test(two_servers_that_claim_the_same_keys_do_not_deadlock),
        cmocka_unit_test(beyond_a_bound_claims_are_refused_before_anything),
        cmocka_unit_test(a_late_call_is_told_so_while_its_neighbours_wait),
        cmocka_unit_test(a_key_is_looked_up_whatever_the_planner_believes),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
