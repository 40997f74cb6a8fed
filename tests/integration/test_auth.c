/* Who calls and who may: tokens from a file, by signature, by the author's own
 * function, by certificate; what each may call; files that change; where a
 * token goes and where it does not. */
#include "vault_world.h"

#include "audit.h"
#include "certificates.h"
#include "files.h"
#include "signer.h"

#include <idem/digest.h>
#include <idem/reason.h>
#include <idem/sqlite.h>

#include <idem/v1/health.idem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TILL_TOKEN "till-token"
#define CLERK_TOKEN "clerk-token"
#define GUEST_TOKEN "guest-token"

#define ADDRESS "tcp://127.0.0.1:0"

/* "identity sha256:… roles" */
static void
add_line(char *text, size_t room, const char *identity, const char *token,
         const char *roles)
{
    uint8_t hash[IDEM_SHA256_SIZE];
    size_t used = strlen(text);

    idem_sha256_of(idem_bytes_of(token), hash);
    used += (size_t)snprintf(text + used, room - used, "%s sha256:", identity);
    for (unsigned i = 0; i < sizeof hash; i++)
        used += (size_t)snprintf(text + used, room - used, "%02x", hash[i]);
    snprintf(text + used, room - used, " %s\n", roles);
}

static void
write_tokens(const struct vault_world *world, const char *clerks_roles)
{
    char text[1024] = "";

    add_line(text, sizeof text, "svc:till", TILL_TOKEN, "");
    add_line(text, sizeof text, "svc:clerk", CLERK_TOKEN, clerks_roles);
    add_line(text, sizeof text, "svc:guest", GUEST_TOKEN, "");
    file_put(world->tokens, text);
}

static int
set_up(void **state)
{
    struct vault_world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    vault_world_init(world);
    write_tokens(world, "keeper,night");
    *state = world;
    return 0;
}

static int
tear_down(void **state)
{
    vault_world_fini(*state);
    free(*state);
    return 0;
}

static void
open_with_tokens(struct vault_world *world)
{
    struct idem_auth_options auth = {.token_file = world->tokens};

    vault_world_open(world, ADDRESS, &auth, NULL);
}

/* --- Sources --- */

static void
assert_who(struct idem_channel *channel, const char *token,
           const char *identity, const char *roles)
{
    vault_who_am_i_reply *who = world_who(channel, token);

    assert_string_equal(who->identity, identity);
    assert_string_equal(who->tenant, identity);
    assert_string_equal(who->roles, roles);
    vault_who_am_i_reply_free(who);
}

