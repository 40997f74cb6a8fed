#include <idem/resolve.h>

#include "idem/v1/ledger.idem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The client's side of idem.v1.Ledger. */

static enum idem_status
take_reply(struct idem_resolution *resolution, const idem_ledger_answer *answer,
           struct idem_error *err)
{
    uint8_t *copy = malloc(answer->reply.len + 1);

    if (!copy)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    if (answer->reply.len > 0)
        memcpy(copy, answer->reply.data, answer->reply.len);
    resolution->reply = (struct idem_bytes){copy, answer->reply.len};
    return IDEM_OK;
}

static enum idem_status
take_answer(struct idem_resolution *resolution,
            const idem_ledger_answer *answer, struct idem_error *err)
{
    resolution->status = answer->status <= IDEM_UNAUTHENTICATED
                             ? (enum idem_status)answer->status
                             : IDEM_UNKNOWN;
    snprintf(resolution->reason, sizeof resolution->reason, "%s",
             answer->reason);
    snprintf(resolution->message, sizeof resolution->message, "%s",
             answer->message);
    return resolution->status == IDEM_OK ? take_reply(resolution, answer, err)
                                         : IDEM_OK;
}

static enum idem_status
take(struct idem_resolution *out, const idem_ledger_resolution *reply,
     struct idem_error *err)
{
    struct idem_resolution resolution = {
        .state = (enum idem_resolved)reply->state,
        .lease_ms = reply->lease_ms,
        .first_at_ms = reply->first_at_ms,
    };
    bool done = resolution.state == IDEM_RESOLVED_DONE;
    enum idem_status status = IDEM_OK;

    if (strcmp(idem_resolved_name(resolution.state), "UNKNOWN") == 0 ||
        done != !!reply->answer)
        return idem_fail(err, IDEM_INTERNAL,
                         "the ledger's answer (state %d) makes no sense",
                         (int)reply->state);
    if (done)
        status = take_answer(&resolution, reply->answer, err);
    if (status == IDEM_OK)
        *out = resolution;
    return status;
}

static enum idem_status
end(enum idem_status status, idem_ledger_resolution *reply,
    const struct idem_outcome *outcome, struct idem_resolution *resolution,
    struct idem_error *err)
{
    if (status != IDEM_OK)
        return idem_fail_reason(err, status, outcome->reason, "%s",
                                outcome->message);
    status = take(resolution, reply, err);
    idem_ledger_resolution_free(reply);
    return status;
}

enum idem_status
idem_resolve(struct idem_channel *channel, const struct idem_method *method,
             const char *key, int64_t timeout_ms,
             struct idem_resolution *resolution, struct idem_error *err)
{
    const struct idem_call_options options = {.timeout_ms = timeout_ms};
    idem_ledger_resolve_request request = IDEM_LEDGER_RESOLVE_REQUEST_INIT;
    idem_ledger_resolution *reply = NULL;
    struct idem_outcome outcome;
    enum idem_status status;

    request.method = method->name;
    request.key = key;
    status = idem_ledger_resolve(channel, &request, &reply, &options, &outcome);
    return end(status, reply, &outcome, resolution, err);
}

enum idem_status
idem_abandon(struct idem_channel *channel, const struct idem_method *method,
             const char *key, int64_t timeout_ms,
             struct idem_resolution *resolution, struct idem_error *err)
{
    const struct idem_call_options options = {.timeout_ms = timeout_ms};
    idem_ledger_abandon_request request = IDEM_LEDGER_ABANDON_REQUEST_INIT;
    idem_ledger_resolution *reply = NULL;
    struct idem_outcome outcome;
    enum idem_status status;

    request.method = method->name;
    request.key = key;
    status = idem_ledger_abandon(channel, &request, &reply, &options, &outcome);
    return end(status, reply, &outcome, resolution, err);
}

void
idem_resolution_fini(struct idem_resolution *resolution)
{
    union {
        const uint8_t *view;
        void *own;
    } reply = {resolution->reply.data};

    free(reply.own);
    resolution->reply = (struct idem_bytes){NULL, 0};
}

static const struct {
    const char *name, *text;
} resolved[] = {
#define RESOLVED_TEXTS(name, number, text) [number] = {#name, text},
    IDEM_RESOLVED_LIST(RESOLVED_TEXTS)
#undef RESOLVED_TEXTS
};

const char *
idem_resolved_name(enum idem_resolved state)
{
    if ((unsigned)state < sizeof resolved / sizeof *resolved &&
        resolved[state].name)
        return resolved[state].name;
    return "UNKNOWN";
}

const char *
idem_resolved_text(enum idem_resolved state)
{
    if ((unsigned)state < sizeof resolved / sizeof *resolved &&
        resolved[state].text)
        return resolved[state].text;
    return "not a state of a key";
}
