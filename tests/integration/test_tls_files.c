/* The files and options of TLS: what is wrong with them is named, and they
 * change under load. */
#include "tls_world.h"

#include "child.h"
#include "fake_clock.h"
#include "wire_client.h"

#include <stdio.h>
#include <string.h>

/* --- Options --- */

static void
expect_bad_options(bool server, const struct idem_tls_options *options,
                   const char *what, const char *why)
{
    struct idem_server_options with_server = {.tls = options};
    struct idem_channel_options with_channel = {.tls = options};
    struct idem_server *unmade_server;
    struct idem_channel *unmade;
    struct idem_error err = {0};
    enum idem_status status =
        server ? idem_server_new(&unmade_server, &with_server, &err)
               : idem_channel_new(&unmade, "tls+tcp://127.0.0.1:1",
                                  &with_channel, &err);

    assert_int_equal(status, IDEM_INVALID_ARGUMENT);
    if (!strstr(err.message, what) || !strstr(err.message, why))
        print_error("not \"%s\" and \"%s\": %s\n", what, why, err.message);
    assert_non_null(strstr(err.message, what));
    assert_non_null(strstr(err.message, why));
}

static void
what_is_wrong_with_files_and_options_is_named(void **state)
{
    struct tls_world *tls = *state;
    struct idem_tls_options options = {0};

    expect_bad_options(true, &options, "certificate_file", "needs");
    options = (struct idem_tls_options){.key_file = "k"};
    expect_bad_options(false, &options, "key_file", "certificate_file");
    options = tls->client;
    options.client_certificate = true;
    expect_bad_options(false, &options, "client_certificate", "servers");
    options = tls->server;
    options.authority_file = NULL;
    options.client_certificate = true;
    expect_bad_options(true, &options, "client_certificate", "authority_file");
    options = tls->server;
    options.certificate_file = "/nowhere/at/all.pem";
    expect_bad_options(true, &options, "/nowhere/at/all.pem", "No such file");
    options = tls->server;
    options.certificate_file = tls->server_key_path;
    expect_bad_options(true, &options, tls->server_key_path, "certificate");
    options = tls->server;
    options.key_file = tls->client_key_path;
    expect_bad_options(true, &options, tls->client_key_path, "is not that of");
    options = tls->server;
    options.min_version = (enum idem_tls_version)1;
    expect_bad_options(true, &options, "min_version", "IDEM_TLS_1_2");
}

/* Without options there is no TLS, and with them nothing else. */
static void
addresses_go_with_options(void **state)
{
    struct tls_world *tls = *state;
    struct idem_channel_options with_tls = {.tls = &tls->client};
    struct idem_channel *channel;
    struct idem_server *server;
    struct idem_error err;

    assert_int_equal(
        idem_channel_new(&channel, "tls+tcp://127.0.0.1:1", NULL, &err),
        IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "TLS options"));
    assert_int_equal(
        idem_channel_new(&channel, "tcp://127.0.0.1:1", &with_tls, &err),
        IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "tls+tcp://"));
    assert_int_equal(idem_server_new(&server, NULL, &err), IDEM_OK);
    assert_int_equal(idem_server_listen(server, "tls+tcp://127.0.0.1:0", &err),
                     IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "TLS options"));
    idem_server_free(server);
}

static void
the_password_opens_the_key_and_is_in_no_message(void **state)
{
    struct tls_world *tls = *state;
    struct echo_options options =
        tls_world_echo(tls, &tls->server, &tls->client);
    struct idem_server_options wrong = {.tls = &tls->server};
    struct idem_server *server;
    struct echo_world world;
    struct echo_result result;
    struct idem_error err;

    tls_world_issue_server(tls,
                           &(struct certificate_order){.names = "IP:127.0.0.1",
                                                       .password = "sesame"});
    tls->server.key_password = "sesame";
    echo_world_open(&world, &options);
    result = echo_world_call(&world, 1, 1, NULL);
    assert_echoed(&result, 1, 1);
    echo_world_close(&world);

    tls->server.key_password = "sesame-not";
    assert_int_equal(idem_server_new(&server, &wrong, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, tls->server_key_path));
    assert_null(strstr(err.message, "sesame"));
    tls->server.key_password = NULL; /* and nobody is asked at a terminal */
    assert_int_equal(idem_server_new(&server, &wrong, &err),
                     IDEM_INVALID_ARGUMENT);
}

