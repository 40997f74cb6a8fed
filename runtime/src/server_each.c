#include "server_each.h"

#include "stream.h"

#include <idem/reason.h>

/* A stream whose messages take effect once each (decision 39). The stream's
 * call has walked down and stands at the endpoint. Each message is then a call
 * of its own, of method->each: it walks from the band LIMIT down to the
 * author's handler and back, under the key of its number, and knows nothing of
 * streams. The next one begins when it is over and recorded, so that no message
 * takes effect before the one in front of it.
 *
 *    OPEN -> chain -> [message -> limit, once -> handler -> once] -> END
 *                       |                                  |
 *                       +--- the next, while it says OK ---+
 *
 * The end of a client stream is one more such call, of method->end. What
 * anything else says ends the stream; its client begins it again behind the
 * watermark. */

static struct idem_stream *
stream_of(const struct each *each)
{
    return each->stream->call.stream;
}

/* --- The end of the stream's call --- */

static void
answer(struct each *each)
{
    each->answered = true;
    idem_call_resume(&each->stream->call.base, IDEM_ANSWER);
}

static void
end_with(struct each *each, const struct idem_error *err)
{
    idem_call_fail_with(&each->stream->call.base, IDEM_EFFECT_REFUSED, err);
    answer(each);
}

/* As the message ended, or the end; what they said lives as long as now. */
static void
end_as(struct each *each, const struct idem_call *now)
{
    struct idem_call *base = &each->stream->call.base;

    base->outcome = now->outcome;
    base->trailers = now->trailers;
    base->reply = now->reply;
    answer(each);
}

/* The client of a bidirectional stream has ended its side. */
static void
end_well(struct each *each)
{
    struct idem_call *base = &each->stream->call.base;

    base->outcome.status = IDEM_OK;
    base->outcome.effect = IDEM_EFFECT_COMMITTED;
    base->outcome.final = true;
    base->reply = idem_bytes_of("");
    answer(each);
}

/* --- A message that is over --- */

static bool
sends_replies(const struct each *each)
{
    return each->stream->call.base.method->streams & IDEM_STREAMS_SERVER;
}

/* The effect is what it is; the client cannot be told. That is the last word
 * only of an answer that it never takes. */
static void
end_without_reply(struct each *each, enum idem_status status)
{
    const struct idem_call *now = &each->now->call.base;
    struct idem_call *base = &each->stream->call.base;
    bool too_large = status == IDEM_RESOURCE_EXHAUSTED;

    idem_call_fail(base, status, now->outcome.effect,
                   too_large ? IDEM_REPLY_TOO_LARGE : NULL,
                   "the answer of %zu bytes to message %lld cannot be sent",
                   now->reply.size,
                   (long long)stream_of(each)->each->watermark + 1);
    base->outcome.final = too_large && now->outcome.final;
    answer(each);
}

/* False: the stream waits for room, or ends: then its client has not got the
 * reply, and asks for it again. */
static bool
send_reply(struct each *each)
{
    struct idem_stream *stream = stream_of(each);
    enum idem_status status = stream_send(stream, each->now->call.base.reply);

    if (status == IDEM_OK)
        return true;
    if (status != IDEM_UNAVAILABLE ||
        idem_call_interrupted_by(&stream->call->base) != IDEM_OK)
        end_without_reply(each, status);
    return false;
}

/* It is recorded. False: the stream waits for room for the reply, or ends. */
static bool
take_success(struct each *each)
{
    struct idem_stream *stream = stream_of(each);

    if (sends_replies(each) && !send_reply(each))
        return false;
    pthread_mutex_lock(&stream->lock);
    stream->each->watermark++;
    pthread_mutex_unlock(&stream->lock);
    return true;
}

/* True: the next may begin. */
static bool
conclude(struct each *each)
{
    const struct idem_call *now = &each->now->call.base;

    if (each->at_end || now->outcome.status != IDEM_OK) {
        end_as(each, now);
        return false;
    }
    if (!take_success(each))
        return false;
    call_unref(&each->now->call);
    each->now = NULL;
    return true;
}

/* --- The next one --- */

static bool
begin(struct each *each, const struct idem_method *method,
      struct idem_bytes request)
{
    struct idem_stream *stream = stream_of(each);
    struct server_call *call = each_message_new(each, method, request);
    struct idem_error err;

    if (!call) {
        (void)idem_fail(&err, IDEM_RESOURCE_EXHAUSTED,
                        "no memory for a message of %zu bytes", request.size);
        end_with(each, &err);
        return false;
    }
    call_ref(&call->call); /* ours; the first is the walk's */
    pthread_mutex_lock(&stream->lock);
    each->is_over = false;
    each->now = call;
    pthread_mutex_unlock(&stream->lock);
    call_begin_until(&call->call, INT64_MAX); /* the stream's ends it too */
    return true;
}

