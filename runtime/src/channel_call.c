#include "channel_inside.h"

#include "arena.h"
#include "parent.h"
#include "slab.h"
#include "stream.h"
#include "worker.h"

#include <stdlib.h>
#include <string.h>

/* 100,000 calls may be in flight (2 KiB each and the message): the first slab
 * is of the smallest size. Beside the call itself it has room for its key, what
 * interceptors keep, a small request. */
#define ARENA_FIRST (SLAB_SIZE_MIN - ARENA_HEAD)
#define ARENA_SPARE 544

_Static_assert(sizeof(struct client_call) + ARENA_SPARE <= ARENA_FIRST,
               "a client's call has outgrown the smallest slab");

/* A call of the client: begun, walked, told; and its handle. */

static _Thread_local struct client_call *starting; /* on this stack */
static _Thread_local unsigned callbacks;           /* on this stack */

bool
channel_in_callback(void)
{
    return callbacks > 0 || connection_on_thread();
}

void
channel_enter_callback(void)
{
    waiter_wake_told();
    callbacks++;
}

void
channel_leave_callback(void)
{
    callbacks--;
}

bool
channel_is_starting(const struct client_call *call)
{
    return starting == call;
}

/* --- Past the top --- */

void
channel_leave(struct client_call *call)
{
    struct idem_channel *channel = call->channel;

    pthread_mutex_lock(&channel->lock);
    *call->link_in_all = call->next;
    if (call->next)
        call->next->link_in_all = call->link_in_all;
    channel->n_calls--;
    if (channel->n_calls == 0 && channel->closing)
        pthread_cond_broadcast(&channel->idle);
    pthread_mutex_unlock(&channel->lock);
}

void
channel_tell(struct client_call *call)
{
    struct ProtobufCMessage *reply = channel_unpack_reply(call);
    struct idem_call *base = &call->call.base;

    channel_enter_callback();
    call->done(base, reply, &base->outcome, call->author);
    channel_leave_callback();
    channel_leave(call);
}

static void
fire_later(struct idem_timer *timer)
{
    struct client_call *call =
        (struct client_call *)((char *)timer -
                               offsetof(struct client_call, later));

    channel_tell(call);
    call_unref(&call->call);
}

static void
finish(struct call *base)
{
    struct client_call *call = client_call_of(base);

    atomic_fetch_sub(&call->channel->buffered, call->room);
    if (base->stream) {
        channel_stream_over(call);
    } else if (call->waiter) {
        channel_leave(call);
        gather_told(call->channel);
        waiter_tell(call->channel, call->waiter);
    } else if (call->channel->loop_fd >= 0) {
        loop_put(call);
    } else if (starting == call) {
        call_ref(base);
        call->later.fire = fire_later;
        idem_timer_start(call->channel->timers, &call->later, 0);
    } else {
        channel_tell(call);
    }
}

static void
free_call(struct call *base)
{
    struct idem_channel *channel = client_call_of(base)->channel;

    stream_fini(base->stream);
    call_fini(base); /* and with the arena the call itself */
    channel_unref(channel);
}

static struct call *fork_call(struct call *base);

static const struct call_ops client_call_ops = {
    channel_send, finish, free_call, fork_call, channel_stream_interrupted,
};

/* --- Making one --- */

static struct client_call *
bare_call(struct idem_channel *channel, const struct idem_method *method)
{
    struct idem_arena *arena = arena_new(ARENA_FIRST, 0);
    struct client_call *call =
        arena ? idem_arena_alloc(arena, sizeof *call) : NULL;

    IDEM_ASSERT(call);
    call_init(&call->call, &client_call_ops, &channel->chain, arena);
    memset(&call->call + 1, 0, sizeof *call - sizeof call->call);
    call->call.base.method = method;
    call->call.base.clock = channel->clock;
    call->call.base.timers = channel->timers;
    call->channel = channel;
    atomic_fetch_add_explicit(&channel->refs, 1, memory_order_relaxed);
    return call;
}

struct client_call *
channel_new_call(struct idem_channel *channel, const struct idem_method *method,
                 const struct idem_call_options *options)
{
    struct client_call *call = bare_call(channel, method);

    call->call.base.deadline_ns =
        channel_deadline_ns(channel, method, options, parent_of(options));
    call->wait_for_ready = options->wait_for_ready;
    call->fail_fast = options->fail_fast;
    call->no_compression = options->no_compression;
    call->user = options->user;
    call_ref_unseen(&call->call, 2);
    return call;
}

/* An attempt is not among the channel's calls: its call is, and waits for it.
 */
static struct call *
fork_call(struct call *base)
{
    const struct client_call *call = client_call_of(base);
    struct idem_channel *channel = call->channel;
    struct client_call *attempt = bare_call(channel, base->base.method);

    pthread_mutex_lock(&channel->lock);
    attempt->tried = call->tried;
    pthread_mutex_unlock(&channel->lock);
    attempt->wait_for_ready = call->wait_for_ready;
    attempt->no_compression = call->no_compression;
    attempt->squeezed = call->squeezed;
    attempt->user = call->user;
    return &attempt->call;
}

