#include "call.h"

#include "utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What interceptors ask of a call and say of its end; the walk is in call.c. */

static const struct call *
call_of(const struct idem_call *base)
{
    return (const struct call *)base; /* base is the first member */
}

void *
idem_call_state(const struct idem_call *call,
                const struct idem_interceptor *self)
{
    return call_of(call)->state[self->slot];
}

void
idem_call_set_state(struct idem_call *call, const struct idem_interceptor *self,
                    void *state)
{
    ((struct call *)call)->state[self->slot] = state;
}

static void
write_failure(struct idem_call *call, enum idem_status status,
              enum idem_effect effect, const char *reason, const char *message)
{
    struct idem_outcome *outcome = &call->outcome;

    outcome->status = status;
    outcome->effect = effect;
    outcome->final = false;
    outcome->retry_after_ms = -1;
    outcome->first_at_ms = 0;
    outcome->executions = 0;
    snprintf(outcome->reason, sizeof(outcome->reason), "%s",
             reason ? reason : "");
    snprintf(outcome->message, sizeof(outcome->message), "%s", message);
    utf8_repair(outcome->message);
    call->reply = (struct idem_bytes){0};
}

void
idem_call_fail(struct idem_call *call, enum idem_status status,
               enum idem_effect effect, const char *reason, const char *format,
               ...)
{
    char message[IDEM_MESSAGE_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    write_failure(call, status, effect, reason, message);
}

void
idem_call_fail_with(struct idem_call *call, enum idem_effect effect,
                    const struct idem_error *err)
{
    write_failure(call, err->status, effect, err->reason, err->message);
}

int64_t
idem_call_remaining_ns(const struct idem_call *call)
{
    if (call->deadline_ns == INT64_MAX)
        return INT64_MAX;

    int64_t now_ns = call->clock->monotonic_ns(call->clock);

    return call->deadline_ns > now_ns ? call->deadline_ns - now_ns : 0;
}

bool
idem_call_interrupted(const struct idem_call *call)
{
    return atomic_load_explicit(&call_of(call)->interrupt,
                                memory_order_acquire) != IDEM_OK ||
           idem_call_remaining_ns(call) == 0;
}

enum idem_status
idem_call_interrupted_by(const struct idem_call *call)
{
    return (enum idem_status)atomic_load_explicit(&call_of(call)->interrupt,
                                                  memory_order_acquire);
}

void
call_note_key(struct idem_call *call)
{
    size_t size = call->key.size <= IDEM_KEY_MAX ? call->key.size : 0;

    if (size > 0)
        memcpy(call->outcome.key, call->key.data, size);
    call->outcome.key[size] = 0;
}