/* An end has no request, and must be no message that has none either: a field
 * that no .proto can declare (19,999), which says so. */
static bool
begin_end(struct each *each)
{
    static const uint8_t end[] = {0xFA, 0xE1, 0x09, 3, 'e', 'n', 'd'};

    each->at_end = true;
    return begin(each, each->stream->call.base.method->end,
                 (struct idem_bytes){end, sizeof end});
}

/* Nothing more is begun here. */
static bool
is_to_stop(struct each *each, struct idem_error *err)
{
    struct idem_stream *stream = stream_of(each);
    struct peer *peer = each->stream->peer;
    enum idem_status interrupt = idem_call_interrupted_by(&stream->call->base);
    bool draining;

    pthread_mutex_lock(&peer->lock);
    draining = peer->draining;
    pthread_mutex_unlock(&peer->lock);
    pthread_mutex_lock(&stream->lock);
    *err = stream->error;
    pthread_mutex_unlock(&stream->lock);
    if (err->status != IDEM_OK)
        return true;
    if (interrupt != IDEM_OK)
        (void)idem_fail(err, interrupt, "given up before its end");
    else if (draining)
        (void)idem_fail(err, IDEM_UNAVAILABLE, "the server is going away");
    return err->status != IDEM_OK;
}

static bool
has_ended(struct idem_stream *stream)
{
    bool ended;

    pthread_mutex_lock(&stream->lock);
    ended = stream->in_ended && stream->in.filling.size == 0;
    pthread_mutex_unlock(&stream->lock);
    return ended;
}

static void
tell(struct idem_stream *stream, bool rest)
{
    struct stream_each *numbers = stream->each;

    if (stream->call->base.method->streams & IDEM_STREAMS_SERVER)
        return; /* the replies do */
    if (numbers->watermark - numbers->told >= (rest ? 1 : STREAM_TELL_EVERY))
        stream_give_credit(stream);
}

/* False: there is nothing to begin now. */
static bool
begin_next(struct each *each)
{
    struct idem_stream *stream = stream_of(each);
    struct idem_bytes request;
    struct idem_error err;

    if (is_to_stop(each, &err)) {
        end_with(each, &err);
        return false;
    }
    tell(stream, false);
    if (stream_read_bytes(stream, &request))
        return begin(each, stream->call->base.method->each, request);
    if (stream->failed)
        return true; /* is_to_stop says why */
    if (!has_ended(stream)) {
        tell(stream, true);
        return false;
    }
    if (!sends_replies(each))
        return begin_end(each);
    end_well(each);
    return false;
}

/* --- Running --- */

/* The message that runs, or whose call is being begun; NULL: none. */
static struct server_call *
running(struct each *each)
{
    struct idem_stream *stream = stream_of(each);
    struct server_call *now;

    pthread_mutex_lock(&stream->lock);
    now = each->is_over ? NULL : each->now;
    pthread_mutex_unlock(&stream->lock);
    return now;
}

/* It is told that the stream was given up, and ends by itself. */
static void
pass_on_interrupt(struct each *each, struct server_call *now)
{
    enum idem_status interrupt =
        idem_call_interrupted_by(&each->stream->call.base);

    if (interrupt != IDEM_OK)
        call_interrupt(&now->call, interrupt);
}

void
server_each_due(struct idem_stream *stream)
{
    struct each *each = server_call_of(stream->call)->each;
    struct server_call *now = NULL;

    while (!each->answered && !(now = running(each))) {
        if (each->now && !conclude(each))
            return;
        if (!begin_next(each))
            return;
    }
    if (now)
        pass_on_interrupt(each, now);
}

enum idem_step
server_each_begin(struct server_call *call)
{
    struct idem_call *base = &call->call.base;
    struct idem_stream *stream = call->call.stream;
    struct each *each = idem_arena_zalloc(base->arena, sizeof *each);

    if (!each) {
        idem_call_fail(base, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED, NULL,
                       "out of memory");
        return IDEM_ANSWER;
    }
    each->stream = call;
    call->each = each;
    if (!idem_call_keep(base, NULL, NULL))
        return IDEM_ANSWER;
    call_ref(&call->call); /* it may be answered meanwhile */
    pthread_mutex_lock(&stream->lock);
    stream_each_begin(stream);
    pthread_mutex_unlock(&stream->lock);
    server_stream_let_deliver(stream);
    call_unref(&call->call);
    return IDEM_WAIT;
}

uint64_t
server_each_watermark(const struct server_call *call)
{
    return call->each ? (uint64_t)call->call.stream->each->watermark : 0;
}

void
server_each_fini(struct each *each)
{
    if (each && each->now)
        call_unref(&each->now->call);
}
