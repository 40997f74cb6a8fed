/* A client that dies in the middle of its call, and another one that resumes it
 * with the key which the first one has kept (docs/guide.md). */
#include "support.h"

#include "child.h"
#include "tcp_proxy.h"
#include "tempdir.h"

#include <idem/standard.h>

#include "payments.idem.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGAIN 75
#define PATH_SIZE (TEMPDIR_MAX + 32)

struct site {
    struct tempdir dir;
    char log[PATH_SIZE], intent[PATH_SIZE], says[PATH_SIZE];
    char address[128], detour[64]; /* of the server, of the proxy before it */
    pid_t server;
    struct tcp_proxy *proxy;
    struct idem_channel *channel; /* the test's own, to the server */
};

static bool
server_says_where(void *with)
{
    struct site *site = with;
    FILE *log = fopen(site->log, "re");
    bool said;

    if (!log)
        return false;
    said = fscanf(log, "listening on %127s", site->address) == 1;
    fclose(log);
    return said;
}

static void
start_server(struct site *site)
{
    char books[PATH_SIZE];
    const char *const words[] = {
        PAYMENTS_SERVER,     "--listen", "tcp://127.0.0.1:0", "--sqlite", books,
        "--create-accounts", "1",        "--balance",         "100",      NULL};
    const struct child_options options = {.log = site->log};

    tempdir_file(&site->dir, "books.db", books, sizeof books);
    site->server = child_start(&options, words);
    assert_true(child_wait_until(server_says_where, site, 20000));
}

static int
open_site(void **state)
{
    struct site *site = calloc(1, sizeof *site);
    struct idem_error err;

    assert_non_null(site);
    tempdir_open(&site->dir);
    tempdir_file(&site->dir, "server.log", site->log, sizeof site->log);
    tempdir_file(&site->dir, "intent", site->intent, sizeof site->intent);
    tempdir_file(&site->dir, "client.log", site->says, sizeof site->says);
    start_server(site);
    site->proxy =
        tcp_proxy_start((unsigned)atoi(strrchr(site->address, ':') + 1));
    snprintf(site->detour, sizeof site->detour, "tcp://127.0.0.1:%u",
             tcp_proxy_port(site->proxy));
    assert_int_equal(
        idem_client_open(&site->channel, site->address, NULL, &err), IDEM_OK);
    *state = site;
    return 0;
}

static int
close_site(void **state)
{
    struct site *site = *state;

    idem_channel_close(site->channel);
    tcp_proxy_free(site->proxy);
    child_stop(site->server, SIGKILL);
    tempdir_close(&site->dir);
    free(site);
    return 0;
}

static int64_t
balance(struct site *site)
{
    payments_get_account_request request = PAYMENTS_GET_ACCOUNT_REQUEST_INIT;
    payments_get_account_reply *reply = NULL;
    int64_t left;

    request.account = "account-0";
    assert_int_equal(
        payments_get_account(site->channel, &request, &reply, NULL, NULL),
        IDEM_OK);
    left = reply->balance;
    payments_get_account_reply_free(reply);
    return left;
}

/* The client as its own process, which reads this config. */
static pid_t
start_client(struct site *site, const char *address, const char *config)
{
    const char *const words[] = {RESUME,      address, site->intent,
                                 "account-0", "30",    NULL};
    const struct child_options options = {.log = site->says};
    pid_t pid;

    setenv("IDEM_SERVICE_CONFIG", config, 1);
    pid = child_start(&options, words);
    unsetenv("IDEM_SERVICE_CONFIG");
    return pid;
}

