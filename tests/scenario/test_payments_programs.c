#include "support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <idem/status.h>

#include "child.h"
#include "files.h"
#include "tempdir.h"

/* payments_server and payments from a shell. */

#define OUTPUT_MAX 4096
#define EXIT_USAGE 64

/* Two tokens, and the file that knows them. */
#define AUDITORS_TOKEN "open-sesame"
#define TELLERS_TOKEN "xyzzy"
#define TOKENS                                                                 \
    "svc:auditor sha256:"                                                      \
    "d7ecdf25eaf3deba0f2628771dbdd22d4138ab6cf38f91ed02a2ca0dec7c8ab7 "        \
    "auditor\n"                                                                \
    "svc:teller sha256:"                                                       \
    "184858a00fd7971f810848266ebcecee5e8b69972c5ffaed622f5ee078671aed\n"

struct shell {
    struct tempdir dir;
    char log[TEMPDIR_MAX + 32]; /* the server's */
    char address[128];
    pid_t server;
};

static bool
server_says_where(void *with)
{
    struct shell *shell = with;
    FILE *log = fopen(shell->log, "re");
    bool said;

    if (!log)
        return false;
    said = fscanf(log, "listening on %127s", shell->address) == 1;
    fclose(log);
    return said;
}

static int
open_shell_as(void **state, bool with_tokens)
{
    struct shell *shell = calloc(1, sizeof *shell);
    char books[TEMPDIR_MAX + 32], tokens[TEMPDIR_MAX + 32];
    const char *const words[] = {PAYMENTS_SERVER,
                                 "--listen",
                                 "tcp://127.0.0.1:0",
                                 "--sqlite",
                                 books,
                                 "--create-accounts",
                                 "2",
                                 "--balance",
                                 "100",
                                 with_tokens ? "--tokens" : NULL,
                                 tokens,
                                 NULL};
    struct child_options options = {0};

    assert_non_null(shell);
    tempdir_open(&shell->dir);
    file_put(tempdir_file(&shell->dir, "tokens", tokens, sizeof tokens),
             TOKENS);
    tempdir_file(&shell->dir, "books.db", books, sizeof books);
    options.log =
        tempdir_file(&shell->dir, "server.log", shell->log, sizeof shell->log);
    shell->server = child_start(&options, words);
    assert_true(child_wait_until(server_says_where, shell, 20000));
    *state = shell;
    return 0;
}

static int
open_shell(void **state)
{
    return open_shell_as(state, false);
}

static int
open_shell_with_tokens(void **state)
{
    return open_shell_as(state, true);
}

static int
close_shell(void **state)
{
    struct shell *shell = *state;

    child_stop(shell->server, SIGKILL);
    tempdir_close(&shell->dir);
    free(shell);
    return 0;
}

