#include "policies.h"
#include "retry.h"

#include <idem/allow.h>
#include <idem/deadline.h>
#include <idem/health.h>
#include <idem/key.h>
#include <idem/ledger.h>
#include <idem/limit.h>
#include <idem/shield.h>
#include <idem/standard.h>
#include <idem/token.h>

#define MAX_QUEUED 10000 /* as server.h says */

static enum idem_status
add_to_channel(struct idem_channel *channel,
               struct idem_interceptor *interceptor, struct idem_error *err)
{
    if (!interceptor)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no memory");
    return idem_channel_add(channel, interceptor, err);
}

static enum idem_status
add_token(struct idem_channel *channel,
          const struct idem_token_options *options, struct idem_error *err)
{
    struct idem_interceptor *token;
    enum idem_status status = idem_token_new(&token, options, err);

    return status == IDEM_OK ? idem_channel_add(channel, token, err) : status;
}

static enum idem_status
add_chain(struct idem_channel *channel,
          const struct idem_channel_options *options, struct idem_error *err)
{
    struct idem_interceptor *policy;
    enum idem_status status =
        idem_policy_new(&policy, options ? options->policy : NULL, err);

    if (status == IDEM_OK)
        status = add_to_channel(channel, policy, err);
    if (status == IDEM_OK)
        status = add_to_channel(channel, idem_deadline_new(), err);
    if (status == IDEM_OK)
        status = add_to_channel(channel, idem_key_interceptor_new(), err);
    if (status == IDEM_OK)
        status =
            add_to_channel(channel, retry_new((struct policies *)policy), err);
    if (status == IDEM_OK && options && options->token)
        status = add_token(channel, options->token, err);
    return status;
}

enum idem_status
idem_client_open(struct idem_channel **out, const char *target,
                 const struct idem_channel_options *options,
                 struct idem_error *err)
{
    struct idem_channel *channel;
    enum idem_status status = idem_channel_new(&channel, target, options, err);

    if (status != IDEM_OK)
        return status;
    status = add_chain(channel, options, err);
    if (status != IDEM_OK) {
        idem_channel_close(channel);
        return status;
    }
    *out = channel;
    return IDEM_OK;
}

/* Owns the store and the shield, also on failure. */
static enum idem_status
add_once(struct idem_server *server, struct idem_store *store,
         const struct idem_once_options *options,
         struct idem_interceptor *limit, struct idem_error *err)
{
    struct idem_once_options with =
        options ? *options : (struct idem_once_options){0};
    struct idem_interceptor *once;
    enum idem_status status;

    with.limit = limit;
    status = idem_once_new(&once, store, &with, err);

    return status == IDEM_OK ? idem_server_add(server, once, err) : status;
}

/* A call that has its claim finds room before the workers: no more have a
 * permit than may wait there. */
static enum idem_status
add_limit(struct idem_server *server, const struct idem_server_options *options,
          struct idem_interceptor **limit, struct idem_error *err)
{
    unsigned max_queued =
        options && options->max_queued ? options->max_queued : MAX_QUEUED;
    struct idem_limit_options limits = {0};
    enum idem_status status;

    if (options && options->limits)
        limits = *options->limits;
    if (limits.max_in_flight > max_queued)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "limits: max_in_flight %u is over max_queued %u",
                         limits.max_in_flight, max_queued);
    if (limits.max_in_flight == 0)
        limits.max_in_flight = max_queued;
    status = idem_limit_new(limit, &limits, err);
    return status == IDEM_OK ? idem_server_add(server, *limit, err) : status;
}

static enum idem_status
add_deadline(struct idem_server *server, struct idem_error *err)
{
    struct idem_interceptor *deadline = idem_deadline_new();

    if (!deadline)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no memory");
    return idem_server_add(server, deadline, err);
}

static enum idem_status
add_auth(struct idem_server *server, const struct idem_auth_options *options,
         struct idem_error *err)
{
    struct idem_interceptor *auth;
    enum idem_status status = idem_auth_new(&auth, options, err);

    return status == IDEM_OK ? idem_server_add(server, auth, err) : status;
}

static enum idem_status
add_allow(struct idem_server *server, const struct idem_auth_options *auth,
          struct idem_error *err)
{
    struct idem_allow_options options = {0};
    struct idem_interceptor *allow;
    enum idem_status status;

    if (auth)
        options = (struct idem_allow_options){
            .known = true,
            .rules_file = auth->rules_file,
            .reloaded = auth->reloaded,
            .reloaded_with = auth->reloaded_with,
        };
    status = idem_allow_new(&allow, &options, err);
    return status == IDEM_OK ? idem_server_add(server, allow, err) : status;
}

static enum idem_status
add_health(struct idem_server *server, struct idem_store *store,
           const struct idem_server_options *options, struct idem_error *err)
{
    const struct idem_health_options health = {.clock = options ? options->clock
                                                                : NULL};

    return idem_health_add(server, store, &health, err);
}

static void
drop(struct idem_store *store, const struct idem_once_options *once)
{
    idem_store_free(store);
    if (once)
        idem_shield_free(once->shield);
}

enum idem_status
idem_server_open(struct idem_server **out, struct idem_store *store,
                 const struct idem_server_options *options,
                 const struct idem_once_options *once, struct idem_error *err)
{
    struct idem_interceptor *limit;
    struct idem_server *server = NULL;
    enum idem_status status = idem_server_new(&server, options, err);

    if (status == IDEM_OK)
        status = add_limit(server, options, &limit, err);
    if (status != IDEM_OK || !store)
        drop(store, once);
    else
        status = add_once(server, store, once, limit, err);
    if (status == IDEM_OK && store)
        status = idem_ledger_add(server, store, err);
    if (status == IDEM_OK)
        status = add_health(server, store, options, err);
    if (status == IDEM_OK)
        status = add_deadline(server, err);
    if (status == IDEM_OK && options && options->auth)
        status = add_auth(server, options->auth, err);
    if (status == IDEM_OK)
        status = add_allow(server, options ? options->auth : NULL, err);
    if (status != IDEM_OK) {
        idem_server_free(server);
        return status;
    }
    *out = server;
    return IDEM_OK;
}
