#include "once_verdict.h"

#include "hex.h"

#include <idem/reason.h>

#include <stdio.h>
#include <time.h>

/* When nobody knows how long the first call takes: come back soon, for it most
 * often is done by then. */
#define BUSY_RETRY_MS 100

#define HEX_PREFIX 8 /* bytes of a fingerprint that a message shows */
#define UTC_MAX 40

/* What a verdict is to the caller. effect NOT_SENT: what the passage knows. */
struct refusal {
    enum idem_status status;
    enum idem_effect effect;
    bool final;
    enum once_count count;
    const char *reason;
    const char *message;
};

static const struct refusal refusals[] = {
    [IDEM_VERDICT_EXPIRED] = {IDEM_FAILED_PRECONDITION, IDEM_EFFECT_REFUSED,
                              true, ONCE_REFUSED, IDEM_KEY_EXPIRED,
                              "the key's window is over, or has not begun"},
    [IDEM_VERDICT_ABANDONED] = {IDEM_FAILED_PRECONDITION, IDEM_EFFECT_REFUSED,
                                true, ONCE_REFUSED, IDEM_KEY_ABANDONED,
                                "the key was abandoned: it never ran and "
                                "never will"},
    [IDEM_VERDICT_DOUBT] = {IDEM_ABORTED, IDEM_EFFECT_IN_DOUBT, false,
                            ONCE_IN_DOUBT, IDEM_KEY_IN_DOUBT,
                            "an execution of this key ended half-way: somebody "
                            "has to resolve it"},
    [IDEM_VERDICT_ABSENT] = {IDEM_ABORTED, IDEM_EFFECT_IN_DOUBT, false,
                             ONCE_IN_DOUBT, IDEM_KEY_IN_DOUBT,
                             "the lease was lost while the handler ran, and "
                             "the key was released since: repeat it"},
};

/* By an execution that had the key before and gave it back. */
static const struct refusal abandoned_late = {
    IDEM_FAILED_PRECONDITION,
    IDEM_EFFECT_IN_DOUBT,
    true,
    ONCE_REFUSED,
    IDEM_KEY_ABANDONED,
    "the key was abandoned after an execution had given it back: what that did "
    "is not known, and none follows"};

/* "2026-11-29T21:51:03.564Z" */
static void
write_utc(char text[UTC_MAX], int64_t wall_ms)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm utc = {0};
    size_t size;

    gmtime_r(&seconds, &utc);
    size = strftime(text, UTC_MAX, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + size, UTC_MAX - size, ".%03dZ", (int)(wall_ms % 1000));
}

static void
refuse_reused(struct passage *passage)
{
    const struct idem_ticket *ticket = &passage->ticket;
    char mine[2 * HEX_PREFIX + 1], first[2 * HEX_PREFIX + 1];
    char when[UTC_MAX];

    hex_write(mine, ticket->fingerprint.raw, HEX_PREFIX);
    hex_write(first, ticket->recorded.raw, HEX_PREFIX);
    write_utc(when, ticket->first_at_ms);
    idem_call_fail(passage->call, IDEM_INVALID_ARGUMENT, IDEM_EFFECT_REFUSED,
                   IDEM_KEY_REUSED,
                   "the key was first used at %s for request %s; this one is "
                   "%s",
                   when, first, mine);
    once_count(passage->once, ONCE_REFUSED);
}

/* The store did not answer, and nothing changed by this question. */
static void
refuse_failed(struct passage *passage)
{
    const struct idem_error *error = &passage->ticket.error;
    enum idem_status status =
        error->status == IDEM_OK ? IDEM_UNAVAILABLE : error->status;
    const char *reason = error->reason;

    if (status == IDEM_UNAVAILABLE && reason[0] == '\0')
        reason = IDEM_STORE_AWAY;
    idem_call_fail(passage->call, status, passage->effect, reason, "%s",
                   error->message);
    once_count(passage->once, ONCE_STORE_FAILED);
}

static void
refuse_by_table(struct passage *passage, const struct refusal *refusal)
{
    idem_call_fail(passage->call, refusal->status, refusal->effect,
                   refusal->reason, "%s", refusal->message);
    passage->call->outcome.final = refusal->final;
    once_count(passage->once, refusal->count);
}

/* A key of a day to come is refused like one that is over; but then its time
 * does come. By our clock: what it gets wrong is that a caller asks again. */
static bool
is_over(const struct passage *passage)
{
    const struct idem_clock *clock = passage->call->clock;
    const struct idem_key *key = &passage->ticket.id.key;

    return !key->minted ||
           key->minted_ms + key->window_ms <= clock->wall_ms(clock);
}

void
verdict_refuse(struct passage *passage)
{
    enum idem_verdict verdict = passage->ticket.verdict;

    if (verdict == IDEM_VERDICT_FAILED)
        refuse_failed(passage);
    else if (verdict == IDEM_VERDICT_REUSED)
        refuse_reused(passage);
    else if (verdict == IDEM_VERDICT_ABANDONED &&
             passage->ticket.first_at_ms > 0)
        refuse_by_table(passage, &abandoned_late);
    else {
        IDEM_ASSERT(verdict < sizeof(refusals) / sizeof(*refusals));
        IDEM_ASSERT(refusals[verdict].message);
        refuse_by_table(passage, &refusals[verdict]);
        passage->call->outcome.final &=
            verdict != IDEM_VERDICT_EXPIRED || is_over(passage);
    }
}

void
verdict_busy(struct passage *passage, int64_t wait_ms)
{
    idem_call_fail(passage->call, IDEM_ABORTED, IDEM_EFFECT_IN_DOUBT,
                   IDEM_KEY_RUNNING, "the first call with this key still runs");
    passage->call->outcome.retry_after_ms =
        wait_ms > 0 ? wait_ms : BUSY_RETRY_MS;
    once_count(passage->once, ONCE_BUSY);
}

void
verdict_reused_elsewhere(struct passage *passage)
{
    char mine[2 * HEX_PREFIX + 1];

    hex_write(mine, passage->ticket.fingerprint.raw, HEX_PREFIX);
    idem_call_fail(passage->call, IDEM_INVALID_ARGUMENT, IDEM_EFFECT_REFUSED,
                   IDEM_KEY_REUSED,
                   "the key is in use for another request than %s", mine);
    once_count(passage->once, ONCE_REFUSED);
}

void
verdict_stopped(struct passage *passage)
{
    idem_call_fail(passage->call, IDEM_UNAVAILABLE, passage->effect, NULL,
                   "the server is being stopped");
}

void
verdict_interrupted(struct passage *passage)
{
    bool late = idem_call_remaining_ns(passage->call) == 0;

    idem_call_fail(passage->call,
                   late ? IDEM_DEADLINE_EXCEEDED : IDEM_CANCELLED,
                   passage->effect, NULL, "%s before the key was free",
                   late ? "the deadline ended" : "the caller gave up");
}
