/* Two sessions, their bytes carried by hand: who resumes what, and whose
 * certificate does not count any more. */
#include "support.h"

#include "certificates.h"
#include "tempdir.h"
#include "tls_files.h"
#include "tls_session.h"

#include <stdlib.h>
#include <string.h>

struct ends {
    struct tempdir dir;
    struct authority *authority;
    char trust[128], server_file[128], server_key[128], client_file[128],
        client_key[128], revoked[128];
    struct idem_tls_options server, client;
    struct ssl_ctx_st *on_server, *on_client;
};

static struct ssl_ctx_st *
read_context(bool server, const struct idem_tls_options *options)
{
    struct ssl_ctx_st *context;
    struct idem_error err;

    if (tls_context_read(&context, server, options, &err) != IDEM_OK)
        fail_msg("%s", err.message);
    return context;
}

static int
set_up(void **state)
{
    struct ends *ends = calloc(1, sizeof *ends);

    assert_non_null(ends);
    tempdir_open(&ends->dir);
    ends->authority = authority_new("the bank");
#define IN(name) tempdir_file(&ends->dir, #name, ends->name, 128)
    authority_write(ends->authority, IN(trust));
    authority_issue(
        ends->authority,
        &(struct certificate_order){.names = "DNS:pay.test,DNS:other.test"},
        IN(server_file), IN(server_key));
    authority_issue(ends->authority,
                    &(struct certificate_order){.names = "DNS:teller"},
                    IN(client_file), IN(client_key));
    IN(revoked);
#undef IN
    ends->server =
        (struct idem_tls_options){.certificate_file = ends->server_file,
                                  .key_file = ends->server_key,
                                  .authority_file = ends->trust,
                                  .client_certificate = true};
    ends->client =
        (struct idem_tls_options){.certificate_file = ends->client_file,
                                  .key_file = ends->client_key,
                                  .authority_file = ends->trust};
    ends->on_server = read_context(true, &ends->server);
    ends->on_client = read_context(false, &ends->client);
    *state = ends;
    return 0;
}

static int
tear_down(void **state)
{
    struct ends *ends = *state;

    tls_context_free(ends->on_server);
    tls_context_free(ends->on_client);
    authority_free(ends->authority);
    tempdir_close(&ends->dir);
    free(ends);
    return 0;
}

/* All that one has for the other. False: nothing. */
static bool
carry(struct tls_session *from, struct tls_session *to)
{
    struct idem_bytes bytes = tls_session_take_off(from);
    size_t at = 0, room;

    while (at < bytes.size) {
        uint8_t *space = tls_session_space(to, &room);
        size_t some = bytes.size - at < room ? bytes.size - at : room;

        assert_non_null(space);
        memcpy(space, bytes.data + at, some);
        tls_session_filled(to, some);
        at += some;
        if (at < bytes.size)
            (void)tls_session_shake(to);
    }
    tls_session_landed(from);
    return at > 0;
}

struct shaken {
    bool resumed; /* both say so */
    bool broken;
    char why[160];
    char identity[160]; /* of the client, as the server knows it */
};

static void
note_broken(struct shaken *shaken, enum tls_step step,
            const struct tls_session *session)
{
    if (step != TLS_BROKEN || shaken->broken)
        return;
    shaken->broken = true;
    strncpy(shaken->why, tls_session_trouble(session), sizeof shaken->why - 1);
}

/* The handshake, and what the server says after it: its ticket. */
static struct shaken
shake(struct ends *ends, const char *host)
{
    struct tls_session *server = tls_session_new(ends->on_server, NULL);
    struct tls_session *client = tls_session_new(ends->on_client, host);
    enum tls_step on_server = TLS_MORE, on_client = TLS_MORE;
    struct shaken shaken = {0};
    uint8_t none[1];
    size_t size;

    do {
        if (on_client == TLS_MORE)
            on_client = tls_session_shake(client);
        note_broken(&shaken, on_client, client);
        if (!carry(client, server) && on_client == TLS_DONE)
            break;
        if (on_server == TLS_MORE)
            on_server = tls_session_shake(server);
        note_broken(&shaken, on_server, server);
        carry(server, client);
    } while (!shaken.broken &&
             (on_client == TLS_MORE || on_server == TLS_MORE));
    if (!shaken.broken) {
        assert_int_equal(tls_session_read(client, none, 1, &size), TLS_MORE);
        shaken.resumed = tls_session_resumed(client);
        assert_int_equal(tls_session_resumed(server), shaken.resumed);
        strncpy(shaken.identity, tls_session_identity(server),
                sizeof shaken.identity - 1);
    }
    tls_session_free(client);
    tls_session_free(server);
    return shaken;
}

