/* Who calls and who may: tokens from a file, by signature, by the author's own
 * function, by certificate; what each may call; files that change. */
#include "vault_world.h"

#include "certificates.h"
#include "files.h"
#include "signer.h"

#include <idem/reason.h>
#include <idem/sqlite.h>

#include <idem/v1/health.idem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- Sources --- */

static void
a_token_of_the_file_proves_who_calls(void **state)
{
    struct vault_world *world = *state;
    struct idem_channel *channel;
    struct idem_outcome outcome;

    vault_world_open_with_tokens(world);
    channel = vault_world_channel(world, NULL);
    assert_who(channel, TILL_TOKEN, "svc:till", "");
    assert_who(channel, CLERK_TOKEN, "svc:clerk", "keeper,night");
    outcome = world_knock(channel, "another-token");
    assert_told(&outcome, IDEM_UNAUTHENTICATED, IDEM_TOKEN_UNKNOWN);
    assert_int_equal(outcome.effect, IDEM_EFFECT_REFUSED);
    outcome = world_knock(channel, "two words");
    assert_told(&outcome, IDEM_UNAUTHENTICATED, IDEM_TOKEN_MALFORMED);
    outcome = world_knock(channel, "");
    assert_told(&outcome, IDEM_UNAUTHENTICATED, IDEM_TOKEN_MALFORMED);
    idem_channel_close(channel);
}

static void
a_signed_token_proves_who_calls(void **state)
{
    struct vault_world *world = *state;
    const struct idem_jwt_options jwt = {
        .keys_file = world->keys, .issuer = "bank", .audience = "vault"};
    struct idem_auth_options auth = {.jwt = &jwt};
    struct signer *signer = signer_p256(), *other = signer_p256();
    char *jwk = signer_jwk(signer, "k", NULL), set[1024], claims[256];
    struct idem_channel *channel;
    struct idem_outcome outcome;
    char *token, *forged;

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
    assert_who(channel, token, "anna", "keeper");
    outcome = world_put(channel, token, NULL, NULL);
    assert_told(&outcome, IDEM_OK, "");
    outcome = world_put(channel, forged, NULL, NULL);
    assert_told(&outcome, IDEM_UNAUTHENTICATED, IDEM_TOKEN_SIGNATURE);
    free(jwk);
    free(token);
    free(forged);
    signer_free(signer);
    signer_free(other);
    idem_channel_close(channel);
}

static void
the_authors_own_function_is_asked_last(void **state)
{
    struct vault_world *world = *state;
    char mine[] = "mine";
    struct idem_auth_options auth = {.token_file = world->tokens,
                                     .check = vault_check_friend,
                                     .check_with = mine};
    struct idem_channel *channel;
    struct idem_outcome outcome;

    vault_world_open(world, VAULT_ADDRESS, &auth, NULL);
    channel = vault_world_channel(world, NULL);
    assert_who(channel, "friend-bert", "bert", "");
    assert_who(channel, TILL_TOKEN, "svc:till", "");
    outcome = world_knock(channel, "friend-away");
    assert_told(&outcome, IDEM_UNAVAILABLE, "");
    outcome = world_knock(channel, "foe-carl");
    assert_told(&outcome, IDEM_UNAUTHENTICATED, IDEM_TOKEN_UNKNOWN);
    idem_channel_close(channel);
}

struct tls_files {
    char authority[128], server[128], server_key[128], client[128],
        client_key[128];
    struct idem_tls_options on_server, on_client;
};

static void
issue(struct vault_world *world, struct tls_files *files)
{
    struct authority *authority = authority_new("the bank");

#define IN(name) tempdir_file(&world->dir, #name, files->name, 128)
    authority_write(authority, IN(authority));
    authority_issue(authority,
                    &(struct certificate_order){.names = "IP:127.0.0.1"},
                    IN(server), IN(server_key));
    authority_issue(
        authority,
        &(struct certificate_order){.names = "URI:spiffe://bank/teller"},
        IN(client), IN(client_key));
#undef IN
    files->on_server =
        (struct idem_tls_options){.certificate_file = files->server,
                                  .key_file = files->server_key,
                                  .authority_file = files->authority};
    files->on_client =
        (struct idem_tls_options){.certificate_file = files->client,
                                  .key_file = files->client_key,
                                  .authority_file = files->authority};
    authority_free(authority);
}

