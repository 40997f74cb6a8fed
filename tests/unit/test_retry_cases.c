#include "support.h"

#include "retry_world.h"

#include <idem/reason.h>

#include <string.h>

/* Scripted servers, as those of grpc-go's and grpc-java's own tests. */

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

/* What the server says to attempt 1, 2, … */
struct script {
    struct line {
        enum idem_status status;
        enum idem_effect effect;
        int64_t retry_after_ms;
        const char *reason; /* NULL: none */
    } lines[6];
};

static void
say(struct retry_call *call, unsigned n)
{
    const struct script *script = call->user;
    const struct line *line = &script->lines[n - 1];
    struct idem_outcome *outcome = &call->call.base.outcome;

    outcome->status = line->status;
    outcome->effect = line->effect;
    outcome->retry_after_ms = line->retry_after_ms;
    strcpy(outcome->reason, line->reason ? line->reason : "");
}

/* Run it to its end; how often was it sent? */
static struct retry_call *
play(const struct script *script, unsigned attempts, uint32_t codes)
{
    struct retry_call *call = retry_call_new(&w, say, attempts, codes, 60000);

    call->user = (void *)(uintptr_t)script;
    retry_call_begin(call);
    while (!retry_call_finished(call))
        retry_call_pass_pause(call);
    return call;
}

#define NO                                                                     \
    {                                                                          \
        IDEM_ALREADY_EXISTS, IDEM_EFFECT_ROLLED_BACK, -1, NULL                 \
    }
#define YES                                                                    \
    {                                                                          \
        IDEM_OK, IDEM_EFFECT_COMMITTED, -1, NULL                               \
    }
#define BROKEN                                                                 \
    {                                                                          \
        IDEM_INTERNAL, IDEM_EFFECT_ROLLED_BACK, -1, NULL                       \
    }
#define REFUSED                                                                \
    {                                                                          \
        IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED, -1, NULL                        \
    }

#define LATER(ms)                                                              \
    {                                                                          \
        IDEM_ALREADY_EXISTS, IDEM_EFFECT_ROLLED_BACK, ms, NULL                 \
    }

/* rpc 35, 37. */
static void
a_scripted_server_is_asked_as_often_as_it_takes(void **state)
{
    static const struct {
        struct script script;
        unsigned sends;
        enum idem_status status;
        enum idem_stop stop;
    } table[] = {
        {{{YES}}, 1, IDEM_OK, IDEM_STOP_OK},
        {{{NO, YES}}, 2, IDEM_OK, IDEM_STOP_OK},
        {{{NO, NO, YES}}, 3, IDEM_OK, IDEM_STOP_OK},
        {{{NO, BROKEN}}, 2, IDEM_INTERNAL, IDEM_STOP_STATUS},
        {{{NO, NO, NO, NO}}, 4, IDEM_ALREADY_EXISTS, IDEM_STOP_ATTEMPTS},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct retry_call *call =
            play(&table[i].script, 4, BIT(ALREADY_EXISTS));

        assert_int_equal(call->sends, table[i].sends);
        assert_int_equal(call->outcome.status, table[i].status);
        assert_int_equal(call->outcome.stop, table[i].stop);
        for (unsigned n = 0; n < call->sends; n++)
            assert_int_equal(call->attempts[n], n + 1);
        retry_call_free(call);
    }
}

/* rpc 43: at once and as number 1 after the refusal, exactly 10 ms after the
 * pushback. */
static void
a_refusal_and_then_a_pushback(void **state)
{
    static const struct script script = {
        {REFUSED, {IDEM_UNAVAILABLE, IDEM_EFFECT_ROLLED_BACK, 10, NULL}, YES}};
    struct retry_call *call = play(&script, 3, BIT(UNAVAILABLE));

    (void)state;
    assert_int_equal(call->outcome.status, IDEM_OK);
    assert_int_equal(call->sends, 3);
    assert_int_equal(call->attempts[0], 1);
    assert_int_equal(call->attempts[1], 1);
    assert_int_equal(call->attempts[2], 2);
    assert_int_equal(call->sent_at_ns[1], call->sent_at_ns[0]);
    assert_int_equal(call->sent_at_ns[2] - call->sent_at_ns[1], 10 * MS);
    retry_call_free(call);
}

/* rpc 46, 50. */
static void
one_refusal_costs_nothing_and_the_second_is_the_policys(void **state)
{
    static const struct script once = {{REFUSED, YES}};
    static const struct script twice = {{REFUSED, REFUSED}};
    static const struct script late = {{NO, REFUSED, YES}};
    struct retry_call *call;

    (void)state;
    call = play(&once, 0, 0);
    assert_int_equal(call->outcome.status, IDEM_OK);
    retry_call_free(call);

    call = play(&twice, 0, 0);
    assert_int_equal(call->outcome.status, IDEM_UNAVAILABLE);
    assert_int_equal(call->outcome.effect, IDEM_EFFECT_REFUSED);
    assert_int_equal(call->sends, 2);
    retry_call_free(call);

    call = play(&late, 2, BIT(ALREADY_EXISTS));
    assert_int_equal(call->outcome.status, IDEM_OK);
    assert_int_equal(call->sends, 3);
    retry_call_free(call);
}

static void
assert_pause_around(const struct retry_call *call, unsigned n, int64_t ms)
{
    assert_in_range(call->sent_at_ns[n] - call->sent_at_ns[n - 1],
                    ms * MS * 8 / 10, ms * MS * 12 / 10);
}

