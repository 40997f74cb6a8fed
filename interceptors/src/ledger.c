#include <idem/ledger.h>

#include "ledger_answer.h"

#include <idem/call.h>
#include <idem/context_once.h>
#include <idem/key.h>

/* The handlers of idem.v1.Ledger. They block on the store, each on a worker,
 * until it answers: within the deadline, which the store knows. */

/* Whose key is it, and what is its policy? */
static enum idem_status
find(struct idem_context *context, const char *name, const char *key,
     struct idem_ticket *ticket)
{
    const struct idem_method *method = idem_context_method(context, name);
    struct idem_error err;

    if (!method)
        return idem_context_fail(context, IDEM_NOT_FOUND, "no method \"%s\"",
                                 name);
    if (method->mode == IDEM_MODE_NONE)
        return idem_context_fail(context, IDEM_INVALID_ARGUMENT,
                                 "%s has no effect, so it keeps no records",
                                 method->name);
    if (idem_key_admit(&ticket->id.key, method, idem_bytes_of(key), &err) !=
        IDEM_OK)
        return idem_context_fail_with(context, &err);
    ticket->id.tenant = idem_context_tenant(context);
    ticket->id.scope = method->scope;
    idem_record_id_digest(&ticket->id);
    ticket->mode = method->mode;
    ticket->after_crash = method->after_crash;
    ticket->lease_ms = method->lease_ms;
    ticket->window_ms = method->window_ms;
    ticket->deadline_ns = idem_context_call(context)->deadline_ns;
    ticket->arena = idem_context_arena(context);
    return IDEM_OK;
}

static enum idem_status
resolve(struct idem_context *context,
        const idem_ledger_resolve_request *request,
        idem_ledger_resolution *reply)
{
    struct idem_store *store = idem_context_user(context);
    struct idem_ticket ticket = {0};
    enum idem_status status =
        find(context, request->method, request->key, &ticket);

    if (status != IDEM_OK)
        return status;
    idem_store_ask(store, store->ops->look, &ticket);
    return ledger_answer(context, &ticket, reply);
}

static enum idem_status
abandon(struct idem_context *context,
        const idem_ledger_abandon_request *request,
        idem_ledger_resolution *reply)
{
    struct idem_store *store = idem_context_user(context);
    struct idem_ticket ticket = {0};
    enum idem_status status =
        find(context, request->method, request->key, &ticket);

    if (status != IDEM_OK)
        return status;
    idem_store_ask(store, store->ops->abandon, &ticket);
    return ledger_answer(context, &ticket, reply);
}

static const struct idem_ledger_handlers handlers = {
    .resolve = resolve,
    .abandon = abandon,
};

enum idem_status
idem_ledger_add(struct idem_server *server, struct idem_store *store,
                struct idem_error *err)
{
    return idem_ledger_register(server, &handlers, store, err);
}