static void
assert_shaken(struct ends *ends, const char *host, bool resumed)
{
    struct shaken shaken = shake(ends, host);

    if (shaken.broken)
        fail_msg("%s", shaken.why);
    assert_int_equal(shaken.resumed, resumed);
    assert_string_equal(shaken.identity, "teller");
}

static void
the_next_connection_resumes_and_knows_its_peer(void **state)
{
    struct ends *ends = *state;

    assert_shaken(ends, "pay.test", false);
    assert_shaken(ends, "pay.test", true);
    assert_shaken(ends, "pay.test", true);
}

static void
a_ticket_is_for_the_host_that_gave_it(void **state)
{
    struct ends *ends = *state;

    assert_shaken(ends, "pay.test", false);
    assert_shaken(ends, "other.test", false);
    assert_shaken(ends, "pay.test", true);
    assert_shaken(ends, "other.test", true);
}

/* What was replaced counts at once, also for who was here before. */
static void
files_that_are_read_again_end_all_tickets(void **state)
{
    struct ends *ends = *state;

    assert_shaken(ends, "pay.test", false);
    tls_context_free(ends->on_server);
    ends->on_server = read_context(true, &ends->server);
    assert_shaken(ends, "pay.test", false);
    assert_shaken(ends, "pay.test", true);
    tls_context_free(ends->on_client);
    ends->on_client = read_context(false, &ends->client);
    assert_shaken(ends, "pay.test", false);
}

static void
a_client_whose_certificate_is_revoked_is_refused(void **state)
{
    struct ends *ends = *state;
    struct shaken shaken;

    assert_shaken(ends, "pay.test", false);
    ends->server.revoked_file = ends->revoked;
    authority_revoke(ends->authority, 0, false, ends->revoked);
    tls_context_free(ends->on_server);
    ends->on_server = read_context(true, &ends->server);
    assert_shaken(ends, "pay.test", false);
    authority_revoke(ends->authority, 1, false, ends->revoked);
    tls_context_free(ends->on_server);
    ends->on_server = read_context(true, &ends->server);
    shaken = shake(ends, "pay.test");
    assert_true(shaken.broken);
    assert_non_null(strstr(shaken.why, "certificate revoked"));
}

static void
a_server_whose_certificate_is_revoked_is_refused(void **state)
{
    struct ends *ends = *state;
    struct shaken shaken;

    ends->client.revoked_file = ends->revoked;
    authority_revoke(ends->authority, 2, false, ends->revoked);
    tls_context_free(ends->on_client);
    ends->on_client = read_context(false, &ends->client);
    shaken = shake(ends, "pay.test");
    assert_true(shaken.broken);
    assert_non_null(strstr(shaken.why, "certificate revoked"));
}

/* Who cannot know whether it counts does not take it. */
static void
a_list_that_is_over_or_anothers_lets_nobody_in(void **state)
{
    struct ends *ends = *state;
    struct authority *other = authority_new("another bank");
    struct shaken shaken;

    ends->server.revoked_file = ends->revoked;
    authority_revoke(ends->authority, 0, true, ends->revoked);
    tls_context_free(ends->on_server);
    ends->on_server = read_context(true, &ends->server);
    shaken = shake(ends, "pay.test");
    assert_non_null(strstr(shaken.why, "CRL has expired"));
    authority_revoke(other, 0, false, ends->revoked);
    tls_context_free(ends->on_server);
    ends->on_server = read_context(true, &ends->server);
    shaken = shake(ends, "pay.test");
    assert_non_null(strstr(shaken.why, "unable to get certificate CRL"));
    authority_free(other);
}

static void
a_list_that_is_none_is_named(void **state)
{
    struct ends *ends = *state;
    struct ssl_ctx_st *context;
    struct idem_error err;

    ends->server.revoked_file = ends->server_key;
    assert_int_equal(tls_context_read(&context, true, &ends->server, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "revocation list "));
    assert_non_null(strstr(err.message, "server_key"));
    ends->server.authority_file = NULL;
    ends->server.client_certificate = false;
    assert_int_equal(tls_options_check(true, &ends->server, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "revoked_file needs an authority_file");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_next_connection_resumes_and_knows_its_peer),
        TEST(a_ticket_is_for_the_host_that_gave_it),
        TEST(files_that_are_read_again_end_all_tickets),
        TEST(a_client_whose_certificate_is_revoked_is_refused),
        TEST(a_server_whose_certificate_is_revoked_is_refused),
        TEST(a_list_that_is_over_or_anothers_lets_nobody_in),
        TEST(a_list_that_is_none_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
