#include "support.h"

#include "record.h"

#include <idem/reason.h>

/* The table of a record's moves, row by row (semantics.md 4.2). */

static struct idem_ticket
ticket_of(enum idem_mode mode, enum idem_after_crash after_crash)
{
    struct idem_ticket ticket = {
        .mode = mode,
        .after_crash = after_crash,
        .fingerprint = {.raw = {1}, .canonical = {1}, .version = 1},
    };

    return ticket;
}

static struct record
record_of(enum record_state state, int64_t lease_left_ms, bool window_over)
{
    struct record record = {
        .state = state,
        .same_key = true,
        .has_fingerprint = true,
        .fingerprint = {.raw = {1}, .canonical = {1}, .version = 1},
        .executions = state == RECORD_ABSENT ? 0 : 1,
        .lease_left_ms = lease_left_ms,
        .window_over = window_over,
        .answer = {.status = IDEM_OK, .first_at_ms = 17},
    };

    return record;
}

struct line {
    enum record_state state;
    int64_t lease_left_ms;
    bool rerun, late;
    enum record_move claim, abandon;
    enum idem_verdict claimed, abandoned, looked; /* MINE: not said yet */
    enum idem_verdict settled;                    /* MINE: by the move SETTLE */
};

static const struct line lines[] = {
    {RECORD_ABSENT, 0, false, false, RECORD_TAKE, RECORD_ABANDON,
     IDEM_VERDICT_MINE, IDEM_VERDICT_ABANDONED, IDEM_VERDICT_ABSENT,
     IDEM_VERDICT_ABSENT},
    {RECORD_ABSENT, 0, true, true, RECORD_KEEP, RECORD_KEEP,
     IDEM_VERDICT_EXPIRED, IDEM_VERDICT_EXPIRED, IDEM_VERDICT_EXPIRED,
     IDEM_VERDICT_EXPIRED},
    {RECORD_RUNNING, 5, true, false, RECORD_KEEP, RECORD_KEEP,
     IDEM_VERDICT_RUNNING, IDEM_VERDICT_RUNNING, IDEM_VERDICT_RUNNING,
     IDEM_VERDICT_RUNNING},
    {RECORD_RUNNING, 5, true, true, RECORD_KEEP, RECORD_KEEP,
     IDEM_VERDICT_RUNNING, IDEM_VERDICT_RUNNING, IDEM_VERDICT_RUNNING,
     IDEM_VERDICT_RUNNING},
    {RECORD_RUNNING, 0, true, false, RECORD_TAKE, RECORD_HOLD,
     IDEM_VERDICT_MINE, IDEM_VERDICT_DOUBT, IDEM_VERDICT_RUNNING,
     IDEM_VERDICT_MINE},
    {RECORD_RUNNING, -9, true, true, RECORD_HOLD, RECORD_HOLD,
     IDEM_VERDICT_DOUBT, IDEM_VERDICT_DOUBT, IDEM_VERDICT_RUNNING,
     IDEM_VERDICT_MINE},
    {RECORD_RUNNING, 0, false, false, RECORD_HOLD, RECORD_HOLD,
     IDEM_VERDICT_DOUBT, IDEM_VERDICT_DOUBT, IDEM_VERDICT_DOUBT,
     IDEM_VERDICT_MINE},
    {RECORD_RELEASED, 0, false, false, RECORD_TAKE, RECORD_ABANDON,
     IDEM_VERDICT_MINE, IDEM_VERDICT_ABANDONED, IDEM_VERDICT_ABSENT,
     IDEM_VERDICT_ABSENT},
    {RECORD_RELEASED, 0, false, true, RECORD_KEEP, RECORD_ABANDON,
     IDEM_VERDICT_EXPIRED, IDEM_VERDICT_ABANDONED, IDEM_VERDICT_EXPIRED,
     IDEM_VERDICT_EXPIRED},
    {RECORD_DONE, 0, false, true, RECORD_KEEP, RECORD_KEEP, IDEM_VERDICT_DONE,
     IDEM_VERDICT_DONE, IDEM_VERDICT_DONE, IDEM_VERDICT_DONE},
    {RECORD_DOUBT, 0, true, false, RECORD_KEEP, RECORD_KEEP, IDEM_VERDICT_DOUBT,
     IDEM_VERDICT_DOUBT, IDEM_VERDICT_DOUBT, IDEM_VERDICT_MINE},
    {RECORD_ABANDONED, 0, true, false, RECORD_KEEP, RECORD_KEEP,
     IDEM_VERDICT_ABANDONED, IDEM_VERDICT_ABANDONED, IDEM_VERDICT_ABANDONED,
     IDEM_VERDICT_ABANDONED},
};

