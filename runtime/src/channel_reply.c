#include "channel_inside.h"

#include "codec.h"
#include "message.h"
#include "stream.h"
#include "utf8.h"

#include <idem/reason.h>

#include <string.h>

/* END and what is beside it, read into the call that it ends; the reply as its
 * caller gets it. */

static void
take_text(char *text, size_t room, struct idem_bytes bytes)
{
    size_t size = bytes.size < room - 1 ? bytes.size : room - 1;

    if (size > 0)
        memcpy(text, bytes.data, size);
    text[size] = 0;
    if (size > 0)
        utf8_repair(text); /* a server of somebody else's making; or cut */
}

static void
take_outcome(struct idem_outcome *outcome, const struct header_end *end)
{
    outcome->status = end->status <= IDEM_UNAUTHENTICATED
                          ? (enum idem_status)end->status
                          : IDEM_UNKNOWN;
    /* A server's END came from a server: what says "not sent" says nothing. */
    outcome->effect = end->effect > IDEM_EFFECT_NOT_SENT &&
                              end->effect <= IDEM_EFFECT_IN_DOUBT
                          ? (enum idem_effect)end->effect
                          : IDEM_EFFECT_IN_DOUBT;
    outcome->final = end->final;
    outcome->first_at_ms = end->first_at_ms;
    outcome->executions = end->executions;
    outcome->rebuilt = end->rebuilt;
    outcome->server_time_ms = end->server_time_ms;
    outcome->watermark = (int64_t)end->watermark;
    outcome->retry_after_ms = -1;
    if (end->has_retry_after)
        outcome->retry_after_ms = end->retry_after_ms <= INT64_MAX
                                      ? (int64_t)end->retry_after_ms
                                      : IDEM_RETRY_NEVER;
    take_text(outcome->message, sizeof outcome->message, end->message);
    take_text(outcome->reason, sizeof outcome->reason, end->reason);
}

static void
note_skew(struct idem_channel *channel, int64_t server_ms)
{
    const struct idem_clock *clock = channel->clock;

    if (server_ms > 0)
        atomic_store_explicit(&channel->skew_ms,
                              server_ms - clock->wall_ms(clock),
                              memory_order_relaxed);
}

static void
refuse_large(struct client_call *call, size_t size)
{
    struct idem_call *base = &call->call.base;

    idem_call_fail(base, IDEM_RESOURCE_EXHAUSTED, base->outcome.effect,
                   IDEM_REPLY_TOO_LARGE,
                   "the reply is %zu bytes, the channel takes %zu", size,
                   call->channel->options.max_message);
}

static void
refuse_no_memory(struct idem_call *base, size_t size)
{
    idem_call_fail(base, IDEM_RESOURCE_EXHAUSTED, base->outcome.effect, NULL,
                   "no memory for a reply of %zu bytes", size);
}

static void
open_reply(struct client_call *call, struct idem_bytes squeezed)
{
    struct idem_call *base = &call->call.base;
    struct idem_bytes reply = {0};

    switch (codec_open(&reply, squeezed, call->channel->options.max_message,
                       base->arena)) {
    case CODEC_OPENED:
        base->reply = reply;
        break;
    case CODEC_OVERSIZE:
        refuse_large(call, reply.size);
        break;
    case CODEC_NO_MEMORY:
        refuse_no_memory(base, reply.size);
        break;
    case CODEC_BROKEN:
        idem_call_fail(base, IDEM_INTERNAL, base->outcome.effect,
                       IDEM_BAD_COMPRESSION,
                       "the reply cannot be made of its %zu compressed bytes",
                       squeezed.size);
        break;
    }
}

static void
take_reply(struct client_call *call, const struct frame *frame)
{
    struct idem_call *base = &call->call.base;
    const uint8_t *copy;

    if (frame->oversize) {
        refuse_large(call, frame->payload.size);
        return;
    }
    if (frame->flags & FRAME_FLAG_SQUEEZED) {
        open_reply(call, frame->payload);
        return;
    }
    copy = idem_arena_copy(base->arena, frame->payload);
    if (copy)
        base->reply = (struct idem_bytes){copy, frame->payload.size};
    else
        refuse_no_memory(base, frame->payload.size);
}

/* What took effect, by the END of a stream that says so. */
static bool
take_watermark(struct client_call *call, const struct header_end *end)
{
    struct idem_stream *stream = call->call.stream;
    struct idem_error err;
    enum idem_status status;

    pthread_mutex_lock(&stream->lock);
    status =
        stream_each_end(stream, end->watermark, end->status == IDEM_OK, &err);
    pthread_mutex_unlock(&stream->lock);
    stream_note_advance(stream);
    if (status != IDEM_OK)
        idem_call_fail_with(&call->call.base, IDEM_EFFECT_IN_DOUBT, &err);
    return status == IDEM_OK;
}

void
channel_take_end(struct client_call *call, const struct frame *frame)
{
    struct idem_call *base = &call->call.base;
    struct header_end end;
    struct idem_error err;

    if (!header_end_read(frame->header, &end)) {
        idem_call_fail(base, IDEM_INTERNAL, IDEM_EFFECT_IN_DOUBT, NULL,
                       "the server's END cannot be read");
        return;
    }
    take_outcome(&base->outcome, &end);
    note_skew(call->channel, end.server_time_ms);
    if (base->outcome.effect == IDEM_EFFECT_REFUSED)
        call->tried |= call->bit;
    if (base->method->each && !take_watermark(call, &end))
        return;
    if (header_end_trailers(end.trailers, &base->trailers, base->arena, &err) !=
        IDEM_OK) {
        idem_call_fail_with(base, base->outcome.effect, &err);
        return;
    }
    if (end.status == IDEM_OK)
        take_reply(call, frame);
}

/* What came is not what the method says: the effect stands all the same. */
static void
fail_reply(struct idem_call *base, const struct idem_error *err)
{
    struct idem_outcome *outcome = &base->outcome;
    bool final = outcome->final;

    idem_call_fail(base, IDEM_INTERNAL, outcome->effect, err->reason,
                   "the reply: %s", err->message);
    outcome->final = final;
}

static struct idem_message_limits
reply_limits(const struct client_call *call)
{
    return (struct idem_message_limits){.max_size =
                                            call->channel->options.max_message};
}

struct ProtobufCMessage *
channel_unpack_reply(struct client_call *call)
{
    struct idem_message_limits limits = reply_limits(call);
    struct idem_call *base = &call->call.base;
    struct ProtobufCMessage *reply = NULL;
    struct idem_error err;

    if (base->outcome.status == IDEM_OK &&
        message_unpack_in_place(base->method->reply, base->reply, &limits,
                                base->arena, &reply, &err) != IDEM_OK)
        fail_reply(base, &err);
    return base->outcome.status == IDEM_OK ? reply : NULL;
}

void
channel_unpack_for_caller(struct client_call *call,
                          struct ProtobufCMessage **reply)
{
    struct idem_call *base = &call->call.base;
    struct idem_message_limits limits = reply_limits(call);
    struct idem_error err;

    if (!reply || base->outcome.status != IDEM_OK)
        return;
    if (message_unpack_heap(base->method->reply, base->reply, &limits, reply,
                            &err) != IDEM_OK)
        fail_reply(base, &err);
}
