#include "call.h"

#include <idem/attempt.h>

/* An attempt beside others: a call whose walk begins and ends below an
 * interceptor of its call's chain. The walk is call.c's. */

static struct call *
call_of(const struct idem_call *base)
{
    return (struct call *)(uintptr_t)base; /* base is the first member */
}

static unsigned
place_of(const struct chain *chain, const struct idem_interceptor *interceptor)
{
    unsigned place = 0;

    while (chain->at[place] != interceptor)
        place++;
    return place;
}

bool
call_copy_metadata(struct idem_call *to, const struct idem_call *from)
{
    const struct idem_metadata_entry *entry;

    for (entry = from->metadata.first; entry; entry = entry->next)
        if (idem_metadata_add(&to->metadata, to->arena, entry->name,
                              entry->value, NULL) != IDEM_OK)
            return false;
    return true;
}

struct idem_call *
idem_attempt_new(struct idem_call *base,
                 const struct idem_interceptor *interceptor, unsigned number,
                 idem_attempt_done_fn *done, void *with)
{
    struct call *call = call_of(base);
    struct call *attempt = call->ops->fork ? call->ops->fork(call) : NULL;

    if (!attempt)
        return NULL;
    call_ref(call);
    attempt->parent = call;
    attempt->done = done;
    attempt->done_with = with;
    attempt->top = place_of(call->chain, interceptor) + 1;
    attempt->cursor = attempt->reached = attempt->top;
    attempt->base.attempt = number;
    attempt->base.key = base->key;
    attempt->base.tenant = base->tenant;
    attempt->base.ack_below = base->ack_below;
    attempt->base.request = base->request;
    attempt->base.confidential = base->confidential;
    attempt->base.deadline_ns = base->deadline_ns;
    call_ref(attempt); /* the maker's; the first is the walk's */
    if (call_copy_metadata(&attempt->base, base))
        return &attempt->base;
    call_unref(attempt);
    call_unref(attempt);
    return NULL;
}

void
idem_attempt_start(struct idem_call *base, int64_t timeout_ns)
{
    int64_t now_ns = base->clock->monotonic_ns(base->clock);

    call_begin_until(call_of(base), timeout_ns < INT64_MAX - now_ns
                                        ? now_ns + timeout_ns
                                        : INT64_MAX);
}

void
idem_attempt_drop(struct idem_call *attempt, enum idem_status status)
{
    call_interrupt(call_of(attempt), status);
}

void
idem_attempt_retain(struct idem_call *attempt)
{
    call_ref(call_of(attempt));
}

void
idem_attempt_release(struct idem_call *attempt)
{
    call_unref(call_of(attempt));
}
