#include "flow_world.h"

#include <idem/standard.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#define AWAIT_S 20
#define NOTE_MAX 1048576

/* --- Notes --- */

static uint8_t pattern[NOTE_MAX + 256]; /* a note begins at its number */

static void
fill_pattern(void)
{
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)(i ^ i >> 8);
}

const flow_note *
flow_note_of(uint64_t number, size_t size)
{
    static _Thread_local flow_note note;

    assert_true(size <= NOTE_MAX);
    note = (flow_note)FLOW_NOTE_INIT;
    note.number = number;
    note.body.data = pattern + (number & 0xff);
    note.body.len = size;
    return &note;
}

bool
flow_note_is(const flow_note *note, uint64_t number, size_t size)
{
    return note->number == number && note->body.len == size &&
           (size == 0 ||
            memcmp(note->body.data, pattern + (number & 0xff), size) == 0);
}

void
assert_note(const flow_note *note, uint64_t number, size_t size)
{
    assert_non_null(note);
    assert_int_equal(note->number, number);
    assert_int_equal(note->body.len, size);
    assert_true(flow_note_is(note, number, size));
}

/* --- Handlers --- */

static void
count_up(struct flow_world *world, atomic_uint *what)
{
    pthread_mutex_lock(&world->lock);
    atomic_fetch_add(what, 1);
    pthread_cond_broadcast(&world->change);
    pthread_mutex_unlock(&world->lock);
}

static struct flow_world *
enter(struct idem_context *context)
{
    struct flow_world *world = idem_context_user(context);

    atomic_store(&world->remaining_ms, idem_context_remaining_ms(context));
    count_up(world, &world->ran);
    return world;
}

static enum idem_status
leave(struct idem_context *context, enum idem_status status)
{
    struct flow_world *world = idem_context_user(context);

    assert_int_equal(idem_context_add_trailer(context, "left", "so", NULL),
                     IDEM_OK);
    assert_int_equal(idem_context_add_trailer(context, "left", "then", NULL),
                     IDEM_OK);
    if (idem_context_cancelled(context))
        count_up(world, &world->given_up);
    count_up(world, &world->ended);
    if (status != IDEM_OK)
        return idem_context_fail(context, status, "as it was asked to");
    return IDEM_OK;
}

static enum idem_status
count(struct idem_context *context, const flow_count_request *request,
      struct flow_count_server_stream *stream)
{
    struct flow_world *world = enter(context);
    enum idem_status status = IDEM_OK;

    for (uint64_t i = 1; i <= request->count && status == IDEM_OK; i++) {
        status = flow_count_send(stream, flow_note_of(i, request->size));
        if (status == IDEM_OK)
            count_up(world, &world->sent);
    }
    return leave(context, status == IDEM_OK ? (enum idem_status)request->status
                                            : status);
}

static bool
is_to_refuse(struct flow_world *world, uint64_t read)
{
    if (read < world->after || atomic_load(&world->refuse) == 0)
        return false;
    atomic_fetch_sub(&world->refuse, 1);
    return true;
}

static enum idem_status
sum(struct idem_context *context, struct flow_sum_server_stream *stream,
    flow_sum_reply *reply)
{
    struct flow_world *world = enter(context);
    const flow_note *note;

    do {
        if (is_to_refuse(world, reply->count))
            return leave(context, IDEM_ABORTED);
        note = flow_sum_receive(stream);
        if (note) {
            reply->count++;
            reply->sum += note->number;
        }
    } while (note);
    return leave(context, IDEM_OK);
}

static enum idem_status
chat(struct idem_context *context, struct flow_chat_server_stream *stream)
{
    struct flow_world *world = enter(context);
    enum idem_status status = IDEM_OK;
    const flow_note *note;
    uint64_t read = 0;

    do {
        if (is_to_refuse(world, read))
            return leave(context, IDEM_ABORTED);
        note = flow_chat_receive(stream);
        read++;
        if (note)
            status = flow_chat_send(stream, note);
        if (note && status == IDEM_OK)
            count_up(world, &world->sent);
    } while (note && status == IDEM_OK);
    return leave(context, status);
}

static enum idem_status
say(struct idem_context *context, const flow_note *request, flow_note *reply)
{
    (void)context;
    reply->number = request->number;
    return IDEM_OK;
}

/* --- Handlers in callback style --- */

/* Of one stream, in its call's arena. */
struct flowing {
    struct flow_world *world;
    struct idem_context *context;
    uint64_t next, count, size;
    enum idem_status status;
    flow_sum_reply *reply;
};

static struct flowing *
begin(struct idem_context *context)
{
    struct flowing *flowing = idem_context_alloc(context, sizeof *flowing);

    flowing->world = enter(context);
    flowing->context = context;
    return flowing;
}

static void
count_on(struct flow_count_async_server_stream *stream)
{
    struct flowing *flowing = flow_count_async_server_user(stream);
    enum idem_status status = IDEM_OK;

    while (flowing->next <= flowing->count && status == IDEM_OK) {
        status = flow_count_async_send(
            stream, flow_note_of(flowing->next, flowing->size));
        if (status == IDEM_OK) {
            flowing->next++;
            count_up(flowing->world, &flowing->world->sent);
        }
    }
    if (flowing->next > flowing->count)
        flow_count_async_close(stream,
                               leave(flowing->context, flowing->status));
}

static void
count_end(struct flow_count_async_server_stream *stream,
          enum idem_status status)
{
    struct flowing *flowing = flow_count_async_server_user(stream);

