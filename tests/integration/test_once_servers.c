/* Two servers on one PostgreSQL, and Redis in front that is flushed, frozen,
 * killed and stale: only latency changes. */
#include "once_stage.h"

#include "child.h"
#include "postgres.h"
#include "redis.h"

#include <idem/reason.h>

#include <stdio.h>
#include <string.h>

static struct called
call_always(struct stage *stage, const char *key)
{
    effects_add_request request = stage_request(7);

    return stage_call(stage, effects_add_always, key, &request);
}

static struct called
call_on_other(struct stage *stage, const char *key, int64_t amount)
{
    effects_add_request request = stage_request(amount);

    return stage_join(stage_start(stage, 1, effects_add_always, key, &request));
}

/* Entries are written behind the answer's back. */
static bool
redis_has_entries(void *with)
{
    char reply[64];

    (void)with;
    redis_say(stage_redis(), "DBSIZE", reply, sizeof(reply));
    return strcmp(reply, ":0\r\n") != 0;
}

static void
empty_redis(void)
{
    char reply[64];

    redis_say(stage_redis(), "FLUSHALL", reply, sizeof(reply));
    assert_string_equal(reply, "+OK\r\n");
}

/* The other server has nothing of the key in its memory, and asks Redis once it
 * has heard of the authority. Leaves Redis empty, also of what that writes. */
static void
let_other_hear(struct stage *stage, const char *key)
{
    struct called called;

    empty_redis();
    called = call_on_other(stage, key, 7);
    assert_int_equal(called.status, IDEM_OK);
    called_free(&called);
    assert_true(child_wait_until(redis_has_entries, NULL, 10000));
    empty_redis();
}

/* Fault 3, B002. */
static void
two_servers_at_once_make_one_effect(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct stage_thread *here, *there;
    struct called first, second;

    effects_hold(&stage->effects);
    here = stage_start(stage, 0, effects_add, "servers-1", &request);
    effects_await(&stage->effects, 1);
    there = stage_start(stage, 1, effects_add, "servers-1", &request);
    stage_await_claims(stage, 1, 3);
    /* The first one's alone: who waits holds none, but for the moment of its
     * asking again. */
    assert_true(
        postgres_wait(stage_postgres(), 5000,
                      "SELECT (count(*) = 1)::int FROM pg_stat_activity "
                      "WHERE state = 'idle in transaction'"));
    effects_open(&stage->effects);
    first = stage_join(here);
    second = stage_join(there);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_replay_of(&second, &first);
    assert_int_equal(stage_effects(stage), 1);
    assert_int_equal(effects_runs(&stage->effects), 1);
    called_free(&first);
    called_free(&second);
}

#define STUCK 3

/* The first of them may keep the thread of one of the store's sessions
 * (decision 55): the others are claimed, run and recorded beside it. */
static void
pushes_go_on_beside_handlers_that_are_stuck(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct stage_thread *threads[STUCK];

    effects_hold(&stage->effects);
    for (unsigned i = 0; i < STUCK; i++) {
        char key[32];

        snprintf(key, sizeof(key), "stuck-%u", i);
        threads[i] = stage_start(stage, 0, effects_push, key, &request);
        effects_await(&stage->effects, i + 1);
    }
    effects_open(&stage->effects);
    for (unsigned i = 0; i < STUCK; i++) {
        struct called called = stage_join(threads[i]);

        assert_int_equal(called.status, IDEM_OK);
        assert_int_equal(called.outcome.effect, IDEM_EFFECT_COMMITTED);
        called_free(&called);
    }
    assert_int_equal(effects_runs(&stage->effects), STUCK);
}

/* A LEASED call is waited for in the same way. */
static void
two_servers_at_once_push_once(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct stage_thread *here, *there;
    struct called first, second;

    effects_hold(&stage->effects);
    here = stage_start(stage, 0, effects_push, "servers-2", &request);
    effects_await(&stage->effects, 1);
    there = stage_start(stage, 1, effects_push, "servers-2", &request);
    stage_await_claims(stage, 1, 3);
    effects_open(&stage->effects);
    first = stage_join(here);
    second = stage_join(there);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_replay_of(&second, &first);
    assert_int_equal(effects_pushes(stage->push_log, NULL), 1);
    called_free(&first);
    called_free(&second);
}

