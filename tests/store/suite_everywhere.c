#include "suite_call.h"

#include "fault.h"
#include "tempdir.h"

#include <idem/reason.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* One story with every operation in it; the process dies at each point that the
 * story reaches, once for each time that it is reached. A step that somebody
 * adds cannot escape. */

#ifdef IDEM_FAULTS

#define POINTS_MAX 256
#define POINT_MAX 96
#define WINDOW_MS INT64_C(86400000)

enum story_key {
    PAID,
    PAID_AT_SECOND,
    LEASED,
    GIVEN_BACK,
    DOUBTED,
    SETTLED,
    ABANDONED,
    NUMBERED, /* the first two calls of a session */
    NEXT,
};
#define STORY_KEYS (NEXT + 1)

struct story {
    struct suite suite;
    struct checker *checker; /* of its keys */
    char keys[STORY_KEYS][IDEM_KEY_MAX + 1];
};

struct points {
    char names[POINTS_MAX][POINT_MAX]; /* in the order of the story */
    unsigned n;
};

static void
number_keys(struct story *story, const struct suite_factory *factory)
{
    const struct idem_clock *system = idem_clock_system();
    char session[IDEM_SESSION_MAX];

    idem_session_mint(session, system,
                      factory->wall_ms(factory->with) - system->wall_ms(system),
                      WINDOW_MS);
    idem_key_of_session(story->keys[NUMBERED], session, 1);
    idem_key_of_session(story->keys[NEXT], session, 2);
}

static void
story_open(struct story *story, const struct suite_factory *factory)
{
    *story = (struct story){.suite = {.factory = factory, .minted = true}};
    for (int i = 0; i < NUMBERED; i++)
        suite_key(&story->suite, story->keys[i]);
    number_keys(story, factory);
}

/* A key of a session is in the scope of all sessions. */
static void
open_call(struct suite_call *call, struct story *story, enum story_key which)
{
    bool transaction = which == PAID || which == PAID_AT_SECOND ||
                       which == NUMBERED || which == NEXT;

    call_open(call, &story->suite, story->keys[which],
              transaction ? IDEM_MODE_TRANSACTION : IDEM_MODE_LEASED, 1);
    if (which < NUMBERED)
        return;
    call->ticket.id.scope = IDEM_SESSION_SCOPE;
    call_identify(call);
}

/* Nothing asserts on the way, which a child walks too: the end is judged. */
static void
pay(struct suite_call *call)
{
    if (call_claim(call) != IDEM_VERDICT_MINE)
        return;
    (void)call_effect(call, 1);
    (void)call_complete(call, IDEM_OK, "paid");
}

static void
pay_at_the_second_attempt(struct suite_call *call)
{
    if (call_claim(call) == IDEM_VERDICT_MINE) {
        (void)call_effect(call, 1);
        (void)call_release(call);
    }
    pay(call);
}

static void
doubt_and_settle(struct suite_call *call)
{
    static const struct idem_settlement settlement = {
        .took_effect = true,
        .by = {(const uint8_t *)"anna", 4},
        .why = {(const uint8_t *)"seen", 4},
    };

    (void)call_claim(call);
    (void)call_doubt(call);
    if (call_look(call) != IDEM_VERDICT_DOUBT)
        return;
    call->ticket.settlement = &settlement;
    call->ticket.answer = (struct idem_answer){.reply = idem_bytes_of("seen")};
    (void)call_do(call, call->suite->store->ops->settle);
}

/* As a server does with a call of a session: EXPIRED when its number was
 * acknowledged, and then nothing runs. */
static enum idem_verdict
pay_numbered(struct suite_call *call)
{
    const struct idem_store_ops *ops = call->suite->store->ops;
    enum idem_verdict verdict = call_claim(call);

    if (verdict != IDEM_VERDICT_MINE)
        return verdict;
    verdict = call_do(call, ops->watermark);
    if (verdict != IDEM_VERDICT_MINE) {
        (void)call_release(call);
        return verdict;
    }
    (void)call_effect(call, 1);
    return call_complete(call, IDEM_OK, "paid");
}

