/* The same key again: in sequence, at once, with another request, after errors;
 * on each authority. */
#include "once_stage.h"

#include <idem/reason.h>

#include <string.h>

#define MANY 50
#define CALLS_MAX 20

/* Fault 1, B013. */
static void
the_same_key_three_times_is_one_effect(void **state)
{
    struct stage *stage = *state;
    struct called first = stage_add(stage, "once-1", 7);

    assert_int_equal(first.status, IDEM_OK);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_true(first.outcome.final);
    for (int i = 0; i < 2; i++) {
        struct called again = stage_add(stage, "once-1", 7);

        assert_replay_of(&again, &first);
        assert_true(again.outcome.first_at_ms > 0);
        called_free(&again);
    }
    assert_int_equal(stage_effects(stage), 1);
    called_free(&first);
}

static void
minted_keys_are_each_their_own_effect(void **state)
{
    struct stage *stage = *state;

    for (int i = 0; i < 3; i++) {
        struct called called = stage_add(stage, NULL, 7);

        assert_int_equal(called.status, IDEM_OK);
        assert_int_equal(called.outcome.effect, IDEM_EFFECT_COMMITTED);
        assert_memory_equal(called.outcome.key, "idk_", 4);
        called_free(&called);
    }
    assert_int_equal(stage_effects(stage), 3);
}

/* Fault 2, B001, B002: one claim and one completion for fifty calls. */
static void
fifty_at_once_are_one_effect(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct stage_thread *threads[MANY];
    struct called called[MANY];
    unsigned committed = 0, first = 0;

    effects_hold(&stage->effects);
    for (int i = 0; i < MANY; i++)
        threads[i] = stage_start(stage, 0, effects_add, "once-2", &request);
    stage_await_attached(stage, 0, MANY - 1);
    effects_await(&stage->effects, 1);
    effects_open(&stage->effects);
    for (unsigned i = 0; i < MANY; i++) {
        called[i] = stage_join(threads[i]);
        if (called[i].outcome.effect == IDEM_EFFECT_COMMITTED) {
            committed++;
            first = i;
        }
    }
    assert_int_equal(committed, 1);
    for (unsigned i = 0; i < MANY; i++) {
        if (i != first)
            assert_replay_of(&called[i], &called[first]);
    }
    for (unsigned i = 0; i < MANY; i++)
        called_free(&called[i]);
    assert_int_equal(stage_counts(stage, 0).claims, 2);
    assert_int_equal(stage_effects(stage), 1);
}

/* B004; faults 45, 62. */
static void
another_request_in_flight_is_refused_and_the_first_one_stands(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(100);
    struct stage_thread *thread;
    struct called first, other, again;

    effects_hold(&stage->effects);
    thread = stage_start(stage, 0, effects_add, "once-3", &request);
    effects_await(&stage->effects, 1);
    other = stage_add(stage, "once-3", 900);
    assert_int_equal(other.status, IDEM_INVALID_ARGUMENT);
    assert_string_equal(other.outcome.reason, IDEM_KEY_REUSED);
    assert_int_equal(other.outcome.effect, IDEM_EFFECT_REFUSED);
    effects_open(&stage->effects);
    first = stage_join(thread);
    assert_int_equal(first.amount, 100);
    again = stage_add(stage, "once-3", 100);
    assert_replay_of(&again, &first);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&first);
    called_free(&again);
}

/* Fault 45, B023. */
static void
another_request_after_success_is_refused(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(100);
    struct called first = stage_call(stage, effects_add, "once-4", &request);
    struct called noted, doubled;

    request.note = "changed";
    noted = stage_call(stage, effects_add, "once-4", &request);
    doubled = stage_add(stage, "once-4", 200);
    assert_int_equal(first.status, IDEM_OK);
    assert_int_equal(noted.status, IDEM_INVALID_ARGUMENT);
    assert_string_equal(noted.outcome.reason, IDEM_KEY_REUSED);
    assert_int_equal(doubled.status, IDEM_INVALID_ARGUMENT);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&first);
}

