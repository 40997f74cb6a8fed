/* Who has a message, an event or a planned job that may come again makes a call
 * of it, whose key is the message's own id: what is said of consumers, webhooks
 * and schedulers holds by that alone. */
#include "once_stage.h"

#include <idem/standard.h>

#include <stdio.h>

#define MESSAGES 7
#define SLOW 4 /* … of which this one takes long */
#define TIMES 20
#define INSTANCES 3

/* A consumer works on a message by the channel that is its server's. */
static struct stage_thread *
consume(struct stage *stage, unsigned server, const char *queue, int message)
{
    effects_add_request request = stage_request(message);
    char key[32];

    snprintf(key, sizeof key, "%s-%d", queue, message);
    return stage_start(stage, server, effects_add, key, &request);
}

static struct called
consumed(struct stage *stage, unsigned server, const char *queue, int message)
{
    return stage_join(consume(stage, server, queue, message));
}

static void
assert_acknowledged(struct called *called, enum idem_effect effect)
{
    assert_int_equal(called->status, IDEM_OK);
    assert_true(called->outcome.final);
    assert_int_equal(called->outcome.effect, effect);
    called_free(called);
}

/* Fault 77, B109, B114, B115: one message is slow, those behind it are done and
 * no acknowledgement has got through; all four come again, at another server
 * where there is one. */
static void
messages_that_come_again_have_one_effect_each(void **state)
{
    struct stage *stage = *state;
    unsigned other = stage->n - 1;
    struct stage_thread *slow, *again;
    struct called called;

    stage->effects.held_amount = SLOW;
    effects_hold(&stage->effects);
    slow = consume(stage, 0, "orders", SLOW);
    effects_await(&stage->effects, 1);
    for (int i = 1; i <= MESSAGES; i++) {
        if (i == SLOW || stage->kind != STAGE_POSTGRES)
            continue; /* SQLite has one writer, who is at work */
        called = consumed(stage, 0, "orders", i);
        assert_acknowledged(&called, IDEM_EFFECT_COMMITTED);
    }
    again = consume(stage, other, "orders", SLOW);
    effects_open(&stage->effects);
    called = stage_join(slow);
    assert_acknowledged(&called, IDEM_EFFECT_COMMITTED);
    called = stage_join(again);
    assert_acknowledged(&called, IDEM_EFFECT_REPLAYED);
    for (int round = 0; round < 2; round++) {
        for (int i = 1; i <= MESSAGES; i++) {
            called = consumed(stage, round ? other : 0, "orders", i);
            assert_int_equal(called.status, IDEM_OK);
            called_free(&called);
        }
    }
    assert_int_equal(stage_effects(stage), MESSAGES);
}

/* Fault 78, B110. */
static void
a_message_that_failed_is_not_lost(void **state)
{
    struct stage *stage = *state;
    struct called called;

    effects_fail(&stage->effects, 1, IDEM_RESOURCE_EXHAUSTED);
    called = consumed(stage, 0, "failing", SLOW);
    assert_int_equal(called.status, IDEM_RESOURCE_EXHAUSTED);
    assert_false(called.outcome.final);
    called = consumed(stage, stage->n - 1, "failing", SLOW);
    assert_acknowledged(&called, IDEM_EFFECT_COMMITTED);
    called = consumed(stage, 0, "failing", SLOW + 1);
    assert_acknowledged(&called, IDEM_EFFECT_COMMITTED);
    assert_int_equal(stage_effects(stage), 2);
}

/* Fault 81, B122: the key is the job and its planned time, so that what ran is
 * known, however short it was, when a scheduler is late. */
static void
a_planned_time_is_one_run_whoever_fires_it(void **state)
{
    struct stage *stage = *state;

    for (int time = 1; time <= TIMES; time++) {
        effects_add_request request = stage_request(7);
        struct stage_thread *fired[INSTANCES];
        struct called called;
        char job[32];

        snprintf(job, sizeof job, "nightly@%d", time);
        request.order = job;
        for (unsigned i = 0; i < INSTANCES; i++)
            fired[i] =
                stage_start(stage, i % stage->n, effects_add, job, &request);
        for (unsigned i = 0; i < INSTANCES; i++) {
            called = stage_join(fired[i]);
            assert_int_equal(called.status, IDEM_OK);
            called_free(&called);
        }
        called = stage_call(stage, effects_add, job, &request);
        assert_acknowledged(&called, IDEM_EFFECT_REPLAYED);
    }
    assert_int_equal(stage_effects(stage), TIMES);
}

/* Fault 82: the event's id is the key; when it was signed is no part of the
 * request. */
static void
an_event_that_is_signed_anew_is_the_same_event(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct called first, again;

    request.order = "evt_1";
    request.at_ms = 1000;
    first = stage_call(stage, effects_add_order, NULL, &request);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    request.at_ms = 61000;
    again = stage_join(stage_start(stage, stage->n - 1, effects_add_order,
                                   first.outcome.key, &request));
    assert_replay_of(&again, &first);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&first);
    called_free(&again);
}

int
main(void)
{
#define TEST(name)                                                             \
    STAGE_TEST(stage_sqlite_tcp, name), STAGE_TEST(stage_both, name)
    const struct CMUnitTest tests[] = {
        TEST(messages_that_come_again_have_one_effect_each),
        TEST(a_message_that_failed_is_not_lost),
        TEST(a_planned_time_is_one_run_whoever_fires_it),
        TEST(an_event_that_is_signed_anew_is_the_same_event),
    };

    return cmocka_run_group_tests(tests, stage_servers_up, stage_servers_down);
}
