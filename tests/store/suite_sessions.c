#include "suite_call.h"

/* Sessions after RIFL (semantics.md 3.16; faults 66, 67). */

#define WINDOW_MS INT64_C(86400000)
#define STEP 64 /* that a watermark moves at most */

struct session {
    struct suite *suite;
    char name[IDEM_SESSION_MAX];
};

static void
open_session(struct session *session, struct suite *suite)
{
    const struct suite_factory *factory = suite->factory;
    const struct idem_clock *system = idem_clock_system();

    session->suite = suite;
    idem_session_mint(session->name, system,
                      factory->wall_ms(factory->with) - system->wall_ms(system),
                      WINDOW_MS);
}

static void
open_call(struct suite_call *call, struct session *session, int64_t sequence,
          enum idem_mode mode)
{
    char key[IDEM_KEY_MAX + 1];

    idem_key_of_session(key, session->name, sequence);
    call_open(call, session->suite, key, mode, 1);
    call->ticket.id.scope = IDEM_SESSION_SCOPE;
    call_identify(call);
}

static enum idem_verdict
watermark(struct session *session, int64_t sequence)
{
    struct suite_call call;
    enum idem_verdict verdict;

    open_call(&call, session, sequence, IDEM_MODE_LEASED);
    verdict = call_do(&call, session->suite->store->ops->watermark);
    call_close(&call);
    return verdict;
}

static void
acknowledge(struct session *session, int64_t sequence, uint64_t below)
{
    struct suite_call call;

    open_call(&call, session, sequence, IDEM_MODE_LEASED);
    call.ticket.ack_below = below;
    assert_int_equal(call_do(&call, session->suite->store->ops->acknowledge),
                     IDEM_VERDICT_MINE);
    call_close(&call);
}

static void
finish(struct session *session, int64_t sequence, enum idem_mode mode)
{
    struct suite_call call;

    open_call(&call, session, sequence, mode);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_MINE);
    assert_int_equal(call_do(&call, session->suite->store->ops->watermark),
                     IDEM_VERDICT_MINE);
    assert_int_equal(call_complete(&call, IDEM_OK, "done"), IDEM_VERDICT_MINE);
    call_close(&call);
}

static enum idem_verdict
look(struct session *session, int64_t sequence)
{
    struct suite_call call;
    enum idem_verdict verdict;

    open_call(&call, session, sequence, IDEM_MODE_LEASED);
    verdict = call_look(&call);
    call_close(&call);
    return verdict;
}

/* Fault 67: its record has gone, and it is refused all the same. */
static void
what_is_acknowledged_goes_and_is_refused(void **state)
{
    struct suite *suite = *state;
    struct session session;
    struct suite_call late;

    open_session(&session, suite);
    for (int i = 1; i <= 4; i++)
        finish(&session, i, i % 2 ? IDEM_MODE_LEASED : IDEM_MODE_TRANSACTION);
    acknowledge(&session, 4, 3);
    assert_int_equal(look(&session, 1), IDEM_VERDICT_ABSENT);
    assert_int_equal(look(&session, 2), IDEM_VERDICT_ABSENT);
    assert_int_equal(look(&session, 3), IDEM_VERDICT_DONE);
    assert_int_equal(watermark(&session, 2), IDEM_VERDICT_EXPIRED);
    assert_int_equal(watermark(&session, 3), IDEM_VERDICT_MINE);
    for (int i = 0; i < 2; i++) {
        open_call(&late, &session, 2,
                  i ? IDEM_MODE_LEASED : IDEM_MODE_TRANSACTION);
        assert_int_equal(call_claim(&late), IDEM_VERDICT_MINE);
        assert_int_equal(call_do(&late, suite->store->ops->watermark),
                         IDEM_VERDICT_EXPIRED);
        assert_int_equal(call_release(&late), IDEM_VERDICT_MINE);
        call_close(&late);
    }
}

/* Fault 66. */
static void
a_word_is_bounded_by_the_call_that_brings_it(void **state)
{
    struct suite *suite = *state;
    struct session session;

    open_session(&session, suite);
    acknowledge(&session, 5, UINT64_MAX);
    assert_int_equal(watermark(&session, 4), IDEM_VERDICT_EXPIRED);
    assert_int_equal(watermark(&session, 5), IDEM_VERDICT_MINE);
    acknowledge(&session, 6, 2);
    acknowledge(&session, 6, 0);
    assert_int_equal(watermark(&session, 4), IDEM_VERDICT_EXPIRED);
    assert_int_equal(watermark(&session, 5), IDEM_VERDICT_MINE);
}

/* Fault 66: a gap, and a number that no client counts up to. */
static void
a_watermark_moves_a_bounded_step_at_a_time(void **state)
{
    struct suite *suite = *state;
    struct session session;

    open_session(&session, suite);
    acknowledge(&session, INT64_MAX, INT64_MAX);
    assert_int_equal(watermark(&session, STEP), IDEM_VERDICT_EXPIRED);
    assert_int_equal(watermark(&session, STEP + 1), IDEM_VERDICT_MINE);
    acknowledge(&session, INT64_MAX, INT64_MAX);
    assert_int_equal(watermark(&session, 2 * STEP), IDEM_VERDICT_EXPIRED);
    assert_int_equal(watermark(&session, 2 * STEP + 1), IDEM_VERDICT_MINE);
}

/* Fault 69: what has no answer stays until its day goes. */
static void
only_what_is_done_goes(void **state)
{
    struct suite *suite = *state;
    struct suite_call running;
    struct session session;

    open_session(&session, suite);
    open_call(&running, &session, 1, IDEM_MODE_LEASED);
    assert_int_equal(call_claim(&running), IDEM_VERDICT_MINE);
    acknowledge(&session, 9, 5);
    assert_int_equal(look(&session, 1), IDEM_VERDICT_RUNNING);
    assert_int_equal(call_complete(&running, IDEM_OK, "x"), IDEM_VERDICT_MINE);
    call_close(&running);
}

