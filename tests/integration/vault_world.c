#include "vault_world.h"

#include "files.h"

#include <idem/digest.h>
#include <idem/sqlite.h>

#include <sqlite3.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

/* --- The service --- */

static void
append(char *text, size_t room, struct idem_bytes name)
{
    size_t used = strlen(text);

    snprintf(text + used, room - used, "%s%.*s", used ? "," : "",
             (int)name.size, name.size ? (const char *)name.data : "");
}

static void
tell(struct idem_context *context, vault_who_am_i_reply *reply)
{
    const struct idem_principal *principal = idem_context_principal(context);
    struct idem_bytes tenant = idem_context_tenant(context);
    char roles[256] = "", names[256] = "";

    for (unsigned i = 0; principal && i < principal->n_roles; i++)
        append(roles, sizeof roles, principal->roles[i]);
    for (const struct idem_metadata_entry *at =
             idem_context_metadata(context)->first;
         at; at = at->next)
        append(names, sizeof names, at->name);
    if (principal)
        reply->identity =
            idem_context_printf(context, "%.*s", (int)principal->identity.size,
                                (const char *)principal->identity.data);
    if (tenant.size > 0)
        reply->tenant = idem_context_printf(context, "%.*s", (int)tenant.size,
                                            (const char *)tenant.data);
    reply->roles = idem_context_printf(context, "%s", roles);
    reply->metadata = idem_context_printf(context, "%s", names);
}

static enum idem_status
who_am_i(struct idem_context *context, const vault_who_am_i_request *request,
         vault_who_am_i_reply *reply)
{
    (void)request;
    tell(context, reply);
    return IDEM_OK;
}

static enum idem_status
listen(struct idem_context *context, struct vault_listen_server_stream *stream)
{
    struct vault_world *world = idem_context_user(context);
    enum idem_status status = IDEM_OK;

    atomic_fetch_add(&world->listened, 1);
    while (status == IDEM_OK && vault_listen_receive(stream)) {
        vault_who_am_i_reply reply = VAULT_WHO_AM_I_REPLY_INIT;

        tell(context, &reply);
        status = vault_listen_send(stream, &reply);
    }
    return status;
}

static enum idem_status
knock(struct idem_context *context, const vault_knock_request *request,
      vault_knock_reply *reply)
{
    (void)context;
    (void)request;
    (void)reply;
    return IDEM_OK;
}

static enum idem_status
put(struct idem_context *context, const vault_put_request *request,
    vault_put_reply *reply)
{
    struct vault_world *world = idem_context_user(context);

    (void)request;
    reply->number = atomic_fetch_add(&world->ran, 1) + 1;
    return IDEM_OK;
}

static const struct vault_handlers handlers = {
    .who_am_i = who_am_i, .knock = knock, .listen = listen, .put = put};

/* --- The world --- */

void
vault_world_init(struct vault_world *world)
{
    struct tempdir *dir = &world->dir;

    memset(world, 0, sizeof *world);
    tempdir_open(dir);
    tempdir_file(dir, "tokens", world->tokens, sizeof world->tokens);
    tempdir_file(dir, "rules", world->rules, sizeof world->rules);
    tempdir_file(dir, "keys.json", world->keys, sizeof world->keys);
    tempdir_file(dir, "books", world->books, sizeof world->books);
    pthread_mutex_init(&world->lock, NULL);
    pthread_cond_init(&world->change, NULL);
}

void
vault_world_fini(struct vault_world *world)
{
    idem_server_free(world->server);
    pthread_mutex_destroy(&world->lock);
    pthread_cond_destroy(&world->change);
    tempdir_close(&world->dir);
}

static void
reloaded(void *with, const char *file, const struct idem_error *err)
{
    struct vault_world *world = with;

    (void)file;
    pthread_mutex_lock(&world->lock);
    if (err)
        world->bad++;
    else
        world->good++;
    pthread_cond_broadcast(&world->change);
    pthread_mutex_unlock(&world->lock);
}

void
vault_world_await(struct vault_world *world, unsigned good, unsigned bad)
{
    pthread_mutex_lock(&world->lock);
    while (world->good < good || world->bad < bad)
        pthread_cond_wait(&world->change, &world->lock);
    pthread_mutex_unlock(&world->lock);
}

