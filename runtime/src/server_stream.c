#include "server_inside.h"

#include "stream.h"

#include <stdio.h>
#include <stdlib.h>

/* A handler's end of a stream: fed by its peer, in blocking style on a worker
 * or, with dispatch ASYNC, in callbacks. */

/* --- Its side --- */

static void
flush(struct connection *connection, bool now)
{
    if (!now) {
        endpoint_flush(connection);
        return;
    }
    if (workers_here())
        workers_let_go(); /* what other calls have left there */
    connection_flush(connection);
}

/* A message that cannot be used is how the call ends, whatever its handler
 * says (server_stream_verdict). */
static void
fail(struct idem_stream *stream, const struct idem_error *err)
{
    stream_over(stream, err);
}

/* Its room comes with frames, outside of any lock; nothing waits for later. */
static void
stir_later(struct idem_stream *stream)
{
    (void)stream;
}

static bool
has_client_ended(struct idem_stream *stream)
{
    bool ended;

    pthread_mutex_lock(&stream->lock);
    ended = stream->in_ended || stream->over;
    pthread_mutex_unlock(&stream->lock);
    return ended && (stream->call->base.method->streams & IDEM_STREAMS_CLIENT);
}

static enum stream_ending
ending(struct idem_stream *stream)
{
    if (stream->failed ||
        idem_call_interrupted_by(&stream->call->base) != IDEM_OK)
        return STREAM_ENDS_NOW;
    return has_client_ended(stream) ? STREAM_ENDS : STREAM_GOES_ON;
}

static void
tell_end(struct idem_stream *stream)
{
    struct idem_outcome outcome = {
        .status = idem_call_interrupted_by(&stream->call->base),
        .retry_after_ms = -1,
    };

    pthread_mutex_lock(&stream->lock);
    if (stream->error.status != IDEM_OK)
        outcome.status = stream->error.status;
    pthread_mutex_unlock(&stream->lock);
    if (stream->glue->end)
        stream->glue->end(stream, stream->callbacks, NULL, &outcome);
}

static const struct stream_side server_side = {
    .flush = flush,
    .fail = fail,
    .stir = stream_deliver,
    .stir_later = stir_later,
    .ending = ending,
    .tell_end = tell_end,
};

/* Each message is a call: server_each.c reads them, and writes the replies. */
static const struct stream_side each_side = {
    .flush = flush,
    .fail = fail,
    .stir = stream_deliver,
    .stir_later = stir_later,
    .due = server_each_due,
};

bool
server_stream_new(struct server_call *call)
{
    const struct idem_server_options *options = &call->peer->server->options;
    const struct idem_method *method = call->call.base.method;
    struct idem_stream *stream =
        stream_new(&call->call, true, method->each ? &each_side : &server_side,
                   options->max_message, options->stream_window);

    if (!stream)
        return false;
    stream_compress(stream, &options->compression);
    stream->blocks = !method->each && method->dispatch != IDEM_DISPATCH_ASYNC;
    /* Of the other style no callback runs before the handler has. */
    stream->delivering = !stream->blocks;
    stream_place(stream, call->peer->connection, call->stream);
    return true;
}

/* --- From the peer --- */

/* With a reference; NULL: its END is said, or it never was. */
static struct server_call *
find(struct peer *peer, uint32_t stream, bool *opened)
{
    struct server_call *call;

    pthread_mutex_lock(&peer->lock);
    call = streams_find(&peer->streams, stream);
    /* One that goes away does not count what it refuses. */
    *opened = stream > 0 && (stream <= peer->last_stream || peer->draining);
    if (call)
        call_ref(&call->call);
    pthread_mutex_unlock(&peer->lock);
    return call;
}

void
server_stream_unheard(struct server_call *call)
{
    call_interrupt(&call->call, IDEM_CANCELLED);
    /* Others may have interrupted it and be on their way to say so, or it goes
     * up its chain: whoever reads or writes it now must see that it is over. */
    if (call->call.stream)
        stream_over(call->call.stream, NULL);
}

/* The peer broke a rule: it is told at once and hears no more of the call, so
 * what others say of it stands before its END. */
static void
give_up(struct server_call *call, const struct idem_error *err)
{
    bool listens = peer_detach(call->peer, call->stream);

    server_stream_unheard(call);
    if (listens)
        peer_end(call->peer, &(struct frame){.stream = call->stream}, err,
                 IDEM_EFFECT_IN_DOUBT);
}