/* rpc 6, 49: the server's time exactly, and then the pauses begin anew. */
static void
after_the_servers_time_the_pauses_begin_anew(void **state)
{
    static const struct script script = {
        {NO, NO, LATER(2000), NO, LATER(10), YES}};
    struct retry_call *call = play(&script, 6, BIT(ALREADY_EXISTS));

    (void)state;
    assert_int_equal(call->outcome.status, IDEM_OK);
    assert_int_equal(call->sends, 6);
    assert_pause_around(call, 1, 100);
    assert_pause_around(call, 2, 200);
    assert_int_equal(call->sent_at_ns[3] - call->sent_at_ns[2], 2000 * MS);
    assert_pause_around(call, 4, 100);
    assert_int_equal(call->sent_at_ns[5] - call->sent_at_ns[4], 10 * MS);
    retry_call_free(call);
}

/* rpc 7, 49: a time of the last answer that counts is none. */
static void
a_time_after_the_last_attempt_brings_no_other(void **state)
{
    static const struct script spent = {{NO, LATER(5)}};
    static const struct script never = {{NO, LATER(IDEM_RETRY_NEVER)}};
    struct retry_call *call;

    (void)state;
    call = play(&spent, 2, BIT(ALREADY_EXISTS));
    assert_int_equal(call->outcome.status, IDEM_ALREADY_EXISTS);
    assert_int_equal(call->outcome.stop, IDEM_STOP_ATTEMPTS);
    assert_int_equal(call->sends, 2);
    retry_call_free(call);

    call = play(&never, 3, BIT(ALREADY_EXISTS));
    assert_int_equal(call->outcome.status, IDEM_ALREADY_EXISTS);
    assert_int_equal(call->outcome.stop, IDEM_STOP_PUSHBACK);
    assert_int_equal(call->sends, 2);
    retry_call_free(call);
}

/* rpc 19: a first attempt that had no connection is one of the two. */
static void
an_attempt_that_failed_on_our_side_is_one_of_them(void **state)
{
    static const struct script script = {
        {{IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT, -1, IDEM_NOT_CONNECTED},
         {IDEM_UNAVAILABLE, IDEM_EFFECT_ROLLED_BACK, -1, NULL}}};
    struct retry_call *call = play(&script, 2, BIT(UNAVAILABLE));

    (void)state;
    assert_int_equal(call->outcome.status, IDEM_UNAVAILABLE);
    assert_int_equal(call->outcome.effect, IDEM_EFFECT_ROLLED_BACK);
    assert_int_equal(call->outcome.stop, IDEM_STOP_ATTEMPTS);
    assert_int_equal(call->sends, 2);
    assert_int_equal(call->attempts[1], 2);
    retry_call_free(call);
}

struct canceller {
    pthread_t thread;
    pthread_barrier_t together;
    struct retry_call *call;
};

static void *
cancel(void *with)
{
    struct canceller *self = with;

    pthread_barrier_wait(&self->together);
    call_interrupt(&self->call->call, IDEM_CANCELLED);
    return NULL;
}

static void
be_away(struct retry_call *call, unsigned n)
{
    (void)call;
    (void)n;
}

/* rpc 51: the pause after an attempt that never left ends while the caller
 * gives up; whoever is first, nothing is sent after the call is over. */
static void
a_cancel_that_races_with_a_repeat_leaves_none_behind(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct retry_call *call = retry_call_new(&w, be_away, 0, 0, 60000);
        struct canceller canceller = {.call = call};
        unsigned sends;

        retry_call_begin(call);
        pthread_barrier_init(&canceller.together, NULL, 2);
        pthread_create(&canceller.thread, NULL, cancel, &canceller);
        pthread_barrier_wait(&canceller.together);
        retry_world_advance_ns(&w, 12 * MS);
        pthread_join(canceller.thread, NULL);
        retry_world_advance_ns(&w, 0);
        assert_true(retry_call_finished(call));
        sends = call->sends;
        assert_in_range(sends, 1, 2);
        assert_int_equal(call->outcome.stop, IDEM_STOP_INTERRUPTED);
        assert_int_equal(call->outcome.effect, IDEM_EFFECT_NOT_SENT);
        retry_world_advance_ns(&w, 60000 * MS);
        assert_int_equal(call->sends, sends);
        pthread_barrier_destroy(&canceller.together);
        retry_call_free(call);
    }
}

/* rpc 47: it has failed once, the second attempt is at the server, and the
 * caller gives up: an answer that would be repeated is not. */
static void
give_up_inside(struct retry_call *call, unsigned n)
{
    call->call.base.outcome.status = IDEM_ABORTED;
    call->call.base.outcome.effect = IDEM_EFFECT_ROLLED_BACK;
    if (n == 2)
        call_interrupt(&call->call, IDEM_CANCELLED);
}

static void
who_gives_up_at_the_second_attempt_gets_no_third(void **state)
{
    struct retry_call *call =
        retry_call_new(&w, give_up_inside, 3, BIT(ABORTED), 5000);

    (void)state;
    retry_call_begin(call);
    retry_call_pass_pause(call);
    assert_true(retry_call_finished(call));
    assert_int_equal(call->sends, 2);
    assert_int_equal(call->outcome.stop, IDEM_STOP_INTERRUPTED);
    retry_call_free(call);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scripted_server_is_asked_as_often_as_it_takes),
        cmocka_unit_test(a_refusal_and_then_a_pushback),
        cmocka_unit_test(
            one_refusal_costs_nothing_and_the_second_is_the_policys),
        cmocka_unit_test(after_the_servers_time_the_pauses_begin_anew),
        cmocka_unit_test(a_time_after_the_last_attempt_brings_no_other),
        cmocka_unit_test(an_attempt_that_failed_on_our_side_is_one_of_them),
        cmocka_unit_test(a_cancel_that_races_with_a_repeat_leaves_none_behind),
        cmocka_unit_test(who_gives_up_at_the_second_attempt_gets_no_third),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
