#include "audit.h"

#include <idem/call.h>

#include <inttypes.h>
#include <stdlib.h>

struct audit {
    struct idem_interceptor base; /* the first member */
    FILE *file;
};

/* Kept with each call, in its arena: nothing has to be freed. */
struct started {
    int64_t at_ns;
};

static enum idem_step
begin(struct idem_interceptor *self, struct idem_call *call)
{
    struct started *started = idem_arena_alloc(call->arena, sizeof *started);

    if (started)
        started->at_ns = call->clock->monotonic_ns(call->clock);
    idem_call_set_state(call, self, started);
    return IDEM_NEXT;
}

static enum idem_step
write_line(struct idem_interceptor *self, struct idem_call *call)
{
    const struct started *started = idem_call_state(call, self);
    int64_t now_ns = call->clock->monotonic_ns(call->clock);
    const struct idem_outcome *outcome = &call->outcome;

    fprintf(((struct audit *)self)->file, "%s %.*s %s %s %u %" PRId64 "us\n",
            call->method->name, call->tenant.size ? (int)call->tenant.size : 1,
            call->tenant.size ? (const char *)call->tenant.data : "-",
            idem_status_name(outcome->status),
            idem_effect_name(outcome->effect), call->attempt,
            started ? (now_ns - started->at_ns) / 1000 : 0);
    return IDEM_NEXT;
}

static void
release(struct idem_interceptor *self)
{
    free(self);
}

/* Outermost: it sees also what others turn away. */
static const struct idem_interceptor_ops audit_ops = {
    .name = "audit",
    .band = IDEM_BAND_OBSERVE,
    .request = begin,
    .reply = write_line,
    .free = release,
};

struct idem_interceptor *
audit_new(FILE *file)
{
    struct audit *audit = malloc(sizeof *audit);

    if (!audit)
        return NULL;
    audit->base.ops = &audit_ops;
    audit->file = file;
    return &audit->base;
}