static void
tell(struct story *story)
{
    struct suite_call calls[STORY_KEYS];
    struct idem_store *store = story->suite.store;

    for (int i = 0; i < STORY_KEYS; i++)
        open_call(&calls[i], story, (enum story_key)i);
    pay(&calls[PAID]);
    pay_at_the_second_attempt(&calls[PAID_AT_SECOND]);
    (void)call_claim(&calls[LEASED]);
    (void)call_renew(&calls[LEASED]);
    (void)call_complete(&calls[LEASED], IDEM_OK, "leased");
    (void)call_claim(&calls[GIVEN_BACK]);
    (void)call_release(&calls[GIVEN_BACK]);
    (void)call_claim(&calls[DOUBTED]);
    (void)call_doubt(&calls[DOUBTED]);
    doubt_and_settle(&calls[SETTLED]);
    (void)call_abandon(&calls[ABANDONED]);
    (void)pay_numbered(&calls[NUMBERED]);
    calls[NEXT].ticket.ack_below = 2; /* the answer has come */
    (void)call_do(&calls[NEXT], store->ops->acknowledge);
    (void)!store->ops->maintain(store, NULL);
}

/* In a process of its own; how it ended. */
static int
tell_in_a_child(struct story *story, const char *plan, const char *log)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        story->suite.store =
            story->suite.factory->open(story->suite.factory->with);
        fault_set(plan);
        fault_log(log);
        tell(story);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void
read_points(struct points *points, const char *path)
{
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    while (points->n < POINTS_MAX &&
           fscanf(file, "%95s", points->names[points->n]) == 1)
        points->n++;
    fclose(file);
    assert_in_range(points->n, 1, POINTS_MAX - 1);
    print_message("%u points\n", points->n);
}

/* Which time is the index-th point reached there? */
static unsigned
time_of(const struct points *points, unsigned index)
{
    unsigned time = 0;

    for (unsigned i = 0; i <= index; i++)
        if (strcmp(points->names[i], points->names[index]) == 0)
            time++;
    return time;
}

/* --- What becomes of it --- */

/* The client of the key was told so for good. */
static void
told(struct story *story, enum story_key which, enum idem_status status,
     const char *reason)
{
    const struct checker_call call = {
        .key = story->keys[which],
        .status = status,
        .effect =
            status == IDEM_OK ? IDEM_EFFECT_REPLAYED : IDEM_EFFECT_REFUSED,
        .final = true,
        .reason = reason,
    };

    checker_call(story->checker, &call);
}

static void
declare(struct story *story)
{
    story->checker = checker_new();
    checker_pass_over_others(story->checker);
    for (int i = 0; i < STORY_KEYS; i++)
        checker_key(story->checker, story->keys[i], CHECKER_RUN_ONCE,
                    INT64_MAX);
    checker_may_forget(story->checker, story->keys[NUMBERED]);
}

static void
judge(struct story *story)
{
    const struct suite_factory *factory = story->suite.factory;

    factory->tell(factory->with, story->checker);
    assert_int_equal(
        checker_run(story->checker, factory->lease_ms, checker_print, NULL), 0);
    checker_free(story->checker);
}

/* The client repeats until it knows: one effect, and the same answer. */
static void
assert_paid_once(struct story *story, enum story_key which)
{
    struct suite_call call;

    call_open(&call, &story->suite, story->keys[which], IDEM_MODE_TRANSACTION,
              1);
    pay(&call);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_DONE);
    assert_text(call.ticket.answer.reply, "paid");
    assert_int_equal(suite_effects(&story->suite, story->keys[which]), 1);
    told(story, which, IDEM_OK, "");
    call_close(&call);
}

