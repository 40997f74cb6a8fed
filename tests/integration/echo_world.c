#include "echo_world.h"

#include "channel.h"
#include "server.h"

#include <idem/standard.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AWAIT_S 20

/* --- Handlers --- */

/* What came under these names goes back as trailers. */
static void
send_back(struct idem_context *context)
{
    const struct idem_metadata_entry *entry =
        idem_context_metadata(context)->first;

    for (; entry; entry = entry->next) {
        const char *name = idem_context_printf(
            context, "%.*s", (int)entry->name.size, entry->name.data);
        const char *value = idem_context_printf(
            context, "%.*s", (int)entry->value.size, entry->value.data);

        if (strncmp(name, "back", 4) == 0)
            assert_int_equal(
                idem_context_add_trailer(context, name, value, NULL), IDEM_OK);
    }
}

static enum idem_status
echo(struct idem_context *context, const echo_echo_request *request,
     echo_echo_reply *reply)
{
    struct echo_world *world = idem_context_user(context);
    const struct idem_metadata_entry *entry =
        idem_context_metadata(context)->first;
    const char *text = "";

    atomic_fetch_add(&world->ran, 1);
    reply->body = request->body;
    reply->number = request->number;
    reply->key = idem_context_printf(context, "%s", idem_context_key(context));
    reply->attempt = idem_context_attempt(context);
    reply->remaining_ms = idem_context_remaining_ms(context);
    for (; entry; entry = entry->next)
        text = idem_context_printf(
            context, "%s%.*s=%.*s;", text, (int)entry->name.size,
            (const char *)entry->name.data, (int)entry->value.size,
            (const char *)entry->value.data);
    reply->metadata = text;
    send_back(context);
    reply->peer = idem_context_printf(context, "%s",
                                      idem_context_peer(context)->identity);
    return IDEM_OK;
}

static enum idem_status
fail_as_asked(struct idem_context *context, const echo_fail_request *request,
              echo_echo_reply *reply)
{
    struct echo_world *world = idem_context_user(context);

    (void)reply;
    atomic_fetch_add(&world->ran, 1);
    if (idem_context_add_trailer(context, "why", "asked", NULL) != IDEM_OK ||
        idem_context_add_trailer(context, "why", "twice", NULL) != IDEM_OK)
        return IDEM_INTERNAL;
    return idem_context_fail(context, (enum idem_status)request->status, "%s",
                             request->message);
}

static void
in_ms(struct timespec *when, int64_t ms)
{
    clock_gettime(CLOCK_REALTIME, when);
    when->tv_sec += ms / 1000;
    when->tv_nsec += ms % 1000 * 1000000;
    when->tv_sec += when->tv_nsec / 1000000000;
    when->tv_nsec %= 1000000000;
}

static enum idem_status
block(struct idem_context *context, const echo_echo_request *request,
      echo_echo_reply *reply)
{
    struct echo_world *world = idem_context_user(context);
    bool counted = false;

    atomic_fetch_add(&world->ran, 1);
    pthread_mutex_lock(&world->lock);
    world->inside++;
    pthread_cond_broadcast(&world->change);
    while (!world->gate && world->passes == 0) {
        struct timespec soon;

        if (idem_context_cancelled(context) && !counted) {
            atomic_fetch_add(&world->gave_up, 1);
            counted = true;
            pthread_cond_broadcast(&world->change);
        }
        in_ms(&soon, 5);
        pthread_cond_timedwait(&world->change, &world->lock, &soon);
    }
    if (!world->gate)
        world->passes--;
    world->inside--;
    pthread_cond_broadcast(&world->change);
    pthread_mutex_unlock(&world->lock);
    reply->number = request->number;
    return IDEM_OK;
}

static enum idem_status
grow(struct idem_context *context, const echo_grow_request *request,
     echo_echo_reply *reply)
{
    struct echo_world *world = idem_context_user(context);

    atomic_fetch_add(&world->ran, 1);
    reply->body.data = idem_context_alloc(context, request->size);
    reply->body.len = request->size;
    return IDEM_OK;
}

static const struct echo_handlers handlers = {
    .echo = echo,
    .echo_inline = echo,
    .fail = fail_as_asked,
    .block = block,
    .grow = grow,
};