static void
a_field_that_is_left_out_may_differ(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(100);
    struct called first = stage_call(stage, effects_add, "once-5", &request);
    struct called again;

    request.at_ms = 12345;
    again = stage_call(stage, effects_add, "once-5", &request);
    assert_replay_of(&again, &first);
    called_free(&first);
    called_free(&again);
}

/* Fault 51, B010: the client's retry runs it again. */
static void
an_outage_is_retried_and_leaves_one_effect(void **state)
{
    struct stage *stage = *state;
    struct called called;

    effects_fail(&stage->effects, 1, IDEM_UNAVAILABLE);
    called = stage_add(stage, "once-6", 7);
    assert_int_equal(called.status, IDEM_OK);
    assert_int_equal(called.outcome.attempts, 2);
    assert_int_equal(called.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(effects_runs(&stage->effects), 2);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&called);
}

/* Fault 45, after release: the fingerprint stays. A released TRANSACTION left
 * nothing at all, so only a LEASED record is one to compare with. */
static void
another_request_after_release_is_refused(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct called first, other;

    effects_fail(&stage->effects, 1, IDEM_RESOURCE_EXHAUSTED);
    first = stage_call(stage, effects_push, "once-7", &request);
    request.amount = 8;
    other = stage_call(stage, effects_push, "once-7", &request);
    assert_int_equal(first.status, IDEM_RESOURCE_EXHAUSTED);
    assert_int_equal(other.status, IDEM_INVALID_ARGUMENT);
    assert_string_equal(other.outcome.reason, IDEM_KEY_REUSED);
}

/* Fault 50: no effect after a final "no". */
static void
a_final_no_stays_no(void **state)
{
    struct stage *stage = *state;
    struct called first, again;

    effects_fail(&stage->effects, 1, IDEM_FAILED_PRECONDITION);
    first = stage_add(stage, "once-8", 7);
    again = stage_add(stage, "once-8", 7);
    assert_int_equal(first.status, IDEM_FAILED_PRECONDITION);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_true(first.outcome.final);
    assert_replay_of(&again, &first);
    assert_int_equal(effects_runs(&stage->effects), 1);
    assert_int_equal(stage_effects(stage), 0);
}

/* B012. */
static void
replies_of_every_size_are_replayed_byte_for_byte(void **state)
{
    struct stage *stage = *state;
    static const uint32_t sizes[] = {0, 1, 300, 1000000};

    for (unsigned i = 0; i < 4; i++) {
        effects_add_request request = stage_request(i);
        struct called first, again;
        char key[] = "once-9-0";

        key[7] = (char)('0' + i);
        request.reply_bytes = sizes[i];
        first = stage_call(stage, effects_add_always, key, &request);
        again = stage_call(stage, effects_add_always, key, &request);
        assert_int_equal(first.status, IDEM_OK);
        assert_int_equal(first.body_size, sizes[i]);
        assert_replay_of(&again, &first);
        called_free(&first);
        called_free(&again);
    }
}

