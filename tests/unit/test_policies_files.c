#include "policies_world.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A channel's config files: read, read again, and what the program is told. */

static void
a_reload_takes_all_or_nothing(void **state)
{
    struct idem_channel *channel =
        policies_channel((struct idem_policy_options){
            .config_json = TIMEOUT("3s"), .ignore_environment = true});
    struct idem_error err;

    (void)state;
    assert_int_equal(idem_channel_reload(channel, TIMEOUT("x"), &err),
                     IDEM_INVALID_ARGUMENT);
    policies_assert_explains(channel, &charge, "at most 3000 ms");
    assert_int_equal(idem_channel_reload(channel, TIMEOUT("2s"), &err),
                     IDEM_OK);
    policies_assert_explains(channel, &charge, "at most 2000 ms");
    assert_int_equal(idem_channel_reload(channel, NULL, &err),
                     IDEM_FAILED_PRECONDITION);
    idem_channel_close(channel);
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
    policies_write(&folder, path, TIMEOUT("3s"));
    channel = policies_channel((struct idem_policy_options){
        .config_file = path, .ignore_environment = true});
    policies_await_line("pay.json: is taken");

    policies_write(&folder, path, TIMEOUT("2s"));
    policies_await_line("pay.json: is taken");
    policies_assert_explains(channel, &charge, "at most 2000 ms");

    policies_write(&folder, path, "{");
    policies_await_line("is not taken; what was before holds");
    policies_assert_explains(channel, &charge, "at most 2000 ms");
    assert_int_equal(idem_channel_reload(channel, NULL, &err),
                     IDEM_INVALID_ARGUMENT);

    policies_write(&folder, path, TIMEOUT("1s"));
    policies_await_line("pay.json: is taken");
    assert_int_equal(idem_channel_reload(channel, NULL, &err), IDEM_OK);
    policies_assert_explains(channel, &charge, "at most 1000 ms");
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
    policies_write(&folder, path, TIMEOUT("3s"));
    setenv("IDEM_SERVICE_CONFIG", path, 1);
    channel = policies_channel((struct idem_policy_options){
        .config_json =
            ENTRY("\"timeout\": \"9s\", \"attemptTimeout\": \"1s\"")});
    unsetenv("IDEM_SERVICE_CONFIG");
    policies_assert_explains(channel, &charge, "at most 3000 ms  (environment");

    policies_write(&folder, path, TIMEOUT("2s"));
    policies_await_line("run.json: is taken");
    policies_assert_explains(channel, &charge, "at most 2000 ms  (environment");
    policies_assert_explains(channel, &charge, "at most 1000 ms  (file");

    policies_write(&folder, path, TIMEOUT("x"));
    policies_await_line("run.json: is not taken; what was before holds");
    policies_assert_explains(channel, &charge, "at most 2000 ms  (environment");
    assert_int_equal(idem_channel_reload(channel, NULL, &err),
                     IDEM_INVALID_ARGUMENT);

    policies_write(&folder, path, "{}");
    policies_await_line("run.json: is taken");
    policies_assert_explains(channel, &charge, "at most 9000 ms  (file");
    assert_int_equal(idem_channel_reload(channel, NULL, &err), IDEM_OK);
    policies_await_line("run.json: is taken");
    assert_int_equal(idem_channel_reload(channel, TIMEOUT("8s"), &err),
                     IDEM_OK);
    policies_write(&folder, path, ENTRY("\"waitForReady\": true"));
    policies_await_line("run.json: is taken");
    policies_assert_explains(channel, &charge, "at most 8000 ms  (file");
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
            policies_hear(NULL, "reload failed");
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
    policies_write(&behind, target, TIMEOUT("3s"));
    assert_int_equal(symlink(target, path), 0);
    channel = policies_channel((struct idem_policy_options){
        .config_file = path, .ignore_environment = true});
    policies_await_line("pay.json: is taken");
    pthread_create(&thread, NULL, reload_on_hangup, channel);

    policies_write(&behind, target, TIMEOUT("2s"));
    policies_assert_explains(channel, &charge, "at most 3000 ms");
    kill(getpid(), SIGHUP);
    policies_await_line("pay.json: is taken");
    policies_assert_explains(channel, &charge, "at most 2000 ms");

    policies_write(&behind, target, TIMEOUT("-1s"));
    kill(getpid(), SIGHUP);
    policies_await_line("reload failed");
    policies_assert_explains(channel, &charge, "at most 2000 ms");

    kill(getpid(), SIGTERM);
    pthread_join(thread, NULL);
    idem_channel_close(channel);
    tempdir_close(&behind);
    tempdir_close(&folder);
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
    policies_write(&folder, path, "{}");
    channel = policies_round_robin((struct idem_policy_options){
        .config_file = path, .ignore_environment = true});
    policies_await_line("pay.json: is taken");
    assert_int_equal(idem_channel_balancer(channel), IDEM_BALANCER_ROUND_ROBIN);

    policies_write(&folder, path, BALANCER("pick_first"));
    policies_await_line("pay.json: is taken");
    assert_int_equal(idem_channel_balancer(channel), IDEM_BALANCER_PICK_FIRST);

    policies_write(&folder, path, BALANCER("grpclb"));
    policies_await_line("is not taken; what was before holds");
    assert_int_equal(idem_channel_balancer(channel), IDEM_BALANCER_PICK_FIRST);

    policies_write(&folder, path, "{}");
    policies_await_line("pay.json: is taken");
    assert_int_equal(idem_channel_balancer(channel), IDEM_BALANCER_ROUND_ROBIN);
    idem_channel_close(channel);
    tempdir_close(&folder);
}