/* Fault 27: held for longer than its lease of 0.9 s. */
static void
a_handler_longer_than_its_lease_runs_once(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct stage_thread *here, *there;
    struct called first, second;

    effects_hold(&stage->effects);
    here = stage_start(stage, 0, effects_push_again, "servers-3", &request);
    effects_await(&stage->effects, 1);
    there = stage_start(stage, 1, effects_push_again, "servers-3", &request);
    stage_await_claims(stage, 0, 6); /* the claim and five renewals */
    effects_open(&stage->effects);
    first = stage_join(here);
    second = stage_join(there);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_replay_of(&second, &first);
    assert_int_equal(effects_pushes(stage->push_log, NULL), 1);
    called_free(&first);
    called_free(&second);
}

static void
redis_answers_a_repeat(void **state)
{
    struct stage *stage = *state;
    struct called first, again;

    let_other_hear(stage, "servers-4-heard");
    first = call_always(stage, "servers-4");
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_true(child_wait_until(redis_has_entries, NULL, 10000));
    again = call_on_other(stage, "servers-4", 7);
    assert_replay_of(&again, &first);
    assert_int_equal(stage_counts(stage, 1).shielded, 1);
    called_free(&first);
    called_free(&again);
}

/* Fault 45, in Redis. */
static void
redis_refuses_another_request(void **state)
{
    struct stage *stage = *state;
    struct called first, other;

    let_other_hear(stage, "servers-5-heard");
    first = call_always(stage, "servers-5");
    assert_true(child_wait_until(redis_has_entries, NULL, 10000));
    other = call_on_other(stage, "servers-5", 8);
    assert_int_equal(other.status, IDEM_INVALID_ARGUMENT);
    assert_string_equal(other.outcome.reason, IDEM_KEY_REUSED);
    assert_int_equal(stage_effects(stage), 2);
    called_free(&first);
}

/* Fault 33; and the repeat fills Redis again. */
static void
a_flushed_redis_changes_nothing(void **state)
{
    struct stage *stage = *state;
    struct called first, again;

    let_other_hear(stage, "servers-6-heard");
    first = call_always(stage, "servers-6");
    assert_true(child_wait_until(redis_has_entries, NULL, 10000));
    empty_redis();
    again = call_on_other(stage, "servers-6", 7);
    assert_replay_of(&again, &first);
    assert_int_equal(stage_counts(stage, 1).shielded, 0);
    assert_true(child_wait_until(redis_has_entries, NULL, 10000));
    called_free(&first);
    called_free(&again);
}

static void
call_twice_and_compare(struct stage *stage, const char *key)
{
    struct called first = call_always(stage, key);
    struct called again = call_on_other(stage, key, 7);

    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_replay_of(&again, &first);
    called_free(&first);
    called_free(&again);
}

/* Fault 34, B059. */
static void
a_redis_that_is_gone_changes_nothing(void **state)
{
    struct stage *stage = *state;

    let_other_hear(stage, "servers-7-heard");
    redis_kill(stage_redis());
    call_twice_and_compare(stage, "servers-7");
    redis_restart(stage_redis());
    call_twice_and_compare(stage, "servers-8");
    assert_int_equal(stage_effects(stage), 3);
}

/* Fault 34. */
static void
a_redis_that_never_answers_changes_nothing(void **state)
{
    struct stage *stage = *state;

    let_other_hear(stage, "servers-9-heard");
    redis_freeze(stage_redis());
    call_twice_and_compare(stage, "servers-9");
    redis_thaw(stage_redis());
    assert_int_equal(stage_effects(stage), 2);
}