/* B019; fault 62. */
static void
the_same_key_on_another_method_is_another_call(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct called first = stage_call(stage, effects_add, "once-12", &request);
    struct called other =
        stage_call(stage, effects_add_loose, "once-12", &request);

    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(other.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(stage_effects(stage), 2);
    called_free(&first);
    called_free(&other);
}

/* B119: whatever else is in the event. */
static void
a_key_of_fields_is_the_same_for_the_same_fields(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct called first, again, other;

    request.order = "4711";
    first = stage_call(stage, effects_add_order, NULL, &request);
    again = stage_call(stage, effects_add_order, NULL, &request);
    request.order = "4712";
    other = stage_call(stage, effects_add_order, NULL, &request);
    assert_replay_of(&again, &first);
    assert_int_equal(other.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(stage_effects(stage), 2);
    called_free(&first);
    called_free(&again);
    called_free(&other);
}

static void
a_leased_call_is_replayed_too(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct called first = stage_call(stage, effects_push, "once-13", &request);
    struct called again = stage_call(stage, effects_push, "once-13", &request);

    assert_int_equal(first.status, IDEM_OK);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_replay_of(&again, &first);
    assert_int_equal(effects_pushes(stage->push_log, NULL), 1);
    called_free(&first);
    called_free(&again);
}

/* B025: only the call's own key counts, never a name that looks like it. */
static void
metadata_that_looks_like_a_key_is_none(void **state)
{
    struct stage *stage = *state;
    static const char *const names[] = {"orig-idempotency-key",
                                        "idempotency-key-2", "idempotency-key"};

    for (int i = 0; i < 3; i++) {
        effects_add_request request = stage_request(i);
        struct idem_call_metadata metadata = {names[i],
                                              idem_bytes_of("the-same")};
        struct idem_call_options options = {.metadata = &metadata,
                                            .n_metadata = 1};

        assert_int_equal(
            effects_add(stage->channels[0], &request, NULL, &options, NULL),
            IDEM_OK);
    }
    assert_int_equal(stage_effects(stage), 3);
}

/* B026; fault 61. */
static void
keys_that_break_the_rules_do_nothing(void **state)
{
    struct stage *stage = *state;
    static const char *const keys[] = {"",       " ",         "\xff\xfe",
                                       "a\r\nb", "k\xc3\xb6", "idk_12345"};

    for (unsigned i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        struct called called = stage_add(stage, keys[i], 7);

        assert_int_equal(called.status, IDEM_INVALID_ARGUMENT);
        assert_memory_equal(called.outcome.reason, "KEY_", 4);
    }
    assert_int_equal(stage_counts(stage, 0).claims, 0);
    assert_int_equal(stage_effects(stage), 0);
}

/* Fault 61, the client's side: it is not sent. */
static void
a_key_that_can_be_guessed_is_not_sent_where_keys_are_secret(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    struct called called =
        stage_call(stage, effects_add_secret, "order-17", &request);

    assert_int_equal(called.status, IDEM_INVALID_ARGUMENT);
    assert_int_equal(called.outcome.effect, IDEM_EFFECT_NOT_SENT);
    assert_string_equal(called.outcome.reason, IDEM_KEY_WEAK);
    called = stage_call(stage, effects_add_secret, NULL, &request);
    assert_int_equal(called.outcome.effect, IDEM_EFFECT_COMMITTED);
    called_free(&called);
    called = stage_call(stage, effects_add_secret,
                        "550e8400-e29b-41d4-a716-446655440000", &request);
    assert_int_equal(called.outcome.effect, IDEM_EFFECT_COMMITTED);
    called_free(&called);
    assert_int_equal(stage_effects(stage), 2);
}

static void
keys_that_look_like_commands_are_keys(void **state)
{
    struct stage *stage = *state;
    static const char *const keys[] = {"';drop/**/table/**/effects;--",
                                       "*3$3SET", "%s%n", "\\x00"};

    for (unsigned i = 0; i < 4; i++) {
        struct called first = stage_add(stage, keys[i], 7);
        struct called again = stage_add(stage, keys[i], 7);

        assert_int_equal(first.outcome.effect, IDEM_EFFECT_COMMITTED);
        assert_replay_of(&again, &first);
        called_free(&first);
        called_free(&again);
    }
    assert_int_equal(stage_effects(stage), 4);
}

/* Fault 70: the caller gives up early, five times. */
static void
a_deadline_shorter_than_the_handler_leaves_one_effect(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    /* Long enough to be sent also where processors are scarce. */
    struct idem_call_options options = {.key = "once-14", .timeout_ms = 250};
    struct idem_outcome outcome;
    struct called last;

    assert_int_equal(idem_channel_wait_ready(stage->channels[0], 20000, NULL),
                     IDEM_OK);
    effects_hold(&stage->effects);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            effects_add(stage->channels[0], &request, NULL, &options, &outcome),
            IDEM_DEADLINE_EXCEEDED);
        assert_int_equal(outcome.effect, IDEM_EFFECT_IN_DOUBT);
    }
    effects_open(&stage->effects);
    last = stage_add(stage, "once-14", 7);
    assert_int_equal(last.status, IDEM_OK);
    assert_int_equal(effects_runs(&stage->effects), 1);
    assert_int_equal(stage_effects(stage), 1);
    called_free(&last);
}

