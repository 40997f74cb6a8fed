#include <idem/call.h>
#include <idem/deadline.h>

#include <stdlib.h>

static enum idem_step
request(struct idem_interceptor *self, struct idem_call *call)
{
    (void)self;
    if (idem_call_remaining_ns(call) > 0)
        return IDEM_NEXT;
    idem_call_fail(call, IDEM_DEADLINE_EXCEEDED,
                   call->context ? IDEM_EFFECT_REFUSED : IDEM_EFFECT_NOT_SENT,
                   NULL, "the deadline was over before the call began");
    return IDEM_ANSWER;
}

static void
deadline_free(struct idem_interceptor *self)
{
    free(self);
}

static const struct idem_interceptor_ops deadline_ops = {
    .name = "deadline",
    .band = IDEM_BAND_DEADLINE,
    .request = request,
    .free = deadline_free,
};

struct idem_interceptor *
idem_deadline_new(void)
{
    struct idem_interceptor *deadline = calloc(1, sizeof(*deadline));

    if (deadline)
        deadline->ops = &deadline_ops;
    return deadline;
}