/* Not blocked beyond the lease: it ends, or is said to be in doubt. */
static void
assert_ends(struct story *story, enum story_key which)
{
    enum idem_verdict verdict = suite_claim_once(
        &story->suite, story->keys[which], IDEM_MODE_LEASED, 1);

    if (verdict == IDEM_VERDICT_MINE)
        verdict = suite_claim_once(&story->suite, story->keys[which],
                                   IDEM_MODE_LEASED, 1);
    if ((which != DOUBTED && which != SETTLED) || verdict != IDEM_VERDICT_DOUBT)
        assert_int_equal(verdict, IDEM_VERDICT_DONE);
}

/* A late duplicate: its record may have gone, and it does not run again. */
static void
assert_paid_by_number(struct story *story)
{
    struct suite_call call;
    enum idem_verdict verdict = IDEM_VERDICT_FAILED;

    open_call(&call, story, NUMBERED);
    for (int i = 0; i < 2; i++)
        verdict = pay_numbered(&call);
    if (verdict != IDEM_VERDICT_EXPIRED)
        assert_int_equal(verdict, IDEM_VERDICT_DONE);
    assert_int_equal(suite_effects(&story->suite, story->keys[NUMBERED]), 1);
    if (verdict == IDEM_VERDICT_DONE)
        told(story, NUMBERED, IDEM_OK, "");
    else
        told(story, NUMBERED, IDEM_FAILED_PRECONDITION, IDEM_KEY_STALE);
    call_close(&call);
}

static void
assert_abandoned(struct story *story)
{
    struct suite_call call;

    call_open(&call, &story->suite, story->keys[ABANDONED], IDEM_MODE_LEASED,
              1);
    assert_int_equal(call_abandon(&call), IDEM_VERDICT_ABANDONED);
    assert_int_equal(call_claim(&call), IDEM_VERDICT_ABANDONED);
    told(story, ABANDONED, IDEM_FAILED_PRECONDITION, IDEM_KEY_ABANDONED);
    call_close(&call);
}

static void
die_and_check(const struct suite_factory *factory, const char *plan)
{
    struct story story;
    int status;

    story_open(&story, factory);
    status = tell_in_a_child(&story, plan, NULL);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_msg("%s was not reached", plan);
    story.suite.store = factory->open(factory->with);
    declare(&story);
    suite_pass_lease(&story.suite);
    assert_paid_once(&story, PAID);
    assert_paid_once(&story, PAID_AT_SECOND);
    assert_ends(&story, LEASED);
    assert_ends(&story, GIVEN_BACK);
    assert_ends(&story, DOUBTED);
    assert_ends(&story, SETTLED);
    assert_abandoned(&story);
    assert_paid_by_number(&story);
    judge(&story);
    idem_store_free(story.suite.store);
}

/* Faults 5, 6, 11, 13, 14, 67; I1, I5, I10. */
static void
wherever_a_process_dies_every_key_ends_with_one_effect_at_most(void **state)
{
    const struct suite_factory *factory = *state;
    struct story story;
    struct tempdir folder;
    static struct points points;
    char log[TEMPDIR_MAX + 32];

    tempdir_open(&folder);
    tempdir_file(&folder, "points", log, sizeof log);
    story_open(&story, factory);
    assert_int_equal(tell_in_a_child(&story, NULL, log), 0);
    read_points(&points, log);
    for (unsigned i = 0; i < points.n; i++) {
        char plan[POINT_MAX + 32];

        snprintf(plan, sizeof plan, "%s:%u:kill", points.names[i],
                 time_of(&points, i));
        die_and_check(factory, plan);
    }
    tempdir_close(&folder);
}

int
suite_run_everywhere(const struct suite_factory *factory)
{
    union {
        const void *given;
        void *state;
    } with = {factory};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(
            wherever_a_process_dies_every_key_ends_with_one_effect_at_most,
            with.state),
    };

    return cmocka_run_group_tests_name("everywhere", tests, NULL, NULL);
}

#else

int
suite_run_everywhere(const struct suite_factory *factory)
{
    (void)factory;
    return 0;
}

#endif
