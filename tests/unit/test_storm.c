#include "support.h"

#include "attempt_plan.h"
#include "fake_clock.h"

#include <idem/reason.h>

#include <string.h>

/* B034: 100 clients of one channel, each with a call after the other, and a
 * server that gets slower than their attempts' time-out for 30 seconds. The
 * time is simulated, event by event. */

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define CLIENTS 100
#define STORM_NS (30 * SECOND)
#define TIMEOUT_NS SECOND /* of an attempt, less than the server takes */
#define FAST_NS (10 * MS) /* what it takes before and after */
#define SHARE_MILLI 200   /* repeats for each call, of the budget … */
#define FLOOR 3           /* … and so many in each window */
#define WINDOW_MS 10000

static struct fake_clock fake;
static struct budget budget;
static int64_t now_ns;

struct client {
    struct plan plan;
    int64_t began_ns; /* the call */
    int64_t ends_ns;  /* the attempt; INT64_MAX: there is none */
};

static struct client clients[CLIENTS];
static const struct idem_retry_policy retry = {5, 100, 2000, 2000,
                                               1u << IDEM_UNAVAILABLE};
static const struct hedging no_hedging;

/* What is counted, from a time on. */
static struct {
    unsigned calls, attempts, repeats;
    int64_t longest_ns;        /* of the calls */
    int64_t least_ns, most_ns; /* of the pauses before a second attempt */
} seen;

static bool
is_slow(void)
{
    return now_ns < STORM_NS;
}

static void
start_attempt(struct client *client)
{
    seen.attempts++;
    client->ends_ns = now_ns + (is_slow() ? TIMEOUT_NS : FAST_NS);
}

static void
start_call(struct client *client)
{
    const struct plan_rules rules = {
        .retry = &retry,
        .hedging = &no_hedging,
        .safe = true,
        .keyed = true,
        .deadline_ns = now_ns + 60 * SECOND,
        .budget = &budget,
        .clock = &fake.clock,
    };

    seen.calls++;
    client->began_ns = now_ns;
    budget_call(&budget, now_ns);
    plan_begin(&client->plan, &rules, now_ns);
    start_attempt(client);
}

static void
note_pause(const struct client *client)
{
    int64_t pause_ns = client->plan.due_ns - now_ns;

    seen.repeats++;
    if (client->plan.number != 2)
        return;
    if (seen.least_ns == 0 || pause_ns < seen.least_ns)
        seen.least_ns = pause_ns;
    if (pause_ns > seen.most_ns)
        seen.most_ns = pause_ns;
}

static void
end_attempt(struct client *client)
{
    struct idem_outcome outcome = {.status = IDEM_OK,
                                   .effect = IDEM_EFFECT_COMMITTED,
                                   .retry_after_ms = -1};

    client->ends_ns = INT64_MAX;
    if (is_slow()) {
        outcome.status = IDEM_DEADLINE_EXCEEDED;
        outcome.effect = IDEM_EFFECT_IN_DOUBT;
        strcpy(outcome.reason, IDEM_ATTEMPT_TIMEOUT);
    }
    plan_ended(&client->plan, &outcome, now_ns);
    if (!client->plan.over) {
        note_pause(client);
        return;
    }
    if (now_ns - client->began_ns > seen.longest_ns)
        seen.longest_ns = now_ns - client->began_ns;
    start_call(client);
}

static int64_t
next_ns(const struct client *client)
{
    return client->ends_ns < client->plan.due_ns ? client->ends_ns
                                                 : client->plan.due_ns;
}

static void
run_until(int64_t end_ns)
{
    for (;;) {
        struct client *first = &clients[0];

        for (unsigned i = 1; i < CLIENTS; i++)
            if (next_ns(&clients[i]) < next_ns(first))
                first = &clients[i];
        if (next_ns(first) > end_ns)
            break;
        now_ns = next_ns(first);
        if (first->ends_ns == now_ns)
            end_attempt(first);
        else if (plan_due(&first->plan, now_ns).start)
            start_attempt(first);
    }
    now_ns = end_ns;
}

static void
a_storm_stays_within_the_budget_and_passes(void **state)
{
    (void)state;
    fake_clock_init(&fake);
    budget_init(&budget);
    budget_set(&budget, SHARE_MILLI, FLOOR, WINDOW_MS);
    for (unsigned i = 0; i < CLIENTS; i++)
        start_call(&clients[i]);

    run_until(STORM_NS - 1);
    print_message("in the storm: %u calls, %u attempts\n", seen.calls,
                  seen.attempts);
    assert_true(seen.calls > CLIENTS);
    assert_true(seen.repeats > 0);
    assert_true(seen.repeats <= seen.calls * SHARE_MILLI / 1000 + 4 * FLOOR);
    assert_true(seen.attempts <= seen.calls + seen.repeats);
    /* They do not come back all at once. */
    assert_true(seen.most_ns - seen.least_ns > 30 * MS);

    run_until(STORM_NS + 3 * SECOND);
    memset(&seen, 0, sizeof seen);
    run_until(STORM_NS + 4 * SECOND);
    print_message("after it: %u calls, the longest %lld ms\n", seen.calls,
                  (long long)(seen.longest_ns / MS));
    assert_int_equal(seen.attempts, seen.calls);
    assert_true(seen.calls >= CLIENTS * 99);
    assert_int_equal(seen.longest_ns, FAST_NS);
    budget_fini(&budget);
    fake_clock_fini(&fake);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_storm_stays_within_the_budget_and_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