static const struct idem_settlement settlement = {.took_effect = true};

static void
every_state_has_one_answer_to_each_question(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const struct line *line = &lines[i];
        struct record record =
            record_of(line->state, line->lease_left_ms, line->late);
        struct idem_ticket ticket =
            ticket_of(IDEM_MODE_LEASED, line->rerun ? IDEM_AFTER_CRASH_REEXECUTE
                                                    : IDEM_AFTER_CRASH_HOLD);

        assert_int_equal(record_claim(&record, &ticket), line->claim);
        assert_int_equal(ticket.verdict, line->claimed);
        assert_int_equal(record_abandon(&record, &ticket), line->abandon);
        assert_int_equal(ticket.verdict, line->abandoned);
        record_look(&record, &ticket);
        assert_int_equal(ticket.verdict, line->looked);
        ticket.settlement = &settlement;
        ticket.token = record.token;
        assert_int_equal(record_settle(&record, &ticket),
                         line->settled == IDEM_VERDICT_MINE ? RECORD_SETTLE
                                                            : RECORD_KEEP);
        assert_int_equal(ticket.verdict, line->settled);
    }
}

/* Fault 6: a lease is over and no step was marked; not even HOLD keeps it. */
static void
what_is_not_begun_runs_again_or_never(void **state)
{
    struct record record = record_of(RECORD_RUNNING, 0, false);
    struct idem_ticket ticket =
        ticket_of(IDEM_MODE_LEASED, IDEM_AFTER_CRASH_HOLD);

    (void)state;
    record.unbegun = true;
    assert_int_equal(record_claim(&record, &ticket), RECORD_TAKE);
    assert_int_equal(record_abandon(&record, &ticket), RECORD_ABANDON);
    assert_int_equal(ticket.verdict, IDEM_VERDICT_ABANDONED);
    record_look(&record, &ticket);
    assert_int_equal(ticket.verdict, IDEM_VERDICT_RUNNING);
    record.window_over = true;
    assert_int_equal(record_claim(&record, &ticket), RECORD_ABANDON);
    record.window_over = false;
    record.lease_left_ms = 1;
    assert_int_equal(record_claim(&record, &ticket), RECORD_KEEP);
    assert_int_equal(ticket.verdict, IDEM_VERDICT_RUNNING);
}

/* A method that has become one of TRANSACTION cannot take a lease over. */
static void
what_is_not_begun_is_held_by_a_transaction(void **state)
{
    struct record record = record_of(RECORD_RUNNING, 0, false);
    struct idem_ticket ticket =
        ticket_of(IDEM_MODE_TRANSACTION, IDEM_AFTER_CRASH_HOLD);

    (void)state;
    record.unbegun = true;
    assert_int_equal(record_claim(&record, &ticket), RECORD_HOLD);
}

static void
only_a_leased_call_of_reexecute_runs_after_a_crash(void **state)
{
    static const enum idem_after_crash held[] = {0, IDEM_AFTER_CRASH_HOLD};
    struct record record = record_of(RECORD_RUNNING, 0, false);
    struct idem_ticket ticket;

    (void)state;
    for (int i = 0; i < 2; i++) {
        ticket = ticket_of(IDEM_MODE_LEASED, held[i]);
        assert_int_equal(record_claim(&record, &ticket), RECORD_HOLD);
    }
    ticket = ticket_of(IDEM_MODE_TRANSACTION, IDEM_AFTER_CRASH_REEXECUTE);
    assert_int_equal(record_claim(&record, &ticket), RECORD_HOLD);
}

