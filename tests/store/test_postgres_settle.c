#include "postgres_world.h"

#include "fault.h"
#include "settle_call.h"

/* The audit of settlements, and what becomes of a key that is settled or was
 * abandoned when its window is over. */

static void
assert_audits(struct postgres_world *world, const char *key, int64_t audits)
{
    assert_int_equal(
        postgres_sql(world->postgres,
                     "SELECT count(*) FROM idem_settlement WHERE "
                     "tenant = 'tenant' AND scope = 'shop.v1.Shop/Buy' AND "
                     "key_text = '%s' AND token = 1 AND state = 'DONE' AND "
                     "settled_by = 'anna' AND why = 'ticket 4711' AND "
                     "settled_at > now() - interval '1 hour'",
                     key),
        audits);
}

static void
a_settlement_is_audited_once(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call owner, clerk;

    settle_leave_in_doubt(&owner, &clerk, &world->suite, "order-1");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(settle_as_paid(&clerk), IDEM_VERDICT_MINE);
        assert_audits(world, "order-1", 1);
    }
    call_close(&clerk);
    call_close(&owner);
}

#ifdef IDEM_FAULTS
/* The store asks again by itself, and knows its own doing. */
static void
a_settlement_whose_answer_is_lost_is_one(void **state)
{
    static const char *const points[] = {"postgres.settle.before:1:error",
                                         "postgres.settle.after:1:error"};
    static const char *const keys[] = {"order-before", "order-after"};
    struct postgres_world *world = *state;

    for (int i = 0; i < 2; i++) {
        struct suite_call owner, clerk;

        settle_leave_in_doubt(&owner, &clerk, &world->suite, keys[i]);
        fault_set(points[i]);
        assert_int_equal(settle_as_paid(&clerk), IDEM_VERDICT_MINE);
        fault_set(NULL);
        assert_audits(world, keys[i], 1);
        call_close(&clerk);
        call_close(&owner);
    }
}
#endif

/* Its window is over and maintenance has been there. */
static void
pass_the_window(struct postgres_world *world)
{
    struct idem_store *store = world->suite.store;

    postgres_sql(world->postgres, "UPDATE idem_record_opaque SET "
                                  "reap_at = now() - interval '1 s'");
    assert_int_equal(store->ops->maintain(store, NULL), IDEM_OK);
}

static void
an_opaque_key_that_is_settled_late_keeps_its_answer(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call owner, clerk, repeat;

    settle_leave_in_doubt(&owner, &clerk, &world->suite, "order-late");
    pass_the_window(world);
    assert_int_equal(call_look(&clerk), IDEM_VERDICT_DOUBT);
    assert_int_equal(settle_as_paid(&clerk), IDEM_VERDICT_MINE);
    call_open(&repeat, &world->suite, "order-late", IDEM_MODE_LEASED, 1);
    assert_int_equal(call_claim(&repeat), IDEM_VERDICT_DONE);
    assert_int_equal(repeat.ticket.answer.status, IDEM_OK);
    assert_text(repeat.ticket.answer.reply, "paid");
    call_close(&repeat);
    call_close(&clerk);
    call_close(&owner);
}

/* D8. */
static void
an_abandoned_opaque_key_is_refused_after_its_window(void **state)
{
    struct postgres_world *world = *state;
    struct suite_call abandon;

    call_open(&abandon, &world->suite, "order-x", IDEM_MODE_TRANSACTION, 1);
    abandon.ticket.fingerprint.version = 0;
    assert_int_equal(call_abandon(&abandon), IDEM_VERDICT_ABANDONED);
    for (int i = 0; i < 2; i++) {
        pass_the_window(world);
        assert_int_equal(suite_claim_once(&world->suite, "order-x",
                                          IDEM_MODE_TRANSACTION, 1),
                         IDEM_VERDICT_ABANDONED);
    }
    call_close(&abandon);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_settlement_is_audited_once),
#ifdef IDEM_FAULTS
        cmocka_unit_test(a_settlement_whose_answer_is_lost_is_one),
#endif
        cmocka_unit_test(an_opaque_key_that_is_settled_late_keeps_its_answer),
        cmocka_unit_test(an_abandoned_opaque_key_is_refused_after_its_window),
    };

    return cmocka_run_group_tests_name("postgres settle", tests, world_up,
                                       world_down);
}
