#include "channel_inside.h"

#include "message.h"
#include "stream.h"
#include "worker.h"

#include <idem/reason.h>

#include <stdlib.h>
#include <string.h>

/* The client's end of streams: begun, fed by the link that its attempt is on,
 * told, given back. */

/* --- Its side --- */

static void
flush(struct connection *connection, bool now)
{
    (void)now;
    connection_flush(connection);
}

/* The server broke a rule, or sent what nobody can read: the call is given up,
 * and its outcome says why. */
static void
fail(struct idem_stream *stream, const struct idem_error *err)
{
    pthread_mutex_lock(&stream->lock);
    if (stream->error.status == IDEM_OK)
        stream->error = *err;
    pthread_mutex_unlock(&stream->lock);
    call_interrupt(stream->call, IDEM_CANCELLED);
}

static void
fire_stir(struct idem_timer *timer)
{
    struct client_call *call =
        (struct client_call *)((char *)timer -
                               offsetof(struct client_call, later));
    struct idem_stream *stream = call->call.stream;

    pthread_mutex_lock(&stream->lock);
    stream->stirring = false;
    pthread_mutex_unlock(&stream->lock);
    stream_stir(stream);
    call_unref(&call->call);
}

static void
stir_later(struct idem_stream *stream)
{
    struct client_call *call = client_call_of(stream->call);

    if (stream->stirring)
        return;
    stream->stirring = true;
    call_ref(&call->call);
    call->later.fire = fire_stir;
    idem_timer_start(call->channel->timers, &call->later, 0);
}

/* All is told: a timer that waits has nothing to do, and a channel that closes
 * does not wait for it. */
static void
stir_no_more(struct client_call *call)
{
    if (idem_timer_stop(call->channel->timers, &call->later))
        call_unref(&call->call);
}

static void
stir(struct idem_stream *stream)
{
    struct client_call *call = client_call_of(stream->call);

    if (call->channel->loop_fd >= 0) {
        loop_put(call);
    } else if (channel_is_starting(call)) {
        pthread_mutex_lock(&stream->lock);
        stir_later(stream);
        pthread_mutex_unlock(&stream->lock);
    } else {
        channel_stream_deliver(call);
    }
}

void
channel_stream_deliver(struct client_call *call)
{
    channel_enter_callback();
    stream_deliver(call->call.stream);
    channel_leave_callback();
}

/* What came before the end is taken first, unless the caller gave up. */
static enum stream_ending
ending(struct idem_stream *stream)
{
    bool over;

    pthread_mutex_lock(&stream->lock);
    over = stream->over;
    pthread_mutex_unlock(&stream->lock);
    if (!over)
        return STREAM_GOES_ON;
    return stream->failed ||
                   idem_call_interrupted_by(&stream->call->base) != IDEM_OK
               ? STREAM_ENDS_NOW
               : STREAM_ENDS;
}

/* A message that could not be used is why the call ended, whatever its server
 * said; what was done stays done. */
static void
blame_message(struct idem_stream *stream)
{
    struct idem_call *base = &stream->call->base;
    struct idem_error err;

    pthread_mutex_lock(&stream->lock);
    err = stream->error;
    pthread_mutex_unlock(&stream->lock);
    if (err.status != IDEM_OK)
        idem_call_fail_with(base, base->outcome.effect, &err);
}

static void
tell_end(struct idem_stream *stream)
{
    struct client_call *call = client_call_of(stream->call);
    struct idem_call *base = &call->call.base;
    struct ProtobufCMessage *reply = NULL;

    blame_message(stream);
    if (!(base->method->streams & IDEM_STREAMS_SERVER))
        reply = channel_unpack_reply(call);
    if (stream->glue->end)
        stream->glue->end(stream, stream->callbacks, reply, &base->outcome);
    stir_no_more(call);
    channel_leave(call);
    call_unref(&call->call); /* channel_stream_over's, not the last */
}

static const struct stream_side client_side = {
    .flush = flush,
    .fail = fail,
    .stir = stir,
    .stir_later = stir_later,
    .ending = ending,
    .tell_end = tell_end,
};

/* --- From the link --- */

/* With a reference; NULL: the link has no such stream. *why, when it never had.
 */
static struct client_call *
find(struct link *link, const struct frame *frame, const char **why)
{
    struct idem_channel *channel = link->channel;
    struct client_call *call;

    pthread_mutex_lock(&channel->lock);
    call = streams_find(&link->streams, frame->stream);
    if (frame->stream == 0 || frame->stream > link->last_stream)
        *why = "a message of a stream that was never opened";
    else if (call && !call->call.stream)
        *why = "a message of a call that is no stream";
    else if (call) {
        call_ref(&call->call);
        link_prove(link);
    }
    pthread_mutex_unlock(&channel->lock);
    return *why ? NULL : call;
}

