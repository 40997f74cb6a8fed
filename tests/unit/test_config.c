#include "support.h"

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(status) (1u << IDEM_##status)

/* What the reader says, a line each. */
static char said[4096];

static void
fault(void *with, const char *line)
{
    (void)with;
    strcat(strcat(strcat(said, "fault: "), line), "\n");
}

static void
note(void *with, const char *line)
{
    (void)with;
    strcat(strcat(strcat(said, "note: "), line), "\n");
}

static struct config *
read_json(const char *json)
{
    const struct config_listener listener = {fault, note, NULL};

    said[0] = 0;
    return config_read(idem_bytes_of(json), CONFIG_ATTEMPTS_DEFAULT, &listener);
}

static void
assert_says(const char *line)
{
    if (!strstr(said, line))
        fail_msg("\"%s\" is not in:\n%s", line, said);
}

/* An entry for all calls with this beside its name. */
static struct config *
read_entry(const char *members)
{
    char json[1024];

    snprintf(json, sizeof json, "{\"methodConfig\": [{\"name\": [{}], %s}]}",
             members);
    return read_json(json);
}

static void
assert_refused(const char *members, const char *line)
{
    assert_null(read_entry(members));
    assert_says(line);
}

static void
grpcs_own_file_is_read_unchanged(void **state)
{
    struct config *config = read_json(
        "{\"loadBalancingConfig\": [{\"round_robin\": {}}],"
        " \"methodConfig\": [{"
        "   \"name\": [{\"service\": \"pay.Pay\", \"method\": \"Charge\"}],"
        "   \"waitForReady\": true, \"timeout\": \"1.5s\","
        "   \"maxRequestMessageBytes\": 0,"
        "   \"retryPolicy\": {\"maxAttempts\": 4, \"initialBackoff\": \"0.1s\","
        "     \"maxBackoff\": \"1s\", \"backoffMultiplier\": 1.5,"
        "     \"retryableStatusCodes\": [14, \"resource_exhausted\"]}}],"
        " \"retryThrottling\": {\"maxTokens\": 10, \"tokenRatio\": 0.5466}}");
    const struct config_entry *entry;

    (void)state;
    assert_non_null(config);
    assert_int_equal(config->balancer, IDEM_BALANCER_ROUND_ROBIN);
    entry = config_find(config, "pay.Pay/Charge", NULL);
    assert_non_null(entry);
    assert_int_equal(entry->timeout_ms, 1500);
    assert_true(entry->wait_for_ready);
    assert_true(entry->stated & 1u << CONFIG_MAX_REQUEST);
    assert_int_equal(entry->max_request, 0);
    assert_int_equal(entry->retry.max_attempts, 4);
    assert_int_equal(entry->retry.initial_backoff_ms, 100);
    assert_int_equal(entry->retry.backoff_multiplier_milli, 1500);
    /* rpc 66 */
    assert_int_equal(entry->retry.retryable,
                     BIT(UNAVAILABLE) | BIT(RESOURCE_EXHAUSTED));
    assert_int_equal(config->max_tokens_milli, 10000);
    assert_int_equal(config->token_ratio_milli, 546);
    config_free(config);
}

static void
our_own_settings_are_read(void **state)
{
    struct config *config = read_entry(
        "\"attemptTimeout\": \"0.2s\", \"key\": \"CALLERS\","
        "\"maxRetryBytes\": 1000, \"overRetryBytes\": \"SEND_ONCE\","
        "\"hedgingPolicy\": {\"maxAttempts\": 3, \"hedgingDelay\": \"0.05s\","
        " \"nonFatalStatusCodes\": [\"UNAVAILABLE\"]}");
    const struct config_entry *entry = config_find(config, "a.B/C", NULL);

    (void)state;
    assert_non_null(entry);
    assert_int_equal(entry->attempt_timeout_ms, 200);
    assert_true(entry->callers_key && entry->send_once);
    assert_int_equal(entry->max_retry, 1000);
    assert_int_equal(entry->hedging.max_attempts, 3);
    assert_int_equal(entry->hedging.delay_ms, 50);
    assert_int_equal(entry->hedging.non_fatal, BIT(UNAVAILABLE));
    config_free(config);

    config = read_json("{\"retryBudget\": {\"ratio\": 0.2, \"floor\": 3}}");
    assert_non_null(config);
    assert_int_equal(config->budget_milli, 200);
    assert_int_equal(config->budget_floor, 3);
    assert_int_equal(config->budget_window_ms, 10000);
    config_free(config);
}

/* client.md 2.1: the closest, and nothing of the others. */
static void
the_closest_entry_is_taken_whole(void **state)
{
    struct config *config = read_json(
        "{\"methodConfig\": ["
        " {\"name\": [{}], \"timeout\": \"1s\", \"waitForReady\": true},"
        " {\"name\": [{\"service\": \"a.B\", \"method\": null}],"
        "  \"timeout\": \"2s\"},"
        " {\"name\": [{\"service\": \"x.Y\"},"
        "             {\"service\": \"a.B\", \"method\": \"C\"}],"
        "  \"timeout\": \"3s\"}]}");
    const struct config_entry *entry;

    (void)state;
    assert_non_null(config);
    entry = config_find(config, "a.B/C", NULL);
    assert_int_equal(entry->timeout_ms, 3000);
    assert_false(entry->stated & 1u << CONFIG_WAIT_FOR_READY);
    assert_int_equal(config_find(config, "a.B/D", NULL)->timeout_ms, 2000);
    assert_int_equal(config_find(config, "x.Y/Z", NULL)->timeout_ms, 3000);
    assert_int_equal(config_find(config, "a.BB/C", NULL)->timeout_ms, 1000);
    config_free(config);
    assert_null(config_find(NULL, "a.B/C", NULL));
}

/* rpc 34: all that is missing is told together. */
static void
what_is_missing_is_told_together(void **state)
{
    (void)state;
    assert_refused(
        "\"retryPolicy\": {}",
        "fault: methodConfig[0].retryPolicy.maxAttempts: is missing");
    assert_says("retryPolicy.initialBackoff: is missing");
    assert_says("retryPolicy.maxBackoff: is missing");
    assert_says("retryPolicy.backoffMultiplier: is missing");
    assert_says("retryPolicy.retryableStatusCodes: is missing");
}

#define RETRY(attempts, initial, max, multiplier, codes)                       \
    "\"retryPolicy\": {\"maxAttempts\": " attempts                             \
    ", \"initialBackoff\": " initial ", \"maxBackoff\": " max                  \
    ", \"backoffMultiplier\": " multiplier                                     \
    ", \"retryableStatusCodes\": " codes "}"
#define CODES "[\"UNAVAILABLE\"]"

/* rpc 34, B033. */
static void
a_bad_value_is_refused_with_its_path(void **state)
{
    (void)state;
    assert_refused(RETRY("1", "\"1s\"", "\"1s\"", "1", CODES),
                   "methodConfig[0].retryPolicy.maxAttempts: is 1; it is from");
    assert_refused(RETRY("\"FOO\"", "\"1s\"", "\"1s\"", "1", CODES),
                   "maxAttempts: is not a whole number");
    assert_refused(RETRY("2.5", "\"1s\"", "\"1s\"", "1", CODES),
                   "maxAttempts: is not a whole number");
    assert_refused(RETRY("2", "\"0s\"", "\"1s\"", "1", CODES),
                   "initialBackoff: is \"0s\"; it is over 0");
    assert_refused(RETRY("2", "\"1sec\"", "\"1s\"", "1", CODES),
                   "initialBackoff: \"1sec\" is not a duration");
    assert_refused(RETRY("2", "\"-1s\"", "\"1s\"", "1", CODES),
                   "initialBackoff: \"-1s\" is not a duration");
    assert_refused(RETRY("2", "\"1s\"", "\"0s\"", "1", CODES),
                   "maxBackoff: is \"0s\"; it is over 0");
    assert_refused(RETRY("2", "\"1s\"", "5", "1", CODES),
                   "maxBackoff: is not a duration");
    assert_refused(RETRY("2", "\"1s\"", "\"1s\"", "0", CODES),
                   "backoffMultiplier: is 0; it is from 0.001");
    assert_refused(RETRY("2", "\"1s\"", "\"1s\"", "[]", CODES),
                   "backoffMultiplier: is not a number");
    assert_refused(RETRY("2", "\"1s\"", "\"1s\"", "1", "[]"),
                   "retryableStatusCodes: is empty");
    assert_refused(RETRY("2", "\"1s\"", "\"1s\"", "1", "[\"FOO\"]"),
                   "retryableStatusCodes[0]: is no status code");
    assert_refused(RETRY("2", "\"1s\"", "\"1s\"", "1", "[14, 300]"),
                   "retryableStatusCodes[1]: is no status code"); /* rpc 66 */
    assert_refused(RETRY("2", "\"1s\"", "\"1s\"", "1", "[\"OK\"]"),
                   "retryableStatusCodes[0]: OK is a success");
    assert_refused("\"timeout\": \"1\"", "methodConfig[0].timeout: \"1\" is");
    assert_refused("\"key\": \"MINE\"", "methodConfig[0].key: is neither");
    assert_refused("\"retries\": 3",
                   "methodConfig[0].retries: there is no such setting");
}

static void
a_bad_throttle_is_refused(void **state)
{
    (void)state;
    assert_null(read_json("{\"retryThrottling\": {\"maxTokens\": -2,"
                          " \"tokenRatio\": -1}}"));
    assert_says("retryThrottling.maxTokens: is -2; it is from 1 to 1000");
    assert_says("retryThrottling.tokenRatio: is -1; it is from 0.001");
    assert_null(read_json("{\"retryThrottling\": {\"maxTokens\": 1001,"
                          " \"tokenRatio\": 1}}"));
    assert_says("retryThrottling.maxTokens: is 1001");
    assert_null(read_json("{\"retryBudget\": {}}"));
    assert_says("retryBudget.ratio: is missing");
}

#define MANY 40000 /* names that fill a file of the largest size */

static void
many_names_are_read_and_compared(void **state)
{
    size_t room = (size_t)MANY * 26, used;
    char *json = malloc(room);

    (void)state;
    assert_non_null(json);
    used = (size_t)snprintf(json, room, "{\"methodConfig\": [{\"name\": [");
    for (unsigned i = 0; i < MANY; i++)
        used += (size_t)snprintf(json + used, room - used,
                                 "{\"service\":\"s%u\"},", i);
    snprintf(json + used, room - used, "{\"service\":\"s7\"}]}]}");
    assert_null(read_json(json));
    assert_says("methodConfig[0].name[40000]: stands in methodConfig[0] "
                "already");
    free(json);
}

static void
a_name_stands_in_it_once(void **state)
{
    (void)state;
    assert_null(read_json("{\"methodConfig\": [{\"name\": [{}]},"
                          " {\"name\": [{\"service\": \"\"}]}]}"));
    assert_says("methodConfig[1].name[0]: stands in methodConfig[0] already");
    assert_null(
        read_json("{\"methodConfig\": [{\"name\": [{\"method\": \"M\"}]}]}"));
    assert_says("methodConfig[0].name[0]: has a method and no service");
    assert_null(read_json("{\"methodConfig\": [{\"timeout\": \"1s\"}]}"));
    assert_says("methodConfig[0].name: is missing");
}

static void
either_retries_or_hedges(void **state)
{
    (void)state;
    assert_refused(RETRY("2", "\"1s\"", "\"1s\"", "1",
                         CODES) ", \"hedgingPolicy\": {\"maxAttempts\": 2}",
                   "methodConfig[0]: has a retryPolicy and a hedgingPolicy");
}

static void
what_is_taken_otherwise_is_noted(void **state)
{
    struct config *config = read_entry(
        RETRY("9", "\"0.0001s\"", "\"1s\"", "1", "[\"DEADLINE_EXCEEDED\"]"));

    (void)state;
    assert_non_null(config);
    assert_says("note: methodConfig[0].retryPolicy.maxAttempts: is taken as 5");
    assert_says("note: methodConfig[0].retryPolicy.retryableStatusCodes: "
                "DEADLINE_EXCEEDED only helps");
    assert_int_equal(config->entries[0].retry.max_attempts, 5);
    assert_int_equal(config->entries[0].retry.initial_backoff_ms, 1);
    config_free(config);
}

/* rpc 42. */
static void
the_programs_own_limit_is_that_of_hedges_too(void **state)
{
    static const struct {
        const char *stated;
        unsigned limit, taken;
    } table[] = {{"9", 4, 4}, {"9", 7, 7}, {"3", 10, 3}, {"8", 5, 5}};
    const struct config_listener listener = {fault, note, NULL};

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char json[256];
        struct config *config;

        snprintf(json, sizeof json,
                 "{\"methodConfig\": [{\"name\": [{}], \"hedgingPolicy\":"
                 " {\"maxAttempts\": %s}}]}",
                 table[i].stated);
        said[0] = 0;
        config = config_read(idem_bytes_of(json), table[i].limit, &listener);
        assert_non_null(config);
        assert_int_equal(config->entries[0].hedging.max_attempts,
                         table[i].taken);
        config_free(config);
    }
}

