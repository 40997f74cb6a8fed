#include "support.h"

#include "retry_world.h"

#include <idem/reason.h>

#include <string.h>

#define MS INT64_C(1000000)
#define BIT(status) (1u << IDEM_##status)

static struct retry_world w;

static int
set_up(void **state)
{
    (void)state;
    retry_world_open(&w);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    retry_world_close(&w);
    return 0;
}

static void
say(struct retry_call *call, enum idem_status status, enum idem_effect effect)
{
    call->call.base.outcome.status = status;
    call->call.base.outcome.effect = effect;
}

static void
assert_outcome(struct retry_call *call, enum idem_status status,
               enum idem_effect effect)
{
    assert_true(retry_call_finished(call));
    assert_int_equal(call->outcome.status, status);
    assert_int_equal(call->outcome.effect, effect);
}

static void
lose_twice_then_commit(struct retry_call *call, unsigned n)
{
    if (n < 3)
        say(call, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    else
        say(call, IDEM_OK, IDEM_EFFECT_REPLAYED);
}

/* B029, rpc 1: one key over all attempts, numbered on the wire. */
static void
every_attempt_carries_the_same_key_and_its_number(void **state)
{
    struct retry_call *call =
        retry_call_new(&w, lose_twice_then_commit, 3, BIT(UNAVAILABLE), 10000);

    (void)state;
    retry_call_begin(call);
    retry_call_pass_pause(call);
    retry_call_pass_pause(call);
    assert_outcome(call, IDEM_OK, IDEM_EFFECT_REPLAYED);
    assert_int_equal(call->sends, 3);
    assert_int_equal(call->outcome.attempts, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(call->attempts[i], i + 1);
        assert_string_equal(call->keys[i], call->outcome.key);
    }
    assert_memory_equal(call->outcome.key, "idk_", 4);
    retry_call_free(call);
}

/* B028. */
static void
the_callers_own_key_is_on_every_attempt(void **state)
{
    struct retry_call *call =
        retry_call_new(&w, lose_twice_then_commit, 3, BIT(UNAVAILABLE), 10000);

    (void)state;
    call->call.base.key = idem_bytes_of("mine-1");
    retry_call_begin(call);
    retry_call_pass_pause(call);
    retry_call_pass_pause(call);
    for (unsigned i = 0; i < 3; i++)
        assert_string_equal(call->keys[i], "mine-1");
    assert_string_equal(call->outcome.key, "mine-1");
    retry_call_free(call);
}

/* B038: two intended calls have two keys. */
static void
two_calls_have_two_keys(void **state)
{
    struct retry_call *one =
        retry_call_new(&w, lose_twice_then_commit, 0, 0, 10000);
    struct retry_call *two =
        retry_call_new(&w, lose_twice_then_commit, 0, 0, 10000);

    (void)state;
    retry_call_begin(one);
    retry_call_begin(two);
    assert_outcome(one, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    assert_string_not_equal(one->outcome.key, two->outcome.key);
    retry_call_free(one);
    retry_call_free(two);
}

static void
expire_then_lose_then_commit(struct retry_call *call, unsigned n)
{
    struct idem_outcome *outcome = &call->call.base.outcome;

    if (n == 1) {
        idem_call_fail(&call->call.base, IDEM_FAILED_PRECONDITION,
                       IDEM_EFFECT_REFUSED, IDEM_KEY_EXPIRED, "a day off");
        outcome->final = true;
        outcome->server_time_ms =
            w.fake.clock.wall_ms(&w.fake.clock) + INT64_C(86400000);
    } else if (n == 2)
        say(call, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    else
        say(call, IDEM_OK, IDEM_EFFECT_REPLAYED);
}

/* Fault 58: the attempts of a key that a wrong clock has made are not those of
 * the one that takes its place. */
static void
a_key_that_is_minted_again_has_all_its_attempts(void **state)
{
    struct retry_call *call = retry_call_new(&w, expire_then_lose_then_commit,
                                             2, BIT(UNAVAILABLE), 10000);

    (void)state;
    retry_call_begin(call);
    retry_call_pass_pause(call);
    assert_outcome(call, IDEM_OK, IDEM_EFFECT_REPLAYED);
    assert_int_equal(call->sends, 3);
    assert_string_not_equal(call->keys[0], call->keys[1]);
    assert_string_equal(call->keys[1], call->keys[2]);
    assert_int_equal(call->attempts[1], 1);
    assert_int_equal(call->attempts[2], 2);
    retry_call_free(call);
}

/* Fault 61: refused before anything is sent. */
static void
a_broken_key_is_refused_before_it_is_sent(void **state)
{
    struct retry_call *call =
        retry_call_new(&w, lose_twice_then_commit, 3, BIT(UNAVAILABLE), 10000);

    (void)state;
    call->call.base.key = (struct idem_bytes){(const uint8_t *)"", 0};
    retry_call_begin(call);
    assert_outcome(call, IDEM_INVALID_ARGUMENT, IDEM_EFFECT_NOT_SENT);
    assert_string_equal(call->outcome.reason, IDEM_KEY_EMPTY);
    assert_int_equal(call->sends, 0);
    assert_int_equal(call->outcome.attempts, 0);
    retry_call_free(call);
}

/* B031: mode NONE carries no key, and doubt about it is not repeated. */
static void
a_call_without_a_key_is_not_repeated_in_doubt(void **state)
{
    struct retry_call *call =
        retry_call_new(&w, lose_twice_then_commit, 3, BIT(UNAVAILABLE), 10000);

    (void)state;
    call->method.mode = IDEM_MODE_NONE;
    retry_call_begin(call);
    assert_outcome(call, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    assert_int_equal(call->sends, 1);
    assert_string_equal(call->outcome.key, "");
    retry_call_free(call);
}

static void
be_away_ten_times(struct retry_call *call, unsigned n)
{
    if (n > 10)
        say(call, IDEM_OK, IDEM_EFFECT_COMMITTED);
}

/* rpc 29: no policy, no attempts header. */
static void
a_server_that_is_away_is_waited_for(void **state)
{
    struct retry_call *call =
        retry_call_new(&w, be_away_ten_times, 0, 0, 60000);

    (void)state;
    retry_call_begin(call);
    for (int i = 0; i < 10; i++)
        retry_call_pass_pause(call);
    assert_outcome(call, IDEM_OK, IDEM_EFFECT_COMMITTED);
    assert_int_equal(call->attempts[10], 1);
    retry_call_free(call);
}

static void
be_away(struct retry_call *call, unsigned n)
{
    (void)call;
    (void)n;
}

/* B040 */
static void
a_server_that_stays_away_ends_the_call_within_its_deadline(void **state)
{
    struct retry_call *call = retry_call_new(&w, be_away, 0, 0, 5000);
    int64_t deadline_ns = call->call.base.deadline_ns;

    (void)state;
    retry_call_begin(call);
    while (!retry_call_finished(call))
        retry_call_pass_pause(call);
    assert_outcome(call, IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_NOT_SENT);
    assert_int_equal(call->outcome.last_status, IDEM_UNAVAILABLE);
    assert_true(retry_world_now_ns(&w) < deadline_ns);
    retry_call_free(call);
}

static void
doubt_then_refuse(struct retry_call *call, unsigned n)
{
    say(call, IDEM_UNAVAILABLE,
        n == 1 ? IDEM_EFFECT_IN_DOUBT : IDEM_EFFECT_REFUSED);
}

/* rpc 102. */
static void
the_effect_is_the_worst_over_the_attempts(void **state)
{
    struct retry_call *call =
        retry_call_new(&w, doubt_then_refuse, 3, BIT(UNAVAILABLE), 60000);

    (void)state;
    retry_call_begin(call);
    while (!retry_call_finished(call))
        retry_call_pass_pause(call);
    assert_outcome(call, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    assert_int_equal(call->sends, 4); /* three, and the one at once */
    retry_call_free(call);
}

static void
roll_back(struct retry_call *call, unsigned n)
{
    (void)n;
    struct idem_call *base = &call->call.base;

    say(call, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK);
    strcpy(base->outcome.reason, "THE_SERVERS_OWN");
    strcpy(base->outcome.message, "the server's own words");
    assert_int_equal(idem_metadata_add(&base->trailers, base->arena,
                                       idem_bytes_of("why"), idem_bytes_of("x"),
                                       NULL),
                     IDEM_OK);
}

/* rpc 11: at once, and the last answer is not lost. */
static void
a_pause_past_the_deadline_ends_it_and_tells_the_last_answer(void **state)
{
    struct retry_call *call =
        retry_call_new(&w, roll_back, 3, BIT(ABORTED), 50);

    (void)state;
    retry_call_begin(call);
    assert_outcome(call, IDEM_DEADLINE_EXCEEDED, IDEM_EFFECT_ROLLED_BACK);
    assert_int_equal(call->outcome.stop, IDEM_STOP_DEADLINE);
    assert_int_equal(call->outcome.last_status, IDEM_ABORTED);
    assert_non_null(
        strstr(call->outcome.message, "ABORTED: the server's own words"));
    assert_int_equal(call->sends, 1);
    retry_call_free(call);
}

/* rpc 2: the server's own words, and why there were no more attempts. */
static void
the_last_answer_is_the_callers_when_attempts_run_out(void **state)
{
    struct retry_call *call =
        retry_call_new(&w, roll_back, 2, BIT(ABORTED), 30000);

    (void)state;
    retry_call_begin(call);
    retry_call_pass_pause(call);
    assert_outcome(call, IDEM_ABORTED, IDEM_EFFECT_ROLLED_BACK);
    assert_int_equal(call->outcome.stop, IDEM_STOP_ATTEMPTS);
    assert_string_equal(call->outcome.message, "the server's own words");
    assert_true(call->trailers);
    assert_int_equal(call->sends, 2);
    retry_call_free(call);
}

/* rpc 10, 77: and the effect is what the attempts had, not a guess; the last
 * answer is not lost, but for what came beside it. */
static void
giving_up_in_a_pause_ends_the_call_at_once(void **state)
{
    struct retry_call *call =
        retry_call_new(&w, roll_back, 3, BIT(ABORTED), 30000);

    (void)state;
    retry_call_begin(call);
    assert_false(retry_call_finished(call));
    call_interrupt(&call->call, IDEM_CANCELLED);
    assert_outcome(call, IDEM_CANCELLED, IDEM_EFFECT_ROLLED_BACK);
    assert_int_equal(call->outcome.stop, IDEM_STOP_INTERRUPTED);
    assert_int_equal(call->outcome.last_status, IDEM_ABORTED);
    assert_string_equal(call->outcome.reason, "THE_SERVERS_OWN");
    assert_string_equal(call->outcome.message,
                        "the caller gave the call up; the last attempt: "
                        "ABORTED: the server's own words");
    assert_false(call->trailers);
    retry_world_advance_ns(&w, 60000 * MS);
    assert_int_equal(call->sends, 1);
    retry_call_free(call);
}

static void
be_told_that_it_runs(struct retry_call *call, unsigned n)
{
    if (n == 1) {
        say(call, IDEM_UNAVAILABLE, IDEM_EFFECT_IN_DOUBT);
    } else if (n < 20) {
        say(call, IDEM_ABORTED, IDEM_EFFECT_REFUSED);
        strcpy(call->call.base.outcome.reason, IDEM_KEY_RUNNING);
        call->call.base.outcome.retry_after_ms = 40;
    } else {
        say(call, IDEM_OK, IDEM_EFFECT_REPLAYED);
    }
}

/* B032. */
static void
a_slow_first_call_is_waited_for_beyond_the_attempts(void **state)
{
    struct retry_call *call =
        retry_call_new(&w, be_told_that_it_runs, 2, BIT(UNAVAILABLE), 30000);

    (void)state;
    retry_call_begin(call);
    while (!retry_call_finished(call))
        retry_call_pass_pause(call);
    assert_outcome(call, IDEM_OK, IDEM_EFFECT_REPLAYED);
    for (unsigned i = 2; i < 20; i++)
        assert_int_equal(call->sent_at_ns[i] - call->sent_at_ns[i - 1],
                         40 * MS);
    retry_call_free(call);
}

static void
leave_a_mark(struct retry_call *call, unsigned n)
{
    struct idem_call *base = &call->call.base;
    struct idem_bytes value;

    assert_true(idem_metadata_get(&base->metadata, "from-above", &value));
    assert_false(idem_metadata_get(&base->metadata, "per-attempt", &value));
    assert_int_equal(idem_metadata_add(&base->metadata, base->arena,
                                       idem_bytes_of("per-attempt"),
                                       idem_bytes_of("fresh"), NULL),
                     IDEM_OK);
    lose_twice_then_commit(call, n);
}

static void
each_attempt_has_fresh_metadata(void **state)
{
    struct retry_call *call =
        retry_call_new(&w, leave_a_mark, 3, BIT(UNAVAILABLE), 10000);
    struct idem_call *base = &call->call.base;

    (void)state;
    assert_int_equal(idem_metadata_add(&base->metadata, base->arena,
                                       idem_bytes_of("from-above"),
                                       idem_bytes_of("1"), NULL),
                     IDEM_OK);
    retry_call_begin(call);
    while (!retry_call_finished(call))
        retry_call_pass_pause(call);
    assert_int_equal(call->sends, 3);
    retry_call_free(call);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_attempt_carries_the_same_key_and_its_number),
        cmocka_unit_test(the_callers_own_key_is_on_every_attempt),
        cmocka_unit_test(two_calls_have_two_keys),
        cmocka_unit_test(a_key_that_is_minted_again_has_all_its_attempts),
        cmocka_unit_test(a_broken_key_is_refused_before_it_is_sent),
        cmocka_unit_test(a_call_without_a_key_is_not_repeated_in_doubt),
        cmocka_unit_test(a_server_that_is_away_is_waited_for),
        cmocka_unit_test(
            a_server_that_stays_away_ends_the_call_within_its_deadline),
        cmocka_unit_test(the_effect_is_the_worst_over_the_attempts),
        cmocka_unit_test(
            a_pause_past_the_deadline_ends_it_and_tells_the_last_answer),
        cmocka_unit_test(the_last_answer_is_the_callers_when_attempts_run_out),
        cmocka_unit_test(giving_up_in_a_pause_ends_the_call_at_once),
        cmocka_unit_test(a_slow_first_call_is_waited_for_beyond_the_attempts),
        cmocka_unit_test(each_attempt_has_fresh_metadata),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