const char *
channel_stream_frame(struct link *link, const struct frame *frame)
{
    const char *why = NULL;
    struct client_call *call = find(link, frame, &why);
    struct idem_stream *stream;
    struct idem_error err;
    enum idem_status status;

    if (!call)
        return why;
    stream = call->call.stream;
    status = frame->type == FRAME_MESSAGE
                 ? stream_take_message(stream, frame, &err)
                 : stream_take_window(stream, frame, &err);
    if (status != IDEM_OK)
        fail(stream, &err);
    else
        stream_stir(stream);
    call_unref(&call->call);
    return NULL;
}

void
channel_stream_roomy(void *with)
{
    struct link *link = with;
    struct idem_channel *channel = link->channel;
    struct client_call **calls;
    uint32_t n, first;

    pthread_mutex_lock(&channel->lock);
    calls = (struct client_call **)streams_all(&link->streams, &n);
    for (uint32_t i = 0; i < n; i++)
        call_ref(&calls[i]->call);
    first = link->roomy_turn++;
    pthread_mutex_unlock(&channel->lock);
    for (uint32_t i = 0; i < n; i++) {
        struct client_call *call = calls[(first + i) % n];

        if (call->call.stream)
            stream_wake(call->call.stream);
        call_unref(&call->call);
    }
    free(calls);
}

void
channel_stream_over(struct client_call *call)
{
    struct idem_stream *stream = call->call.stream;

    if (stream->each)
        stream_each_conclude(stream);
    if (stream->blocks)
        channel_leave(call);
    else
        call_ref(&call->call); /* until end has run */
    stream_over(stream, NULL);
    stream_stir(stream);
}

void
channel_stream_interrupted(struct call *call)
{
    if (call->stream)
        stream_stir(call->stream);
}

/* --- The caller's --- */

static struct idem_stream *
begin(struct idem_channel *channel, const struct idem_method *method,
      const struct ProtobufCMessage *request,
      const struct idem_call_options *options,
      const struct idem_stream_glue *glue, const void *callbacks)
{
    static const struct idem_call_options no_options;
    struct client_call *call;
    struct idem_stream *stream;

    options = options ? options : &no_options;
    call = channel_new_call(channel, method, options);
    stream = stream_new(&call->call, false, &client_side,
                        channel->options.max_message,
                        channel->options.stream_window);
    IDEM_ASSERT(stream);
    if (!options->no_compression)
        stream_compress(stream, &channel->options.compression);
    stream->blocks = !glue;
    stream->keeps =
        method->each || ((method->streams & IDEM_STREAMS_CLIENT) &&
                         chain_has_band(&channel->chain, IDEM_BAND_RETRY));
    stream->glue = glue;
    stream->callbacks = callbacks;
    stream->user = options->user;
    stream->trailers = glue ? NULL : options->trailers;
    if (stream->trailers)
        *stream->trailers = (struct idem_metadata){0};
    channel_run(call, request, options);
    return stream;
}

struct idem_stream *
idem_stream_open(struct idem_channel *channel, const struct idem_method *method,
                 const struct ProtobufCMessage *request,
                 const struct idem_call_options *options)
{
    return begin(channel, method, request, options, NULL, NULL);
}

struct idem_stream *
idem_stream_start(struct idem_channel *channel,
                  const struct idem_method *method,
                  const struct ProtobufCMessage *request,
                  const struct idem_call_options *options,
                  const struct idem_stream_glue *glue, const void *callbacks)
{
    return begin(channel, method, request, options, glue, callbacks);
}

static void
await_over(struct idem_stream *stream)
{
    const struct idem_clock *clock = stream->call->base.clock;

    while (idem_stream_next(stream))
        ;
    workers_will_block();
    pthread_mutex_lock(&stream->lock);
    while (!stream->over)
        clock->wait_until(clock, &stream->changed, &stream->lock, INT64_MAX);
    pthread_mutex_unlock(&stream->lock);
}

enum idem_status
idem_stream_finish(struct idem_stream *stream, struct ProtobufCMessage **reply,
                   struct idem_outcome *outcome)
{
    struct client_call *call = client_call_of(stream->call);
    struct idem_call *base = &call->call.base;
    enum idem_status status;

    IDEM_ASSERT(stream->blocks);
    idem_stream_end(stream);
    await_over(stream);
    blame_message(stream);
    channel_unpack_for_caller(call, reply);
    if (stream->trailers)
        channel_copy_trailers(stream->trailers, &base->trailers);
    if (outcome)
        *outcome = base->outcome;
    status = base->outcome.status;
    call_unref(&call->call);
    return status;
}

const struct idem_metadata *
idem_stream_trailers(const struct idem_stream *stream)
{
    return &stream->call->base.trailers;
}

void
idem_stream_cancel(struct idem_stream *stream)
{
    call_interrupt(stream->call, IDEM_CANCELLED);
}

void
idem_stream_release(struct idem_stream *stream)
{
    if (stream)
        call_unref(stream->call);
}
