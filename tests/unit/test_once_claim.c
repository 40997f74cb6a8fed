/* What a claim may come to, before the handler. */
#include "once_world.h"

#include "effects.idem.h"

#include <idem/reason.h>

#include <string.h>

static struct trial_options
with_key(const char *key)
{
    return (struct trial_options){.key = key, .amount = 7};
}

static void
say_done(struct idem_ticket *ticket, const char *reply)
{
    ticket->answer = (struct idem_answer){
        .status = IDEM_OK,
        .reply = idem_bytes_of(reply),
        .first_at_ms = 1234,
        .executions = 3,
    };
    fake_store_say(ticket, IDEM_VERDICT_DONE);
}

static void
assert_refused(const struct trial *trial, enum idem_status status,
               const char *reason)
{
    assert_int_equal(trial->outcome.status, status);
    assert_string_equal(trial->outcome.reason, reason);
    assert_int_equal(trial->begun, 0);
}

static void
a_first_call_runs_and_is_recorded(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct idem_ticket *ticket;
    struct trial_options options = with_key("k1");

    trial_begin(&trial, world, &options);
    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    assert_false(ticket->repeat);
    fake_store_say(ticket, IDEM_VERDICT_MINE);
    trial_await_handler(&trial, 1);
    trial_return(&trial, IDEM_OK, "seven");
    ticket = fake_store_take(&world->store, FAKE_COMPLETE);
    assert_int_equal(ticket->answer.status, IDEM_OK);
    assert_memory_equal(ticket->answer.reply.data, "seven", 5);
    assert_false(trial_is_finished(&trial));
    fake_store_say(ticket, IDEM_VERDICT_MINE);
    trial_await(&trial);
    assert_int_equal(trial.outcome.status, IDEM_OK);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_true(trial.outcome.final);
    assert_memory_equal(trial.reply, "seven", 5);
    assert_int_equal(world_counts(world).claims, 2);
}

static void
a_recorded_answer_is_replayed_byte_for_byte(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct trial_options options = with_key("k1");

    trial_begin(&trial, world, &options);
    say_done(fake_store_take(&world->store, FAKE_CLAIM), "se\tven");
    trial_await(&trial);
    assert_int_equal(trial.outcome.status, IDEM_OK);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_true(trial.outcome.final);
    assert_int_equal(trial.outcome.first_at_ms, 1234);
    assert_int_equal(trial.outcome.executions, 3);
    assert_int_equal(trial.reply_size, 6);
    assert_memory_equal(trial.reply, "se\tven", 6);
    assert_int_equal(trial.begun, 0);
}

/* B012: an empty reply is a reply. */
static void
an_empty_reply_is_replayed_as_an_empty_reply(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct trial_options options = with_key("k1");

    trial_begin(&trial, world, &options);
    say_done(fake_store_take(&world->store, FAKE_CLAIM), NULL);
    trial_await(&trial);
    assert_int_equal(trial.outcome.status, IDEM_OK);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_int_equal(trial.reply_size, 0);
}

/* Fault 50: a final "no" is final. */
static void
a_recorded_error_is_replayed_with_its_words_and_trailers(void **state)
{
    struct world *world = *state;
    struct trial first, second;
    struct idem_ticket *ticket;
    struct idem_answer answer;
    uint8_t trailers[128];
    struct trial_options options = with_key("k1");

    trial_begin(&first, world, &options);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&first, 1);
    assert_int_equal(idem_context_add_trailer(&first.context, "x-trailer",
                                              "balance=3", NULL),
                     IDEM_OK);
    (void)idem_context_fail(&first.context, IDEM_FAILED_PRECONDITION,
                            "balance is %d", 3);
    trial_return(&first, IDEM_FAILED_PRECONDITION, NULL);
    ticket = fake_store_take(&world->store, FAKE_COMPLETE);
    answer = ticket->answer;
    answer.message = idem_bytes_of("balance is 3");
    memcpy(trailers, answer.trailers.data, answer.trailers.size);
    answer.trailers.data = trailers;
    fake_store_say(ticket, IDEM_VERDICT_MINE);
    trial_await(&first);
    assert_int_equal(first.outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_true(first.outcome.final);

    trial_begin(&second, world, &options);
    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    ticket->answer = answer;
    fake_store_say(ticket, IDEM_VERDICT_DONE);
    trial_await(&second);
    assert_int_equal(second.outcome.status, IDEM_FAILED_PRECONDITION);
    assert_string_equal(second.outcome.message, "balance is 3");
    assert_string_equal(second.trailer, "balance=3");
    assert_int_equal(second.outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_true(second.outcome.final);
}

/* Fault 61: the exact reason, and no store access. */
static void
a_key_that_breaks_a_rule_is_refused_by_name(void **state)
{
    struct world *world = *state;
    char longest[257];
    struct {
        const char *key, *reason;
    } wrong[] = {
        {"", IDEM_KEY_EMPTY},
        {longest, IDEM_KEY_TOO_LONG},
        {"a b", IDEM_KEY_CHARSET},
        {"a\r\nb", IDEM_KEY_CHARSET},
        {"sch\xc3\xb6n", IDEM_KEY_CHARSET},
        {NULL, IDEM_KEY_MISSING},
        {"idk_1234", IDEM_KEY_FORMAT},
    };

    memset(longest, 'k', 256);
    longest[256] = '\0';
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct trial trial;
        struct trial_options options = with_key(wrong[i].key);

        trial_begin(&trial, world, &options);
        trial_await(&trial);
        assert_refused(&trial, IDEM_INVALID_ARGUMENT, wrong[i].reason);
        assert_int_equal(trial.outcome.effect, IDEM_EFFECT_REFUSED);
        assert_false(trial.outcome.final);
    }
    assert_int_equal(world_counts(world).claims, 0);
    assert_int_equal(world_counts(world).refused, 7);
}