/* --- The world --- */

static enum idem_status
listen_at(struct echo_world *world, struct idem_server *server,
          const char *address)
{
    const struct io *io = world->options.server_io;
    struct idem_error err = {0};
    enum idem_status status =
        io ? server_listen_with_io(server, io, address, &err)
           : idem_server_listen(server, address, &err);

    if (status != IDEM_OK)
        print_error("%s\n", err.message);
    return status;
}

static enum idem_status
make_server(struct echo_world *world, struct idem_server **server,
            struct idem_error *err)
{
    const struct idem_server_options *options = &world->options.server;

    if (world->options.standard)
        return idem_server_open(server, NULL, options, NULL, err);
    return idem_server_new(server, options, err);
}

struct idem_server *
echo_world_server(struct echo_world *world)
{
    struct idem_server *server = NULL;
    struct idem_error err = {0};

    assert_int_equal(make_server(world, &server, &err), IDEM_OK);
    assert_int_equal(echo_register(server, &handlers, world, &err), IDEM_OK);
    assert_int_equal(listen_at(world, server, world->address), IDEM_OK);
    if (!world->options.not_started)
        assert_int_equal(idem_server_start(server, &err), IDEM_OK);
    return server;
}

struct idem_channel *
echo_world_channel(struct echo_world *world)
{
    const struct io *io = world->options.channel_io;
    const struct idem_channel_options *options = &world->options.channel;
    struct idem_channel *channel = NULL;
    struct idem_error err = {0};
    enum idem_status status =
        io ? channel_new_with_io(&channel, io, world->address, options, &err)
           : idem_channel_new(&channel, world->address, options, &err);

    if (status != IDEM_OK)
        print_error("%s\n", err.message);
    assert_int_equal(status, IDEM_OK);
    return channel;
}

static void
name_address(struct echo_world *world)
{
    char path[128];

    switch (world->options.transport) {
    case ECHO_TCP:
        snprintf(world->address, sizeof world->address, "tcp://127.0.0.1:0");
        break;
    case ECHO_TLS:
        snprintf(world->address, sizeof world->address,
                 "tls+tcp://127.0.0.1:0");
        break;
    case ECHO_IPC:
        snprintf(world->address, sizeof world->address, "ipc://%s",
                 tempdir_file(&world->dir, "echo.sock", path, sizeof path));
        break;
    case ECHO_INPROC:
        snprintf(world->address, sizeof world->address, "inproc://echo-%p",
                 (void *)world);
        break;
    }
}

void
echo_world_open(struct echo_world *world, const struct echo_options *options)
{
    memset(world, 0, sizeof *world);
    if (options)
        world->options = *options;
    tempdir_open(&world->dir);
    pthread_mutex_init(&world->lock, NULL);
    pthread_cond_init(&world->change, NULL);
    name_address(world);
    world->server = echo_world_server(world);
    snprintf(world->address, sizeof world->address, "%s",
             idem_server_address(world->server, 0));
    world->channel = echo_world_channel(world);
}

void
echo_world_close(struct echo_world *world)
{
    echo_world_open_gate(world);
    idem_channel_close(world->channel);
    idem_server_free(world->server);
    pthread_cond_destroy(&world->change);
    pthread_mutex_destroy(&world->lock);
    tempdir_close(&world->dir);
}

void
echo_world_let_one_out(struct echo_world *world)
{
    pthread_mutex_lock(&world->lock);
    world->passes++;
    pthread_cond_broadcast(&world->change);
    pthread_mutex_unlock(&world->lock);
}

void
echo_world_open_gate(struct echo_world *world)
{
    pthread_mutex_lock(&world->lock);
    world->gate = true;
    pthread_cond_broadcast(&world->change);
    pthread_mutex_unlock(&world->lock);
}

void
echo_world_await_inside(struct echo_world *world, unsigned inside)
{
    struct timespec end;
    int rc = 0;

    in_ms(&end, AWAIT_S * 1000);
    pthread_mutex_lock(&world->lock);
    while (world->inside < inside && rc == 0)
        rc = pthread_cond_timedwait(&world->change, &world->lock, &end);
    pthread_mutex_unlock(&world->lock);
    assert_int_equal(rc, 0);
}