/* --- What the program is told --- */

static struct idem_channel *told_channel;
static unsigned told_reloads;

/* Who hears of a bad config takes a good one. */
static void
reload_when_bad(void *with, const char *line)
{
    struct idem_error err;

    if (strstr(line, "is not taken")) {
        told_reloads++;
        assert_int_equal(idem_channel_reload(told_channel, TIMEOUT("1s"), &err),
                         IDEM_OK);
    }
    policies_hear(with, line);
}

static void
who_is_told_of_a_bad_config_may_reload(void **state)
{
    struct tempdir folder;
    char path[TEMPDIR_MAX + 16];

    (void)state;
    tempdir_open(&folder);
    tempdir_file(&folder, "pay.json", path, sizeof path);
    policies_write(&folder, path, TIMEOUT("3s"));
    told_reloads = 0;
    told_channel = policies_channel(
        (struct idem_policy_options){.config_file = path,
                                     .ignore_environment = true,
                                     .report = reload_when_bad});
    policies_await_line("pay.json: is taken");
    policies_write(&folder, path, "{");
    policies_await_line("is not taken");
    policies_assert_explains(told_channel, &charge, "at most 1000 ms");
    assert_int_equal(told_reloads, 1);
    idem_channel_close(told_channel);
    tempdir_close(&folder);
}

static void
let_it_end(struct idem_call *call, const struct ProtobufCMessage *reply,
           const struct idem_outcome *outcome, void (*author)(void))
{
    (void)call;
    (void)reply;
    (void)author;
    assert_int_not_equal(outcome->status, IDEM_OK);
}

/* What is told, and to whom, is the program's, which may free it then. */
static void
nothing_is_told_after_the_channel_is_closed(void **state)
{
    const struct idem_call_options no_key = {.key = ""}; /* refused at once */
    struct tempdir folder;
    char path[TEMPDIR_MAX + 16];
    struct idem_channel *channel, *other;
    struct idem_call *call;

    (void)state;
    tempdir_open(&folder);
    tempdir_file(&folder, "pay.json", path, sizeof path);
    policies_write(&folder, path, TIMEOUT("3s"));
    channel = policies_channel((struct idem_policy_options){
        .config_file = path, .ignore_environment = true});
    call =
        idem_channel_start(channel, &charge, NULL, &no_key, let_it_end, NULL);
    idem_channel_close(channel);

    other = policies_channel((struct idem_policy_options){
        .config_file = path, .ignore_environment = true});
    policies_await_line("is taken");
    policies_write(&folder, path, TIMEOUT("2s"));
    policies_await_line("is taken");
    idem_channel_close(other);
    idem_call_release(call);
    assert_int_equal(policies_lines_heard(), 0);
    tempdir_close(&folder);
}