/* A token goes before the certificate of its connection. */
static void
a_certificate_proves_who_calls_without_a_token(void **state)
{
    struct vault_world *world = *state;
    struct idem_auth_options auth = {.token_file = world->tokens};
    struct idem_channel_options options = {0};
    struct tls_files files;
    struct idem_channel *channel;
    struct idem_outcome outcome;

    issue(world, &files);
    vault_world_open(world, "tls+" VAULT_ADDRESS, &auth, &files.on_server);
    options.tls = &files.on_client;
    channel = vault_world_channel(world, &options);
    assert_who(channel, NULL, "spiffe://bank/teller", "");
    outcome = world_put(channel, NULL, NULL, NULL);
    assert_told(&outcome, IDEM_OK, "");
    assert_who(channel, GUEST_TOKEN, "svc:guest", "");
    outcome = world_put(channel, GUEST_TOKEN, NULL, NULL);
    assert_told(&outcome, IDEM_PERMISSION_DENIED, IDEM_NOT_ALLOWED);
    idem_channel_close(channel);
}

/* --- What each may call --- */

static void
rules_of_the_proto_let_in_and_turn_away(void **state)
{
    struct vault_world *world = *state;
    struct idem_channel *channel;
    struct idem_outcome outcome;
    vault_who_am_i_request request = VAULT_WHO_AM_I_REQUEST_INIT;

    vault_world_open_with_tokens(world);
    channel = vault_world_channel(world, NULL);
    outcome = world_knock(channel, NULL);
    assert_told(&outcome, IDEM_OK, "");
    assert_int_equal(vault_who_am_i(channel, &request, NULL, NULL, &outcome),
                     IDEM_UNAUTHENTICATED);
    assert_told(&outcome, IDEM_UNAUTHENTICATED, IDEM_TOKEN_MISSING);
    outcome = world_put(channel, NULL, NULL, NULL);
    assert_told(&outcome, IDEM_UNAUTHENTICATED, IDEM_TOKEN_MISSING);
    assert_int_equal(outcome.effect, IDEM_EFFECT_REFUSED);
    assert_int_equal(outcome.attempts, 1);
    outcome = world_put(channel, TILL_TOKEN, NULL, NULL);
    assert_told(&outcome, IDEM_OK, "");
    outcome = world_put(channel, CLERK_TOKEN, NULL, NULL);
    assert_told(&outcome, IDEM_OK, "");
    outcome = world_put(channel, GUEST_TOKEN, NULL, NULL);
    assert_told(&outcome, IDEM_PERMISSION_DENIED, IDEM_NOT_ALLOWED);
    assert_int_equal(outcome.effect, IDEM_EFFECT_REFUSED);
    assert_non_null(strstr(outcome.message, "svc:guest may not call"));
    idem_channel_close(channel);
}

