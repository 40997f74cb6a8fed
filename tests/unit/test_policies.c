#include "policies_world.h"

#include <stdlib.h>
#include <string.h>

/* A channel's policy from the outside: read, and printed. */

static void
it_is_printed_with_where_each_value_comes_from(void **state)
{
    struct idem_channel *channel;

    (void)state;
    setenv("IDEM_SERVICE_CONFIG", TIMEOUT("7s"), 1);
    channel = policies_channel((struct idem_policy_options){
        .config_json =
            ENTRY("\"timeout\": \"9s\", \"attemptTimeout\": \"1s\"")});
    unsetenv("IDEM_SERVICE_CONFIG");
    policies_assert_explains(channel, &charge,
                             "policy > deadline > key > retry");
    policies_assert_explains(channel, &charge,
                             "timeout          at most 7000 ms  (environment, "
                             "methodConfig[0].timeout)");
    policies_assert_explains(channel, &charge,
                             "attempt timeout  at most 1000 ms  (file");
    policies_assert_explains(
        channel, &charge,
        "retry            4 attempts, 100 ms * 2 up to 2000 ms, on "
        "UNAVAILABLE  (.proto)");
    policies_assert_explains(channel, &notify,
                             "methodConfig[0].attemptTimeout is not taken");
    policies_assert_explains(channel, &notify,
                             "doubt            is never repeated");
    idem_channel_close(channel);
}

static void
a_bad_config_is_refused_as_a_whole(void **state)
{
    struct idem_policy_options policy = {
        .config_json = ENTRY("\"timeout\": \"0s\", \"retries\": 1"),
        .ignore_environment = true};
    struct idem_channel_options options = {.policy = &policy};
    struct idem_channel *channel;
    struct idem_error err;

    (void)state;
    assert_int_equal(
        idem_client_open(&channel, "inproc://nobody", &options, &err),
        IDEM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "config: methodConfig[0].timeout: is "
                                     "\"0s\"; it is over 0 (and 1 more)");
    policy.config_json = NULL;
    policy.max_attempts = 101;
    assert_int_equal(
        idem_client_open(&channel, "inproc://nobody", &options, &err),
        IDEM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "max_attempts is 101; it is at most 100");
    policy.max_attempts = 0;
    policy.config_file = "/nowhere/pay.json";
    assert_int_equal(
        idem_client_open(&channel, "inproc://nobody", &options, &err),
        IDEM_NOT_FOUND);
}

#define HEDGED_NOTIFY                                                          \
    "{\"methodConfig\": [{\"name\": [{\"service\": \"pay.Pay\", \"method\": "  \
    "\"Notify\"}], \"hedgingPolicy\": {\"maxAttempts\": 2}}]}"

/* One that would hedge what has no key: refused when its services are known,
 * at the first call when they are not. */
static void
a_config_that_might_do_it_twice_is_refused(void **state)
{
    struct idem_policy_options policy = {.config_json = HEDGED_NOTIFY,
                                         .ignore_environment = true,
                                         .services = services,
                                         .n_services = 1};
    struct idem_channel_options options = {.policy = &policy};
    struct idem_channel *channel;
    struct idem_error err;

    (void)state;
    assert_int_equal(
        idem_client_open(&channel, "inproc://nobody", &options, &err),
        IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "methodConfig[0].hedgingPolicy: "
                                        "pay.Pay/Notify has neither a key"));
    policy.n_services = 0;
    channel = policies_channel(policy);
    policies_assert_explains(channel, &notify,
                             "REFUSED: methodConfig[0].hedgingPolicy");
    idem_channel_close(channel);
}

#define RETRIES                                                                \
    "\"retryPolicy\": {\"maxAttempts\": 3, \"initialBackoff\": \"1s\","        \
    " \"maxBackoff\": \"1s\", \"backoffMultiplier\": 1,"                       \
    " \"retryableStatusCodes\": [\"ABORTED\"]}"