/* Its attempts end, or the time for them does. On a busy machine the deadline
 * may also come in an attempt, which then has no answer: then again. */
static void
call_until_told(struct stage *stage, const effects_add_request *request,
                const struct idem_call_options *options,
                struct idem_outcome *outcome)
{
    for (unsigned i = 0; i < CALLS_MAX; i++) {
        enum idem_status status = effects_add_or_busy(
            stage->channels[0], request, NULL, options, outcome);

        assert_true(status == IDEM_DEADLINE_EXCEEDED || status == IDEM_ABORTED);
        if (outcome->last_status != IDEM_DEADLINE_EXCEEDED)
            return;
    }
    fail_msg("each of %d calls had an attempt to its deadline", CALLS_MAX);
}

static void
a_method_that_rejects_is_busy_and_then_replays(void **state)
{
    struct stage *stage = *state;
    effects_add_request request = stage_request(7);
    /* Time for several attempts, so that one of them is answered. */
    struct idem_call_options options = {.key = "once-15", .timeout_ms = 700};
    struct idem_outcome outcome;
    struct stage_thread *thread;
    struct called first, again;

    effects_hold(&stage->effects);
    thread = stage_start(stage, 0, effects_add_or_busy, "once-15", &request);
    effects_await(&stage->effects, 1);
    call_until_told(stage, &request, &options, &outcome);
    assert_int_equal(outcome.last_status, IDEM_ABORTED);
    assert_string_equal(outcome.reason, IDEM_KEY_RUNNING);
    effects_open(&stage->effects);
    first = stage_join(thread);
    again = stage_call(stage, effects_add_or_busy, "once-15", &request);
    assert_replay_of(&again, &first);
    called_free(&first);
    called_free(&again);
}

int
main(void)
{
#define TEST(name)                                                             \
    STAGE_TEST(stage_sqlite_inproc, name), STAGE_TEST(stage_sqlite_tcp, name), \
        STAGE_TEST(stage_both, name)
    const struct CMUnitTest tests[] = {
        TEST(the_same_key_three_times_is_one_effect),
        TEST(minted_keys_are_each_their_own_effect),
        TEST(fifty_at_once_are_one_effect),
        TEST(another_request_in_flight_is_refused_and_the_first_one_stands),
        TEST(another_request_after_success_is_refused),
        TEST(a_field_that_is_left_out_may_differ),
        TEST(an_outage_is_retried_and_leaves_one_effect),
        TEST(another_request_after_release_is_refused),
        TEST(a_final_no_stays_no),
        TEST(replies_of_every_size_are_replayed_byte_for_byte),
        TEST(the_same_key_on_another_method_is_another_call),
        TEST(a_key_of_fields_is_the_same_for_the_same_fields),
        TEST(a_leased_call_is_replayed_too),
        TEST(metadata_that_looks_like_a_key_is_none),
        TEST(keys_that_break_the_rules_do_nothing),
        TEST(a_key_that_can_be_guessed_is_not_sent_where_keys_are_secret),
        TEST(keys_that_look_like_commands_are_keys),
        TEST(a_deadline_shorter_than_the_handler_leaves_one_effect),
        TEST(a_method_that_rejects_is_busy_and_then_replays),
    };

    return cmocka_run_group_tests(tests, stage_servers_up, stage_servers_down);
}
