/* TLS with real sockets and real certificates: who is let in, who is not and
 * why, what a broken or slow peer does. */
#include "tls_world.h"

#include "child.h"
#include "fake_clock.h"
#include "wire_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS INT64_C(1000000)

/* --- Who is let in --- */

static void
both_ends_know_each_other(void **state)
{
    struct tls_world *tls = *state;
    struct echo_options options =
        tls_world_echo(tls, &tls->server, &tls->client);
    struct echo_world world;
    struct echo_result result;

    tls->server.client_certificate = true;
    echo_world_open(&world, &options);
    result = echo_world_call(&world, 7, 100, NULL);
    assert_echoed(&result, 7, 100);
    assert_string_equal(result.peer, TLS_CLIENT);
    echo_world_close(&world);
}

static void
a_client_without_a_certificate_is_nobody(void **state)
{
    struct tls_world *tls = *state;
    struct echo_options options =
        tls_world_echo(tls, &tls->server, &tls->client);
    struct echo_world world;
    struct echo_result result;

    tls->client.certificate_file = tls->client.key_file = NULL;
    echo_world_open(&world, &options);
    result = echo_world_call(&world, 7, 100, NULL);
    assert_echoed(&result, 7, 100);
    assert_string_equal(result.peer, "");
    echo_world_close(&world);
}

struct named {
    const char *common_name, *names, *identity;
};

static void
the_identity_is_uri_then_dns_then_common_name(void **state)
{
    static const struct named cases[] = {
        {"cn", "DNS:d.test,URI:spiffe://b/t", "spiffe://b/t"},
        {"cn", "DNS:d.test", "d.test"},
        {"cn", "IP:10.0.0.1", "cn"},
        {"cn", NULL, "cn"},
        {"with a blank", NULL, ""},
    };
    struct tls_world *tls = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct echo_options options =
            tls_world_echo(tls, &tls->server, &tls->client);
        struct echo_world world;
        struct echo_result result;

        tls_world_issue_client(tls, &(struct certificate_order){
                                        .common_name = cases[i].common_name,
                                        .names = cases[i].names});
        echo_world_open(&world, &options);
        result = echo_world_call(&world, 1, 1, NULL);
        assert_echoed(&result, 1, 1);
        assert_string_equal(result.peer, cases[i].identity);
        echo_world_close(&world);
    }
}

static void
large_messages_and_many_calls_pass_whole(void **state)
{
    struct tls_world *tls = *state;
    struct echo_options options =
        tls_world_echo(tls, &tls->server, &tls->client);
    const struct idem_call_options patient = {.timeout_ms = 120000};
    static struct echo_result results[64];
    struct echo_world world;
    struct echo_result one;

    echo_world_open(&world, &options);
    one = echo_world_call(&world, 3, 1 << 20, &patient);
    assert_echoed(&one, 3, 1 << 20);
    for (unsigned i = 0; i < 64; i++)
        echo_world_start(&world, world.channel, echo_echo_async, i,
                         i % 2 ? 100 : 40000, &patient, &results[i]);
    echo_world_await(&world);
    for (unsigned i = 0; i < 64; i++) {
        assert_echoed(&results[i], i, i % 2 ? 100 : 40000);
        echo_result_fini(&results[i]);
    }
    echo_world_close(&world);
}

/* --- Who is not --- */

/* The call is turned away, never sent, and the message says why. */
static void
assert_refused(struct tls_world *tls, const char *why)
{
    struct echo_options options =
        tls_world_echo(tls, &tls->server, &tls->client);
    struct echo_world world;
    struct echo_result result;

    echo_world_open(&world, &options);
    result = echo_world_call(&world, 1, 1, NULL);
    assert_int_equal(result.status, IDEM_UNAVAILABLE);
    assert_int_equal(result.outcome.effect, IDEM_EFFECT_NOT_SENT);
    if (why && !strstr(result.outcome.message, why))
        print_error("\"%s\" is not in: %s\n", why, result.outcome.message);
    assert_true(!why || strstr(result.outcome.message, why));
    assert_int_equal(world.ran, 0);
    echo_world_close(&world);
}

