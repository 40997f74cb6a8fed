#include "support.h"

#include "tempdir.h"

#include <idem/policy.h>
#include <idem/standard.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A channel's policy from the outside: read, printed, read again. */

static const struct idem_method charge = {
    .name = "pay.Pay/Charge",
    .mode = IDEM_MODE_TRANSACTION,
    .key_source = IDEM_KEY_MINTED,
    .window_ms = 86400000,
    .retry = {4, 100, 2000, 2000, 1u << IDEM_UNAVAILABLE},
};
static const struct idem_method notify = {
    .name = "pay.Pay/Notify",
    .mode = IDEM_MODE_NONE,
};
static const struct idem_method methods[] = {
    {.name = "pay.Pay/Notify", .mode = IDEM_MODE_NONE},
};
static const struct idem_service service = {
    .name = "pay.Pay", .methods = methods, .n_methods = 1};
static const struct idem_service *const services[] = {&service};

/* What was reported, by any thread. */
struct ear {
    pthread_mutex_t lock;
    pthread_cond_t heard;
    char lines[8192];
};

static void
hear(void *with, const char *line)
{
    struct ear *ear = with;

    pthread_mutex_lock(&ear->lock);
    strcat(strcat(ear->lines, line), "\n");
    pthread_cond_broadcast(&ear->heard);
    pthread_mutex_unlock(&ear->lock);
}

/* And forget what came before. */
static void
await_line(struct ear *ear, const char *text)
{
    struct timespec until;
    int result = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 30;
    pthread_mutex_lock(&ear->lock);
    while (result == 0 && !strstr(ear->lines, text))
        result = pthread_cond_clockwait(&ear->heard, &ear->lock,
                                        CLOCK_MONOTONIC, &until);
    if (result != 0)
        fail_msg("\"%s\" is not in:\n%s", text, ear->lines);
    ear->lines[0] = 0;
    pthread_mutex_unlock(&ear->lock);
}

static struct ear ear = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
                         ""};

static struct idem_channel *
open_channel(struct idem_policy_options policy)
{
    struct idem_channel_options options = {.policy = &policy};
    struct idem_channel *channel;
    struct idem_error err;

    ear.lines[0] = 0;
    policy.report = hear;
    policy.with = &ear;
    if (idem_client_open(&channel, "inproc://nobody", &options, &err) !=
        IDEM_OK)
        fail_msg("%s", err.message);
    return channel;
}

static void
assert_explains(struct idem_channel *channel, const struct idem_method *method,
                const char *text)
{
    char *printed = NULL;
    size_t size;
    FILE *out = open_memstream(&printed, &size);

    idem_channel_explain(channel, method, out);
    fclose(out);
    if (!strstr(printed, text))
        fail_msg("\"%s\" is not in:\n%s", text, printed);
    free(printed);
}

#define ENTRY(members) "{\"methodConfig\": [{\"name\": [{}], " members "}]}"
#define TIMEOUT(text) ENTRY("\"timeout\": \"" text "\"")

static void
it_is_printed_with_where_each_value_comes_from(void **state)
{
    struct idem_channel *channel;

    (void)state;
    setenv("IDEM_SERVICE_CONFIG", TIMEOUT("7s"), 1);
    channel = open_channel((struct idem_policy_options){
        .config_json =
            ENTRY("\"timeout\": \"9s\", \"attemptTimeout\": \"1s\"")});
    unsetenv("IDEM_SERVICE_CONFIG");
    assert_explains(channel, &charge, "policy > deadline > key > retry");
    assert_explains(channel, &charge,
                    "timeout          at most 7000 ms  (environment, "
                    "methodConfig[0].timeout)");
    assert_explains(channel, &charge,
                    "attempt timeout  at most 1000 ms  (file");
    assert_explains(channel, &charge,
                    "retry            4 attempts, 100 ms * 2 up to 2000 ms, on "
                    "UNAVAILABLE  (.proto)");
    assert_explains(channel, &notify,
                    "methodConfig[0].attemptTimeout is not taken");
    assert_explains(channel, &notify, "doubt            is never repeated");
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
    channel = open_channel(policy);
    assert_explains(channel, &notify, "REFUSED: methodConfig[0].hedgingPolicy");
    idem_channel_close(channel);
}

