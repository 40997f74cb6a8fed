#include "quota.h"

#include <idem/call.h>

#include <inttypes.h>
#include <stdlib.h>

struct quota {
    struct idem_interceptor base; /* the first member */
    uint64_t messages;
};

static enum idem_status
count_message(struct idem_interceptor *self, struct idem_call *call,
              struct idem_stream_message *message, struct idem_error *err)
{
    const struct quota *quota = (struct quota *)self;

    if (message->sent || message->number <= quota->messages)
        return IDEM_OK;
    return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                     "%s: over %" PRIu64 " messages", call->method->name,
                     quota->messages);
}

static void
release(struct idem_interceptor *self)
{
    free(self);
}

static const struct idem_interceptor_ops quota_ops = {
    .name = "quota",
    .band = IDEM_BAND_LIMIT,
    .message = count_message,
    .free = release,
};

struct idem_interceptor *
quota_new(uint64_t messages)
{
    struct quota *quota = malloc(sizeof *quota);

    if (!quota)
        return NULL;
    quota->base.ops = &quota_ops;
    quota->messages = messages;
    return &quota->base;
}
