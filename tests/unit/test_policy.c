#include "support.h"

#include "policy.h"

#include <string.h>

static const struct idem_method charge = {
    .name = "pay.Pay/Charge",
    .mode = IDEM_MODE_TRANSACTION,
    .window_ms = 86400000,
    .retry = {4, 100, 2000, 2000, 1u << IDEM_UNAVAILABLE},
};

static const struct idem_method notify = {
    .name = "pay.Pay/Notify",
    .mode = IDEM_MODE_NONE,
};

static const struct idem_method look = {
    .name = "pay.Pay/Look",
    .mode = IDEM_MODE_NONE,
    .read_only = true,
    .retry = {5, 100, 2000, 2000, 1u << IDEM_UNAVAILABLE},
};

static void
no_line(void *with, const char *line)
{
    (void)with;
    (void)line;
}

static struct config *
config_of(const char *json)
{
    const struct config_listener listener = {no_line, no_line, NULL};
    struct config *config =
        config_read(idem_bytes_of(json), CONFIG_ATTEMPTS_DEFAULT, &listener);

    assert_non_null(config);
    return config;
}

#define ENTRY(name, members)                                                   \
    "{\"methodConfig\": [{\"name\": [" name "], " members "}]}"
#define ALL "{}"
#define OF(method) "{\"service\": \"pay.Pay\", \"method\": \"" method "\"}"
#define RETRY(attempts)                                                        \
    "\"retryPolicy\": {\"maxAttempts\": " attempts                             \
    ", \"initialBackoff\": \"1s\", \"maxBackoff\": \"1s\","                    \
    " \"backoffMultiplier\": 1, \"retryableStatusCodes\": [\"ABORTED\"]}"
#define HEDGE "\"hedgingPolicy\": {\"maxAttempts\": 3}"

static void
make(struct policy *policy, const struct idem_method *method, const char *file,
     const char *environment)
{
    struct config *below = file ? config_of(file) : NULL;
    struct config *above = environment ? config_of(environment) : NULL;
    struct policy_layers layers = {below, above, CONFIG_ATTEMPTS_DEFAULT,
                                   false};

    policy_make(policy, method, &layers);
    config_free(below);
    config_free(above);
}

static void
without_a_config_the_proto_holds(void **state)
{
    struct policy policy;

    (void)state;
    make(&policy, &charge, NULL, NULL);
    assert_int_equal(policy.retry.max_attempts, 4);
    assert_int_equal(policy.timeout_ms, 0);
    assert_true(policy.safe);
    assert_string_equal(policy.refused, "");
}

static void
each_value_is_the_highest_layers_that_states_it(void **state)
{
    struct policy policy;

    (void)state;
    make(&policy, &charge, ENTRY(ALL, "\"timeout\": \"3s\"," RETRY("2")),
         ENTRY(OF("Charge"), "\"timeout\": \"5s\""));
    assert_int_equal(policy.timeout_ms, 5000);
    assert_int_equal(policy.retry.max_attempts, 2);
    assert_int_equal(policy.retry.retryable, 1u << IDEM_ABORTED);
}

/* rpc 42: a config lowers, and never raises. */
static void
attempts_are_never_more_than_the_proto_has(void **state)
{
    struct policy policy;

    (void)state;
    make(&policy, &charge, ENTRY(ALL, RETRY("5")), NULL);
    assert_int_equal(policy.retry.max_attempts, 4);
    assert_non_null(strstr(policy.notes, "is 5; the .proto has 4"));
    make(&policy, &charge, ENTRY(ALL, RETRY("3")), NULL);
    assert_int_equal(policy.retry.max_attempts, 3);
}

/* rpc 42: nor than the program takes, whoever says more. */
static void
attempts_are_never_more_than_the_program_takes(void **state)
{
    struct idem_method eager = charge;
    struct policy policy;

    (void)state;
    eager.retry.max_attempts = 9;
    make(&policy, &eager, NULL, NULL);
    assert_int_equal(policy.retry.max_attempts, 5);
    assert_non_null(
        strstr(policy.notes, "the .proto has 9 attempts; the program takes 5"));
}

static void
what_might_take_effect_twice_is_refused_where_it_is_named(void **state)
{
    static const char *const members[] = {
        RETRY("3"),
        HEDGE,
        "\"attemptTimeout\": \"1s\"",
    };
    static const char *const fields[] = {"retryPolicy", "hedgingPolicy",
                                         "attemptTimeout"};
    char json[1024];
    struct policy policy;

    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(json, sizeof json, ENTRY(OF("Notify"), "%s"), members[i]);
        make(&policy, &notify, json, NULL);
        assert_non_null(strstr(policy.refused, fields[i]));
        assert_non_null(strstr(policy.refused, "methodConfig[0]."));

        snprintf(json, sizeof json, ENTRY(ALL, "%s"), members[i]);
        make(&policy, &notify, json, NULL);
        assert_string_equal(policy.refused, "");
        assert_non_null(strstr(policy.notes, "is not taken"));
        assert_int_equal(policy.retry.max_attempts, 0);
        assert_int_equal(policy.hedging.max_attempts, 0);
        assert_int_equal(policy.attempt_timeout_ms, 0);
    }
}

static void
what_declares_idempotence_may_be_hedged(void **state)
{
    struct policy policy;

    (void)state;
    make(&policy, &look, ENTRY(OF("Look"), HEDGE), NULL);
    assert_string_equal(policy.refused, "");
    assert_int_equal(policy.hedging.max_attempts, 3);
}

static void
pauses_longer_than_the_window_are_refused(void **state)
{
    struct idem_method short_window = charge;
    struct policy policy;

    (void)state;
    short_window.window_ms = 3000;
    make(&policy, &short_window, ENTRY(ALL, RETRY("4")), NULL);
    assert_non_null(strstr(policy.refused, "retryPolicy: its pauses"));
    make(&policy, &short_window, ENTRY(ALL, RETRY("3")), NULL);
    assert_string_equal(policy.refused, "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_config_the_proto_holds),
        cmocka_unit_test(each_value_is_the_highest_layers_that_states_it),
        cmocka_unit_test(attempts_are_never_more_than_the_proto_has),
        cmocka_unit_test(attempts_are_never_more_than_the_program_takes),
        cmocka_unit_test(
            what_might_take_effect_twice_is_refused_where_it_is_named),
        cmocka_unit_test(what_declares_idempotence_may_be_hedged),
        cmocka_unit_test(pauses_longer_than_the_window_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
