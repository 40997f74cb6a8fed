/* Recorded if and only if final, for every code, by default and by a method's
 * own lists (semantics.md 3.3). */
#include "once_world.h"

#include "effects.idem.h"

#define BIT(status) (1u << (status))

/* options.proto: recorded and released. */
#define RECORDED_BY_DEFAULT                                                    \
    (BIT(IDEM_OK) | BIT(IDEM_INVALID_ARGUMENT) | BIT(IDEM_NOT_FOUND) |         \
     BIT(IDEM_ALREADY_EXISTS) | BIT(IDEM_PERMISSION_DENIED) |                  \
     BIT(IDEM_FAILED_PRECONDITION) | BIT(IDEM_OUT_OF_RANGE) |                  \
     BIT(IDEM_UNIMPLEMENTED) | BIT(IDEM_DATA_LOSS))

static enum fake_op
expected(const struct idem_method *method, enum idem_status status,
         bool recorded)
{
    if (recorded)
        return FAKE_COMPLETE;
    return method->mode == IDEM_MODE_LEASED &&
                   (status == IDEM_INTERNAL || status == IDEM_UNKNOWN)
               ? FAKE_DOUBT
               : FAKE_RELEASE;
}

static void
check(struct world *world, const struct idem_method *method,
      enum idem_status status)
{
    const struct trial_options options = {.method = method, .key = "k1"};
    bool recorded = (method->recorded & BIT(status)) != 0;
    enum fake_op op = expected(method, status, recorded);
    struct trial trial;

    trial_begin(&trial, world, &options);
    fake_store_next(&world->store, FAKE_CLAIM, IDEM_VERDICT_MINE);
    trial_await_handler(&trial, 1);
    trial_return(&trial, status, "");
    fake_store_next(&world->store, op, IDEM_VERDICT_MINE);
    trial_await(&trial);
    assert_int_equal(trial.outcome.status, status);
    assert_int_equal(trial.outcome.final, recorded);
    if (op == FAKE_DOUBT)
        assert_int_equal(trial.outcome.effect, IDEM_EFFECT_IN_DOUBT);
}

static void
check_all(struct world *world, uint32_t recorded)
{
    const struct idem_method *methods[] = {&effects_add_method,
                                           &effects_push_method};

    for (int i = 0; i < 2; i++) {
        struct idem_method method = *methods[i];

        method.recorded = recorded;
        for (int status = IDEM_OK; status <= IDEM_UNAUTHENTICATED; status++)
            check(world, &method, (enum idem_status)status);
    }
}

static void
the_default_is_what_the_options_say(void **state)
{
    assert_int_equal(effects_add_method.recorded, RECORDED_BY_DEFAULT);
    assert_int_equal(effects_push_method.recorded, RECORDED_BY_DEFAULT);
    check_all(*state, RECORDED_BY_DEFAULT);
}

static void
a_method_may_record_every_code(void **state)
{
    check_all(*state, BIT(IDEM_UNAUTHENTICATED + 1) - 1);
}

static void
a_method_may_release_every_code_but_ok(void **state)
{
    check_all(*state, BIT(IDEM_OK));
}

static void
each_code_is_decided_by_itself(void **state)
{
    for (int status = IDEM_CANCELLED; status <= IDEM_UNAUTHENTICATED; status++)
        check_all(*state, RECORDED_BY_DEFAULT ^ BIT(status));
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_default_is_what_the_options_say),
        TEST(a_method_may_record_every_code),
        TEST(a_method_may_release_every_code_but_ok),
        TEST(each_code_is_decided_by_itself),
    };

    return cmocka_run_group_tests_name("once: codes", tests, NULL, NULL);
}
