#include "server_inside.h"

#include <idem/reason.h>

/* Calls of plain nng REQ clients (docs/plain.md). */

bool
plain_complain(const struct frame *frame, size_t max_message,
               struct idem_error *err)
{
    if (frame->route.size == 0)
        return false;
    if (frame->oversize)
        idem_fail_reason(err, IDEM_RESOURCE_EXHAUSTED, IDEM_REQUEST_TOO_LARGE,
                         "the message is %zu bytes, the server takes %zu",
                         frame->payload.size, max_message);
    else if (frame->flags == 0)
        idem_fail(err, IDEM_INVALID_ARGUMENT,
                  "the message is not an idem.v1.PlainCall");
    else
        return false;
    return true;
}

/* A key that the server makes of the request is as good. */
static bool
has_key(const struct header_open *open, const struct idem_method *method)
{
    return open->key.size > 0 || method->key_source == IDEM_KEY_FIELDS;
}

enum idem_status
plain_check_open(const struct header_open *open,
                 const struct idem_method *method, struct idem_error *err)
{
    if (method->mode != IDEM_MODE_NONE) {
        if (has_key(open, method))
            return IDEM_OK;
        return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_MISSING,
                                "%s has an effect, and nng sends a request "
                                "again by itself: the call needs a key",
                                method->name);
    }
    if (method->read_only || method->idempotent)
        return IDEM_OK;
    return idem_fail_reason(err, IDEM_FAILED_PRECONDITION, IDEM_NOT_RECORDED,
                            "%s may have an effect that is not recorded, and "
                            "nng sends a request again by itself: not over "
                            "plain nng",
                            method->name);
}