/* The exit code of a command line; what it printed, also to stderr. */
static int
type(const char *line, char *output)
{
    FILE *pipe = popen(line, "r");
    int status;

    assert_non_null(pipe);
    output[fread(output, 1, OUTPUT_MAX - 1, pipe)] = '\0';
    status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int
payments(const struct shell *shell, const char *words, char *output)
{
    char line[1024];

    snprintf(line, sizeof line, "%s %s --server %s 2>&1", PAYMENTS, words,
             shell->address);
    return type(line, output);
}

static int
payments_server(const char *words, char *output)
{
    char line[1024];

    snprintf(line, sizeof line, "%s %s 2>&1", PAYMENTS_SERVER, words);
    return type(line, output);
}

static void
says(const char *output, const char *words)
{
    if (!strstr(output, words))
        fail_msg("\"%s\" is missing in:\n%s", words, output);
}

static void
a_charge_tells_status_effect_and_key(void **state)
{
    char output[OUTPUT_MAX];

    assert_int_equal(payments(*state,
                              "charge --account account-0 --amount 30 --key k1",
                              output),
                     0);
    says(output, "balance   70\n");
    says(output, "status    OK\n");
    says(output, "effect    COMMITTED\n");
    says(output, "replayed  no\n");
    says(output, "key       k1\n");
    assert_int_equal(payments(*state,
                              "charge --account account-0 --amount 30 --key k1",
                              output),
                     0);
    says(output, "balance   70\n");
    says(output, "replayed  yes\n");
}

static void
the_exit_code_is_the_number_of_the_status(void **state)
{
    char output[OUTPUT_MAX];

    assert_int_equal(
        payments(*state, "charge --account account-0 --amount 101", output),
        IDEM_FAILED_PRECONDITION);
    says(output, "does not suffice");
    assert_int_equal(
        payments(*state, "charge --account nobody --amount 1", output),
        IDEM_NOT_FOUND);
    assert_int_equal(payments(*state, "account --account account-1", output),
                     0);
    says(output, "balance   100\n");
}

static void
a_transfer_shows_in_the_entries(void **state)
{
    char output[OUTPUT_MAX];

    assert_int_equal(payments(*state,
                              "transfer --account account-0 --to account-1"
                              " --amount 25 --memo rent",
                              output),
                     0);
    says(output, "source    75\n");
    says(output, "target    125\n");
    assert_int_equal(payments(*state, "entries --account account-1", output),
                     0);
    says(output, "rent");
}

static void
a_key_is_resolved_and_abandoned_from_a_shell(void **state)
{
    char output[OUTPUT_MAX];

    assert_int_equal(payments(*state,
                              "charge --account account-0 --amount 30 --key k1",
                              output),
                     0);
    assert_int_equal(
        payments(*state, "resolve --key k1 --method charge", output), 0);
    says(output, "state     DONE\n");
    says(output, "balance   70\nentry     1\n");
    assert_int_equal(
        payments(*state, "abandon --key k2 --method charge", output), 0);
    says(output, "state     ABANDONED\n");
    assert_int_equal(payments(*state,
                              "charge --account account-0 --amount 30 --key k2",
                              output),
                     IDEM_FAILED_PRECONDITION);
    says(output, "KEY_ABANDONED");
    assert_int_equal(payments(*state, "account --account account-0", output),
                     0);
    says(output, "balance   70\n");
    assert_int_equal(payments(*state, "resolve --method charge", output),
                     EXIT_USAGE);
    says(output, "--key");
}

static void
a_payout_without_a_provider_is_unavailable(void **state)
{
    char output[OUTPUT_MAX];

    assert_int_equal(
        payments(*state, "payout --to bank-1 --amount 5 --timeout-ms 20000",
                 output),
        IDEM_UNAVAILABLE);
    says(output, "final     no\n");
}

static void
a_wrong_command_line_is_named(void **state)
{
    const struct shell *shell = *state;
    char output[OUTPUT_MAX], words[256];

    assert_int_equal(payments(shell, "steal", output), EXIT_USAGE);
    says(output, "steal");
    assert_int_equal(payments(shell, "charge --amount much", output),
                     EXIT_USAGE);
    says(output, "much");
    assert_int_equal(payments(shell, "charge --colour", output), EXIT_USAGE);
    says(output, "--colour");
    assert_int_equal(payments_server("--sqlite x --colour", output), 2);
    says(output, "--colour: no such option, or no value");
    assert_int_equal(payments_server("", output), 2);
    says(output, "--sqlite or --postgres");
    assert_int_equal(payments_server("--sqlite x --redis redis://x", output),
                     2);
    says(output, "--postgres");
    assert_int_equal(payments_server("--sqlite /nowhere/books.db", output), 1);
    says(output, "/nowhere");
    snprintf(words, sizeof words, "--sqlite %s/other --listen carrier-pigeon",
             shell->dir.path);
    assert_int_equal(payments_server(words, output), 1);
    says(output, "carrier-pigeon");
}

/* The rule is in payments.proto. */
static void
only_an_auditor_gets_the_totals(void **state)
{
    struct shell *shell = *state;
    char output[OUTPUT_MAX], path[TEMPDIR_MAX + 32], words[256];

    tempdir_file(&shell->dir, "token", path, sizeof path);
    snprintf(words, sizeof words, "totals --token-file %s", path);
    assert_int_equal(payments(shell, "totals", output), IDEM_UNAUTHENTICATED);
    says(output, "TOKEN_MISSING");
    file_put(path, TELLERS_TOKEN);
    assert_int_equal(payments(shell, words, output), IDEM_PERMISSION_DENIED);
    says(output, "svc:teller may not call");
    file_put(path, AUDITORS_TOKEN "\n");
    assert_int_equal(payments(shell, words, output), IDEM_OK);
    says(output, "accounts  2\nbalance   200\nentries   0\n");
    file_put(path, "another");
    assert_int_equal(payments(shell, words, output), IDEM_UNAUTHENTICATED);
    says(output, "TOKEN_UNKNOWN");
}

static void
sigterm_drains_the_server(void **state)
{
    struct shell *shell = *state;
    int status = child_stop(shell->server, SIGTERM);

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    shell->server = 0;
}

#define IN_A_SHELL(test)                                                       \
    cmocka_unit_test_setup_teardown(test, open_shell, close_shell)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_SHELL(a_charge_tells_status_effect_and_key),
        IN_A_SHELL(the_exit_code_is_the_number_of_the_status),
        IN_A_SHELL(a_transfer_shows_in_the_entries),
        IN_A_SHELL(a_key_is_resolved_and_abandoned_from_a_shell),
        IN_A_SHELL(a_payout_without_a_provider_is_unavailable),
        IN_A_SHELL(a_wrong_command_line_is_named),
        cmocka_unit_test_setup_teardown(only_an_auditor_gets_the_totals,
                                        open_shell_with_tokens, close_shell),
        IN_A_SHELL(sigterm_drains_the_server),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
