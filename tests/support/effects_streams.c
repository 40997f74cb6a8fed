#include "effects_inside.h"

#include <string.h>

/* Handlers of streams with a mode. */

enum idem_status
effects_on_each(struct idem_context *context,
                const effects_add_request *request)
{
    int64_t number;
    enum idem_status status = effects_row(context, request->amount, &number);

    effects_take_time(request);
    return status;
}

enum idem_status
effects_on_each_end(struct idem_context *context, effects_add_reply *receipt)
{
    return effects_row(context, 0, &receipt->number);
}

/* The row's number is what the messages bring. */
enum idem_status
effects_on_followed(struct idem_context *context,
                    const effects_add_request *request)
{
    struct idem_error err;
    int64_t number;
    enum idem_status status = effects_row(context, request->amount, &number);

    if (status != IDEM_OK)
        return status;
    if (idem_context_keep(
            context,
            (struct idem_bytes){(const uint8_t *)&number, sizeof number},
            &err) != IDEM_OK)
        return idem_context_fail_with(context, &err);
    return IDEM_OK;
}

enum idem_status
effects_on_followed_messages(struct idem_context *context,
                             const effects_add_request *request,
                             struct effects_add_followed_server_stream *stream)
{
    struct idem_bytes kept = effects_add_followed_kept(stream);
    enum idem_status status = IDEM_OK;
    effects_add_reply message = EFFECTS_ADD_REPLY_INIT;

    (void)context;
    IDEM_ASSERT(kept.size == sizeof message.number);
    memcpy(&message.number, kept.data, sizeof message.number);
    while (status == IDEM_OK && message.amount < request->amount) {
        message.amount++;
        status = effects_add_followed_send(stream, &message);
    }
    return status;
}