static void
write_much(const struct tempdir *folder, const char *path)
{
    size_t size = ((size_t)1 << 20) + 1;
    char *text = malloc(size + 1);

    assert_non_null(text);
    memset(text, ' ', size);
    text[size] = 0;
    policies_write(folder, path, text);
    free(text);
}

/* Bytes that are 0 end no text early. */
static void
write_zero_bytes(const char *path)
{
    static const char text[] = "{}\0 and more";
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, sizeof text, file), sizeof text);
    fclose(file);
}

/* Too large, no text, a folder, nothing at all: each is told, and what was
 * before holds. */
static void
a_file_that_cannot_be_read_is_told(void **state)
{
    struct tempdir folder;
    char path[TEMPDIR_MAX + 16];
    struct idem_channel *channel;

    (void)state;
    tempdir_open(&folder);
    tempdir_file(&folder, "pay.json", path, sizeof path);
    policies_write(&folder, path, TIMEOUT("3s"));
    channel = policies_channel((struct idem_policy_options){
        .config_file = path, .ignore_environment = true});
    policies_await_line("pay.json: is taken");

    write_much(&folder, path);
    policies_await_line("pay.json: is over 1048576 bytes; what was before");
    write_zero_bytes(path);
    policies_await_line("pay.json: byte 2 is 0, it is no text; what was");
    assert_int_equal(unlink(path), 0);
    policies_await_line("pay.json: No such file or directory; what was before");
    assert_int_equal(mkdir(path, 0700), 0);
    policies_await_line("pay.json: Is a directory; what was before holds");
    policies_assert_explains(channel, &charge, "at most 3000 ms");
    assert_int_equal(rmdir(path), 0);
    policies_await_line("what was before holds");
    policies_write(&folder, path, TIMEOUT("2s"));
    policies_await_line("pay.json: is taken");
    policies_assert_explains(channel, &charge, "at most 2000 ms");
    idem_channel_close(channel);
    tempdir_close(&folder);
}

/* A link that goes and comes, to a file in another folder. */
static void
a_link_that_is_made_anew_is_read_again(void **state)
{
    struct tempdir folder, behind;
    char path[TEMPDIR_MAX + 16], one[TEMPDIR_MAX + 16], two[TEMPDIR_MAX + 16];
    struct idem_channel *channel;

    (void)state;
    tempdir_open(&folder);
    tempdir_open(&behind);
    tempdir_file(&folder, "pay.json", path, sizeof path);
    tempdir_file(&behind, "one.json", one, sizeof one);
    tempdir_file(&behind, "two.json", two, sizeof two);
    policies_write(&behind, one, TIMEOUT("3s"));
    policies_write(&behind, two, TIMEOUT("2s"));
    assert_int_equal(symlink(one, path), 0);
    channel = policies_channel((struct idem_policy_options){
        .config_file = path, .ignore_environment = true});
    policies_await_line("pay.json: is taken");

    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(two, path), 0);
    policies_await_line("pay.json: is taken");
    policies_assert_explains(channel, &charge, "at most 2000 ms");
    idem_channel_close(channel);
    tempdir_close(&behind);
    tempdir_close(&folder);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reload_takes_all_or_nothing),
        cmocka_unit_test(a_file_that_changes_is_read_again),
        cmocka_unit_test(the_file_that_the_environment_names_is_read_again),
        cmocka_unit_test(a_hangup_reads_the_file_again),
        cmocka_unit_test(a_file_that_changes_turns_the_channel_to_its_balancer),
        cmocka_unit_test(who_is_told_of_a_bad_config_may_reload),
        cmocka_unit_test(nothing_is_told_after_the_channel_is_closed),
        cmocka_unit_test(a_file_that_cannot_be_read_is_told),
        cmocka_unit_test(a_link_that_is_made_anew_is_read_again),
    };
    const sigset_t signals = awaited_signals();

    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before any thread is made */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
