#include "passage.h"

#include <idem/reason.h>

#include <string.h>

static enum idem_status
keep_key(struct idem_call *call, const char *text, struct idem_error *err)
{
    struct idem_bytes bytes = idem_bytes_of(text);

    call->key.data = idem_arena_copy(call->arena, bytes);
    call->key.size = call->key.data ? bytes.size : 0;
    return call->key.data ? IDEM_OK
                          : idem_fail(err, IDEM_RESOURCE_EXHAUSTED,
                                      "no memory for the key");
}

/* The server makes a FIELDS key itself: a client of another language need not,
 * and none can send a key that belongs to another request. */
static enum idem_status
key_from_fields(struct idem_call *call, struct idem_error *err)
{
    char text[IDEM_KEY_MAX + 1];
    enum idem_status status =
        idem_key_from_fields(text, call->method, call->message, err);

    if (status != IDEM_OK)
        return status;
    if (call->key.data && !idem_bytes_equal(call->key, idem_bytes_of(text)))
        return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_MISMATCH,
                                "%s makes its key of the request's fields: "
                                "leave the key out",
                                call->method->name);
    return keep_key(call, text, err);
}

/* A call without a key that need not have one runs under a key that nobody else
 * knows: its transaction is the same, only that it cannot be repeated. */
static enum idem_status
key_for_once(struct once *once, struct idem_call *call, struct idem_error *err)
{
    char text[IDEM_KEY_MAX + 1];

    if (call->method->key_required)
        return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_MISSING,
                                "%s needs an idempotency key",
                                call->method->name);
    idem_key_mint(text, once->clock, call->method->window_ms);
    return keep_key(call, text, err);
}

static enum idem_status
find_key(struct once *once, struct idem_call *call, struct idem_error *err)
{
    if (call->method->key_source == IDEM_KEY_FIELDS)
        return key_from_fields(call, err);
    if (!call->key.data)
        return key_for_once(once, call, err);
    return IDEM_OK;
}

static void
fill_ticket(struct idem_ticket *ticket, struct idem_call *call)
{
    const struct idem_method *method = call->method;

    ticket->id.tenant = call->tenant;
    ticket->id.scope = method->scope;
    idem_record_id_digest(&ticket->id);
    idem_fingerprint_of_bytes(&ticket->fingerprint, method, call->request);
    ticket->mode = method->mode;
    ticket->after_crash = method->after_crash;
    ticket->lease_ms = method->lease_ms;
    ticket->steps = method->steps;
    ticket->group = method->group;
    ticket->max_executions = method->max_executions;
    ticket->window_ms = method->window_ms;
    ticket->deadline_ns = call->deadline_ns;
    ticket->repeat = call->attempt > 1;
    ticket->arena = call->arena;
}

enum idem_status
passage_identify(struct passage *passage, struct idem_error *err)
{
    struct idem_ticket *ticket = &passage->ticket;
    struct idem_call *call = passage->call;
    enum idem_status status = find_key(passage->once, call, err);

    if (status == IDEM_OK)
        status = idem_key_admit(&ticket->id.key, call->method, call->key, err);
    if (status != IDEM_OK)
        return status;
    fill_ticket(ticket, call);
    memcpy(passage->flight.digest, ticket->id.digest,
           sizeof(passage->flight.digest));
    passage->flight.fingerprint = &ticket->fingerprint;
    return IDEM_OK;
}

void
passage_canonicalise(struct passage *passage)
{
    struct idem_fingerprint *fingerprint = &passage->ticket.fingerprint;
    const struct idem_call *call = passage->call;

    if (fingerprint->version == 0)
        idem_fingerprint_add_canonical(fingerprint, call->method,
                                       call->message);
}
