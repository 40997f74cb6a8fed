#include "validate.h"

#include "message.h"

#include <stdlib.h>

#include <idem/call.h>

struct validate {
    struct idem_interceptor base;
    struct idem_message_limits limits;
};

static enum idem_step
validate_request(struct idem_interceptor *self, struct idem_call *call)
{
    const struct validate *validate = (struct validate *)self;
    struct ProtobufCMessage *message;
    struct idem_error err;

    if (call->method->streams & IDEM_STREAMS_CLIENT)
        return IDEM_NEXT; /* each message is checked as it is read */
    if (message_unpack_in_place(call->method->request, call->request,
                                &validate->limits, call->arena, &message,
                                &err) != IDEM_OK) {
        idem_call_fail_with(call, IDEM_EFFECT_REFUSED, &err);
        return IDEM_ANSWER;
    }
    call->message = message;
    return IDEM_NEXT;
}

static void
validate_free(struct idem_interceptor *self)
{
    free(self);
}

static const struct idem_interceptor_ops validate_ops = {
    .name = "validate",
    .band = IDEM_BAND_VALIDATE,
    .request = validate_request,
    .free = validate_free,
};

struct idem_interceptor *
validate_new(const struct idem_message_limits *limits)
{
    struct validate *validate = calloc(1, sizeof(*validate));

    if (!validate)
        return NULL;
    validate->base.ops = &validate_ops;
    if (limits)
        validate->limits = *limits;
    return &validate->base;
}