/* Also what is not there is so because somebody says so. */
static void
what_ends_hedging_is_printed(void **state)
{
    struct idem_policy_options policy = {
        .config_json = ENTRY("\"hedgingPolicy\": {\"maxAttempts\": 3}")};
    struct idem_channel *channel;

    (void)state;
    setenv("IDEM_SERVICE_CONFIG", ENTRY(RETRIES), 1);
    channel = policies_channel(policy);
    policies_assert_explains(channel, &charge,
                             "hedging          none  (environment, "
                             "methodConfig[0].retryPolicy)");
    idem_channel_close(channel);
    policy.no_retries = true;
    channel = policies_channel(policy);
    unsetenv("IDEM_SERVICE_CONFIG");
    policies_assert_explains(channel, &charge,
                             "hedging          none  (the program)");
    policies_assert_explains(channel, &charge,
                             "retry            none  (the program)");
    idem_channel_close(channel);
}

/* Of a service that was given; others are not known here. */
static void
a_name_that_is_no_methods_is_reported(void **state)
{
    struct idem_channel *channel = policies_channel((
        struct idem_policy_options){
        .config_json = "{\"methodConfig\": [{\"name\": ["
                       "{\"service\": \"pay.Pay\", \"method\": \"Notfy\"},"
                       "{\"service\": \"pay.Pay\", \"method\": \"Notify\"},"
                       "{\"service\": \"pay.Pay\"}, {},"
                       "{\"service\": \"a.Stranger\", \"method\": \"Do\"}]}]}",
        .ignore_environment = true,
        .services = services,
        .n_services = 1});

    (void)state;
    assert_int_equal(policies_lines_heard(), 1);
    policies_await_line("file: methodConfig[0].name: pay.Pay has no method "
                        "Notfy\n");
    idem_channel_close(channel);
}

static void
what_the_proto_says_is_printed_too(void **state)
{
    static const struct idem_method hasty = {
        .name = "pay.Pay/Hasty", .mode = IDEM_MODE_NONE, .timeout_ms = 3000};
    struct idem_channel *channel =
        policies_channel((struct idem_policy_options){
            .config_json = ENTRY("\"hedgingPolicy\": {\"maxAttempts\": 2}"),
            .ignore_environment = true});

    (void)state;
    policies_assert_explains(
        channel, &hasty,
        "timeout          the call's or the channel's, else 3000 "
        "ms  (.proto)");
    policies_assert_explains(
        channel, &charge,
        "hedging          2 attempts, one each 0 ms, not fatal: "
        "none  (file, methodConfig[0].hedgingPolicy)");
    idem_channel_close(channel);
}

/* The program's own choice < file < environment. */
static void
the_highest_layer_that_names_a_balancer_has_it(void **state)
{
    struct idem_channel *channel;

    (void)state;
    channel = policies_round_robin(
        (struct idem_policy_options){.ignore_environment = true});
    assert_int_equal(idem_channel_balancer(channel), IDEM_BALANCER_ROUND_ROBIN);
    policies_assert_explains(
        channel, &charge,
        "balancer         round_robin  (the channel's option)");
    idem_channel_close(channel);

    channel = policies_round_robin((struct idem_policy_options){
        .config_json = BALANCER("least_request"), .ignore_environment = true});
    assert_int_equal(idem_channel_balancer(channel),
                     IDEM_BALANCER_LEAST_IN_FLIGHT);
    policies_assert_explains(channel, &charge,
                             "balancer         least_in_flight  (file, "
                             "loadBalancingConfig[0].least_request)");
    idem_channel_close(channel);

    setenv("IDEM_SERVICE_CONFIG", BALANCER("ring_hash"), 1);
    channel = policies_round_robin(
        (struct idem_policy_options){.config_json = BALANCER("least_request")});
    unsetenv("IDEM_SERVICE_CONFIG");
    assert_int_equal(idem_channel_balancer(channel), IDEM_BALANCER_KEY_HASH);
    policies_assert_explains(channel, &charge,
                             "balancer         key_hash  (environment, "
                             "loadBalancingConfig[0].ring_hash)");
    idem_channel_close(channel);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_printed_with_where_each_value_comes_from),
        cmocka_unit_test(a_bad_config_is_refused_as_a_whole),
        cmocka_unit_test(a_config_that_might_do_it_twice_is_refused),
        cmocka_unit_test(what_ends_hedging_is_printed),
        cmocka_unit_test(a_name_that_is_no_methods_is_reported),
        cmocka_unit_test(what_the_proto_says_is_printed_too),
        cmocka_unit_test(the_highest_layer_that_names_a_balancer_has_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
