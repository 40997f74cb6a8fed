/* A client's token: whence it comes, where it goes, and where it does not. */
#include "vault_world.h"

#include "audit.h"
#include "files.h"

#include <idem/reason.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    vault_world_open_with_tokens(world);
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
    struct idem_auth_options auth = {.token_file = world->tokens,
                                     .check = vault_check_friend,
                                     .check_with = mine};
    struct fetching fetching = {0};
    const struct idem_token_options token = {.fetch = fetch,
                                             .fetch_with = &fetching};
    const struct idem_channel_options options = {.token = &token};
    struct idem_channel *channel;
    struct idem_outcome outcome;

    vault_world_open(world, VAULT_ADDRESS, &auth, NULL);
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

    vault_world_open_with_tokens(world);
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

    vault_world_open_with_tokens(world);
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

    vault_world_open_with_tokens(world);
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

    vault_world_open_with_tokens(world);
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
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, vault_set_up, vault_tear_down)
    const struct CMUnitTest tests[] = {
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
