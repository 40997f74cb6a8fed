#include "channel_inside.h"

#include "key_text.h"
#include "metadata.h"
#include "parent.h"

#include <idem/message.h>
#include <idem/reason.h>

#include <limits.h>
#include <string.h>

#define TIMEOUT_MS 10000 /* of a call for which nobody states one */

/* A call from what its caller gave: key, metadata, request, deadline. */

static enum idem_status
take_key(struct idem_call *base, const char *key, struct idem_error *err)
{
    struct idem_bytes text = idem_bytes_of(key);
    enum idem_status status;

    if (!key)
        return IDEM_OK;
    if (text.size == 0)
        return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_EMPTY,
                                "the key is empty");
    status = key_text_check(text, err);
    if (status != IDEM_OK)
        return status;
    base->key.data = idem_arena_copy(base->arena, text);
    if (!base->key.data)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    base->key.size = text.size;
    return IDEM_OK;
}

static enum idem_status
take_metadata(struct idem_call *base, const struct idem_call_options *options,
              struct idem_error *err)
{
    for (size_t i = 0; i < options->n_metadata; i++) {
        const struct idem_call_metadata *given = &options->metadata[i];
        struct idem_bytes name = idem_bytes_of(given->name);
        enum idem_status status;

        if (metadata_is_reserved(name))
            return idem_fail(
                err, IDEM_INTERNAL,
                "metadata \"%.64s\": names that begin with " METADATA_RESERVED
                " are reserved",
                given->name);
        status = idem_metadata_add(&base->metadata, base->arena, name,
                                   given->value, err);

        if (status != IDEM_OK)
            return status;
        if (strcmp(given->name, "authorization") == 0)
            base->confidential = true;
    }
    return IDEM_OK;
}

static enum idem_status
take_request(struct client_call *call, const struct ProtobufCMessage *request,
             struct idem_error *err)
{
    struct idem_call *base = &call->call.base;
    size_t limit = call->channel->options.max_message;
    struct idem_bytes packed;
    enum idem_status status;

    if (base->method->streams & IDEM_STREAMS_CLIENT)
        return IDEM_OK; /* its messages come later */
    status = idem_message_pack(request, base->arena, &packed, err);
    if (status != IDEM_OK)
        return status;
    if (packed.size > limit)
        return idem_fail_reason(err, IDEM_RESOURCE_EXHAUSTED,
                                IDEM_REQUEST_TOO_LARGE,
                                "the request is %zu bytes, the channel takes "
                                "%zu",
                                packed.size, limit);
    base->request = packed;
    return IDEM_OK;
}

static enum idem_status
take_attempt_timeout(struct idem_call *base, int64_t timeout_ms,
                     struct idem_error *err)
{
    if (timeout_ms < 0)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "attempt_timeout_ms is negative");
    base->attempt_timeout_ms =
        timeout_ms < UINT_MAX ? (unsigned)timeout_ms : UINT_MAX;
    return IDEM_OK;
}

static enum idem_status
check_patience(const struct idem_call_options *options, struct idem_error *err)
{
    if (options->wait_for_ready && options->fail_fast)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "wait_for_ready and fail_fast are both set");
    return IDEM_OK;
}

int64_t
channel_deadline_ns(const struct idem_channel *channel,
                    const struct idem_method *method,
                    const struct idem_call_options *options,
                    const struct idem_context *parent)
{
    int64_t timeout_ms = options->timeout_ms, deadline_ns;

    if (timeout_ms == 0)
        timeout_ms = channel->options.timeout_ms;
    if (timeout_ms == 0)
        timeout_ms = method->timeout_ms;
    if (timeout_ms == 0)
        timeout_ms = TIMEOUT_MS;
    deadline_ns = channel_after_ms(channel, timeout_ms);
    if (!parent || options->own_deadline)
        return deadline_ns;
    return parent_deadline_ns(parent, channel->clock, deadline_ns);
}

enum idem_status
channel_take(struct client_call *call, const struct ProtobufCMessage *request,
             const struct idem_call_options *options, struct idem_error *err)
{
    struct idem_call *base = &call->call.base;
    struct idem_context *parent = parent_of(options);
    enum idem_status status = take_key(base, options->key, err);

    if (status == IDEM_OK)
        status = check_patience(options, err);
    if (status == IDEM_OK)
        status = take_attempt_timeout(base, options->attempt_timeout_ms, err);
    if (status == IDEM_OK)
        status = take_metadata(base, options, err);
    if (status == IDEM_OK && parent)
        status = parent_give(parent, options, base, err);
    if (status == IDEM_OK)
        status = take_request(call, request, err);
    return status;
}
