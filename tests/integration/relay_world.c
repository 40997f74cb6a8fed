#include "relay_world.h"

#include <idem/call.h>
#include <idem/sqlite.h>
#include <idem/standard.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

/* --- What comes to the server behind --- */

struct witness {
    struct idem_interceptor base;
    struct relay_world *world;
};

static void
note_text(const struct idem_call *call, const char *name, char *text,
          size_t room)
{
    struct idem_bytes value;

    if (idem_metadata_get(&call->metadata, name, &value))
        snprintf(text, room, "%.*s", (int)value.size, (const char *)value.data);
}

static enum idem_step
see(struct idem_interceptor *self, struct idem_call *call)
{
    struct relay_world *world = ((struct witness *)self)->world;
    int64_t remaining_ns = idem_call_remaining_ns(call);
    struct relay_seen *seen;

    if (strcmp(call->method->name, EFFECTS_COUNT_METHOD) == 0)
        return IDEM_NEXT;
    pthread_mutex_lock(&world->lock);
    IDEM_ASSERT(world->n_seen < RELAY_SEEN_MAX);
    seen = &world->seen[world->n_seen++];
    memset(seen, 0, sizeof *seen);
    snprintf(seen->key, sizeof seen->key, "%.*s", (int)call->key.size,
             call->key.data ? (const char *)call->key.data : "");
    seen->remaining_ms =
        remaining_ns == INT64_MAX ? INT64_MAX : remaining_ns / 1000000;
    note_text(call, "traceparent", seen->traceparent, sizeof seen->traceparent);
    note_text(call, "tracestate", seen->tracestate, sizeof seen->tracestate);
    note_text(call, "other", seen->other, sizeof seen->other);
    seen->fence = idem_context_parent_fence(call->context);
    for (const struct idem_metadata_entry *entry = call->metadata.first; entry;
         entry = entry->next)
        seen->n_metadata++;
    pthread_mutex_unlock(&world->lock);
    return IDEM_NEXT;
}

static void
dismiss(struct idem_interceptor *self)
{
    free(self);
}

static struct idem_interceptor *
witness_new(struct relay_world *world)
{
    static const struct idem_interceptor_ops ops = {
        .name = "witness",
        .band = IDEM_BAND_OBSERVE,
        .request = see,
        .free = dismiss,
    };
    struct witness *witness = calloc(1, sizeof *witness);

    assert_non_null(witness);
    witness->base.ops = &ops;
    witness->world = world;
    return &witness->base;
}

/* --- The first server --- */

static enum idem_status
forward(struct idem_context *context, const relay_forward_request *request,
        relay_forward_reply *reply)
{
    struct relay_world *world = idem_context_user(context);
    unsigned run;

    (void)request;
    pthread_mutex_lock(&world->lock);
    run = ++world->runs;
    pthread_mutex_unlock(&world->lock);
    reply->runs = run;
    return world->work(world, context, run);
}

static const struct relay_handlers handlers = {
    .forward = forward,
    .forward_too = forward,
    .look = forward,
};

static void
open_server(struct relay_world *world)
{
    char path[128];
    const struct idem_sqlite_options books = {
        .path = tempdir_file(&world->behind->dir, "relay", path, sizeof path)};
    struct idem_store *store;
    struct idem_error err;

    must(idem_sqlite_open(&store, &books, &err), &err);
    must(idem_server_open(&world->server, store, NULL, NULL, &err), &err);
    must(relay_register(world->server, &handlers, world, &err), &err);
    must(idem_server_listen(world->server, "tcp://127.0.0.1:0", &err), &err);
    must(idem_server_start(world->server, &err), &err);
}

int
relay_world_up(void **state)
{
    struct relay_world *world = calloc(1, sizeof *world);
    struct idem_error err;
    void *behind;

    assert_non_null(world);
    pthread_mutex_init(&world->lock, NULL);
    stage_sqlite_tcp(&behind);
    world->behind = behind;
    stage_rebuild(world->behind, witness_new(world), NULL);
    must(idem_client_open(&world->to_behind,
                          idem_server_address(world->behind->servers[0], 0),
                          NULL, &err),
         &err);
    open_server(world);
    must(idem_client_open(&world->channel,
                          idem_server_address(world->server, 0), NULL, &err),
         &err);
    *state = world;
    return 0;
}

int
relay_world_down(void **state)
{
    struct relay_world *world = *state;
    void *behind = world->behind;

    idem_channel_close(world->channel);
    idem_server_free(world->server);
    idem_channel_close(world->to_behind);
    stage_down(&behind);
    pthread_mutex_destroy(&world->lock);
    free(world);
    return 0;
}

unsigned
relay_world_seen(struct relay_world *world)
{
    unsigned n;

    pthread_mutex_lock(&world->lock);
    n = world->n_seen;
    pthread_mutex_unlock(&world->lock);
    return n;
}

enum idem_status
relay_add(struct relay_world *world, int64_t amount,
          const struct idem_call_options *options)
{
    effects_add_request request = EFFECTS_ADD_REQUEST_INIT;

    request.amount = amount;
    return effects_add(world->to_behind, &request, NULL, options, NULL);
}

enum idem_status
relay_call(struct relay_world *world, const struct idem_call_options *options,
           struct idem_outcome *outcome)
{
    relay_forward_request request = RELAY_FORWARD_REQUEST_INIT;
    relay_forward_reply *reply = NULL;
    enum idem_status status =
        relay_forward(world->channel, &request, &reply, options, outcome);

    relay_forward_reply_free(reply);
    return status;
}