/* Neither the key nor the answer is spent by who is turned away. */
static void
who_is_turned_away_leaves_no_record(void **state)
{
    struct vault_world *world = *state;
    struct idem_channel *channel;
    struct idem_outcome outcome;

    vault_world_open_with_tokens(world);
    channel = vault_world_channel(world, NULL);
    outcome = world_put(channel, NULL, "k", NULL);
    assert_int_equal(outcome.status, IDEM_UNAUTHENTICATED);
    outcome = world_put(channel, "another-token", "k", NULL);
    assert_int_equal(outcome.status, IDEM_UNAUTHENTICATED);
    outcome = world_put(channel, GUEST_TOKEN, "k", NULL);
    assert_int_equal(outcome.status, IDEM_PERMISSION_DENIED);
    assert_int_equal(vault_records(world), 0);
    assert_int_equal(world->ran, 0);
    outcome = world_put(channel, TILL_TOKEN, "k", NULL);
    assert_int_equal(outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_equal(vault_records(world), 1);
    idem_channel_close(channel);
}

/* Not by metadata, nor by what is recorded: I6. */
static void
the_same_key_of_two_is_two_keys(void **state)
{
    struct vault_world *world = *state;
    struct idem_channel *channel;
    struct idem_outcome outcome;
    int64_t one, other, again;

    vault_world_open_with_tokens(world);
    channel = vault_world_channel(world, NULL);
    outcome = world_put(channel, TILL_TOKEN, "k", &one);
    assert_int_equal(outcome.effect, IDEM_EFFECT_COMMITTED);
    outcome = world_put(channel, CLERK_TOKEN, "k", &other);
    assert_int_equal(outcome.effect, IDEM_EFFECT_COMMITTED);
    assert_int_not_equal(one, other);
    outcome = world_put(channel, TILL_TOKEN, "k", &again);
    assert_int_equal(outcome.effect, IDEM_EFFECT_REPLAYED);
    assert_int_equal(again, one);
    assert_int_equal(vault_records(world), 2);
    /* and who may not is not given what is recorded either */
    outcome = world_put(channel, GUEST_TOKEN, "k", NULL);
    assert_int_equal(outcome.status, IDEM_PERMISSION_DENIED);
    idem_channel_close(channel);
}

static void
rules_that_nobody_enforces_are_refused_at_the_start(void **state)
{
    static const struct vault_handlers none = {0};
    struct vault_world *world = *state;
    const struct idem_sqlite_options books = {.path = world->books};
    struct idem_interceptor *once;
    struct idem_store *store;
    struct idem_server *server;
    struct idem_error err;

    assert_int_equal(idem_server_new(&server, NULL, &err), IDEM_OK);
    assert_int_equal(idem_sqlite_open(&store, &books, &err), IDEM_OK);
    assert_int_equal(idem_once_new(&once, store, NULL, &err), IDEM_OK);
    assert_int_equal(idem_server_add(server, once, &err), IDEM_OK);
    assert_int_equal(vault_register(server, &none, NULL, &err), IDEM_OK);
    assert_int_equal(idem_server_start(server, &err), IDEM_FAILED_PRECONDITION);
    assert_non_null(strstr(err.message, "add idem_allow_new"));
    idem_server_free(server);
}

/* --- Files that change --- */

static void
health_is_told_to_whoever_asks(void **state)
{
    const idem_health_health_check_request request =
        IDEM_HEALTH_HEALTH_CHECK_REQUEST_INIT;
    idem_health_health_check_response *reply = NULL;
    struct vault_world *world = *state;
    struct idem_channel *channel;

    vault_world_open_with_tokens(world);
    channel = vault_world_channel(world, NULL);
    assert_int_equal(idem_health_check(channel, &request, &reply, NULL, NULL),
                     IDEM_OK);
    assert_int_equal(reply->status,
                     IDEM_HEALTH_HEALTH_CHECK_RESPONSE_SERVING_STATUS_SERVING);
    idem_health_health_check_response_free(reply);
    idem_channel_close(channel);
}

static void
roles_change_with_the_token_file(void **state)
{
    struct vault_world *world = *state;
    struct idem_channel *channel;
    struct idem_outcome outcome;

    vault_world_open_with_tokens(world);
    channel = vault_world_channel(world, NULL);
    outcome = world_put(channel, CLERK_TOKEN, NULL, NULL);
    assert_told(&outcome, IDEM_OK, "");
    vault_world_write_tokens(world, "night");
    vault_world_await(world, 1, 0);
    outcome = world_put(channel, CLERK_TOKEN, NULL, NULL);
    assert_told(&outcome, IDEM_PERMISSION_DENIED, IDEM_NOT_ALLOWED);
    file_put(world->tokens, "half a line\n");
    vault_world_await(world, 1, 1);
    outcome = world_put(channel, TILL_TOKEN, NULL, NULL);
    assert_told(&outcome, IDEM_OK, "");
    file_put(world->tokens, "");
    vault_world_await(world, 2, 1);
    outcome = world_put(channel, TILL_TOKEN, NULL, NULL);
    assert_told(&outcome, IDEM_UNAUTHENTICATED, IDEM_TOKEN_UNKNOWN);
    idem_channel_close(channel);
}

static void
rules_change_with_their_file(void **state)
{
    struct vault_world *world = *state;
    struct idem_auth_options auth = {.token_file = world->tokens,
                                     .rules_file = world->rules};
    struct idem_channel *channel;
    struct idem_outcome outcome;

    file_put(world->rules, "vault.v1.Vault/Put svc:guest\n");
    vault_world_open(world, VAULT_ADDRESS, &auth, NULL);
    channel = vault_world_channel(world, NULL);
    outcome = world_put(channel, GUEST_TOKEN, NULL, NULL);
    assert_told(&outcome, IDEM_OK, "");
    outcome = world_put(channel, TILL_TOKEN, NULL, NULL);
    assert_told(&outcome, IDEM_PERMISSION_DENIED, IDEM_NOT_ALLOWED);
    file_put(world->rules, "vault.v1.Vault nobody\n");
    vault_world_await(world, 1, 0);
    outcome = world_knock(channel, TILL_TOKEN);
    assert_told(&outcome, IDEM_PERMISSION_DENIED, IDEM_NOT_ALLOWED);
    outcome = world_knock(channel, NULL);
    assert_told(&outcome, IDEM_UNAUTHENTICATED, IDEM_TOKEN_MISSING);
    file_put(world->rules, "");
    vault_world_await(world, 2, 0);
    outcome = world_put(channel, TILL_TOKEN, NULL, NULL);
    assert_told(&outcome, IDEM_OK, "");
    idem_channel_close(channel);
}

int
main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, vault_set_up, vault_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_token_of_the_file_proves_who_calls),
        TEST(a_signed_token_proves_who_calls),
        TEST(the_authors_own_function_is_asked_last),
        TEST(a_certificate_proves_who_calls_without_a_token),
        TEST(rules_of_the_proto_let_in_and_turn_away),
        TEST(who_is_turned_away_leaves_no_record),
        TEST(the_same_key_of_two_is_two_keys),
        TEST(rules_that_nobody_enforces_are_refused_at_the_start),
        TEST(health_is_told_to_whoever_asks),
        TEST(roles_change_with_the_token_file),
        TEST(rules_change_with_their_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
