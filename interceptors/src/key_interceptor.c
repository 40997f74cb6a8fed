#include <idem/call.h>
#include <idem/key.h>
#include <idem/message.h>

#include <stdlib.h>

/* Puts the key on a call, once, above retry: every attempt carries the same one
 * (cases B028, B029). */

static enum idem_status
from_request(char *text, struct idem_call *call, struct idem_error *err)
{
    struct ProtobufCMessage *message;
    enum idem_status status;

    if (call->message)
        return idem_key_from_fields(text, call->method, call->message, err);
    status = idem_message_unpack(call->method->request, call->request, NULL,
                                 call->arena, &message, err);
    if (status != IDEM_OK)
        return status;
    return idem_key_from_fields(text, call->method, message, err);
}

static enum idem_status
make(char *text, struct idem_call *call, struct idem_error *err)
{
    if (call->method->key_source == IDEM_KEY_FIELDS)
        return from_request(text, call, err);
    idem_key_mint(text, call->clock, call->method->window_ms);
    return IDEM_OK;
}

/* A caller's own key wins: it may be repeating a call from before a restart,
 * and a fresh key would make that a second effect. An empty one was given all
 * the same, and is refused. */
static enum idem_status
choose(struct idem_call *call, struct idem_error *err)
{
    char text[IDEM_KEY_MAX + 1];
    struct idem_bytes made;
    struct idem_key key;
    enum idem_status status;

    if (call->key.data)
        return idem_key_parse(&key, call->key, err);
    status = make(text, call, err);
    if (status != IDEM_OK)
        return status;

    made = idem_bytes_of(text);
    made.data = idem_arena_copy(call->arena, made);
    if (!made.data)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no memory for a key");
    call->key = made;
    return IDEM_OK;
}

static enum idem_step
key_request(struct idem_interceptor *self, struct idem_call *call)
{
    struct idem_error err;

    (void)self;
    if (call->method->mode == IDEM_MODE_NONE) {
        call->key = (struct idem_bytes){NULL, 0};
        return IDEM_NEXT;
    }
    if (choose(call, &err) != IDEM_OK) {
        idem_call_fail(call, err.status, IDEM_EFFECT_NOT_SENT, err.reason, "%s",
                       err.message);
        return IDEM_ANSWER;
    }
    return IDEM_NEXT;
}

static void
key_free(struct idem_interceptor *self)
{
    free(self);
}

static const struct idem_interceptor_ops key_ops = {
    .name = "key",
    .band = IDEM_BAND_KEY,
    .request = key_request,
    .free = key_free,
};

struct idem_interceptor *
idem_key_interceptor_new(void)
{
    struct idem_interceptor *key = calloc(1, sizeof(*key));

    if (key)
        key->ops = &key_ops;
    return key;
}
