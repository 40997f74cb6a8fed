#include "forget.h"

#include <stdlib.h>

#include <idem/call.h>
#include <idem/key.h>

/* A key that is in the request cannot be forgotten. */
static enum idem_step
forget_request(struct idem_interceptor *self, struct idem_call *call)
{
    struct idem_outcome *outcome = &call->outcome;
    char *key;

    (void)self;
    if (call->key.size == 0 || call->method->key_source == IDEM_KEY_FIELDS)
        return IDEM_NEXT;
    idem_key_mint(outcome->key, call->clock, call->method->window_ms);
    key = idem_arena_printf(call->arena, "%s", outcome->key);
    if (!key) {
        idem_call_fail(call, IDEM_RESOURCE_EXHAUSTED, IDEM_EFFECT_REFUSED, NULL,
                       "no memory for a key");
        return IDEM_ANSWER;
    }
    call->key = idem_bytes_of(key);
    return IDEM_NEXT;
}

static void
forget_free(struct idem_interceptor *self)
{
    free(self);
}

static const struct idem_interceptor_ops forget_ops = {
    .name = "forget",
    .band = IDEM_BAND_VALIDATE, /* behind validate, before once */
    .request = forget_request,
    .free = forget_free,
};

struct idem_interceptor *
forget_new(void)
{
    struct idem_interceptor *forget = calloc(1, sizeof *forget);

    if (forget)
        forget->ops = &forget_ops;
    return forget;
}
