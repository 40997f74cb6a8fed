#include "support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "tempdir.h"

/* The programs that the README shows, run as it says. */

#define OUTPUT_MAX 1024

struct shop {
    struct tempdir dir;
    FILE *server; /* its stdin: an end of it ends the server */
};

static bool
server_listens(void *with)
{
    const struct shop *shop = with;
    char path[TEMPDIR_MAX + 32];

    return access(tempdir_file(&shop->dir, "shop.sock", path, sizeof path),
                  F_OK) == 0;
}

static void
start_server(struct shop *shop)
{
    char command[512];

    snprintf(command, sizeof command, "cd %s && exec %s", shop->dir.path,
             QUICKSTART_SERVER);
    shop->server = popen(command, "w");
    assert_non_null(shop->server);
    assert_true(child_wait_until(server_listens, shop, 10000));
}

/* Enter ends it, and it ends well. */
static void
stop_server(struct shop *shop)
{
    fputs("\n", shop->server);
    assert_int_equal(pclose(shop->server), 0);
}

static int
open_shop(void **state)
{
    struct shop *shop = calloc(1, sizeof *shop);

    assert_non_null(shop);
    tempdir_open(&shop->dir);
    start_server(shop);
    *state = shop;
    return 0;
}

static int
close_shop(void **state)
{
    struct shop *shop = *state;

    stop_server(shop);
    tempdir_close(&shop->dir);
    free(shop);
    return 0;
}

/* The program's exit code, and what it printed. */
static int
run(const struct shop *shop, const char *program, const char *words,
    char *output)
{
    char command[512];
    FILE *pipe;
    int status;

    snprintf(command, sizeof command, "cd %s && exec %s %s 2>&1",
             shop->dir.path, program, words);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    output[fread(output, 1, OUTPUT_MAX - 1, pipe)] = '\0';
    status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int
buy(const struct shop *shop, const char *key, char *output)
{
    return run(shop, QUICKSTART_CLIENT, key, output);
}

/* Loops that are not the library's (docs/placement.md). */
static void
a_loop_of_poll_and_one_of_libevent_run_the_callbacks(void **state)
{
    struct shop *shop = *state;
    char output[OUTPUT_MAX];

    assert_int_equal(run(shop, LOOP_POLL, "ipc://shop.sock 30", output), 0);
    assert_string_equal(output, "70 left\n");
    assert_int_equal(run(shop, LOOP_LIBEVENT, "ipc://shop.sock 30", output), 0);
    assert_string_equal(output, "40 left\n");
    assert_int_equal(run(shop, LOOP_POLL, "ipc://shop.sock many", output), 64);
}

/* docs/streaming.md */
static void
the_example_of_streams_runs(void **state)
{
    struct shop *shop = *state;
    char output[OUTPUT_MAX];

    assert_int_equal(run(shop, BOARD, "inproc://board", output), 0);
    assert_string_equal(output, "the last price of tea: 100000\n"
                                "1000 prices, the highest 1000\n"
                                "with tax: 55055000\n");
}

static void
a_repeated_purchase_is_a_replay_also_after_a_restart(void **state)
{
    struct shop *shop = *state;
    char output[OUTPUT_MAX];

    assert_int_equal(buy(shop, "order-1", output), 0);
    assert_non_null(strstr(output, "98 left, OK COMMITTED order-1"));
    assert_int_equal(buy(shop, "order-1", output), 0);
    assert_non_null(strstr(output, "98 left, OK REPLAYED order-1"));
    stop_server(shop);
    start_server(shop);
    assert_int_equal(buy(shop, "order-1", output), 0);
    assert_non_null(strstr(output, "98 left, OK REPLAYED order-1"));
    assert_int_equal(buy(shop, "", output), 0);
    assert_non_null(strstr(output, "96 left, OK COMMITTED idk_"));
}

/* docs/plain.md: nngcat and protoc alone, with a key of one's own. */
static void
a_plain_nng_client_buys_once(void **state)
{
    struct shop *shop = *state;
    char output[OUTPUT_MAX];

    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            run(shop, PLAIN_BUY, "ipc://shop.sock order-7 2", output), 0);
        assert_non_null(strstr(output, i == 0 ? "effect: 3" : "effect: 4"));
        assert_non_null(strstr(output, "final: true"));
        assert_non_null(strstr(output, "left: 98"));
    }
    assert_int_equal(run(shop, PLAIN_BUY, "ipc://shop.sock '' 2", output), 0);
    assert_non_null(strstr(output, "status: 3"));
    assert_non_null(strstr(output, "reason: \"KEY_MISSING\""));
    assert_int_not_equal(
        run(shop, PLAIN_BUY, "ipc://nobody.sock order-7 2", output), 0);
}

/* Lines that are not empty. */
static unsigned
lines_of(const char *name)
{
    char path[512], line[256];
    unsigned lines = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/services/quickstart/%s",
             getenv("IDEM_SOURCE_DIR"), name);
    file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        lines += line[0] != '\n';
    fclose(file);
    return lines;
}

static void
the_client_has_25_lines_and_the_server_40(void **state)
{
    (void)state;
    assert_in_range(lines_of("client.c"), 1, 25);
    assert_in_range(lines_of("server.c"), 1, 40);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_repeated_purchase_is_a_replay_also_after_a_restart, open_shop,
            close_shop),
        cmocka_unit_test_setup_teardown(
            a_loop_of_poll_and_one_of_libevent_run_the_callbacks, open_shop,
            close_shop),
        cmocka_unit_test_setup_teardown(the_example_of_streams_runs, open_shop,
                                        close_shop),
        cmocka_unit_test_setup_teardown(a_plain_nng_client_buys_once, open_shop,
                                        close_shop),
        cmocka_unit_test(the_client_has_25_lines_and_the_server_40),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