/* --- Files that change --- */

static void
new_connections_get_the_new_certificate(void **state)
{
    struct tls_world *tls = *state;
    struct echo_options options =
        tls_world_echo(tls, &tls->server, &tls->client);
    struct echo_world world;
    struct echo_result result;
    unsigned good;

    echo_world_open(&world, &options);
    result = echo_world_call(&world, 1, 1, NULL);
    assert_echoed(&result, 1, 1);
    pthread_mutex_lock(&tls->lock);
    good = tls->good;
    pthread_mutex_unlock(&tls->lock);
    tls_world_issue_server(
        tls, &(struct certificate_order){.names = "DNS:new.test"});
    tls_world_await_reloads(tls, good + 1, 0);
    /* The connection that is there goes on … */
    result = echo_world_call(&world, 2, 1, NULL);
    assert_echoed(&result, 2, 1);
    idem_channel_close(world.channel);
    /* … and the next sees who is there now. */
    tls->client.server_name = "new.test";
    world.channel = echo_world_channel(&world);
    result = echo_world_call(&world, 3, 1, NULL);
    assert_echoed(&result, 3, 1);
    echo_world_close(&world);
}

static void
write_text(const char *path, const char *text)
{
    char beside[160];
    FILE *file;

    snprintf(beside, sizeof beside, "%s.text", path);
    file = fopen(beside, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(beside, path), 0);
}

static void
a_bad_file_changes_nothing(void **state)
{
    struct tls_world *tls = *state;
    struct echo_options options =
        tls_world_echo(tls, &tls->server, &tls->client);
    struct echo_world world;
    struct echo_result result;

    echo_world_open(&world, &options);
    write_text(tls->server_path, "not a certificate\n");
    tls_world_await_reloads(tls, 0, 1);
    pthread_mutex_lock(&tls->lock);
    assert_non_null(strstr(tls->trouble.message, tls->server_path));
    pthread_mutex_unlock(&tls->lock);
    idem_channel_close(world.channel);
    world.channel = echo_world_channel(&world);
    result = echo_world_call(&world, 3, 1, NULL);
    assert_echoed(&result, 3, 1);
    echo_world_close(&world);
}

#define ROUNDS 10

/* Calls fly all the while, on connections that come and go. */
static void
reloads_under_load_lose_no_call(void **state)
{
    struct tls_world *tls = *state;
    struct echo_options options =
        tls_world_echo(tls, &tls->server, &tls->client);
    static struct echo_result results[ROUNDS][16];
    struct echo_world world;

    echo_world_open(&world, &options);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct idem_channel *channel = echo_world_channel(&world);

        for (unsigned i = 0; i < 16; i++)
            echo_world_start(&world, channel, echo_echo_async, i, 1000, NULL,
                             &results[round][i]);
        tls_world_issue_server(
            tls, &(struct certificate_order){.names = "IP:127.0.0.1"});
        tls_world_await_reloads(tls, round + 1, 0);
        echo_world_await(&world);
        for (unsigned i = 0; i < 16; i++) {
            assert_echoed(&results[round][i], i, 1000);
            echo_result_fini(&results[round][i]);
        }
        idem_channel_close(channel);
    }
    echo_world_close(&world);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, tls_set_up, tls_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_wrong_with_files_and_options_is_named),
        TEST(addresses_go_with_options),
        TEST(the_password_opens_the_key_and_is_in_no_message),
        TEST(new_connections_get_the_new_certificate),
        TEST(a_bad_file_changes_nothing),
        TEST(reloads_under_load_lose_no_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