/* --- Calls --- */

static void
copy_text(char *to, size_t room, const char *text)
{
    snprintf(to, room, "%s", text);
}

static void
note_reply(struct echo_result *result, const echo_echo_reply *reply)
{
    result->number = reply->number;
    result->size = reply->body.len;
    result->attempt = reply->attempt;
    result->remaining_ms = reply->remaining_ms;
    copy_text(result->key, sizeof result->key, reply->key);
    copy_text(result->metadata, sizeof result->metadata, reply->metadata);
    copy_text(result->peer, sizeof result->peer, reply->peer);
}

static void
done(struct idem_call *call, const echo_echo_reply *reply,
     const struct idem_outcome *outcome)
{
    struct echo_result *result = idem_call_user(call);
    struct echo_world *world = result->world;

    pthread_mutex_lock(&world->lock);
    result->told++;
    result->status = outcome->status;
    result->outcome = *outcome;
    if (reply)
        note_reply(result, reply);
    world->ended++;
    pthread_cond_broadcast(&world->change);
    pthread_mutex_unlock(&world->lock);
}

void
echo_world_start(struct echo_world *world, struct idem_channel *channel,
                 echo_start_fn *start, uint64_t number, size_t size,
                 const struct idem_call_options *options,
                 struct echo_result *result)
{
    struct idem_call_options with = {0};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;
    uint8_t *body = calloc(1, size + 1);

    assert_non_null(body);
    memset(body, (int)(number & 0xff), size);
    memset(result, 0, sizeof *result);
    result->world = world;
    if (options)
        with = *options;
    with.user = result;
    request.number = number;
    request.body.data = body;
    request.body.len = size;
    pthread_mutex_lock(&world->lock);
    world->started++;
    pthread_mutex_unlock(&world->lock);
    result->call = start(channel, &request, &with, done);
    free(body);
}

void
echo_world_await(struct echo_world *world)
{
    struct timespec end;
    int rc = 0;

    in_ms(&end, AWAIT_S * 1000);
    pthread_mutex_lock(&world->lock);
    while (world->ended < world->started && rc == 0)
        rc = pthread_cond_timedwait(&world->change, &world->lock, &end);
    if (rc)
        print_error("%u of %u calls are told\n", world->ended, world->started);
    pthread_mutex_unlock(&world->lock);
    assert_int_equal(rc, 0);
}

void
echo_result_fini(struct echo_result *result)
{
    idem_call_release(result->call);
    result->call = NULL;
}

struct echo_result
echo_world_call(struct echo_world *world, uint64_t number, size_t size,
                const struct idem_call_options *options)
{
    struct echo_result result = {.world = world};
    echo_echo_request request = ECHO_ECHO_REQUEST_INIT;
    echo_echo_reply *reply = NULL;
    uint8_t *body = malloc(size + 1);

    assert_non_null(body);
    memset(body, (int)(number & 0xff), size);
    request.number = number;
    request.body.data = body;
    request.body.len = size;
    result.status =
        echo_echo(world->channel, &request, &reply, options, &result.outcome);
    if (result.status == IDEM_OK) {
        note_reply(&result, reply);
        assert_memory_equal(reply->body.data, body, size);
    } else {
        assert_null(reply);
    }
    echo_echo_reply_free(reply);
    free(body);
    return result;
}

void
assert_echoed(const struct echo_result *result, uint64_t number, size_t size)
{
    assert_ended(result, IDEM_OK, IDEM_EFFECT_COMMITTED);
    assert_int_equal(result->number, number);
    assert_int_equal(result->size, size);
}

void
assert_ended(const struct echo_result *result, enum idem_status status,
             enum idem_effect effect)
{
    const struct idem_outcome *outcome = &result->outcome;

    if (outcome->status != status || outcome->effect != effect)
        print_error("ended with %s, %s: %s\n",
                    idem_status_name(outcome->status),
                    idem_effect_name(outcome->effect), outcome->message);
    assert_int_equal(outcome->status, status);
    assert_int_equal(outcome->effect, effect);
}
