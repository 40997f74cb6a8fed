#include "server_inside.h"

#include "stream.h"

#include <idem/reason.h>

/* A server stream with a mode has two handlers. The effect's is the call's,
 * once by its key: what it keeps is the record's reply. When that is recorded,
 * or was before, the messages' reads what the effect left and writes, from
 * where the client stands; END says the effect of the record and how the
 * messages ended.
 *
 *    OPEN -> chain -> effect -> record -> chain -> messages -> END
 *                       |  already recorded  ^
 *                       +--------------------+
 */

bool
server_resume_take(struct server_call *call, const struct header_open *open)
{
    struct idem_stream *stream = call->call.stream;

    call->context.kept = idem_bytes_of("");
    stream->skip = open->resume_after;
    stream->token.size = open->resume_token.size;
    stream->token.data =
        idem_arena_copy(call->call.base.arena, open->resume_token);
    return stream->token.data;
}

/* The record stays what it is, whatever becomes of the messages. */
static void
end_messages(struct server_call *call, enum idem_status status)
{
    struct idem_call *base = &call->call.base;
    const struct idem_error *said = &call->context.error;

    call_disarm(&call->call);
    if (status != IDEM_OK)
        idem_call_fail(base, status, base->outcome.effect, said->reason, "%s",
                       said->message);
    server_call_end(call);
    call_unref(&call->call);
}

static void
run_messages(struct job *job)
{
    struct server_call *call = server_call_of_job(job);
    const struct idem_call *base = &call->call.base;
    struct idem_context *context = &call->context, *before;
    enum idem_status status;

    context->error = (struct idem_error){.status = IDEM_OK};
    before = context_enter(context);
    status = base->method->messages(call->entry->handlers, context,
                                    base->message, NULL);
    (void)context_enter(before);
    end_messages(call, server_stream_verdict(call, status));
}

bool
server_resume_begin(struct server_call *call)
{
    struct idem_call *base = &call->call.base;

    if (!base->method->messages || base->outcome.status != IDEM_OK ||
        idem_call_interrupted(base))
        return false;
    call->context.kept = base->reply;
    call_ref(&call->call); /* end_messages drops it */
    call->job.run = run_messages;
    call->job.kind = NULL;
    call_arm_again(&call->call);
    if (workers_push(call->peer->server->workers, &call->job))
        return true;
    call_disarm(&call->call);
    call_unref(&call->call);
    idem_call_fail(base, IDEM_RESOURCE_EXHAUSTED, base->outcome.effect,
                   IDEM_OVERLOADED, "%u calls wait for a worker",
                   call->peer->server->options.max_queued);
    return false;
}

enum idem_status
idem_context_keep(struct idem_context *context, struct idem_bytes bytes,
                  struct idem_error *err)
{
    struct server_call *call = server_call_of_context(context);
    const uint8_t *copy = idem_arena_copy(context->arena, bytes);

    IDEM_ASSERT(call->call.base.method->messages);
    if (!copy)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                         "no memory to keep %zu bytes", bytes.size);
    call->context.kept = (struct idem_bytes){copy, bytes.size};
    return IDEM_OK;
}

struct idem_bytes
idem_stream_kept(const struct idem_stream *stream)
{
    return server_call_of(stream->call)->context.kept;
}

struct idem_bytes
idem_stream_resumed_at(const struct idem_stream *stream)
{
    return stream->token;
}

void
idem_stream_mark(struct idem_stream *stream, struct idem_bytes mark)
{
    IDEM_ASSERT(mark.size <= HEADER_TOKEN_MAX);
    stream->mark = mark;
}