static void
a_server_whose_certificate_is_over_is_refused(void **state)
{
    struct tls_world *tls = *state;

    tls_world_issue_server(tls, &(struct certificate_order){
                                    .names = "IP:127.0.0.1", .valid_days = -1});
    assert_refused(tls, "certificate has expired");
}

static void
a_server_of_another_name_is_refused(void **state)
{
    struct tls_world *tls = *state;

    tls->client.server_name = "ledger.test";
    assert_refused(tls, "hostname mismatch");
    tls->client.server_name = "10.0.0.1";
    assert_refused(tls, "IP address mismatch");
}

/* RFC 9525: only the SAN counts. */
static void
a_server_that_is_named_in_its_common_name_only_is_refused(void **state)
{
    struct tls_world *tls = *state;

    tls_world_issue_server(
        tls, &(struct certificate_order){.common_name = "pay.test",
                                         .names = "DNS:other.test"});
    tls->client.server_name = "pay.test";
    assert_refused(tls, "hostname mismatch");
}

static void
a_server_of_the_right_name_is_taken_at_any_address(void **state)
{
    struct tls_world *tls = *state;
    struct echo_options options =
        tls_world_echo(tls, &tls->server, &tls->client);
    struct echo_world world;
    struct echo_result result;

    tls->client.server_name = "pay.test";
    echo_world_open(&world, &options);
    result = echo_world_call(&world, 1, 1, NULL);
    assert_echoed(&result, 1, 1);
    echo_world_close(&world);
}

/* The client's authority for the server, or the server's for the client. */
static void
certificates_of_another_authority_are_refused(void **state)
{
    struct tls_world *tls = *state;
    struct authority *other = authority_new("the bank");
    char path[128];

    authority_write(other,
                    tempdir_file(&tls->dir, "other.pem", path, sizeof path));
    tls->client.authority_file = path;
    assert_refused(tls, "certificate");
    tls->client.authority_file = tls->authority_path;
    tls->server.authority_file = path;
    assert_refused(tls, NULL);
    authority_free(other);
}

static void
a_client_must_have_the_certificate_that_is_required(void **state)
{
    struct tls_world *tls = *state;

    tls->server.client_certificate = true;
    tls->client.certificate_file = tls->client.key_file = NULL;
    assert_refused(tls, NULL);
}

static void
a_client_whose_certificate_is_over_is_refused(void **state)
{
    struct tls_world *tls = *state;

    tls_world_issue_client(
        tls, &(struct certificate_order){.names = "URI:" TLS_CLIENT,
                                         .valid_days = -1});
    assert_refused(tls, NULL);
}

/* Opens a connection by the openssl program of that version; its exit. */
static int
say_hello_with(const struct echo_world *world, const struct tls_world *tls,
               const char *version)
{
    char command[1024];

    snprintf(command, sizeof command,
             "openssl s_client -connect %s -CAfile %s -cert %s -key %s %s "
             "-brief -verify_return_error </dev/null >/dev/null 2>&1",
             world->address + strlen("tls+tcp://"), tls->authority_path,
             tls->client_path, tls->client_key_path, version);
    return system(command);
}

static void
versions_below_the_least_are_refused(void **state)
{
    struct tls_world *tls = *state;
    struct echo_options options =
        tls_world_echo(tls, &tls->server, &tls->client);
    struct echo_world world;

    echo_world_open(&world, &options);
    assert_int_equal(say_hello_with(&world, tls, "-tls1_3"), 0);
    assert_int_equal(say_hello_with(&world, tls, "-tls1_2"), 0);
    assert_int_not_equal(
        say_hello_with(&world, tls, "-tls1_1 -cipher DEFAULT@SECLEVEL=0"), 0);
    echo_world_close(&world);

    tls->server.min_version = IDEM_TLS_1_3;
    echo_world_open(&world, &options);
    assert_int_equal(say_hello_with(&world, tls, "-tls1_3"), 0);
    assert_int_not_equal(say_hello_with(&world, tls, "-tls1_2"), 0);
    echo_world_close(&world);
}