/* Of a service that was given; others are not known here. */
static void
a_name_that_is_no_methods_is_reported(void **state)
{
    struct idem_channel *channel = open_channel((struct idem_policy_options){
        .config_json = "{\"methodConfig\": [{\"name\": ["
                       "{\"service\": \"pay.Pay\", \"method\": \"Notfy\"},"
                       "{\"service\": \"pay.Pay\", \"method\": \"Notify\"},"
                       "{\"service\": \"pay.Pay\"}, {},"
                       "{\"service\": \"a.Stranger\", \"method\": \"Do\"}]}]}",
        .ignore_environment = true,
        .services = services,
        .n_services = 1});

    (void)state;
    assert_string_equal(
        ear.lines, "file: methodConfig[0].name: pay.Pay has no method Notfy\n");
    idem_channel_close(channel);
}

static void
what_the_proto_says_is_printed_too(void **state)
{
    static const struct idem_method hasty = {
        .name = "pay.Pay/Hasty", .mode = IDEM_MODE_NONE, .timeout_ms = 3000};
    struct idem_channel *channel = open_channel((struct idem_policy_options){
        .config_json = ENTRY("\"hedgingPolicy\": {\"maxAttempts\": 2}"),
        .ignore_environment = true});

    (void)state;
    assert_explains(channel, &hasty,
                    "timeout          the call's or the channel's, else 3000 "
                    "ms  (.proto)");
    assert_explains(channel, &charge,
                    "hedging          2 attempts, one each 0 ms, not fatal: "
                    "none  (file, methodConfig[0].hedgingPolicy)");
    idem_channel_close(channel);
}

static void
a_reload_takes_all_or_nothing(void **state)
{
    struct idem_channel *channel = open_channel((struct idem_policy_options){
        .config_json = TIMEOUT("3s"), .ignore_environment = true});
    struct idem_error err;

    (void)state;
    assert_int_equal(idem_channel_reload(channel, TIMEOUT("x"), &err),
                     IDEM_INVALID_ARGUMENT);
    assert_explains(channel, &charge, "at most 3000 ms");
    assert_int_equal(idem_channel_reload(channel, TIMEOUT("2s"), &err),
                     IDEM_OK);
    assert_explains(channel, &charge, "at most 2000 ms");
    assert_int_equal(idem_channel_reload(channel, NULL, &err),
                     IDEM_FAILED_PRECONDITION);
    idem_channel_close(channel);
}

