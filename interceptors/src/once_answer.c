#include "once_answer.h"

#include "trailers.h"

#include <idem/context.h>
#include <idem/digest.h>
#include <idem/reason.h>

#include <inttypes.h>
#include <string.h>

#define HEX_SIZE (2 * IDEM_SHA256_SIZE + 1)

static void
put_text(char *text, size_t size, struct idem_bytes bytes)
{
    size_t length = bytes.size < size ? bytes.size : size - 1;

    if (length > 0)
        memcpy(text, bytes.data, length);
    text[length] = '\0';
}

static void
put_hex(char hex[HEX_SIZE], const uint8_t hash[IDEM_SHA256_SIZE])
{
    static const char digits[] = "0123456789abcdef";

    for (unsigned i = 0; i < IDEM_SHA256_SIZE; i++) {
        hex[2 * i] = digits[hash[i] >> 4];
        hex[2 * i + 1] = digits[hash[i] & 15];
    }
    hex[HEX_SIZE - 1] = '\0';
}

enum idem_status
answer_of_call(struct idem_answer *answer, struct idem_call *call,
               struct idem_error *err)
{
    const struct idem_outcome *outcome = &call->outcome;

    *answer = (struct idem_answer){
        .status = outcome->status,
        .message = idem_bytes_of(outcome->message),
        .reason = idem_bytes_of(outcome->reason),
    };
    if (outcome->status == IDEM_OK)
        answer->reply = call->reply;
    if (!trailers_encode(&call->trailers, idem_context_arena(call->context),
                         &answer->trailers))
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                         "no memory to record the trailers");
    return IDEM_OK;
}

enum idem_status
answer_without_reply(struct idem_answer *answer, struct idem_call *call,
                     struct idem_error *err)
{
    uint8_t hash[IDEM_SHA256_SIZE];
    char hex[HEX_SIZE];
    const char *message;
    enum idem_status status = answer_of_call(answer, call, err);

    if (status != IDEM_OK)
        return status;
    idem_sha256_of(call->reply, hash);
    put_hex(hex, hash);
    message = idem_arena_printf(
        idem_context_arena(call->context),
        "done; its reply of %zu bytes (SHA-256 %s) was not kept",
        call->reply.size, hex);
    if (!message)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no memory");
    answer->reply = (struct idem_bytes){NULL, 0};
    answer->reason = idem_bytes_of(IDEM_ANSWER_DROPPED);
    answer->message = idem_bytes_of(message);
    return IDEM_OK;
}

/* The record of a reply that was not kept says OK, because what its handler
 * wrote was committed; a repeat cannot be given the reply. */
static enum idem_status
replayed_status(const struct idem_answer *answer)
{
    struct idem_bytes not_kept = idem_bytes_of(IDEM_ANSWER_DROPPED);

    if (answer->status == IDEM_OK && idem_bytes_equal(answer->reason, not_kept))
        return IDEM_ALREADY_EXISTS;
    return answer->status;
}

void
answer_replay(struct idem_call *call, const struct idem_answer *answer)
{
    struct idem_outcome *outcome = &call->outcome;

    if (!trailers_decode(answer->trailers, call->arena, &call->trailers)) {
        idem_call_fail(call, IDEM_DATA_LOSS, IDEM_EFFECT_REPLAYED, NULL,
                       "the recorded trailers cannot be read");
        return;
    }
    outcome->status = replayed_status(answer);
    outcome->effect = IDEM_EFFECT_REPLAYED;
    outcome->final = true;
    outcome->retry_after_ms = -1;
    outcome->first_at_ms = answer->first_at_ms;
    outcome->executions = answer->executions;
    put_text(outcome->reason, sizeof(outcome->reason), answer->reason);
    put_text(outcome->message, sizeof(outcome->message), answer->message);
    call->reply = outcome->status == IDEM_OK ? answer->reply
                                             : (struct idem_bytes){NULL, 0};
}