/* Faults 7 to 9: under the next token, and never as if it had not begun. */
static void
a_call_with_a_probe_is_lent_what_is_in_doubt(void **state)
{
    static const enum record_state states[] = {RECORD_RUNNING, RECORD_DOUBT};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct record record = record_of(states[i], 0, false);
        struct idem_ticket ticket =
            ticket_of(IDEM_MODE_LEASED, IDEM_AFTER_CRASH_PROBE);

        assert_int_equal(record_claim(&record, &ticket), RECORD_TAKE);
        assert_true(ticket.probe);
        record_look(&record, &ticket);
        assert_int_equal(ticket.verdict, IDEM_VERDICT_DOUBT);
        record.window_over = true;
        (void)record_claim(&record, &ticket);
        assert_int_equal(ticket.verdict, IDEM_VERDICT_DOUBT);
        assert_false(ticket.probe);
    }
}

static void
a_call_with_a_probe_does_not_ask_it_without_need(void **state)
{
    struct record record = record_of(RECORD_RUNNING, 0, false);
    struct idem_ticket ticket =
        ticket_of(IDEM_MODE_LEASED, IDEM_AFTER_CRASH_PROBE);

    (void)state;
    record.unbegun = true;
    assert_int_equal(record_claim(&record, &ticket), RECORD_TAKE);
    assert_false(ticket.probe);
    record.state = RECORD_RELEASED;
    assert_int_equal(record_claim(&record, &ticket), RECORD_TAKE);
    assert_false(ticket.probe);
    record.state = RECORD_DOUBT;
    ticket.mode = IDEM_MODE_TRANSACTION;
    assert_int_equal(record_claim(&record, &ticket), RECORD_KEEP);
    assert_int_equal(ticket.verdict, IDEM_VERDICT_DOUBT);
}

/* Whatever after_crash says, and also when it never got as far as a step. */
static void
a_lease_that_is_over_too_often_is_held(void **state)
{
    static const enum idem_after_crash all[] = {IDEM_AFTER_CRASH_HOLD,
                                                IDEM_AFTER_CRASH_PROBE,
                                                IDEM_AFTER_CRASH_REEXECUTE};

    (void)state;
    for (int i = 0; i < 6; i++) {
        struct record record = record_of(RECORD_RUNNING, 0, false);
        struct idem_ticket ticket = ticket_of(IDEM_MODE_LEASED, all[i / 2]);

        record.unbegun = i % 2;
        record.executions = ticket.max_executions = 3;
        assert_int_equal(record_claim(&record, &ticket), RECORD_HOLD);
        assert_int_equal(ticket.verdict, IDEM_VERDICT_DOUBT);
        assert_false(ticket.probe);
        record.state = RECORD_RELEASED;
        assert_int_equal(record_claim(&record, &ticket), RECORD_TAKE);
    }
}

/* semantics.md 3.4: before every other decision. */
static void
another_request_is_told_so_in_every_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct record record =
            record_of(lines[i].state, lines[i].lease_left_ms, lines[i].late);
        struct idem_ticket ticket =
            ticket_of(IDEM_MODE_LEASED, IDEM_AFTER_CRASH_REEXECUTE);

        ticket.fingerprint.raw[0] = ticket.fingerprint.canonical[0] = 2;
        if (record.state == RECORD_ABSENT)
            continue;
        assert_int_equal(record_claim(&record, &ticket), RECORD_KEEP);
        assert_int_equal(ticket.verdict, IDEM_VERDICT_REUSED);
        assert_int_equal(ticket.recorded.raw[0], 1);
        assert_int_equal(ticket.first_at_ms, 17);
    }
}

static void
who_has_the_key_alone_is_not_compared(void **state)
{
    struct record record = record_of(RECORD_DONE, 0, false);
    struct idem_ticket ticket = ticket_of(IDEM_MODE_LEASED, 0);

    (void)state;
    ticket.fingerprint = (struct idem_fingerprint){.version = 0};
    record_look(&record, &ticket);
    assert_int_equal(ticket.verdict, IDEM_VERDICT_DONE);
    assert_int_equal(record_abandon(&record, &ticket), RECORD_KEEP);
    assert_int_equal(ticket.verdict, IDEM_VERDICT_DONE);
}