/* The exit code of one that ends by itself. */
static int
run_client(struct site *site, const char *address, const char *config)
{
    int status = 0;

    assert_int_equal(
        waitpid(start_client(site, address, config), &status, 0) > 0, 1);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void
read_text(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

static void
assert_says(struct site *site, const char *words)
{
    char text[1024];

    read_text(site->says, text, sizeof text);
    if (!strstr(text, words))
        fail_msg("\"%s\" is missing in: %s", words, text);
}

#define RETRIES(attempts, pause)                                               \
    "{\"methodConfig\": [{\"name\": [{}], \"retryPolicy\": "                   \
    "{\"maxAttempts\": " attempts ", \"initialBackoff\": \"" pause             \
    "\", \"maxBackoff\": \"" pause "\", \"backoffMultiplier\": 1,"             \
    " \"retryableStatusCodes\": [\"UNAVAILABLE\"]}}]}"
#define PATIENT RETRIES("5", "20s")
#define HASTY RETRIES("2", "0.01s")

static bool
is_cut(void *with)
{
    struct site *site = with;

    return tcp_proxy_cuts(site->proxy) > 0;
}

static bool
is_charged(void *with)
{
    return balance(with) == 70;
}

/* Killed when its request is with the server and the answer is lost: what it
 * knew is in its file. */
static void
a_call_of_a_client_that_was_killed_is_resumed_by_the_next_one(void **state)
{
    struct site *site = *state;
    char intent[512], key[256];
    pid_t client;
    int status;

    tcp_proxy_cut(site->proxy, TCP_PROXY_CUT_AFTER, "Payments/Charge", 1000);
    client = start_client(site, site->detour, PATIENT);
    assert_true(child_wait_until(is_cut, site, 20000));
    status = child_stop(client, SIGKILL);
    assert_true(WIFSIGNALED(status));
    assert_true(child_wait_until(is_charged, site, 20000));
    read_text(site->intent, intent, sizeof intent);
    assert_int_equal(sscanf(intent, "%255s", key), 1);

    assert_int_equal(run_client(site, site->address, PATIENT), 0);
    assert_says(site, "balance 70, entry 1, OK REPLAYED");
    assert_says(site, key);
    assert_int_equal(access(site->intent, F_OK), -1);
    assert_int_equal(balance(site), 70);
}

/* It hands back its key, in doubt, and exits. */
static void
a_call_that_ends_in_doubt_is_resumed_after_a_restart(void **state)
{
    struct site *site = *state;

    tcp_proxy_cut(site->proxy, TCP_PROXY_CUT_AFTER, "Payments/Charge", 1000);
    assert_int_equal(run_client(site, site->detour, HASTY), AGAIN);
    assert_says(site, "UNAVAILABLE IN_DOUBT idk_");
    assert_int_equal(access(site->intent, F_OK), 0);
    assert_int_equal(run_client(site, site->address, HASTY), 0);
    assert_says(site, "balance 70, entry 1, OK ");
    assert_int_equal(access(site->intent, F_OK), -1);
    assert_int_equal(balance(site), 70);
}

/* The server never heard of it: the resumed call is the first. */
static void
a_call_that_was_never_sent_is_made_by_the_next_client(void **state)
{
    struct site *site = *state;

    tcp_proxy_cut(site->proxy, TCP_PROXY_CUT_BEFORE, "Payments/Charge", 1000);
    assert_int_equal(run_client(site, site->detour, HASTY), AGAIN);
    assert_int_equal(balance(site), 100);
    assert_int_equal(run_client(site, site->address, HASTY), 0);
    assert_says(site, "balance 70, entry 1, OK COMMITTED");
    assert_int_equal(balance(site), 70);
}

/* Before anything is written down. */
static void
a_wrong_amount_or_account_leaves_no_intent(void **state)
{
    static const char *const wrong[][2] = {
        {"account-0", "much"}, {"account-0", "1x"}, {"", "30"}};
    struct site *site = *state;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *const words[] = {RESUME,      site->address, site->intent,
                                     wrong[i][0], wrong[i][1],   NULL};
        const struct child_options options = {.log = site->says};
        int status = 0;

        assert_true(waitpid(child_start(&options, words), &status, 0) > 0);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 64);
        assert_int_equal(access(site->intent, F_OK), -1);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_site, close_site)
        TEST(a_call_of_a_client_that_was_killed_is_resumed_by_the_next_one),
        TEST(a_call_that_ends_in_doubt_is_resumed_after_a_restart),
        TEST(a_call_that_was_never_sent_is_made_by_the_next_client),
        TEST(a_wrong_amount_or_account_leaves_no_intent),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