/* gRFC A24: the first that is known, whatever comes after it. */
static void
the_first_balancer_that_is_known_is_taken(void **state)
{
    static const struct {
        const char *json;
        enum idem_balancer balancer;
        const char *where;
    } table[] = {
        {"{\"loadBalancingConfig\": [{\"grpclb\": {\"x\": 1}},"
         " {\"round_robin\": {}}, {\"pick_first\": 7}]}",
         IDEM_BALANCER_ROUND_ROBIN, "loadBalancingConfig[1].round_robin"},
        {"{\"loadBalancingConfig\": [{\"least_request_experimental\":"
         " {\"choiceCount\": 2}}]}",
         IDEM_BALANCER_LEAST_IN_FLIGHT,
         "loadBalancingConfig[0].least_request_experimental"},
        {"{\"loadBalancingConfig\": [{\"ring_hash_experimental\":"
         " {\"minRingSize\": 8}}]}",
         IDEM_BALANCER_KEY_HASH,
         "loadBalancingConfig[0].ring_hash_experimental"},
        {"{\"loadBalancingConfig\": [{\"pick_first\": {}}]}",
         IDEM_BALANCER_PICK_FIRST, "loadBalancingConfig[0].pick_first"},
        {"{\"loadBalancingConfig\": [{\"key_hash\": {}}],"
         " \"loadBalancingPolicy\": \"ROUND_ROBIN\"}",
         IDEM_BALANCER_KEY_HASH, "loadBalancingConfig[0].key_hash"},
        {"{\"loadBalancingPolicy\": \"ROUND_ROBIN\","
         " \"loadBalancingConfig\": [{\"least_in_flight\": {}}]}",
         IDEM_BALANCER_LEAST_IN_FLIGHT,
         "loadBalancingConfig[0].least_in_flight"},
        {"{\"loadBalancingPolicy\": \"ROUND_ROBIN\"}",
         IDEM_BALANCER_ROUND_ROBIN, "loadBalancingPolicy"},
        {"{\"loadBalancingPolicy\": \"UNSPECIFIED\"}", IDEM_BALANCER_PICK_FIRST,
         ""},
        {"{\"loadBalancingConfig\": []}", IDEM_BALANCER_PICK_FIRST, ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct config *config = read_json(table[i].json);

        if (!config)
            fail_msg("%s: %s", table[i].json, said);
        assert_int_equal(config->balancer, table[i].balancer);
        assert_string_equal(config->balancing, table[i].where);
        config_free(config);
    }
}

static void
what_is_skipped_among_balancers_is_noted(void **state)
{
    (void)state;
    config_free(read_json("{\"loadBalancingConfig\": [{\"xds\": {}},"
                          " {\"pick_first\":"
                          " {\"shuffleAddressList\": true}}]}"));
    assert_says("note: loadBalancingConfig[0].xds: is not known here; the next "
                "one counts");
    assert_says("note: loadBalancingConfig[1].pick_first.shuffleAddressList: "
                "is gRPC's and has no meaning here");
}

static void
a_list_without_a_known_balancer_is_refused(void **state)
{
    static const struct {
        const char *json, *line;
    } table[] = {
        {"{\"loadBalancingConfig\": [{\"grpclb\": {}}, {\"xds\": {}}]}",
         "loadBalancingConfig: has no balancer that is known here"},
        {"{\"loadBalancingConfig\": {\"round_robin\": {}}}",
         "loadBalancingConfig: is not an array"},
        {"{\"loadBalancingConfig\": [\"round_robin\"]}",
         "loadBalancingConfig[0]: is not an object with one balancer"},
        {"{\"loadBalancingConfig\": [{\"pick_first\": {},"
         " \"round_robin\": {}}]}",
         "loadBalancingConfig[0]: is not an object with one balancer"},
        {"{\"loadBalancingConfig\": [{\"round_robin\": 1}]}",
         "loadBalancingConfig[0].round_robin: is not an object"},
        {"{\"loadBalancingConfig\": [{\"round_robin\": {\"rounds\": 1}}]}",
         "loadBalancingConfig[0].round_robin.rounds: there is no such setting"},
        {"{\"loadBalancingPolicy\": \"grpclb\"}",
         "loadBalancingPolicy: is no balancer that is known here"},
        {"{\"loadBalancingPolicy\": 1}",
         "loadBalancingPolicy: is no balancer that is known here"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_null(read_json(table[i].json));
        assert_says(table[i].line);
    }
}

static void
what_is_no_json_is_refused_with_its_line(void **state)
{
    (void)state;
    assert_null(read_json("{\n \"methodConfig\": [}\n"));
    assert_says("fault: line 2, column ");
    assert_null(read_json("{\"methodConfig\": [], \"methodConfig\": []}"));
    assert_says("duplicate object key");
    assert_null(read_json("[]"));
    assert_says("fault: is not an object");
    assert_null(read_json(""));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grpcs_own_file_is_read_unchanged),
        cmocka_unit_test(our_own_settings_are_read),
        cmocka_unit_test(the_closest_entry_is_taken_whole),
        cmocka_unit_test(what_is_missing_is_told_together),
        cmocka_unit_test(a_bad_value_is_refused_with_its_path),
        cmocka_unit_test(a_bad_throttle_is_refused),
        cmocka_unit_test(a_name_stands_in_it_once),
        cmocka_unit_test(many_names_are_read_and_compared),
        cmocka_unit_test(either_retries_or_hedges),
        cmocka_unit_test(what_is_taken_otherwise_is_noted),
        cmocka_unit_test(the_programs_own_limit_is_that_of_hedges_too),
        cmocka_unit_test(the_first_balancer_that_is_known_is_taken),
        cmocka_unit_test(what_is_skipped_among_balancers_is_noted),
        cmocka_unit_test(a_list_without_a_known_balancer_is_refused),
        cmocka_unit_test(what_is_no_json_is_refused_with_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