/* "Not seen" would be a lie. */
static void
who_asks_for_an_acknowledged_number_is_told_expired(void **state)
{
    struct suite *suite = *state;
    struct suite_call call;
    struct session session;

    open_session(&session, suite);
    finish(&session, 1, IDEM_MODE_LEASED);
    acknowledge(&session, 2, 2);
    open_call(&call, &session, 1, IDEM_MODE_LEASED);
    idem_store_ask(suite->store, suite->store->ops->look, &call.ticket);
    assert_int_equal(call.ticket.verdict, IDEM_VERDICT_EXPIRED);
    idem_store_ask(suite->store, suite->store->ops->abandon, &call.ticket);
    assert_int_equal(call.ticket.verdict, IDEM_VERDICT_EXPIRED);
    call_close(&call);
    open_call(&call, &session, 2, IDEM_MODE_LEASED);
    idem_store_ask(suite->store, suite->store->ops->look, &call.ticket);
    assert_int_equal(call.ticket.verdict, IDEM_VERDICT_ABSENT);
    call_close(&call);
}

/* --- Transaction STATEMENT, which looks at the number itself --- */

static void
open_stating(struct suite_call *call, struct session *session, int64_t sequence)
{
    open_call(call, session, sequence, IDEM_MODE_TRANSACTION);
    call_add_effect(call, 1);
}

static enum idem_verdict
run(struct session *session, int64_t sequence, bool repeat)
{
    struct suite_call call;
    enum idem_verdict verdict;

    open_stating(&call, session, sequence);
    call.ticket.repeat = repeat;
    verdict = call_run(&call);
    call_close(&call);
    return verdict;
}

static int64_t
effects_of(struct session *session, int64_t sequence)
{
    char key[IDEM_KEY_MAX + 1];

    idem_key_of_session(key, session->name, sequence);
    return suite_effects(session->suite, key);
}

/* Faults 66, 67. */
static void
a_run_of_an_acknowledged_number_is_refused(void **state)
{
    struct session session;

    open_session(&session, *state);
    for (int i = 1; i <= 4; i++)
        assert_int_equal(run(&session, i, i % 2), IDEM_VERDICT_MINE);
    acknowledge(&session, 4, 3);
    assert_int_equal(look(&session, 2), IDEM_VERDICT_ABSENT);
    for (int i = 1; i <= 4; i++) {
        bool gone = i < 3;

        assert_int_equal(run(&session, i, i % 2),
                         gone ? IDEM_VERDICT_EXPIRED : IDEM_VERDICT_DONE);
        assert_int_equal(look(&session, i),
                         gone ? IDEM_VERDICT_ABSENT : IDEM_VERDICT_DONE);
        assert_int_equal(effects_of(&session, i), 1);
    }
    assert_int_equal(run(&session, 5, false), IDEM_VERDICT_MINE);
}

static void
a_recorded_no_of_a_number_is_forgotten_and_refused_too(void **state)
{
    struct session session;
    struct suite_call call;

    open_session(&session, *state);
    for (int i = 0; i < 2; i++) {
        open_stating(&call, &session, 1);
        call.says = IDEM_NOT_FOUND;
        assert_int_equal(call_run(&call),
                         i ? IDEM_VERDICT_EXPIRED : IDEM_VERDICT_MINE);
        call_close(&call);
        acknowledge(&session, 2, 2);
    }
    assert_int_equal(effects_of(&session, 1), 0);
}

#define CROWD 40

/* Two sessions, of one of which half the numbers were acknowledged. */
static void
stale_numbers_among_others_leave_alone(void **state)
{
    static struct suite_call calls[CROWD];
    struct suite *suite = *state;
    struct session old, new;

    for (int first = 0; first < 2; first++) {
        open_session(&old, suite);
        open_session(&new, suite);
        for (int i = 1; i <= CROWD / 4; i++)
            assert_int_equal(run(&old, i, false), IDEM_VERDICT_MINE);
        acknowledge(&old, CROWD / 4 + 1, CROWD / 4 + 1);
        for (int i = 0; i < CROWD; i++) {
            open_stating(&calls[i], i % 2 ? &old : &new, 1 + i / 2);
            if (first)
                idem_statements_reply_first(&calls[i].statements);
            call_start(&calls[i], suite->store->ops->run);
        }
        for (int i = 0; i < CROWD; i++) {
            bool stale = i % 2 && 1 + i / 2 <= CROWD / 4;

            assert_int_equal(call_await(&calls[i]),
                             stale ? IDEM_VERDICT_EXPIRED : IDEM_VERDICT_MINE);
            assert_int_equal(effects_of(i % 2 ? &old : &new, 1 + i / 2), 1);
            call_close(&calls[i]);
        }
    }
}

int
suite_run_sessions(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_acknowledged_goes_and_is_refused),
        cmocka_unit_test(a_word_is_bounded_by_the_call_that_brings_it),
        cmocka_unit_test(a_watermark_moves_a_bounded_step_at_a_time),
        cmocka_unit_test(only_what_is_done_goes),
        cmocka_unit_test(who_asks_for_an_acknowledged_number_is_told_expired),
        cmocka_unit_test(a_run_of_an_acknowledged_number_is_refused),
        cmocka_unit_test(
            a_recorded_no_of_a_number_is_forgotten_and_refused_too),
        cmocka_unit_test(stale_numbers_among_others_leave_alone),
    };

    return cmocka_run_group_tests_name("sessions", tests, suite_set_up,
                                       suite_tear_down);
}