/* Nobody can be answered: the connection ends, and GOAWAY says why. */
static void
give_up_peer(struct peer *peer, const struct frame *frame)
{
    char why[64];

    snprintf(why, sizeof why, "%s of stream %u, which was never opened",
             frame->type == FRAME_MESSAGE ? "MESSAGE" : "WINDOW",
             frame->stream);
    peer_retire(peer, why);
    connection_finish(peer->connection);
}

static enum idem_status
take(struct server_call *call, const struct frame *frame,
     struct idem_error *err)
{
    struct idem_stream *stream = call->call.stream;

    if (!stream)
        return idem_fail(err, IDEM_INTERNAL,
                         "a message of stream %u, which is a unary call",
                         call->stream);
    return frame->type == FRAME_MESSAGE
               ? stream_take_message(stream, frame, err)
               : stream_take_window(stream, frame, err);
}

void
server_stream_frame(struct peer *peer, const struct frame *frame)
{
    bool opened;
    struct server_call *call = find(peer, frame->stream, &opened);
    struct idem_error err;

    if (!opened)
        give_up_peer(peer, frame);
    if (!call)
        return;
    if (take(call, frame, &err) != IDEM_OK)
        give_up(call, &err);
    else
        stream_stir(call->call.stream);
    call_unref(&call->call);
}

void
server_stream_roomy(void *with)
{
    struct peer *peer = with;
    struct server_call **calls;
    uint32_t n, first;

    pthread_mutex_lock(&peer->lock);
    calls = (struct server_call **)streams_all(&peer->streams, &n);
    for (uint32_t i = 0; i < n; i++)
        call_ref(&calls[i]->call);
    first = peer->roomy_turn++;
    pthread_mutex_unlock(&peer->lock);
    for (uint32_t i = 0; i < n; i++) {
        struct server_call *call = calls[(first + i) % n];

        if (call->call.stream)
            stream_wake(call->call.stream);
        call_unref(&call->call);
    }
    free(calls);
}

void
server_stream_interrupted(struct call *call)
{
    if (!call->stream)
        return;
    stream_over(call->stream, NULL);
    stream_stir(call->stream);
}

enum idem_status
server_stream_verdict(struct server_call *call, enum idem_status status)
{
    struct idem_stream *stream = call->call.stream;
    enum idem_status interrupt = idem_call_interrupted_by(&call->call.base);
    struct idem_error err;

    pthread_mutex_lock(&stream->lock);
    err = stream->error;
    pthread_mutex_unlock(&stream->lock);
    if (err.status != IDEM_OK)
        return idem_context_fail_with(&call->context, &err);
    if (status == IDEM_OK && interrupt != IDEM_OK)
        return idem_context_fail(&call->context, interrupt,
                                 "given up before its end");
    return status;
}

/* --- The handler's --- */

struct idem_stream *
idem_context_stream(const struct idem_context *context)
{
    return server_call_of_context(context)->call.stream;
}

struct idem_context *
idem_stream_context(const struct idem_stream *stream)
{
    return stream->call->base.context;
}

void
idem_stream_serve(struct idem_stream *stream,
                  const struct idem_stream_glue *glue, const void *callbacks,
                  void *user)
{
    IDEM_ASSERT(!stream->blocks);
    stream->glue = glue;
    stream->callbacks = callbacks;
    stream->user = user;
}

void
idem_stream_close(struct idem_stream *stream, enum idem_status status)
{
    struct server_call *call = server_call_of(stream->call);

    IDEM_ASSERT(stream->glue && !stream->closed);
    stream->closed = true;
    atomic_store(&stream->told, true);
    endpoint_close(call, status);
}

void
server_stream_let_deliver(struct idem_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->delivering = false;
    pthread_mutex_unlock(&stream->lock);
    stream_deliver(stream);
}

enum idem_step
server_stream_served(struct server_call *call, enum idem_status status)
{
    struct idem_stream *stream = call->call.stream;

    if (stream->closed)
        return IDEM_WAIT; /* resumed already */
    if (!stream->glue || status != IDEM_OK) {
        atomic_store(&stream->told, true);
        return IDEM_ANSWER;
    }
    server_stream_let_deliver(stream);
    return IDEM_WAIT;
}