/* Fault 61: nor is the store asked for a key that its method finds weak. */
static void
a_key_that_can_be_guessed_is_refused_where_keys_are_secret(void **state)
{
    struct world *world = *state;
    struct trial trial, hard;
    struct trial_options options = {.method = &effects_add_secret_method,
                                    .key = "order-20260917-000123"};

    trial_begin(&trial, world, &options);
    trial_await(&trial);
    assert_refused(&trial, IDEM_INVALID_ARGUMENT, IDEM_KEY_WEAK);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_REFUSED);
    assert_int_equal(world_counts(world).claims, 0);
    options.key = "550e8400-e29b-41d4-a716-446655440000";
    trial_begin(&hard, world, &options);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&hard, 1);
    trial_return(&hard, IDEM_OK, "seven");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
    trial_await(&hard);
    assert_int_equal(hard.outcome.status, IDEM_OK);
}

static void
a_key_need_not_be_there_when_the_method_says_so(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct trial_options options = {.method = &effects_add_loose_method};

    trial_begin(&trial, world, &options);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&trial, 1);
    trial_return(&trial, IDEM_OK, "x");
    fake_store_next(&world->store, FAKE_COMPLETE, IDEM_VERDICT_MINE);
    trial_await(&trial);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_COMMITTED);
}

static void
a_key_of_fields_is_made_by_the_server(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct idem_ticket *ticket;
    struct trial_options options = {.method = &effects_add_order_method,
                                    .order = "4711"};

    trial_begin(&trial, world, &options);
    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    assert_true(ticket->id.key.text.size > 0);
    fake_store_say(ticket, IDEM_VERDICT_ABANDONED);
    trial_await(&trial);

    options.key = "another";
    trial_begin(&trial, world, &options);
    trial_await(&trial);
    assert_refused(&trial, IDEM_INVALID_ARGUMENT, IDEM_KEY_MISMATCH);

    options.key = NULL;
    options.order = NULL;
    trial_begin(&trial, world, &options);
    trial_await(&trial);
    assert_refused(&trial, IDEM_INVALID_ARGUMENT, IDEM_KEY_MISSING);
}

/* Faults 45, 62; B019, B020. */
static void
a_record_belongs_to_a_tenant_a_method_and_a_key(void **state)
{
    struct world *world = *state;
    uint8_t digests[4][32];
    struct trial_options options[4] = {
        {.key = "b:c", .tenant = "a"},
        {.key = "c", .tenant = "a:b"},
        {.key = "b:c"},
        {.key = "b:c", .tenant = "a", .method = &effects_push_method},
    };

    for (int i = 0; i < 4; i++) {
        struct trial trial;
        struct idem_ticket *ticket;

        trial_begin(&trial, world, &options[i]);
        ticket = fake_store_take(&world->store, FAKE_CLAIM);
        memcpy(digests[i], ticket->id.digest, sizeof(digests[i]));
        fake_store_say(ticket, IDEM_VERDICT_EXPIRED);
        trial_await(&trial);
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(digests[i], digests[j], 32);
    }
}

/* Fault 85: a renamed method that keeps its alias finds its records. */
static void
a_method_under_another_name_keeps_the_records_of_its_scope(void **state)
{
    struct world *world = *state;
    struct idem_method renamed = effects_add_method;
    const struct trial_options options[2] = {
        {.key = "k1", .tenant = "a"},
        {.key = "k1", .tenant = "a", .method = &renamed}};
    uint8_t digests[2][32];

    renamed.name = "effects.v2.Effects/Plus";
    for (int i = 0; i < 2; i++) {
        struct trial trial;
        struct idem_ticket *ticket;

        trial_begin(&trial, world, &options[i]);
        ticket = fake_store_take(&world->store, FAKE_CLAIM);
        memcpy(digests[i], ticket->id.digest, sizeof(digests[i]));
        fake_store_say(ticket, IDEM_VERDICT_EXPIRED);
        trial_await(&trial);
    }
    assert_memory_equal(digests[0], digests[1], 32);
}

static void
a_key_of_another_request_is_refused_with_both_fingerprints(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct idem_ticket *ticket;
    struct trial_options options = with_key("k1");

    trial_begin(&trial, world, &options);
    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    memset(&ticket->recorded, 0xab, sizeof(ticket->recorded));
    ticket->first_at_ms = 99;
    fake_store_say(ticket, IDEM_VERDICT_REUSED);
    trial_await(&trial);
    assert_refused(&trial, IDEM_INVALID_ARGUMENT, IDEM_KEY_REUSED);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_REFUSED);
    assert_non_null(strstr(trial.outcome.message, "abababababababab"));
    assert_non_null(strstr(trial.outcome.message, "99"));
}

