#include "message.h"
#include "server_inside.h"
#include "stream.h"

#include <idem/reason.h>

/* The bottom of the server's chain: the author's handler, on a worker; when it
 * never blocks, on the thread that read the request; or on one of the store's
 * that is this call's alone (idem_context_set_here). */

#define FULL_RETRY_MS 100 /* more or less: not all come back together */

/* Of a deadline: the look-out may come too late to say that a job waits. */
#define SOON_NS 10000000

void
endpoint_pack(struct server_call *call, const struct ProtobufCMessage *reply)
{
    struct idem_call *base = &call->call.base;
    size_t limit = call->peer->server->options.max_message;
    struct idem_error err;

    if (idem_message_pack(reply, call->context.arena, &base->reply, &err) !=
        IDEM_OK)
        idem_call_fail(base, IDEM_INTERNAL, IDEM_EFFECT_ROLLED_BACK, err.reason,
                       "the reply: %s", err.message);
    else if (base->reply.size > limit)
        idem_call_fail(base, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_ROLLED_BACK,
                       IDEM_REPLY_TOO_LARGE,
                       "the reply is %zu bytes, the server sends %zu",
                       base->reply.size, limit);
}

/* Which methods there are is the server's to know. */
const struct idem_method *
idem_context_method(const struct idem_context *context, const char *name)
{
    const struct server_call *call = server_call_of_context(context);
    const struct method_table *methods = &call->peer->server->methods;
    const struct method_entry *entry =
        method_table_find(methods, idem_bytes_of(name));

    if (!entry)
        entry = method_table_find_scope(methods, name);
    return entry ? entry->method : NULL;
}

struct ProtobufCMessage *
endpoint_begin(struct server_call *call)
{
    struct idem_call *base = &call->call.base;
    struct ProtobufCMessage *reply =
        message_new(base->method->reply, call->context.arena);

    IDEM_ASSERT(base->message || base->method->streams & IDEM_STREAMS_CLIENT);
    if (!reply) {
        idem_call_fail(base, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED, NULL,
                       "out of memory");
        return NULL;
    }
    call->call.sent = true;
    context_begin(&call->context);
    return reply;
}

/* Calls that the author's code makes are children of this one (parent.c). */
static enum idem_status
enter_code(struct server_call *call, idem_invoke_fn *code,
           struct ProtobufCMessage *reply)
{
    struct idem_context *before = context_enter(&call->context);
    enum idem_status status = code(call->entry->handlers, &call->context,
                                   call->call.base.message, reply);

    (void)context_enter(before);
    return status;
}

/* What the author's code said is what came of the call. */
static void
end_code(struct server_call *call, enum idem_status status,
         const struct ProtobufCMessage *reply)
{
    struct idem_call *base = &call->call.base;

    if (base->method->streams && !base->method->messages)
        status = server_stream_verdict(call, status);
    context_end(&call->context, status);
    if (base->outcome.status != IDEM_OK ||
        call->context.task == IDEM_TASK_STATE)
        return;
    if (base->method->messages)
        base->reply = call->context.kept;
    else if (base->method->streams & IDEM_STREAMS_SERVER)
        base->reply = idem_bytes_of(""); /* its messages were all */
    else
        endpoint_pack(call, reply);
}

static void
invoke(struct server_call *call, idem_invoke_fn *code)
{
    struct ProtobufCMessage *reply = endpoint_begin(call);

    if (reply)
        end_code(call, enter_code(call, code, reply), reply);
}

/* False, as below: the handler keeps the call and answers later. */
static bool
run_handler(struct server_call *call)
{
    if (call->later)
        return !later_run(call);
    invoke(call, call->call.base.method->invoke);
    return true;
}

/* An execution before this one ended half-way: what became of it comes first.
 */
static bool
probe_and_run(struct server_call *call)
{
    struct idem_call *base = &call->call.base;
    struct ProtobufCMessage *reply = endpoint_begin(call);
    enum idem_probed probed = IDEM_PROBED_UNKNOWN;
    struct idem_context *before;

    if (!reply)
        return true;
    before = context_enter(&call->context);
    if (base->method->probe)
        probed = base->method->probe(call->entry->handlers, &call->context,
                                     base->message, reply);
    (void)context_enter(before);
    context_end_probe(&call->context, probed);
    if (probed == IDEM_PROBED_NOT_DONE)
        return run_handler(call);
    if (base->outcome.status == IDEM_OK)
        endpoint_pack(call, reply);
    return true;
}

void
endpoint_run(struct idem_context *context)
{
    invoke(server_call_of_context(context), context->call->method->invoke);
}

static bool
run_task(struct server_call *call)
{
    switch (call->context.task) {
    case IDEM_TASK_RUN:
    case IDEM_TASK_STATE:
        return run_handler(call);
    case IDEM_TASK_PROBE:
        return probe_and_run(call);
    case IDEM_TASK_REBUILD:
        invoke(call, call->call.base.method->rebuild);
        break;
    }
    return true;
}