/* Written beside it and renamed over it, as editors do. */
static void
write_config(const struct tempdir *folder, const char *path, const char *text)
{
    char draft[TEMPDIR_MAX + 16];
    FILE *file;

    tempdir_file(folder, "draft", draft, sizeof draft);
    file = fopen(draft, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(rename(draft, path), 0);
}

static void
a_file_that_changes_is_read_again(void **state)
{
    struct tempdir folder;
    char path[TEMPDIR_MAX + 16];
    struct idem_channel *channel;
    struct idem_error err;

    (void)state;
    tempdir_open(&folder);
    tempdir_file(&folder, "pay.json", path, sizeof path);
    write_config(&folder, path, TIMEOUT("3s"));
    channel = open_channel((struct idem_policy_options){
        .config_file = path, .ignore_environment = true});
    await_line(&ear, "pay.json: is taken");

    write_config(&folder, path, TIMEOUT("2s"));
    await_line(&ear, "pay.json: is taken");
    assert_explains(channel, &charge, "at most 2000 ms");

    write_config(&folder, path, "{");
    await_line(&ear, "is not taken; what was before holds");
    assert_explains(channel, &charge, "at most 2000 ms");
    assert_int_equal(idem_channel_reload(channel, NULL, &err),
                     IDEM_INVALID_ARGUMENT);

    write_config(&folder, path, TIMEOUT("1s"));
    await_line(&ear, "pay.json: is taken");
    assert_int_equal(idem_channel_reload(channel, NULL, &err), IDEM_OK);
    assert_explains(channel, &charge, "at most 1000 ms");
    idem_channel_close(channel);
    tempdir_close(&folder);
}

/* The environment's file lies elsewhere, over a text that is given. */
static void
the_file_that_the_environment_names_is_read_again(void **state)
{
    struct tempdir folder;
    char path[TEMPDIR_MAX + 16];
    struct idem_channel *channel;
    struct idem_error err;

    (void)state;
    tempdir_open(&folder);
    tempdir_file(&folder, "run.json", path, sizeof path);
    write_config(&folder, path, TIMEOUT("3s"));
    setenv("IDEM_SERVICE_CONFIG", path, 1);
    channel = open_channel((struct idem_policy_options){
        .config_json =
            ENTRY("\"timeout\": \"9s\", \"attemptTimeout\": \"1s\"")});
    unsetenv("IDEM_SERVICE_CONFIG");
    assert_explains(channel, &charge, "at most 3000 ms  (environment");

    write_config(&folder, path, TIMEOUT("2s"));
    await_line(&ear, "run.json: is taken");
    assert_explains(channel, &charge, "at most 2000 ms  (environment");
    assert_explains(channel, &charge, "at most 1000 ms  (file");

    write_config(&folder, path, TIMEOUT("x"));
    await_line(&ear, "run.json: is not taken; what was before holds");
    assert_explains(channel, &charge, "at most 2000 ms  (environment");
    assert_int_equal(idem_channel_reload(channel, NULL, &err),
                     IDEM_INVALID_ARGUMENT);

    write_config(&folder, path, "{}");
    await_line(&ear, "run.json: is taken");
    assert_explains(channel, &charge, "at most 9000 ms  (file");
    assert_int_equal(idem_channel_reload(channel, NULL, &err), IDEM_OK);
    await_line(&ear, "run.json: is taken");
    assert_int_equal(idem_channel_reload(channel, TIMEOUT("8s"), &err),
                     IDEM_OK);
    write_config(&folder, path, ENTRY("\"waitForReady\": true"));
    await_line(&ear, "run.json: is taken");
    assert_explains(channel, &charge, "at most 8000 ms  (file");
    idem_channel_close(channel);
    tempdir_close(&folder);
}

/* SIGTERM ends the thread that waits for SIGHUP. */
static sigset_t
awaited_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGTERM);
    return signals;
}

/* As docs/policy.md shows it. */
static void *
reload_on_hangup(void *with)
{
    struct idem_channel *channel = with;
    const sigset_t signals = awaited_signals();
    struct idem_error err;
    int number;

    while (sigwait(&signals, &number) == 0 && number == SIGHUP)
        if (idem_channel_reload(channel, NULL, &err) != IDEM_OK)
            hear(&ear, "reload failed");
    return NULL;
}

/* On a folder in which nothing can be watched for, as far as the channel
 * knows: the file is a link, and what moves lies behind it. */
static void
a_hangup_reads_the_file_again(void **state)
{
    struct tempdir folder, behind;
    char path[TEMPDIR_MAX + 16], target[TEMPDIR_MAX + 16];
    struct idem_channel *channel;
    pthread_t thread;

    (void)state;
    tempdir_open(&folder);
    tempdir_open(&behind);
    tempdir_file(&folder, "pay.json", path, sizeof path);
    tempdir_file(&behind, "real.json", target, sizeof target);
    write_config(&behind, target, TIMEOUT("3s"));
    assert_int_equal(symlink(target, path), 0);
    channel = open_channel((struct idem_policy_options){
        .config_file = path, .ignore_environment = true});
    await_line(&ear, "pay.json: is taken");
    pthread_create(&thread, NULL, reload_on_hangup, channel);

    write_config(&behind, target, TIMEOUT("2s"));
    assert_explains(channel, &charge, "at most 3000 ms");
    kill(getpid(), SIGHUP);
    await_line(&ear, "pay.json: is taken");
    assert_explains(channel, &charge, "at most 2000 ms");

    write_config(&behind, target, TIMEOUT("-1s"));
    kill(getpid(), SIGHUP);
    await_line(&ear, "reload failed");
    assert_explains(channel, &charge, "at most 2000 ms");

    kill(getpid(), SIGTERM);
    pthread_join(thread, NULL);
    idem_channel_close(channel);
    tempdir_close(&behind);
    tempdir_close(&folder);
}

#define BALANCER(name) "{\"loadBalancingConfig\": [{\"" name "\": {}}]}"