static void
a_plain_client_gets_nothing_of_a_server_with_tls(void **state)
{
    struct tls_world *tls = *state;
    struct echo_options options =
        tls_world_echo(tls, &tls->server, &tls->client);
    struct idem_channel *channel;
    struct echo_world world;
    struct echo_result result;

    echo_world_open(&world, &options);
    idem_channel_close(world.channel);
    assert_int_equal(
        idem_channel_new(&channel, world.address + strlen("tls+"), NULL, NULL),
        IDEM_OK);
    world.channel = channel;
    result = echo_world_call(&world, 1, 1, NULL);
    assert_ended(&result, IDEM_UNAVAILABLE, IDEM_EFFECT_NOT_SENT);
    echo_world_close(&world);
}

/* --- Peers that do harm --- */

/* With TLS the server's port is one of tcp. */
static void
connect_raw(struct wire *wire, const struct echo_world *world)
{
    wire_connect(wire, world->address + strlen("tls+"));
}

static void
garbage_hurts_only_its_sender(void **state)
{
    struct tls_world *tls = *state;
    struct echo_options options =
        tls_world_echo(tls, &tls->server, &tls->client);
    static const char http[] = "GET / HTTP/1.1\r\n\r\n";
    /* A ClientHello's record header that promises 16 KiB, and zeroes. */
    uint8_t half[512] = {0x16, 0x03, 0x01, 0x40, 0x00};
    struct wire junk[3];
    struct echo_world world;
    struct echo_result result;

    echo_world_open(&world, &options);
    for (unsigned i = 0; i < 3; i++)
        connect_raw(&junk[i], &world);
    wire_write(&junk[0], http, sizeof http);
    wire_write(&junk[1], half, sizeof half);
    result = echo_world_call(&world, 1, 1, NULL);
    assert_echoed(&result, 1, 1);
    wire_await_close(&junk[0]);
    for (unsigned i = 0; i < 3; i++)
        wire_close(&junk[i]);
    echo_world_close(&world);
}

/* B105 with TLS: a byte a second of a good ClientHello, and it is cut when the
 * time for a hello is over, while others are served. */
static void
a_handshake_has_its_time(void **state)
{
    struct tls_world *tls = *state;
    struct echo_options options =
        tls_world_echo(tls, &tls->server, &tls->client);
    static const uint8_t hello[] = {0x16, 0x03, 0x01, 0x02, 0x00};
    struct fake_clock clock;
    struct wire slow;
    struct echo_world world;
    struct echo_result result;

    fake_clock_init(&clock);
    options.server.clock = &clock.clock;
    echo_world_open(&world, &options);
    connect_raw(&slow, &world);
    for (unsigned i = 0; i < sizeof hello; i++) {
        wire_write(&slow, &hello[i], 1);
        fake_clock_advance_ns(&clock, 1000 * NS_PER_MS);
        result = echo_world_call(&world, i, 1, NULL);
        assert_echoed(&result, i, 1);
    }
    fake_clock_advance_ns(&clock, 10000 * NS_PER_MS);
    wire_await_close(&slow);
    result = echo_world_call(&world, 9, 1, NULL);
    assert_echoed(&result, 9, 1);
    wire_close(&slow);
    echo_world_close(&world);
    fake_clock_fini(&clock);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, tls_set_up, tls_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(both_ends_know_each_other),
        TEST(a_client_without_a_certificate_is_nobody),
        TEST(the_identity_is_uri_then_dns_then_common_name),
        TEST(large_messages_and_many_calls_pass_whole),
        TEST(a_server_whose_certificate_is_over_is_refused),
        TEST(a_server_of_another_name_is_refused),
        TEST(a_server_that_is_named_in_its_common_name_only_is_refused),
        TEST(a_server_of_the_right_name_is_taken_at_any_address),
        TEST(certificates_of_another_authority_are_refused),
        TEST(a_client_must_have_the_certificate_that_is_required),
        TEST(a_client_whose_certificate_is_over_is_refused),
        TEST(versions_below_the_least_are_refused),
        TEST(a_plain_client_gets_nothing_of_a_server_with_tls),
        TEST(garbage_hurts_only_its_sender),
        TEST(a_handshake_has_its_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