    flow_count_async_close(stream, leave(flowing->context, status));
}

static const struct flow_count_async_server_callbacks count_callbacks = {
    .writable = count_on,
    .end = count_end,
};

static enum idem_status
count_async(struct idem_context *context, const flow_count_request *request,
            struct flow_count_async_server_stream *stream)
{
    struct flowing *flowing = begin(context);

    flowing->next = 1;
    flowing->count = request->count;
    flowing->size = request->size;
    flowing->status = (enum idem_status)request->status;
    flow_count_async_serve(stream, &count_callbacks, flowing);
    count_on(stream);
    return IDEM_OK;
}

static bool
sum_note(struct flow_sum_async_server_stream *stream, const flow_note *note)
{
    struct flowing *flowing = flow_sum_async_server_user(stream);

    flowing->reply->count++;
    flowing->reply->sum += note->number;
    return true;
}

static void
sum_end(struct flow_sum_async_server_stream *stream, enum idem_status status)
{
    struct flowing *flowing = flow_sum_async_server_user(stream);

    flow_sum_async_close(stream, leave(flowing->context, status));
}

static const struct flow_sum_async_server_callbacks sum_callbacks = {
    .message = sum_note,
    .end = sum_end,
};

static enum idem_status
sum_async(struct idem_context *context,
          struct flow_sum_async_server_stream *stream, flow_sum_reply *reply)
{
    struct flowing *flowing = begin(context);

    flowing->reply = reply;
    flow_sum_async_serve(stream, &sum_callbacks, flowing);
    return IDEM_OK;
}

static bool
chat_note(struct flow_chat_async_server_stream *stream, const flow_note *note)
{
    struct flowing *flowing = flow_chat_async_server_user(stream);

    if (flow_chat_async_send(stream, note) != IDEM_OK)
        return false;
    count_up(flowing->world, &flowing->world->sent);
    return true;
}

static void
chat_end(struct flow_chat_async_server_stream *stream, enum idem_status status)
{
    struct flowing *flowing = flow_chat_async_server_user(stream);

    flow_chat_async_close(stream, leave(flowing->context, status));
}

static const struct flow_chat_async_server_callbacks chat_callbacks = {
    .message = chat_note,
    .end = chat_end,
};

static enum idem_status
chat_async(struct idem_context *context,
           struct flow_chat_async_server_stream *stream)
{
    flow_chat_async_serve(stream, &chat_callbacks, begin(context));
    return IDEM_OK;
}

static const struct flow_handlers handlers = {
    .count = count,
    .sum = sum,
    .chat = chat,
    .count_async = count_async,
    .sum_async = sum_async,
    .chat_async = chat_async,
    .say = say,
};

/* --- The world --- */

static void
open_server(struct flow_world *world)
{
    struct flow_options *options = &world->options;
    struct idem_error err = {0};

    assert_int_equal(idem_server_new(&world->server, &options->server, &err),
                     IDEM_OK);
    if (options->on_server)
        assert_int_equal(
            idem_server_add(world->server, options->on_server, &err), IDEM_OK);
    assert_int_equal(flow_register(world->server, &handlers, world, &err),
                     IDEM_OK);
    if (idem_server_listen(world->server,
                           options->address ? options->address
                                            : "tcp://127.0.0.1:0",
                           &err) != IDEM_OK)
        fail_msg("%s", err.message);
    assert_int_equal(idem_server_start(world->server, &err), IDEM_OK);
    snprintf(world->address, sizeof world->address, "%s",
             idem_server_address(world->server, 0));
}

static void
open_channel(struct flow_world *world)
{
    struct flow_options *options = &world->options;
    struct idem_error err = {0};
    enum idem_status status =
        options->retries ? idem_client_open(&world->channel, world->address,
                                            &options->channel, &err)
                         : idem_channel_new(&world->channel, world->address,
                                            &options->channel, &err);

    if (status != IDEM_OK)
        fail_msg("%s", err.message);
    if (options->on_channel)
        assert_int_equal(
            idem_channel_add(world->channel, options->on_channel, &err),
            IDEM_OK);
}

void
flow_world_open(struct flow_world *world, const struct flow_options *options)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, fill_pattern);
    memset(world, 0, sizeof *world);
    if (options)
        world->options = *options;
    pthread_mutex_init(&world->lock, NULL);
    pthread_cond_init(&world->change, NULL);
    open_server(world);
    open_channel(world);
}

void
flow_world_close(struct flow_world *world)
{
    idem_channel_close(world->channel);
    idem_server_free(world->server);
    pthread_cond_destroy(&world->change);
    pthread_mutex_destroy(&world->lock);
}

void
flow_world_await(struct flow_world *world, atomic_uint *what, unsigned wanted)
{
    struct timespec end;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += AWAIT_S;
    pthread_mutex_lock(&world->lock);
    while (atomic_load(what) < wanted && rc == 0)
        rc = pthread_cond_timedwait(&world->change, &world->lock, &end);
    pthread_mutex_unlock(&world->lock);
    assert_int_equal(rc, 0);
}

void
flow_world_say(struct flow_world *world, uint64_t number)
{
    flow_note request = FLOW_NOTE_INIT;
    flow_note *reply = NULL;

    request.number = number;
    assert_int_equal(flow_say(world->channel, &request, &reply, NULL, NULL),
                     IDEM_OK);
    assert_int_equal(reply->number, number);
    flow_note_free(reply);
}