static struct idem_channel *
open_round_robin(struct idem_policy_options policy)
{
    const struct idem_channel_options options = {
        .balancer = IDEM_BALANCER_ROUND_ROBIN, .policy = &policy};
    struct idem_channel *channel;
    struct idem_error err;

    ear.lines[0] = 0;
    policy.report = hear;
    policy.with = &ear;
    if (idem_client_open(&channel, "list://inproc://nobody,inproc://no",
                         &options, &err) != IDEM_OK)
        fail_msg("%s", err.message);
    return channel;
}

/* The program's own choice < file < environment. */
static void
the_highest_layer_that_names_a_balancer_has_it(void **state)
{
    struct idem_channel *channel;

    (void)state;
    channel = open_round_robin(
        (struct idem_policy_options){.ignore_environment = true});
    assert_int_equal(idem_channel_balancer(channel), IDEM_BALANCER_ROUND_ROBIN);
    assert_explains(channel, &charge,
                    "balancer         round_robin  (the channel's option)");
    idem_channel_close(channel);

    channel = open_round_robin((struct idem_policy_options){
        .config_json = BALANCER("least_request"), .ignore_environment = true});
    assert_int_equal(idem_channel_balancer(channel),
                     IDEM_BALANCER_LEAST_IN_FLIGHT);
    assert_explains(channel, &charge,
                    "balancer         least_in_flight  (file, "
                    "loadBalancingConfig[0].least_request)");
    idem_channel_close(channel);

    setenv("IDEM_SERVICE_CONFIG", BALANCER("ring_hash"), 1);
    channel = open_round_robin(
        (struct idem_policy_options){.config_json = BALANCER("least_request")});
    unsetenv("IDEM_SERVICE_CONFIG");
    assert_int_equal(idem_channel_balancer(channel), IDEM_BALANCER_KEY_HASH);
    assert_explains(channel, &charge,
                    "balancer         key_hash  (environment, "
                    "loadBalancingConfig[0].ring_hash)");
    idem_channel_close(channel);
}

static void
a_file_that_changes_turns_the_channel_to_its_balancer(void **state)
{
    struct tempdir folder;
    char path[TEMPDIR_MAX + 16];
    struct idem_channel *channel;

    (void)state;
    tempdir_open(&folder);
    tempdir_file(&folder, "pay.json", path, sizeof path);
    write_config(&folder, path, "{}");
    channel = open_round_robin((struct idem_policy_options){
        .config_file = path, .ignore_environment = true});
    await_line(&ear, "pay.json: is taken");
    assert_int_equal(idem_channel_balancer(channel), IDEM_BALANCER_ROUND_ROBIN);

    write_config(&folder, path, BALANCER("pick_first"));
    await_line(&ear, "pay.json: is taken");
    assert_int_equal(idem_channel_balancer(channel), IDEM_BALANCER_PICK_FIRST);

    write_config(&folder, path, BALANCER("grpclb"));
    await_line(&ear, "is not taken; what was before holds");
    assert_int_equal(idem_channel_balancer(channel), IDEM_BALANCER_PICK_FIRST);

    write_config(&folder, path, "{}");
    await_line(&ear, "pay.json: is taken");
    assert_int_equal(idem_channel_balancer(channel), IDEM_BALANCER_ROUND_ROBIN);
    idem_channel_close(channel);
    tempdir_close(&folder);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_printed_with_where_each_value_comes_from),
        cmocka_unit_test(a_bad_config_is_refused_as_a_whole),
        cmocka_unit_test(a_config_that_might_do_it_twice_is_refused),
        cmocka_unit_test(a_name_that_is_no_methods_is_reported),
        cmocka_unit_test(what_the_proto_says_is_printed_too),
        cmocka_unit_test(a_reload_takes_all_or_nothing),
        cmocka_unit_test(a_file_that_changes_is_read_again),
        cmocka_unit_test(the_file_that_the_environment_names_is_read_again),
        cmocka_unit_test(a_hangup_reads_the_file_again),
        cmocka_unit_test(the_highest_layer_that_names_a_balancer_has_it),
        cmocka_unit_test(a_file_that_changes_turns_the_channel_to_its_balancer),
    };

    const sigset_t signals = awaited_signals();

    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before any thread is made */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
