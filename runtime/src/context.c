#include "context.h"

#include "arena.h"
#include "blank.h"
#include "call.h"
#include "clock_held.h"
#include "metadata.h"
#include "utf8.h"

#include <idem/reason.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_MS 1000000
#define FRESH_FIRST 4096 /* bytes of a repeated execution's arena */

static _Thread_local struct idem_context *current;

struct idem_context *
context_enter(struct idem_context *context)
{
    struct idem_context *before = current;

    current = context;
    clock_go_on(context != NULL);
    return before;
}

struct idem_context *
context_current(void)
{
    return current;
}

void
context_init(struct idem_context *context, struct idem_call *call, void *user)
{
    memset(context, 0, offsetof(struct idem_context, error));
    blank_error(&context->error);
    context->call = call;
    context->arena = call->arena;
    context->user = user;
    call->context = context;
}

void
context_fini(struct idem_context *context)
{
    arena_free(context->fresh);
}

void
idem_context_renew(struct idem_context *context)
{
    context->call->reply = (struct idem_bytes){0};
    context->call->trailers = (struct idem_metadata){0};
    context->kept = idem_bytes_of("");
    context->made = NULL;
    if (context->fresh)
        arena_reset(context->fresh);
    else
        context->fresh = arena_new(FRESH_FIRST, 0);
    if (context->fresh)
        context->arena = context->fresh;
}

void
context_begin(struct idem_context *context)
{
    blank_error(&context->error);
    context->retry_after_ms = -1;
    context->made = NULL;
    context->call->trailers = (struct idem_metadata){0};
    call_note_key(context->call);
}

void
context_end(struct idem_context *context, enum idem_status status)
{
    struct idem_outcome *outcome = &context->call->outcome;

    if (status < IDEM_OK || status > IDEM_UNAUTHENTICATED)
        status = IDEM_UNKNOWN;
    outcome->status = status;
    outcome->effect =
        status == IDEM_OK ? IDEM_EFFECT_COMMITTED : IDEM_EFFECT_ROLLED_BACK;
    if (status == IDEM_OK)
        return;
    memcpy(outcome->reason, context->error.reason, sizeof(outcome->reason));
    memcpy(outcome->message, context->error.message, sizeof(outcome->message));
    utf8_repair(outcome->message);
    outcome->retry_after_ms = context->retry_after_ms;
}

/* Why the probe knows nothing is the best that a caller can be told. */
static void
say_in_doubt(struct idem_context *context)
{
    const char *why = context->error.status == IDEM_OK
                          ? "somebody has to resolve it"
                          : context->error.message;
    char said[sizeof(context->error.message)];

    memcpy(said, why, strlen(why) + 1);
    idem_call_fail(context->call, IDEM_ABORTED, IDEM_EFFECT_IN_DOUBT,
                   IDEM_KEY_IN_DOUBT,
                   "an execution of this key ended half-way, and its probe "
                   "does not know how: %s",
                   said);
    utf8_repair(context->call->outcome.message);
}

void
context_end_probe(struct idem_context *context, enum idem_probed probed)
{
    if (probed != IDEM_PROBED_DONE && probed != IDEM_PROBED_NOT_DONE)
        probed = IDEM_PROBED_UNKNOWN;
    context->probed = probed;
    if (probed == IDEM_PROBED_DONE)
        context_end(context, context->error.status);
    else if (probed == IDEM_PROBED_UNKNOWN)
        say_in_doubt(context);
}

void *
idem_context_user(const struct idem_context *context)
{
    return context->user;
}

enum idem_status
idem_context_fail(struct idem_context *context, enum idem_status status,
                  const char *format, ...)
{
    va_list args;

    context->error = (struct idem_error){.status = status};
    va_start(args, format);
    vsnprintf(context->error.message, sizeof(context->error.message), format,
              args);
    va_end(args);
    return status;
}

enum idem_status
idem_context_fail_with(struct idem_context *context,
                       const struct idem_error *err)
{
    context->error = *err;
    return err->status;
}

void
idem_context_retry_after(struct idem_context *context, int64_t ms)
{
    context->retry_after_ms = ms >= 0 ? ms : IDEM_RETRY_NEVER;
}

void
idem_context_send_plain(struct idem_context *context)
{
    context->plain = true;
}

void *
idem_context_alloc(struct idem_context *context, size_t size)
{
    void *memory = idem_arena_zalloc(context->arena, size);

    IDEM_ASSERT(memory);
    return memory;
}

char *
idem_context_printf(struct idem_context *context, const char *format, ...)
{
    va_list args;

    va_start(args, format);

    char *text = idem_arena_vprintf(context->arena, format, args);

    va_end(args);
    IDEM_ASSERT(text);
    return text;
}

struct idem_arena *
idem_context_arena(struct idem_context *context)
{
    return context->arena;
}

const char *
idem_context_key(const struct idem_context *context)
{
    return context->call->outcome.key;
}

unsigned
idem_context_attempt(const struct idem_context *context)
{
    return context->call->attempt;
}

int64_t
idem_context_fence(const struct idem_context *context)
{
    return context->fence;
}

bool
idem_context_owned(const struct idem_context *context)
{
    return !atomic_load_explicit(&context->lost, memory_order_acquire);
}

int64_t
idem_context_remaining_ms(const struct idem_context *context)
{
    int64_t remaining_ns = idem_call_remaining_ns(context->call);

    return remaining_ns == INT64_MAX ? INT64_MAX : remaining_ns / NS_PER_MS;
}

bool
idem_context_cancelled(const struct idem_context *context)
{
    return idem_call_interrupted(context->call);
}

struct idem_bytes
idem_context_tenant(const struct idem_context *context)
{
    return context->call->tenant;
}

const struct idem_principal *
idem_context_principal(const struct idem_context *context)
{
    return context->call->principal;
}

const struct idem_peer *
idem_context_peer(const struct idem_context *context)
{
    return context->call->peer;
}

const struct idem_metadata *
idem_context_metadata(const struct idem_context *context)
{
    return &context->call->metadata;
}

enum idem_status
idem_context_add_trailer(struct idem_context *context, const char *name,
                         const char *value, struct idem_error *err)
{
    if (metadata_is_reserved(idem_bytes_of(name)))
        return idem_fail(err, IDEM_INTERNAL,
                         "trailer \"%.64s\": names that begin with idem- are "
                         "reserved",
                         name);
    return idem_metadata_add(&context->call->trailers, context->arena,
                             idem_bytes_of(name), idem_bytes_of(value), err);
}

void
idem_context_set_fence(struct idem_context *context, int64_t fence)
{
    context->fence = fence;
}

void
idem_context_set_owned(struct idem_context *context, bool owned)
{
    atomic_store_explicit(&context->lost, !owned, memory_order_release);
}

void
idem_context_set_slot(struct idem_context *context, void *slot)
{
    context->slot = slot;
}

void *
idem_context_slot(const struct idem_context *context)
{
    return context->slot;
}

void
idem_context_set_task(struct idem_context *context, enum idem_task task)
{
    context->task = task;
    context->probed = IDEM_PROBED_UNKNOWN;
}

void
idem_context_set_here(struct idem_context *context, bool here)
{
    context->here = here;
}

enum idem_probed
idem_context_probed(const struct idem_context *context)
{
    return context->probed;
}

void
idem_context_run(struct idem_context *context)
{
    context->run(context);
}

struct idem_call *
idem_context_call(const struct idem_context *context)
{
    return context->call;
}
