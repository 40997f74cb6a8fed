#include <idem/operator.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum idem_status
identify(struct idem_ticket *ticket, const struct idem_operator_key *key,
         struct idem_error *err)
{
    enum idem_status status;

    *ticket = (struct idem_ticket){
        .mode = IDEM_MODE_LEASED,
        .after_crash = IDEM_AFTER_CRASH_HOLD,
        .deadline_ns = key->deadline_ns,
    };
    status = idem_key_parse(&ticket->id.key, idem_bytes_of(key->key), err);
    if (status != IDEM_OK)
        return status;
    ticket->id.tenant = idem_bytes_of(key->tenant);
    ticket->id.scope = key->method;
    idem_record_id_digest(&ticket->id);
    ticket->arena = idem_arena_new();
    if (!ticket->arena)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    return IDEM_OK;
}

static void
put_text(char *text, size_t size, struct idem_bytes bytes)
{
    size_t length = bytes.size < size ? bytes.size : size - 1;

    if (length > 0)
        memcpy(text, bytes.data, length);
    text[length] = '\0';
}

static enum idem_status
put_answer(struct idem_resolution *resolution, const struct idem_answer *answer,
           struct idem_error *err)
{
    uint8_t *reply = malloc(answer->reply.size + 1);

    if (!reply)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    if (answer->reply.size > 0)
        memcpy(reply, answer->reply.data, answer->reply.size);
    resolution->reply = (struct idem_bytes){reply, answer->reply.size};
    resolution->status = answer->status;
    put_text(resolution->reason, sizeof resolution->reason, answer->reason);
    put_text(resolution->message, sizeof resolution->message, answer->message);
    return IDEM_OK;
}

static const enum idem_resolved states[] = {
    [IDEM_VERDICT_ABSENT] = IDEM_RESOLVED_ABSENT,
    [IDEM_VERDICT_RUNNING] = IDEM_RESOLVED_RUNNING,
    [IDEM_VERDICT_DONE] = IDEM_RESOLVED_DONE,
    [IDEM_VERDICT_DOUBT] = IDEM_RESOLVED_IN_DOUBT,
    [IDEM_VERDICT_ABANDONED] = IDEM_RESOLVED_ABANDONED,
    [IDEM_VERDICT_EXPIRED] = IDEM_RESOLVED_EXPIRED,
};

static enum idem_status
say(const struct idem_ticket *ticket, struct idem_resolution *out,
    struct idem_error *err)
{
    struct idem_resolution resolution = {.first_at_ms = ticket->first_at_ms};
    enum idem_status status = IDEM_OK;

    if (ticket->verdict == IDEM_VERDICT_FAILED)
        return idem_fail_reason(err, ticket->error.status, ticket->error.reason,
                                "%s", ticket->error.message);
    IDEM_ASSERT(ticket->verdict < sizeof states / sizeof *states &&
                states[ticket->verdict] != 0);
    resolution.state = states[ticket->verdict];
    if (resolution.state == IDEM_RESOLVED_RUNNING)
        resolution.lease_ms = ticket->wait_ms;
    if (resolution.state == IDEM_RESOLVED_DONE) {
        resolution.first_at_ms = ticket->answer.first_at_ms;
        status = put_answer(&resolution, &ticket->answer, err);
    }
    if (status == IDEM_OK)
        *out = resolution;
    return status;
}

static enum idem_status
ask(struct idem_store *store, idem_store_operation_fn *operation,
    const struct idem_operator_key *key, struct idem_resolution *resolution,
    struct idem_error *err)
{
    struct idem_ticket ticket;
    enum idem_status status = identify(&ticket, key, err);

    if (status != IDEM_OK)
        return status;
    idem_store_ask(store, operation, &ticket);
    status = say(&ticket, resolution, err);
    idem_arena_free(ticket.arena);
    return status;
}

enum idem_status
idem_operator_resolve(struct idem_store *store,
                      const struct idem_operator_key *key,
                      struct idem_resolution *resolution,
                      struct idem_error *err)
{
    return ask(store, store->ops->look, key, resolution, err);
}

enum idem_status
idem_operator_abandon(struct idem_store *store,
                      const struct idem_operator_key *key,
                      struct idem_resolution *resolution,
                      struct idem_error *err)
{
    return ask(store, store->ops->abandon, key, resolution, err);
}

/* What the settlement came to; a written one is looked at for its resolution.
 */
static enum idem_status
conclude(struct idem_store *store, struct idem_ticket *ticket,
         struct idem_resolution *resolution, struct idem_error *err)
{
    enum idem_status status;

    if (ticket->verdict == IDEM_VERDICT_FENCED)
        return idem_fail(err, IDEM_ABORTED,
                         "the key is in doubt by another execution than the "
                         "one that was looked at");
    if (ticket->verdict == IDEM_VERDICT_MINE) {
        idem_store_ask(store, store->ops->look, ticket);
        return say(ticket, resolution, err);
    }
    status = say(ticket, resolution, err);
    if (status != IDEM_OK)
        return status;
    return idem_fail(err, IDEM_FAILED_PRECONDITION,
                     "the key is not in doubt: %s",
                     idem_resolved_text(resolution->state));
}

enum idem_status
idem_operator_settle(struct idem_store *store,
                     const struct idem_operator_key *key,
                     const struct idem_settlement *settlement,
                     const struct idem_answer *answer,
                     struct idem_resolution *resolution, struct idem_error *err)
{
    struct idem_ticket ticket;
    enum idem_status status;

    if (settlement->by.size == 0 || settlement->why.size == 0)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "a settlement says by whom it is, and why");
    status = identify(&ticket, key, err);
    if (status != IDEM_OK)
        return status;
    idem_store_ask(store, store->ops->look, &ticket);
    if (ticket.verdict == IDEM_VERDICT_DOUBT) {
        ticket.settlement = settlement;
        if (settlement->took_effect)
            ticket.answer = *answer;
        idem_store_ask(store, store->ops->settle, &ticket);
    }
    status = conclude(store, &ticket, resolution, err);
    idem_arena_free(ticket.arena);
    return status;
}
