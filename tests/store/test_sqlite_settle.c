#include "sqlite_world.h"

#include "fault.h"
#include "settle_call.h"

/* The audit of settlements, and how long an abandoned key is refused. */

#define DAY_MS INT64_C(86400000)

static void
assert_audits(struct sqlite_world *world, int64_t audits)
{
    assert_int_equal(
        sqlite_world_number(world,
                            "SELECT count(*) FROM idem_settlement WHERE"
                            " tenant = CAST('tenant' AS BLOB) AND"
                            " scope = 'shop.v1.Shop/Buy' AND"
                            " key = CAST('order-1' AS BLOB) AND token = 1 AND"
                            " state = 'DONE' AND settled_by = 'anna' AND"
                            " why = 'ticket 4711' AND settled_at > 0"),
        audits);
}

static void
a_settlement_is_audited_once(void **state)
{
    struct sqlite_world *world = *state;
    struct suite_call owner, clerk;

    settle_leave_in_doubt(&owner, &clerk, &world->suite, "order-1");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(settle_as_paid(&clerk), IDEM_VERDICT_MINE);
        assert_audits(world, 1);
    }
    call_close(&clerk);
    call_close(&owner);
}

#ifdef IDEM_FAULTS
static void
a_settlement_that_fails_leaves_no_audit_and_the_doubt(void **state)
{
    struct sqlite_world *world = *state;
    struct suite_call owner, clerk;

    settle_leave_in_doubt(&owner, &clerk, &world->suite, "order-1");
    fault_set("sqlite.settle.written:1:error");
    assert_int_equal(settle_as_paid(&clerk), IDEM_VERDICT_FAILED);
    fault_set(NULL);
    assert_audits(world, 0);
    assert_int_equal(call_look(&clerk), IDEM_VERDICT_DOUBT);
    assert_int_equal(settle_as_paid(&clerk), IDEM_VERDICT_MINE);
    assert_audits(world, 1);
    call_close(&clerk);
    call_close(&owner);
}
#endif

static enum idem_verdict
attempt(struct sqlite_world *world, const char *key)
{
    struct idem_store *store = world->suite.store;

    assert_int_equal(store->ops->maintain(store, NULL), IDEM_OK);
    return suite_claim_once(&world->suite, key, IDEM_MODE_TRANSACTION, 1);
}

static void
abandon(struct sqlite_world *world, const char *key)
{
    struct suite_call call;

    call_open(&call, &world->suite, key, IDEM_MODE_TRANSACTION, 1);
    call.ticket.fingerprint.version = 0;
    assert_int_equal(call_abandon(&call), IDEM_VERDICT_ABANDONED);
    call_close(&call);
}

/* D8: the refusal lives as long as the partition, and then that refuses. */
static void
an_abandoned_key_is_refused_for_good(void **state)
{
    struct sqlite_world *world = *state;
    char key[IDEM_KEY_MAX + 1];
    enum idem_verdict verdict = IDEM_VERDICT_ABANDONED;

    suite_key_at(key, world->factory.wall_ms(world), 3 * DAY_MS);
    abandon(world, key);
    for (int day = 0; day < 3; day++) {
        for (int i = 0; i < 2; i++)
            assert_int_equal(attempt(world, key), IDEM_VERDICT_ABANDONED);
        fake_clock_advance_ms(&world->clock, DAY_MS);
    }
    for (int day = 0; day < 3; day++) {
        verdict = attempt(world, key);
        assert_true(verdict == IDEM_VERDICT_ABANDONED ||
                    verdict == IDEM_VERDICT_EXPIRED);
        fake_clock_advance_ms(&world->clock, DAY_MS);
    }
    assert_int_equal(attempt(world, key), IDEM_VERDICT_EXPIRED);
}

static void
an_abandoned_opaque_key_is_refused_as_long_as_it_is_known(void **state)
{
    struct sqlite_world *world = *state;

    abandon(world, "order-2");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(attempt(world, "order-2"), IDEM_VERDICT_ABANDONED);
        fake_clock_advance_ms(&world->clock, 133 * DAY_MS);
    }
}

#define IN_A_WORLD(test)                                                       \
    cmocka_unit_test_setup_teardown(test, sqlite_world_set_up,                 \
                                    sqlite_world_tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_WORLD(a_settlement_is_audited_once),
#ifdef IDEM_FAULTS
        IN_A_WORLD(a_settlement_that_fails_leaves_no_audit_and_the_doubt),
#endif
        IN_A_WORLD(an_abandoned_key_is_refused_for_good),
        IN_A_WORLD(an_abandoned_opaque_key_is_refused_as_long_as_it_is_known),
    };

    return cmocka_run_group_tests_name("sqlite settle", tests, NULL, NULL);
}