void
vault_world_open(struct vault_world *world, const char *address,
                 struct idem_auth_options *auth,
                 const struct idem_tls_options *tls)
{
    const struct idem_sqlite_options books = {.path = world->books};
    const struct idem_server_options options = {.auth = auth, .tls = tls};
    struct idem_store *store;
    struct idem_error err;

    if (auth) {
        auth->reloaded = reloaded;
        auth->reloaded_with = world;
    }
    must(idem_sqlite_open(&store, &books, &err), &err);
    must(idem_server_open(&world->server, store, &options, NULL, &err), &err);
    must(vault_register(world->server, &handlers, world, &err), &err);
    must(idem_server_listen(world->server, address, &err), &err);
    must(idem_server_start(world->server, &err), &err);
}

struct idem_channel *
vault_world_channel(const struct vault_world *world,
                    const struct idem_channel_options *options)
{
    struct idem_channel *channel;
    struct idem_error err;

    must(idem_client_open(&channel, idem_server_address(world->server, 0),
                          options, &err),
         &err);
    return channel;
}

/* --- A world with a token file --- */

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

void
vault_world_write_tokens(const struct vault_world *world,
                         const char *clerks_roles)
{
    char text[1024] = "";

    add_line(text, sizeof text, "svc:till", TILL_TOKEN, "");
    add_line(text, sizeof text, "svc:clerk", CLERK_TOKEN, clerks_roles);
    add_line(text, sizeof text, "svc:guest", GUEST_TOKEN, "");
    file_put(world->tokens, text);
}

int
vault_set_up(void **state)
{
    struct vault_world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    vault_world_init(world);
    vault_world_write_tokens(world, "keeper,night");
    *state = world;
    return 0;
}

int
vault_tear_down(void **state)
{
    vault_world_fini(*state);
    free(*state);
    return 0;
}

void
vault_world_open_with_tokens(struct vault_world *world)
{
    struct idem_auth_options auth = {.token_file = world->tokens};

    vault_world_open(world, VAULT_ADDRESS, &auth, NULL);
}

/* --- Calls --- */

const struct idem_call_options *
vault_show(struct vault_shown *shown, const char *token, const char *key)
{
    shown->options = (struct idem_call_options){.key = key};
    if (!token)
        return &shown->options;
    snprintf(shown->header, sizeof shown->header, "Bearer %s", token);
    shown->metadata = (struct idem_call_metadata){"authorization",
                                                  idem_bytes_of(shown->header)};
    shown->options.metadata = &shown->metadata;
    shown->options.n_metadata = 1;
    return &shown->options;
}

struct idem_outcome
world_put(struct idem_channel *channel, const char *token, const char *key,
          int64_t *number)
{
    vault_put_request request = VAULT_PUT_REQUEST_INIT;
    struct idem_outcome outcome;
    vault_put_reply *reply = NULL;
    struct vault_shown shown;

    vault_put(channel, &request, &reply, vault_show(&shown, token, key),
              &outcome);
    if (reply && number)
        *number = reply->number;
    vault_put_reply_free(reply);
    return outcome;
}

struct idem_outcome
world_knock(struct idem_channel *channel, const char *token)
{
    vault_knock_request request = VAULT_KNOCK_REQUEST_INIT;
    struct idem_outcome outcome;
    struct vault_shown shown;

    vault_knock(channel, &request, NULL, vault_show(&shown, token, NULL),
                &outcome);
    return outcome;
}

vault_who_am_i_reply *
world_who(struct idem_channel *channel, const char *token)
{
    vault_who_am_i_request request = VAULT_WHO_AM_I_REQUEST_INIT;
    struct idem_outcome outcome;
    vault_who_am_i_reply *reply = NULL;
    struct vault_shown shown;

    vault_who_am_i(channel, &request, &reply, vault_show(&shown, token, NULL),
                   &outcome);
    if (!reply)
        fail_msg("%s: %s", outcome.reason, outcome.message);
    return reply;
}

void
assert_who(struct idem_channel *channel, const char *token,
           const char *identity, const char *roles)
{
    vault_who_am_i_reply *who = world_who(channel, token);

    assert_string_equal(who->identity, identity);
    assert_string_equal(who->tenant, identity);
    assert_string_equal(who->roles, roles);
    vault_who_am_i_reply_free(who);
}

enum idem_status
vault_check_friend(void *with, struct idem_call *call, struct idem_bytes token,
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

void
assert_told(const struct idem_outcome *outcome, enum idem_status status,
            const char *reason)
{
    if (outcome->status != status || strcmp(outcome->reason, reason) != 0)
        fail_msg("%s %s: %s", idem_status_name(outcome->status),
                 outcome->reason, outcome->message);
}

int
vault_records(const struct vault_world *world)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    int n;

    assert_int_equal(sqlite3_open(world->books, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT (SELECT count(*) FROM idem_record) + "
                           "(SELECT count(*) FROM "
                           "idem_record_opaque)",
                           -1, &statement, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    n = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return n;
}
