#include "parent.h"

#include "metadata.h"
#include "traceparent.h"

#include <idem/call.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FENCE_DIGITS 20 /* of an int64_t, its sign or NUL */

struct idem_context *
parent_of(const struct idem_call_options *options)
{
    if (options->no_parent)
        return NULL;
    return options->parent ? options->parent : context_current();
}

int64_t
parent_deadline_ns(const struct idem_context *parent,
                   const struct idem_clock *clock, int64_t deadline_ns)
{
    int64_t left_ns = idem_call_remaining_ns(parent->call), now_ns;

    if (left_ns == INT64_MAX)
        return deadline_ns;
    now_ns = clock->monotonic_ns(clock);
    if (left_ns > INT64_MAX - now_ns)
        return deadline_ns;
    return now_ns + left_ns < deadline_ns ? now_ns + left_ns : deadline_ns;
}

/* --- Metadata --- */

static enum idem_status
pass_on(const struct idem_call *from, struct idem_call *child, const char *name,
        struct idem_error *err)
{
    struct idem_bytes value;

    if (!idem_metadata_get(&from->metadata, name, &value))
        return IDEM_OK;
    return idem_metadata_add(&child->metadata, child->arena,
                             idem_bytes_of(name), value, err);
}

/* An author's tracer knows better: it has begun a span of its own. */
static enum idem_status
give_trace(const struct idem_call *from, struct idem_call *child,
           struct idem_error *err)
{
    struct idem_bytes value;
    enum idem_status status;

    if (idem_metadata_get(&child->metadata, "traceparent", &value) ||
        !idem_metadata_get(&from->metadata, "traceparent", &value) ||
        !traceparent_is(value))
        return IDEM_OK;
    status = pass_on(from, child, "traceparent", err);
    return status == IDEM_OK ? pass_on(from, child, "tracestate", err) : status;
}

static enum idem_status
give_fence(const struct idem_context *parent, struct idem_call *child,
           struct idem_error *err)
{
    char text[FENCE_DIGITS + 1];

    if (parent->fence == 0)
        return IDEM_OK;
    snprintf(text, sizeof text, "%" PRId64, parent->fence);
    return idem_metadata_add(&child->metadata, child->arena,
                             idem_bytes_of(PARENT_FENCE), idem_bytes_of(text),
                             err);
}

/* 0: none, or no number from 1. */
static int64_t
read_fence(const struct idem_metadata *metadata)
{
    struct idem_bytes text;
    int64_t fence = 0;

    if (!idem_metadata_get(metadata, PARENT_FENCE, &text))
        return 0;
    for (size_t i = 0; i < text.size; i++) {
        int digit = text.data[i] - '0';

        if (digit < 0 || digit > 9 || fence > (INT64_MAX - digit) / 10)
            return 0;
        fence = fence * 10 + digit;
    }
    return fence;
}

void
parent_take_fence(struct idem_context *context)
{
    struct idem_metadata *metadata = &context->call->metadata;

    if (!metadata_has_reserved(metadata))
        return;
    context->parent_fence = read_fence(metadata);
    metadata_drop_reserved(metadata);
}

int64_t
idem_context_parent_fence(const struct idem_context *context)
{
    return context->parent_fence;
}

/* --- What a key follows from --- */

/* Calls of one method, or of methods that share their keys, are numbered in the
 * order in which the handler makes them. Whoever made none yet is put in. */
static struct context_made *
made_of(struct idem_context *parent, const char *scope)
{
    struct context_made *made = parent->made;

    while (made && strcmp(made->scope, scope) != 0)
        made = made->next;
    if (made)
        return made;
    made = idem_arena_zalloc(parent->arena, sizeof *made);
    IDEM_ASSERT(made);
    made->scope = scope;
    made->next = parent->made;
    parent->made = made;
    return made;
}

/* False: out of memory. */
static bool
keep(struct idem_call *child, struct idem_bytes *to, struct idem_bytes from)
{
    to->size = from.size;
    to->data = idem_arena_copy(child->arena, from);
    return to->data != NULL;
}

/* A key that is in the request or with the caller needs nothing to follow from;
 * a parent without one has nothing to give. */
static bool
follows(const struct idem_context *parent, const struct idem_call *child)
{
    return parent->call->key.size > 0 && !child->key.data &&
           child->method->mode != IDEM_MODE_NONE &&
           child->method->key_source != IDEM_KEY_FIELDS;
}

static enum idem_status
give_lineage(struct idem_context *parent, const char *step,
             struct idem_call *child, struct idem_error *err)
{
    struct idem_parent *given = idem_arena_zalloc(child->arena, sizeof *given);
    const struct idem_call *call = parent->call;

    if (!given || !keep(child, &given->tenant, call->tenant) ||
        !keep(child, &given->scope, idem_bytes_of(call->method->scope)) ||
        !keep(child, &given->key, call->key) ||
        (step && !keep(child, &given->step, idem_bytes_of(step))))
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    if (!step)
        given->number = ++made_of(parent, child->method->scope)->calls;
    child->parent = given;
    return IDEM_OK;
}

enum idem_status
parent_give(struct idem_context *parent,
            const struct idem_call_options *options, struct idem_call *child,
            struct idem_error *err)
{
    enum idem_status status = give_trace(parent->call, child, err);

    if (status == IDEM_OK)
        status = give_fence(parent, child, err);
    if (status == IDEM_OK && follows(parent, child))
        status = give_lineage(parent, options->step, child, err);
    return status;
}
