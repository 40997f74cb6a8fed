/* Who calls a stream: it is asked when the stream is opened, and that stays for
 * as long as it lives. */
#include "vault_world.h"

#include "files.h"
#include "signer.h"

#include <idem/reason.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct vault_listen_stream *
open_listen(struct idem_channel *channel, const char *token)
{
    struct vault_shown shown;

    return vault_listen_open(channel, vault_show(&shown, token, NULL));
}

static void
ask(struct vault_listen_stream *stream)
{
    const vault_who_am_i_request request = VAULT_WHO_AM_I_REQUEST_INIT;

    assert_int_equal(vault_listen_write(stream, &request), IDEM_OK);
}

static void
assert_told_who(struct vault_listen_stream *stream, const char *identity,
                const char *roles)
{
    const vault_who_am_i_reply *who = vault_listen_next(stream);

    assert_non_null(who);
    assert_string_equal(who->identity, identity);
    assert_string_equal(who->tenant, identity);
    assert_string_equal(who->roles, roles);
    assert_string_equal(who->metadata, "");
}

static void
assert_refused(struct idem_channel *channel, const char *token,
               enum idem_status status, const char *reason)
{
    struct vault_listen_stream *stream = open_listen(channel, token);
    struct idem_outcome outcome;

    assert_null(vault_listen_next(stream));
    vault_listen_finish(stream, &outcome);
    assert_told(&outcome, status, reason);
    assert_int_equal(outcome.effect, IDEM_EFFECT_REFUSED);
}

static void
a_streams_handler_sees_who_calls(void **state)
{
    struct vault_world *world = *state;
    struct vault_listen_stream *stream;
    struct idem_channel *channel;

    vault_world_open_with_tokens(world);
    channel = vault_world_channel(world, NULL);
    stream = open_listen(channel, CLERK_TOKEN);
    for (unsigned i = 0; i < 3; i++) {
        ask(stream);
        assert_told_who(stream, "svc:clerk", "keeper,night");
    }
    assert_int_equal(vault_listen_finish(stream, NULL), IDEM_OK);
    idem_channel_close(channel);
}

static void
who_may_not_is_turned_away_before_the_handler(void **state)
{
    struct vault_world *world = *state;
    struct idem_channel *channel;

    vault_world_open_with_tokens(world);
    channel = vault_world_channel(world, NULL);
    assert_refused(channel, TILL_TOKEN, IDEM_PERMISSION_DENIED,
                   IDEM_NOT_ALLOWED);
    assert_refused(channel, NULL, IDEM_UNAUTHENTICATED, IDEM_TOKEN_MISSING);
    assert_refused(channel, "another-token", IDEM_UNAUTHENTICATED,
                   IDEM_TOKEN_UNKNOWN);
    assert_int_equal(atomic_load(&world->listened), 0);
    idem_channel_close(channel);
}

static void
a_stream_goes_on_when_its_token_ends(void **state)
{
    struct vault_world *world = *state;
    struct vault_listen_stream *stream;
    struct idem_channel *channel;

    vault_world_open_with_tokens(world);
    channel = vault_world_channel(world, NULL);
    stream = open_listen(channel, CLERK_TOKEN);
    ask(stream);
    assert_told_who(stream, "svc:clerk", "keeper,night");
    vault_world_write_tokens(world, "night");
    vault_world_await(world, 1, 0);
    ask(stream);
    assert_told_who(stream, "svc:clerk", "keeper,night");
    assert_refused(channel, CLERK_TOKEN, IDEM_PERMISSION_DENIED,
                   IDEM_NOT_ALLOWED);
    file_put(world->tokens, "");
    vault_world_await(world, 2, 0);
    ask(stream);
    assert_told_who(stream, "svc:clerk", "keeper,night");
    assert_refused(channel, CLERK_TOKEN, IDEM_UNAUTHENTICATED,
                   IDEM_TOKEN_UNKNOWN);
    assert_int_equal(vault_listen_finish(stream, NULL), IDEM_OK);
    idem_channel_close(channel);
}

/* Its signature is not checked yet when its messages come. */
static void
messages_wait_for_the_check_of_a_signed_token(void **state)
{
    struct vault_world *world = *state;
    const struct idem_jwt_options jwt = {
        .keys_file = world->keys, .issuer = "bank", .audience = "vault"};
    struct idem_auth_options auth = {.jwt = &jwt};
    struct signer *signer = signer_p256(), *other = signer_p256();
    char *jwk = signer_jwk(signer, "k", NULL), set[1024], claims[256];
    char *token, *forged;
    struct vault_listen_stream *stream;
    struct idem_channel *channel;

    snprintf(set, sizeof set, "{\"keys\":[%s]}", jwk);
    file_put(world->keys, set);
    vault_world_open(world, VAULT_ADDRESS, &auth, NULL);
    channel = vault_world_channel(world, NULL);
    snprintf(claims, sizeof claims,
             "{\"iss\":\"bank\",\"aud\":\"vault\",\"sub\":\"anna\","
             "\"roles\":[\"keeper\"],\"exp\":%lld}",
             (long long)time(NULL) + 600);
    token = signer_sign(signer, "{\"alg\":\"ES256\",\"kid\":\"k\"}", claims);
    forged = signer_sign(other, "{\"alg\":\"ES256\",\"kid\":\"k\"}", claims);
    stream = open_listen(channel, token);
    for (unsigned i = 0; i < 5; i++)
        ask(stream);
    for (unsigned i = 0; i < 5; i++)
        assert_told_who(stream, "anna", "keeper");
    assert_int_equal(vault_listen_finish(stream, NULL), IDEM_OK);
    assert_refused(channel, forged, IDEM_UNAUTHENTICATED, IDEM_TOKEN_SIGNATURE);
    free(jwk);
    free(token);
    free(forged);
    signer_free(signer);
    signer_free(other);
    idem_channel_close(channel);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, vault_set_up, vault_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_streams_handler_sees_who_calls),
        TEST(who_may_not_is_turned_away_before_the_handler),
        TEST(a_stream_goes_on_when_its_token_ends),
        TEST(messages_wait_for_the_check_of_a_signed_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