/* Nobody waits for it any more, and it was not begun (case B047). */
static void
refuse_late(struct server_call *call)
{
    unsigned interrupt = atomic_load(&call->call.interrupt);

    if (interrupt == IDEM_OK || interrupt == IDEM_DEADLINE_EXCEEDED)
        idem_call_fail(&call->call.base, IDEM_DEADLINE_EXCEEDED,
                       IDEM_EFFECT_REFUSED, NULL,
                       "the deadline was over before the handler began");
    else
        idem_call_fail(&call->call.base, (enum idem_status)interrupt,
                       IDEM_EFFECT_REFUSED, NULL,
                       "given up before the handler began");
}

/* On this thread. False: the handler keeps it. */
static bool
run(struct server_call *call)
{
    if (!idem_call_interrupted(&call->call.base))
        return run_task(call);
    refuse_late(call);
    return true;
}

static void
run_job(struct job *job)
{
    struct server_call *call = server_call_of_job(job);

    /* A handler with an effect may take long: no reply of a job before waits
     * for it. */
    if (call->call.base.method->mode != IDEM_MODE_NONE)
        workers_let_go();
    if (run(call))
        idem_call_resume(&call->call.base, IDEM_ANSWER);
}

static bool
withdraw(struct idem_call *base, void *with)
{
    struct server_call *call = with;

    (void)base;
    if (workers_withdraw(call->peer->server->workers, &call->job))
        return true;
    if (call->later)
        later_give_up(call->later);
    return false;
}

void
endpoint_refuse_full(struct server_call *call)
{
    struct idem_call *base = &call->call.base;

    idem_call_fail(base, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED,
                   IDEM_OVERLOADED, "%u calls wait for a worker",
                   call->peer->server->options.max_queued);
    base->outcome.retry_after_ms = idem_clock_between(
        base->clock, FULL_RETRY_MS / 2, FULL_RETRY_MS * 3 / 2);
}

/* --- Sending down --- */

static const struct idem_holder holder = {.withdraw = withdraw};

static bool
is_for_here(const struct server_call *call)
{
    return call->context.here ||
           (call->call.base.method->dispatch == IDEM_DISPATCH_INLINE &&
            connection_on_thread());
}

/* A job that waits looks at its deadline for itself from then on. */
static void
job_waits(struct job *job)
{
    call_arm(&server_call_of_job(job)->call);
}

/* Until a worker comes for it. What runs on one is interrupted by nothing but
 * its own looks at the time, unless it is a stream or answers later: it needs
 * no timer, and most calls run before they have waited (decision 53). */
static bool
keep_for_worker(struct server_call *call)
{
    struct idem_call *base = &call->call.base;

    if (call->call.stream || call->later ||
        idem_call_remaining_ns(base) < SOON_NS)
        return idem_call_keep(base, &holder, call);
    return call_keep_unarmed(&call->call, &holder, call);
}

/* Who runs in callbacks keeps the call until idem_stream_close. */
static enum idem_step
run_async(struct server_call *call)
{
    struct idem_call *base = &call->call.base;
    enum idem_status status;
    enum idem_step step;

    if (idem_call_interrupted(base)) {
        refuse_late(call);
        return IDEM_ANSWER;
    }
    call->reply = endpoint_begin(call);
    if (!call->reply || !idem_call_keep(base, NULL, NULL))
        return IDEM_ANSWER;
    call_ref(&call->call); /* it may be closed meanwhile */
    status = enter_code(call, base->method->invoke, call->reply);
    step = server_stream_served(call, status);
    if (step == IDEM_ANSWER)
        end_code(call, status, call->reply);
    call_unref(&call->call);
    return step;
}

void
endpoint_close(struct server_call *call, enum idem_status status)
{
    end_code(call, status, call->reply);
    idem_call_resume(&call->call.base, IDEM_ANSWER);
}

enum idem_step
endpoint_send(struct call *base)
{
    struct server_call *call = server_call_of(base);
    struct workers *workers = call->peer->server->workers;

    if (base->base.method->each)
        return server_each_begin(call);
    if (base->stream && !base->stream->blocks)
        return run_async(call);
    if (is_for_here(call))
        return run(call) ? IDEM_ANSWER : IDEM_WAIT;
    if (base->base.method->dispatch == IDEM_DISPATCH_ASYNC && !later_init(call))
        return IDEM_ANSWER;
    if (!keep_for_worker(call))
        return IDEM_ANSWER;
    call->job.run = run_job;
    call->job.waits = job_waits;
    call->job.kind = base->base.method->streams ? NULL : call->entry->kind;
    if (endpoint_gathers(call->peer)) {
        endpoint_gather_job(workers, &call->job);
        return IDEM_WAIT;
    }
    if (workers_push(workers, &call->job))
        return IDEM_WAIT;
    endpoint_refuse_full(call);
    return IDEM_ANSWER;
}