static void
each_refusal_has_its_status_reason_and_effect(void **state)
{
    struct world *world = *state;
    static const struct {
        enum idem_verdict verdict;
        enum idem_status status;
        const char *reason;
        enum idem_effect effect;
        bool final;
    } refusals[] = {
        {IDEM_VERDICT_EXPIRED, IDEM_FAILED_PRECONDITION, IDEM_KEY_EXPIRED,
         IDEM_EFFECT_REFUSED, true},
        {IDEM_VERDICT_ABANDONED, IDEM_FAILED_PRECONDITION, IDEM_KEY_ABANDONED,
         IDEM_EFFECT_REFUSED, true},
        {IDEM_VERDICT_DOUBT, IDEM_ABORTED, IDEM_KEY_IN_DOUBT,
         IDEM_EFFECT_IN_DOUBT, false},
    };

    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
        struct trial trial;
        struct trial_options options = with_key("k1");

        trial_begin(&trial, world, &options);
        fake_store_next(&world->store, FAKE_CLAIM, refusals[i].verdict);
        trial_await(&trial);
        assert_refused(&trial, refusals[i].status, refusals[i].reason);
        assert_int_equal(trial.outcome.effect, refusals[i].effect);
        assert_int_equal(trial.outcome.final, refusals[i].final);
    }
}

/* An execution that gave the key back may have acted: not even the final no of
 * an abandoned key says that nothing happened. */
static void
a_key_that_was_abandoned_after_an_execution_is_in_doubt(void **state)
{
    struct world *world = *state;
    struct trial_options options = with_key("k1");

    options.attempt = 2;
    for (int i = 0; i < 2; i++) {
        struct idem_ticket *ticket;
        struct trial trial;

        trial_begin(&trial, world, &options);
        ticket = fake_store_take(&world->store, FAKE_CLAIM);
        ticket->first_at_ms = 1;
        fake_store_say(ticket, IDEM_VERDICT_ABANDONED);
        trial_await(&trial);
        assert_string_equal(trial.outcome.reason, IDEM_KEY_ABANDONED);
        assert_int_equal(trial.outcome.effect, IDEM_EFFECT_IN_DOUBT);
        assert_true(trial.outcome.final);
    }
}

/* Fault 42: closed, before the handler. */
static void
a_store_that_is_away_refuses_the_call(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct trial_options options = with_key("k1");

    trial_begin(&trial, world, &options);
    fake_store_fail(&world->store, FAKE_CLAIM, IDEM_UNAVAILABLE);
    trial_await(&trial);
    assert_refused(&trial, IDEM_UNAVAILABLE, IDEM_STORE_AWAY);
    assert_int_equal(trial.outcome.effect, IDEM_EFFECT_REFUSED);
    assert_false(trial.outcome.final);
    assert_int_equal(world_counts(world).store_failed, 1);
}

static void
a_second_attempt_says_that_a_record_is_likely(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct idem_ticket *ticket;
    struct trial_options options = {.key = "k1", .attempt = 2};

    trial_begin(&trial, world, &options);
    ticket = fake_store_take(&world->store, FAKE_CLAIM);
    assert_true(ticket->repeat);
    fake_store_say(ticket, IDEM_VERDICT_EXPIRED);
    trial_await(&trial);
}

static void
a_read_asks_nothing_of_the_store(void **state)
{
    struct world *world = *state;
    struct trial trial;
    struct trial_options options = {.method = &effects_count_method};

    trial_begin(&trial, world, &options);
    trial_await_handler(&trial, 1);
    trial_return(&trial, IDEM_OK, "1");
    trial_await(&trial);
    assert_int_equal(trial.outcome.status, IDEM_OK);
    assert_int_equal(world_counts(world).claims, 0);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_first_call_runs_and_is_recorded),
        TEST(a_recorded_answer_is_replayed_byte_for_byte),
        TEST(an_empty_reply_is_replayed_as_an_empty_reply),
        TEST(a_recorded_error_is_replayed_with_its_words_and_trailers),
        TEST(a_key_that_breaks_a_rule_is_refused_by_name),
        TEST(a_key_that_can_be_guessed_is_refused_where_keys_are_secret),
        TEST(a_key_need_not_be_there_when_the_method_says_so),
        TEST(a_key_of_fields_is_made_by_the_server),
        TEST(a_record_belongs_to_a_tenant_a_method_and_a_key),
        TEST(a_method_under_another_name_keeps_the_records_of_its_scope),
        TEST(a_key_of_another_request_is_refused_with_both_fingerprints),
        TEST(each_refusal_has_its_status_reason_and_effect),
        TEST(a_key_that_was_abandoned_after_an_execution_is_in_doubt),
        TEST(a_store_that_is_away_refuses_the_call),
        TEST(a_second_attempt_says_that_a_record_is_likely),
        TEST(a_read_asks_nothing_of_the_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
