#include "asked.h"

#include <stdlib.h>

/* Work of mode LEASED that is too much, or too late: it is told so before
 * anything is done, and those beside it have their answers. */

#define NS_PER_MS INT64_C(1000000)
#define FEW 24

static int64_t
now_ns(void)
{
    const struct idem_clock *clock = idem_clock_system();

    return clock->monotonic_ns(clock);
}

static void
beyond_a_bound_claims_are_refused_before_anything(void **state)
{
    enum { CLAIMS = 8 * 512 + 2 * 512 + 100 };
    struct postgres_world *world = *state;
    struct asked *asked = calloc(CLAIMS, sizeof(*asked));
    struct asked before;
    unsigned refused = 0;

    assert_non_null(asked);
    asked_open(&before, world, true);
    assert_int_equal(call_claim(&before.call), IDEM_VERDICT_MINE);
    for (unsigned i = 0; i < CLAIMS; i++)
        asked_open(&asked[i], world, true);
    tcp_proxy_hold(world->proxy, 1);
    for (unsigned i = 0; i < CLAIMS; i++)
        call_start(&asked[i].call, asked_ops(world)->claim);
    ask_to_complete(&before, world, 0, IDEM_VERDICT_MINE);
    call_start(&before.call, before.op);
    assert_int_equal(call_await(&asked[CLAIMS - 1].call), IDEM_VERDICT_FAILED);
    tcp_proxy_hold(world->proxy, 0);
    assert_int_equal(call_await(&before.call), IDEM_VERDICT_MINE);
    for (unsigned i = 0; i < CLAIMS; i++) {
        if (call_await(&asked[i].call) == IDEM_VERDICT_FAILED) {
            assert_int_equal(asked[i].call.ticket.error.status,
                             IDEM_RESOURCE_EXHAUSTED);
            refused++;
        }
        call_close(&asked[i].call);
    }
    assert_in_range(refused, 100, CLAIMS - 8 * 512);
    call_close(&before.call);
    free(asked);
}

/* B082. */
static void
a_late_call_is_told_so_while_its_neighbours_wait(void **state)
{
    struct postgres_world *world = *state;
    struct asked asked[FEW];

    for (unsigned i = 0; i < FEW; i++)
        asked_open(&asked[i], world, true);
    tcp_proxy_hold(world->proxy, 1);
    for (unsigned i = 0; i < FEW; i++) {
        if (i % 2)
            asked[i].call.ticket.deadline_ns = now_ns() + 300 * NS_PER_MS;
        call_start(&asked[i].call, asked_ops(world)->claim);
    }
    for (unsigned i = 1; i < FEW; i += 2) {
        assert_int_equal(call_await(&asked[i].call), IDEM_VERDICT_FAILED);
        assert_int_equal(asked[i].call.ticket.error.status,
                         IDEM_DEADLINE_EXCEEDED);
    }
    tcp_proxy_hold(world->proxy, 0);
    for (unsigned i = 0; i < FEW; i += 2)
        assert_int_equal(call_await(&asked[i].call), IDEM_VERDICT_MINE);
    for (unsigned i = 0; i < FEW; i++) {
        if (i % 2) {
            asked[i].call.ticket.deadline_ns = INT64_MAX;
            assert_int_equal(call_claim(&asked[i].call), IDEM_VERDICT_MINE);
            assert_int_equal(asked[i].call.ticket.executions, 1);
        }
        call_close(&asked[i].call);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beyond_a_bound_claims_are_refused_before_anything),
        cmocka_unit_test(a_late_call_is_told_so_while_its_neighbours_wait),
    };

    return cmocka_run_group_tests(tests, asked_set_up, asked_tear_down);
}