static void
an_answer_that_was_dropped_is_final_all_the_same(void **state)
{
    struct record record = record_of(RECORD_DONE, 0, false);
    struct idem_ticket ticket = ticket_of(IDEM_MODE_LEASED, 0);

    (void)state;
    record.dropped = true;
    assert_int_equal(record_claim(&record, &ticket), RECORD_KEEP);
    assert_int_equal(ticket.verdict, IDEM_VERDICT_DONE);
    assert_int_equal(ticket.answer.status, IDEM_ALREADY_EXISTS);
    assert_int_equal(ticket.answer.first_at_ms, 17);
    assert_int_equal(ticket.answer.executions, record.executions);
    assert_true(idem_bytes_equal(ticket.answer.reason,
                                 idem_bytes_of(IDEM_ANSWER_DROPPED)));
}

static void
another_key_with_the_same_digest_is_never_answered(void **state)
{
    struct record record = record_of(RECORD_DONE, 0, false);
    struct idem_ticket ticket = ticket_of(IDEM_MODE_LEASED, 0);

    (void)state;
    record.same_key = false;
    assert_int_equal(record_claim(&record, &ticket), RECORD_KEEP);
    assert_int_equal(ticket.verdict, IDEM_VERDICT_FAILED);
    assert_int_equal(ticket.error.status, IDEM_DATA_LOSS);
}

/* The token is what the operator's look told. */
static void
doubt_of_another_execution_is_not_settled(void **state)
{
    struct record record = record_of(RECORD_DOUBT, 0, false);
    struct idem_ticket ticket = ticket_of(IDEM_MODE_LEASED, 0);

    (void)state;
    record.token = 3;
    record_look(&record, &ticket);
    assert_int_equal(ticket.token, 3);
    ticket.settlement = &settlement;
    ticket.token = 2;
    assert_int_equal(record_settle(&record, &ticket), RECORD_KEEP);
    assert_int_equal(ticket.verdict, IDEM_VERDICT_FENCED);
}

/* It was released by nobody: it says that its window is over (decision 67), and
 * is as good as absent. */
static void
what_was_never_executed_is_expired_for_all_who_ask(void **state)
{
    struct idem_ticket ticket =
        ticket_of(IDEM_MODE_TRANSACTION, IDEM_AFTER_CRASH_HOLD);
    struct record record = record_of(RECORD_RELEASED, 0, true);

    (void)state;
    record.executions = 0;
    assert_int_equal(record_claim(&record, &ticket), RECORD_KEEP);
    assert_int_equal(ticket.verdict, IDEM_VERDICT_EXPIRED);
    assert_int_equal(record_abandon(&record, &ticket), RECORD_KEEP);
    assert_int_equal(ticket.verdict, IDEM_VERDICT_EXPIRED);
    record_look(&record, &ticket);
    assert_int_equal(ticket.verdict, IDEM_VERDICT_EXPIRED);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_has_one_answer_to_each_question),
        cmocka_unit_test(what_is_not_begun_runs_again_or_never),
        cmocka_unit_test(what_is_not_begun_is_held_by_a_transaction),
        cmocka_unit_test(only_a_leased_call_of_reexecute_runs_after_a_crash),
        cmocka_unit_test(a_call_with_a_probe_is_lent_what_is_in_doubt),
        cmocka_unit_test(a_call_with_a_probe_does_not_ask_it_without_need),
        cmocka_unit_test(a_lease_that_is_over_too_often_is_held),
        cmocka_unit_test(another_request_is_told_so_in_every_state),
        cmocka_unit_test(who_has_the_key_alone_is_not_compared),
        cmocka_unit_test(an_answer_that_was_dropped_is_final_all_the_same),
        cmocka_unit_test(another_key_with_the_same_digest_is_never_answered),
        cmocka_unit_test(doubt_of_another_execution_is_not_settled),
        cmocka_unit_test(what_was_never_executed_is_expired_for_all_who_ask),
    };

    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
