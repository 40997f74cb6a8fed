#include "tenant.h"

#include <idem/call.h>

#include <stdlib.h>
#include <string.h>

static void
release(struct idem_interceptor *self)
{
    free(self);
}

/* --- The client's --- */

struct tenant_header {
    struct idem_interceptor base; /* the first member */
    char name[];
};

static enum idem_step
say_tenant(struct idem_interceptor *self, struct idem_call *call)
{
    const struct tenant_header *header = (struct tenant_header *)self;
    struct idem_error err;

    if (idem_metadata_add(&call->metadata, call->arena,
                          idem_bytes_of(TENANT_HEADER),
                          idem_bytes_of(header->name), &err) == IDEM_OK)
        return IDEM_NEXT;
    idem_call_fail_with(call, IDEM_EFFECT_NOT_SENT, &err);
    return IDEM_ANSWER;
}

/* Above retry, so that it runs once a call: what it adds stays for each
 * attempt. A token that must be fresh belongs into IDEM_BAND_ATTEMPT. */
static const struct idem_interceptor_ops header_ops = {
    .name = "tenant-header",
    .band = IDEM_BAND_AUTH,
    .request = say_tenant,
    .free = release,
};

struct idem_interceptor *
tenant_header_new(const char *name)
{
    size_t size = strlen(name) + 1;
    struct tenant_header *header = malloc(sizeof *header + size);

    if (!header)
        return NULL;
    header->base.ops = &header_ops;
    memcpy(header->name, name, size);
    return &header->base;
}

/* --- The server's --- */

static enum idem_step
take_tenant(struct idem_interceptor *self, struct idem_call *call)
{
    (void)self;
    if (idem_metadata_get(&call->metadata, TENANT_HEADER, &call->tenant))
        return IDEM_NEXT;
    idem_call_fail(call, IDEM_UNAUTHENTICATED, IDEM_EFFECT_REFUSED, "NO_TENANT",
                   "the call has no metadata \"" TENANT_HEADER "\"");
    return IDEM_ANSWER;
}

/* Above once: a call that is turned away leaves no record. */
static const struct idem_interceptor_ops from_header_ops = {
    .name = "tenant-from-header",
    .band = IDEM_BAND_AUTH,
    .request = take_tenant,
    .free = release,
};

struct idem_interceptor *
tenant_from_header_new(void)
{
    struct idem_interceptor *self = malloc(sizeof *self);

    if (self)
        self->ops = &from_header_ops;
    return self;
}