/* Its request waits or flies from now on. */
static enum idem_status
take_room(struct client_call *call, struct idem_error *err)
{
    struct idem_channel *channel = call->channel;
    size_t size = call->call.base.request.size;
    size_t before = atomic_fetch_add(&channel->buffered, size);

    call->room = size;
    if (before + size <= channel->options.max_buffered)
        return IDEM_OK;
    return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                     "%zu bytes of requests wait or fly, the channel takes "
                     "%zu",
                     before, channel->options.max_buffered);
}

/* Count the call in. From now on close waits for it. */
static void
enter(struct client_call *call)
{
    struct idem_channel *channel = call->channel;

    pthread_mutex_lock(&channel->lock);
    if (!channel->chain.sealed)
        chain_seal(&channel->chain);
    channel->n_calls++;
    call->next = channel->calls;
    call->link_in_all = &channel->calls;
    if (call->next)
        call->next->link_in_all = &call->next;
    channel->calls = call;
    pthread_mutex_unlock(&channel->lock);
}

static bool
waits_for_itself(const struct client_call *call)
{
    return call->call.stream && call->call.stream->blocks &&
           channel_in_callback();
}

static enum idem_status
fail_blocking(struct idem_error *err)
{
    return idem_fail(err, IDEM_FAILED_PRECONDITION,
                     "a blocking call inside a callback of the library would "
                     "wait for itself");
}

/* Walk it down, or turn it away before the chain. */
void
channel_run(struct client_call *call, const struct ProtobufCMessage *request,
            const struct idem_call_options *options)
{
    struct idem_call *base = &call->call.base;
    struct idem_error err;
    enum idem_status status = channel_take(call, request, options, &err);
    struct client_call *outer = starting;

    starting = call;
    enter(call);
    if (status == IDEM_OK)
        status = take_room(call, &err);
    if (status == IDEM_OK && waits_for_itself(call))
        status = fail_blocking(&err);
    if (status == IDEM_OK) {
        call_begin_with(&call->call);
    } else {
        idem_call_fail_with(base, IDEM_EFFECT_NOT_SENT, &err);
        call_note_key(base);
        finish(&call->call);
        call_unref(&call->call); /* the walk's, and this thread's */
        call_unref(&call->call);
    }
    starting = outer;
}

static const struct idem_call_options no_options;

struct idem_call *
idem_channel_start(struct idem_channel *channel,
                   const struct idem_method *method,
                   const struct ProtobufCMessage *request,
                   const struct idem_call_options *options,
                   idem_call_done_fn *done, void (*author)(void))
{
    struct client_call *call;

    options = options ? options : &no_options;
    call = channel_new_call(channel, method, options);
    call->done = done;
    call->author = author;
    channel_run(call, request, options);
    return &call->call.base;
}

static void
wait_for(struct idem_channel *channel, struct waiter *waiter)
{
    workers_will_block();
    if (waiter->holds)
        gather_await(channel, waiter);
    (void)waiter_wait(channel, waiter, INT64_MAX);
    gather_awake(channel);
}

static enum idem_status
refuse_blocking(struct idem_outcome *outcome)
{
    struct idem_error err;

    fail_blocking(&err);
    if (outcome) {
        *outcome =
            (struct idem_outcome){.status = err.status, .retry_after_ms = -1};
        memcpy(outcome->message, err.message, sizeof outcome->message);
    }
    return err.status;
}

enum idem_status
idem_channel_call(struct idem_channel *channel,
                  const struct idem_method *method,
                  const struct ProtobufCMessage *request,
                  struct ProtobufCMessage **reply,
                  const struct idem_call_options *options,
                  struct idem_outcome *outcome)
{
    struct waiter waiter;
    struct client_call *call;
    struct idem_call *base;
    enum idem_status status;

    options = options ? options : &no_options;
    if (options->trailers)
        *options->trailers = (struct idem_metadata){0};
    if (channel_in_callback())
        return refuse_blocking(outcome);
    call = channel_new_call(channel, method, options);
    base = &call->call.base;
    waiter_init(&waiter);
    call->waiter = &waiter;
    channel_run(call, request, options);
    wait_for(channel, &waiter);
    channel_unpack_for_caller(call, reply);
    if (options->trailers)
        channel_copy_trailers(options->trailers, &base->trailers);
    if (outcome)
        *outcome = base->outcome;
    status = base->outcome.status;
    call_unref(&call->call);
    return status;
}

/* --- Handles --- */

static struct client_call *
of_handle(const struct idem_call *handle)
{
    return (struct client_call *)(uintptr_t)handle;
}

void
idem_call_cancel(struct idem_call *handle)
{
    call_interrupt(&of_handle(handle)->call, IDEM_CANCELLED);
}

void *
idem_call_user(const struct idem_call *handle)
{
    return of_handle(handle)->user;
}

void
idem_call_wait_for_ready(struct idem_call *base)
{
    struct client_call *call = of_handle(base);

    if (!call->fail_fast)
        call->wait_for_ready = true;
}

void
idem_call_release(struct idem_call *handle)
{
    if (handle)
        call_unref(&of_handle(handle)->call);
}