/* Fault 35: what Redis knew before is still true, or does not verify. */
static void
a_redis_of_yesterday_changes_nothing(void **state)
{
    struct stage *stage = *state;
    struct called first, again, later;
    char reply[64];

    let_other_hear(stage, "servers-10-heard");
    first = call_always(stage, "servers-10");
    assert_true(child_wait_until(redis_has_entries, NULL, 10000));
    redis_say(stage_redis(), "SAVE", reply, sizeof(reply));
    later = call_always(stage, "servers-11");
    redis_kill(stage_redis());
    redis_restart(stage_redis());
    again = call_on_other(stage, "servers-10", 7);
    assert_replay_of(&again, &first);
    called_free(&again);
    again = call_on_other(stage, "servers-11", 7);
    assert_replay_of(&again, &later);
    called_free(&again);
    called_free(&first);
    called_free(&later);
}

/* Fault 42: closed, before the handler; and open again afterwards. */
static void
without_postgres_nothing_runs(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct idem_call_options options = {.key = "servers-12",
                                        .timeout_ms = 1500};
    struct idem_outcome outcome;
    struct called called;

    postgres_stop(stage_postgres());
    assert_int_not_equal(
        effects_add(stage->channels[0], &request, NULL, &options, &outcome),
        IDEM_OK);
    assert_false(outcome.final);
    assert_int_not_equal(outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(effects_runs(&stage->effects), 0);
    postgres_restart(stage_postgres());
    called = stage_add(stage, "servers-12", 7);
    assert_int_equal(called.status, IDEM_OK);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&called);
}

/* Fault 43, and the server ends before the record can be written: it waits for
 * nobody, and the key is in doubt, not free. */
static void
a_server_ends_with_a_record_that_is_still_to_be_written(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct idem_call_options options = {.key = "servers-14",
                                        .timeout_ms = 3000};
    struct idem_outcome outcome;
    struct stage_thread *thread;
    struct called first;

    effects_hold(&stage->effects);
    thread = stage_start(stage, 0, effects_push, "servers-14", &request);
    effects_await(&stage->effects, 1);
    postgres_stop(stage_postgres());
    effects_open(&stage->effects);
    first = stage_join(thread);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_IN_DOUBT);
    assert_false(first.outcome.final);
    stage_rebuild(stage, NULL, NULL);
    postgres_restart(stage_postgres());
    assert_int_not_equal(
        effects_push(stage->channels[0], &request, NULL, &options, &outcome),
        IDEM_OK);
    assert_string_equal(outcome.reason, IDEM_KEY_IN_DOUBT);
    assert_int_equal(effects_pushes(stage->push_log, NULL), 1);
}

/* B006: a repeat is not told OK before the first one's commit is there. */
static void
a_repeat_waits_for_the_commit(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct idem_call_options options = {.key = "servers-13", .timeout_ms = 300};
    struct idem_outcome outcome;
    struct stage_thread *thread;
    struct called first;

    effects_hold(&stage->effects);
    thread = stage_start(stage, 0, effects_add, "servers-13", &request);
    effects_await(&stage->effects, 1);
    for (unsigned server = 0; server < 2; server++)
        assert_int_not_equal(effects_add(stage->channels[server], &request,
                                         NULL, &options, &outcome),
                             IDEM_OK);
    effects_open(&stage->effects);
    first = stage_join(thread);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&first);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_both, stage_down)
    const struct CMUnitTest tests[] = {
        TEST(two_servers_at_once_make_one_effect),
        TEST(two_servers_at_once_push_once),
        TEST(pushes_go_on_beside_handlers_that_are_stuck),
        TEST(a_handler_longer_than_its_lease_runs_once),
        TEST(redis_answers_a_repeat),
        TEST(redis_refuses_another_request),
        TEST(a_flushed_redis_changes_nothing),
        TEST(a_redis_that_is_gone_changes_nothing),
        TEST(a_redis_that_never_answers_changes_nothing),
        TEST(a_redis_of_yesterday_changes_nothing),
        TEST(without_postgres_nothing_runs),
        TEST(a_server_ends_with_a_record_that_is_still_to_be_written),
        TEST(a_repeat_waits_for_the_commit),
    };

    return cmocka_run_group_tests(tests, stage_servers_up, stage_servers_down);
}
