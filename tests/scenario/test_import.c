/* A client that is killed in the middle of its stream, again and again, and
 * goes on from the place that it has written down (docs/streaming.md). */
#include "support.h"

#include "books.h"
#include "child.h"
#include "loopback.h"
#include "tempdir.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINES 500
#define KILLS 3
#define PATH_SIZE (TEMPDIR_MAX + 32)

struct site {
    struct tempdir dir;
    char log[PATH_SIZE], books[PATH_SIZE], list[PATH_SIZE], place[PATH_SIZE];
    char says[PATH_SIZE], address[64];
    pid_t server, client;
    int64_t wanted; /* rows, when the client is killed next */
};

static void
write_list(const struct site *site)
{
    FILE *file = fopen(site->list, "we");

    assert_non_null(file);
    for (unsigned i = 1; i <= LINES; i++)
        fprintf(file, "crate %u\n", i);
    fclose(file);
}

static int
open_site(void **state)
{
    struct site *site = calloc(1, sizeof *site);
    const struct child_options options = {.log = site->log};
    const char *words[] = {IMPORT, "serve", site->address, site->books, NULL};

    assert_non_null(site);
    tempdir_open(&site->dir);
    tempdir_file(&site->dir, "server.log", site->log, sizeof site->log);
    tempdir_file(&site->dir, "books", site->books, sizeof site->books);
    tempdir_file(&site->dir, "list", site->list, sizeof site->list);
    tempdir_file(&site->dir, "place", site->place, sizeof site->place);
    tempdir_file(&site->dir, "client.log", site->says, sizeof site->says);
    snprintf(site->address, sizeof site->address, "tcp://127.0.0.1:%u",
             loopback_free_port());
    write_list(site);
    site->server = child_serve(&options, words);
    assert_true(site->server > 0);
    *state = site;
    return 0;
}

static int
close_site(void **state)
{
    struct site *site = *state;

    child_stop(site->client, SIGKILL);
    child_stop(site->server, SIGKILL);
    tempdir_close(&site->dir);
    free(site);
    return 0;
}

static void
start_client(struct site *site)
{
    const struct child_options options = {.log = site->says};
    const char *const words[] = {IMPORT, site->address, site->list, site->place,
                                 NULL};

    site->client = child_start(&options, words);
}

static bool
has_got_so_far(void *with)
{
    const struct site *site = with;

    return books_ask(site->books, "SELECT count(*) FROM stock") >= site->wanted;
}

static void
a_list_is_taken_in_once_however_often_its_client_is_killed(void **state)
{
    struct site *site = *state;
    int status;

    for (unsigned i = 1; i <= KILLS; i++) {
        start_client(site);
        site->wanted = i * LINES / (KILLS + 1);
        assert_true(child_wait_until(has_got_so_far, site, 60000));
        status = child_stop(site->client, SIGKILL);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(access(site->place, F_OK), 0);
    }
    start_client(site);
    assert_true(waitpid(site->client, &status, 0) > 0);
    site->client = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        child_show(site->says);
        fail_msg("the last client did not end well");
    }
    assert_int_equal(access(site->place, F_OK), -1);
    assert_int_equal(books_ask(site->books, "SELECT count(*) FROM stock"),
                     LINES);
    assert_int_equal(books_ask(site->books,
                               "SELECT count(*) FROM stock WHERE line = "
                               "'crate ' || id"),
                     LINES);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
        a_list_is_taken_in_once_however_often_its_client_is_killed, open_site,
        close_site)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