static void
a_token_of_the_file_proves_who_calls(void **state)
{
    struct vault_world *world = *state;
    struct idem_channel *channel;
    struct idem_outcome outcome;

    open_with_tokens(world);
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
    vault_world_open(world, ADDRESS, &auth, NULL);
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

/* Knows "friend-…" by what follows. */
static enum idem_status
check_friend(void *with, struct idem_call *call, struct idem_bytes token,
             struct idem_principal *principal, struct idem_error *err)
{
    static const char prefix[] = "friend-";
    struct idem_bytes name;

    assert_string_equal(with, "mine");
    if (token.size < sizeof prefix ||
        memcmp(token.data, prefix, sizeof prefix - 1) != 0)
        return IDEM_NOT_FOUND;
    name = (struct idem_bytes){token.data + sizeof prefix - 1,
                               token.size - (sizeof prefix - 1)};
    if (idem_bytes_equal(name, idem_bytes_of("away")))
        return idem_fail(err, IDEM_UNAVAILABLE, "nobody to ask");
    principal->identity =
        (struct idem_bytes){idem_arena_copy(call->arena, name), name.size};
    return IDEM_OK;
}

static void
the_authors_own_function_is_asked_last(void **state)
{
    struct vault_world *world = *state;
    char mine[] = "mine";
    struct idem_auth_options auth = {
        .token_file = world->tokens, .check = check_friend, .check_with = mine};
    struct idem_channel *channel;
    struct idem_outcome outcome;

    vault_world_open(world, ADDRESS, &auth, NULL);
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
    vault_world_open(world, "tls+" ADDRESS, &auth, &files.on_server);
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

    open_with_tokens(world);
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

    open_with_tokens(world);
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

    open_with_tokens(world);
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

    open_with_tokens(world);
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

    open_with_tokens(world);
    channel = vault_world_channel(world, NULL);
    outcome = world_put(channel, CLERK_TOKEN, NULL, NULL);
    assert_told(&outcome, IDEM_OK, "");
    write_tokens(world, "night");
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
    vault_world_open(world, ADDRESS, &auth, NULL);
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

/* --- The client's --- */

static void
the_clients_token_is_its_files_and_read_again(void **state)
{
    struct vault_world *world = *state;
    char path[128];
    const struct idem_token_options token = {
        .file = tempdir_file(&world->dir, "token", path, sizeof path)};
    const struct idem_channel_options options = {.token = &token};
    struct idem_channel *channel;

    file_put(path, TILL_TOKEN "\n");
    open_with_tokens(world);
    channel = vault_world_channel(world, &options);
    assert_non_null(strstr(idem_channel_chain(channel), "retry > token"));
    assert_who(channel, NULL, "svc:till", "");
    assert_who(channel, CLERK_TOKEN, "svc:clerk", "keeper,night");
    file_put(path, GUEST_TOKEN);
    for (;;) {
        vault_who_am_i_reply *who = world_who(channel, NULL);
        bool read = strcmp(who->identity, "svc:guest") == 0;

        vault_who_am_i_reply_free(who);
        if (read)
            break;
    }
    idem_channel_close(channel);
}

struct fetching {
    unsigned times;
    bool fails;
};

/* The first one meets a source that is away. */
static enum idem_status
fetch(void *with, char token[IDEM_TOKEN_MAX + 1], struct idem_error *err)
{
    struct fetching *fetching = with;

    if (fetching->fails)
        return idem_fail(err, IDEM_UNAUTHENTICATED, "no token today");
    snprintf(token, IDEM_TOKEN_MAX + 1, "%s",
             fetching->times++ == 0 ? "friend-away" : TILL_TOKEN);
    return IDEM_OK;
}

static void
the_authors_function_gives_the_token_of_each_attempt(void **state)
{
    struct vault_world *world = *state;
    char mine[] = "mine";
    struct idem_auth_options auth = {
        .token_file = world->tokens, .check = check_friend, .check_with = mine};
    struct fetching fetching = {0};
    const struct idem_token_options token = {.fetch = fetch,
                                             .fetch_with = &fetching};
    const struct idem_channel_options options = {.token = &token};
    struct idem_channel *channel;
    struct idem_outcome outcome;

    vault_world_open(world, ADDRESS, &auth, NULL);
    channel = vault_world_channel(world, &options);
    outcome = world_put(channel, NULL, NULL, NULL);
    assert_told(&outcome, IDEM_OK, "");
    assert_int_equal(outcome.attempts, 2);
    assert_int_equal(fetching.times, 2);
    fetching.fails = true;
    outcome = world_knock(channel, NULL);
    assert_told(&outcome, IDEM_UNAUTHENTICATED, "");
    assert_int_equal(outcome.effect, IDEM_EFFECT_NOT_SENT);
    assert_string_equal(outcome.message, "no token today");
    idem_channel_close(channel);
}

static void
a_token_needs_one_good_source(void **state)
{
    struct vault_world *world = *state;
    char path[128];
    struct idem_token_options token = {0};
    struct idem_interceptor *made;
    struct idem_error err;

    assert_int_equal(idem_token_new(&made, &token, &err),
                     IDEM_INVALID_ARGUMENT);
    token.file = tempdir_file(&world->dir, "token", path, sizeof path);
    assert_int_equal(idem_token_new(&made, &token, &err),
                     IDEM_INVALID_ARGUMENT);
    file_put(path, "two words");
    assert_int_equal(idem_token_new(&made, &token, &err),
                     IDEM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "is not one token"));
    assert_null(strstr(err.message, "two words"));
    token.fetch = fetch;
    assert_int_equal(idem_token_new(&made, &token, &err),
                     IDEM_INVALID_ARGUMENT);
}

/* 0.0.0.0 reaches this machine too, but does not say so. */
static void
a_token_goes_only_where_nobody_else_reads_it(void **state)
{
    struct vault_world *world = *state;
    struct idem_channel_options options = {0};
    struct idem_channel *channel;
    struct idem_outcome outcome;
    struct idem_error err;
    char address[64];

    open_with_tokens(world);
    snprintf(address, sizeof address, "tcp://0.0.0.0:%s",
             strrchr(idem_server_address(world->server, 0), ':') + 1);
    assert_int_equal(idem_client_open(&channel, address, NULL, &err), IDEM_OK);
    outcome = world_knock(channel, NULL);
    assert_told(&outcome, IDEM_OK, "");
    outcome = world_knock(channel, TILL_TOKEN);
    assert_told(&outcome, IDEM_UNAUTHENTICATED, IDEM_NOT_SECURE);
    assert_int_equal(outcome.effect, IDEM_EFFECT_NOT_SENT);
    idem_channel_close(channel);
    options.tokens_in_plain = true;
    assert_int_equal(idem_client_open(&channel, address, &options, &err),
                     IDEM_OK);
    assert_who(channel, TILL_TOKEN, "svc:till", "");
    idem_channel_close(channel);
}

/* --- What no handler and no log sees --- */

static void
the_token_stops_at_the_server(void **state)
{
    struct vault_world *world = *state;
    const struct idem_call_metadata metadata[] = {
        {"authorization", idem_bytes_of("bearer " TILL_TOKEN)},
        {"mine", idem_bytes_of("x")},
    };
    const struct idem_call_options options = {.metadata = metadata,
                                              .n_metadata = 2};
    vault_who_am_i_request request = VAULT_WHO_AM_I_REQUEST_INIT;
    vault_who_am_i_reply *reply = NULL;
    struct idem_channel *channel;

    open_with_tokens(world);
    channel = vault_world_channel(world, NULL);
    assert_int_equal(vault_who_am_i(channel, &request, &reply, &options, NULL),
                     IDEM_OK);
    assert_string_equal(reply->metadata, "mine");
    assert_string_equal(reply->identity, "svc:till");
    vault_who_am_i_reply_free(reply);
    idem_channel_close(channel);
}

static void
two_tokens_are_none(void **state)
{
    struct vault_world *world = *state;
    const struct idem_call_metadata metadata[] = {
        {"authorization", idem_bytes_of("Bearer " TILL_TOKEN)},
        {"authorization", idem_bytes_of("Bearer " GUEST_TOKEN)},
    };
    const struct idem_call_options options = {.metadata = metadata,
                                              .n_metadata = 2};
    vault_knock_request request = VAULT_KNOCK_REQUEST_INIT;
    struct idem_channel *channel;
    struct idem_outcome outcome;

    open_with_tokens(world);
    channel = vault_world_channel(world, NULL);
    vault_knock(channel, &request, NULL, &options, &outcome);
    assert_told(&outcome, IDEM_UNAUTHENTICATED, IDEM_TOKEN_MALFORMED);
    idem_channel_close(channel);
}

/* All that is written while calls succeed and fail: the lines of an audit, what
 * the library says to stderr, and each message that a caller is given. */
static void
no_line_and_no_message_has_a_token_in_it(void **state)
{
    static const char *const tokens[] = {TILL_TOKEN,  GUEST_TOKEN,
                                         CLERK_TOKEN, "wrong-token",
                                         "a.b.token", "token with blanks"};
    struct vault_world *world = *state;
    FILE *log = tmpfile();
    int stderr_before = dup(STDERR_FILENO);
    char line[4096];
    struct idem_channel *channel;
    struct idem_error err;

    open_with_tokens(world);
    channel = vault_world_channel(world, NULL);
    assert_int_equal(idem_channel_add(channel, audit_new(log), &err), IDEM_OK);
    dup2(fileno(log), STDERR_FILENO);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        struct idem_outcome knocked = world_knock(channel, tokens[i]);
        struct idem_outcome put = world_put(channel, tokens[i], NULL, NULL);

        fprintf(log, "%s %s %s %s\n", knocked.reason, knocked.message,
                put.reason, put.message);
    }
    idem_channel_close(channel);
    dup2(stderr_before, STDERR_FILENO);
    close(stderr_before);
    rewind(log);
    while (fgets(line, sizeof line, log))
        assert_null(strstr(line, "-token"));
    fclose(log);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
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
        TEST(the_clients_token_is_its_files_and_read_again),
        TEST(the_authors_function_gives_the_token_of_each_attempt),
        TEST(a_token_needs_one_good_source),
        TEST(a_token_goes_only_where_nobody_else_reads_it),
        TEST(the_token_stops_at_the_server),
        TEST(two_tokens_are_none),
        TEST(no_line_and_no_message_has_a_token_in_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
