#include "once_stream.h"

#include <idem/key.h>
#include <idem/reason.h>

/* The look at the message before the first one. In the call's arena. */
struct before {
    struct idem_ticket ticket; /* first: a ticket is its look */
    struct once *once;
    struct idem_call *call;
};

/* --- What it says --- */

static enum idem_step
refuse(struct once *once, struct idem_call *call, const struct idem_error *err)
{
    idem_call_fail_with(call, IDEM_EFFECT_REFUSED, err);
    once_count(once, ONCE_REFUSED);
    return IDEM_ANSWER;
}

static long long
number_of(const struct before *before)
{
    return (long long)before->ticket.id.key.sequence;
}

static enum idem_step
refuse_gap(struct before *before)
{
    struct idem_error err;

    (void)idem_fail_reason(&err, IDEM_FAILED_PRECONDITION, IDEM_KEY_GAP,
                           "the stream begins with message %lld of its "
                           "session, and message %lld took no effect",
                           number_of(before) + 1, number_of(before));
    return refuse(before->once, before->call, &err);
}

static enum idem_step
refuse_failed(struct before *before)
{
    const struct idem_answer *answer = &before->ticket.answer;
    struct idem_error err;

    (void)idem_fail_reason(&err, IDEM_FAILED_PRECONDITION, IDEM_KEY_GAP,
                           "message %lld of the session ended it: %s",
                           number_of(before), idem_status_name(answer->status));
    return refuse(before->once, before->call, &err);
}

static enum idem_step
refuse_running(struct before *before)
{
    struct idem_error err;

    (void)idem_fail_reason(&err, IDEM_ABORTED, IDEM_KEY_RUNNING,
                           "message %lld of the session still runs",
                           number_of(before));
    return refuse(before->once, before->call, &err);
}

static enum idem_step
fail(struct before *before)
{
    once_count(before->once, ONCE_STORE_FAILED);
    idem_call_fail(before->call, IDEM_UNAVAILABLE, IDEM_EFFECT_REFUSED,
                   IDEM_STORE_AWAY, "%s", before->ticket.error.message);
    return IDEM_ANSWER;
}

/* --- The look --- */

/* It has no record. EXPIRED: that went with its client's word, below the
 * session's watermark, so it took effect; else there never was one. */
static void
looked_at_watermark(struct idem_ticket *ticket)
{
    struct before *before = (struct before *)ticket;
    enum idem_step step;

    if (ticket->verdict == IDEM_VERDICT_EXPIRED)
        step = IDEM_NEXT;
    else if (ticket->verdict == IDEM_VERDICT_FAILED)
        step = fail(before);
    else
        step = refuse_gap(before);
    idem_call_resume(before->call, step);
}

static void
looked(struct idem_ticket *ticket)
{
    struct before *before = (struct before *)ticket;
    struct idem_store *store = before->once->store;
    enum idem_step step = IDEM_NEXT;

    if (ticket->verdict == IDEM_VERDICT_ABSENT) {
        ticket->done = looked_at_watermark;
        once_count(before->once, ONCE_CLAIMS);
        store->ops->watermark(store, ticket);
        return;
    }
    if (ticket->verdict == IDEM_VERDICT_FAILED)
        step = fail(before);
    else if (ticket->verdict == IDEM_VERDICT_RUNNING)
        step = refuse_running(before);
    else if (ticket->verdict == IDEM_VERDICT_DONE &&
             ticket->answer.status != IDEM_OK)
        step = refuse_failed(before);
    else if (ticket->verdict == IDEM_VERDICT_DOUBT ||
             ticket->verdict == IDEM_VERDICT_ABANDONED)
        step = refuse_gap(before);
    /* DONE; EXPIRED: so is the first message, and its claim says it better. */
    idem_call_resume(before->call, step);
}

/* False: out of memory. */
static bool
fill_ticket(struct idem_ticket *ticket, const struct idem_call *call)
{
    const struct idem_method *method = call->method;
    char *text = idem_arena_alloc(call->arena, IDEM_KEY_MAX + 1);
    char session[IDEM_SESSION_MAX];
    int64_t first;

    if (!text || !idem_session_split(call->key, session, &first))
        return false;
    idem_key_of_session(text, session, first - 1);
    if (idem_key_parse(&ticket->id.key, idem_bytes_of(text), NULL) != IDEM_OK)
        return false;
    ticket->id.tenant = call->tenant;
    ticket->id.scope = method->scope;
    idem_record_id_digest(&ticket->id);
    ticket->mode = method->mode;
    ticket->after_crash = method->after_crash;
    ticket->lease_ms = method->lease_ms;
    ticket->window_ms = method->window_ms;
    ticket->deadline_ns = call->deadline_ns;
    ticket->arena = call->arena;
    return true;
}

static enum idem_step
look_before(struct once *once, struct idem_call *call)
{
    struct before *before = idem_arena_zalloc(call->arena, sizeof *before);
    struct idem_error err;

    if (!before || !fill_ticket(&before->ticket, call)) {
        (void)idem_fail(&err, IDEM_RESOURCE_EXHAUSTED, "no memory for a look");
        return refuse(once, call, &err);
    }
    before->once = once;
    before->call = call;
    before->ticket.done = looked;
    if (!idem_call_keep(call, NULL, NULL))
        return IDEM_ANSWER;
    once_count(once, ONCE_CLAIMS);
    once->store->ops->look(once->store, &before->ticket);
    return IDEM_WAIT;
}

static enum idem_status
check(const struct idem_call *call, struct idem_key *first,
      struct idem_error *err)
{
    enum idem_status status;

    if (!call->key.data)
        return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_MISSING,
                                "%s needs the key of its first message",
                                call->method->name);
    status = idem_key_parse(first, call->key, err);
    if (status != IDEM_OK)
        return status;
    if (first->sequence == 0)
        return idem_fail_reason(err, IDEM_INVALID_ARGUMENT, IDEM_KEY_FORMAT,
                                "%s numbers its messages: its key is a "
                                "session's",
                                call->method->name);
    if (call->ack_below > (uint64_t)first->sequence)
        return idem_fail_reason(
            err, IDEM_INVALID_ARGUMENT, IDEM_KEY_GAP,
            "the stream begins with message %lld of its session and "
            "acknowledges all below %llu, which is above it",
            (long long)first->sequence, (unsigned long long)call->ack_below);
    return IDEM_OK;
}

enum idem_step
once_stream_open(struct once *once, struct idem_call *call)
{
    struct idem_key first;
    struct idem_error err;

    if (check(call, &first, &err) != IDEM_OK)
        return refuse(once, call, &err);
    return first.sequence == 1 ? IDEM_NEXT : look_before(once, call);
}
