#ifndef RETRY_RULE_H
#define RETRY_RULE_H

#include "budget.h"
#include "throttle.h"

#include <idem/clock.h>
#include <idem/method.h>
#include <idem/outcome.h>

/* Whether an attempt that has ended is followed by another one, and when
 * (client.md 2.4). No I/O and no call: what it needs comes in, so that it is
 * tested by the million. */

/* Of one call. Empty when zeroed. */
struct retry_progress {
    unsigned spent;  /* of the policy's */
    unsigned pauses; /* of the policy since the server last named one */
    unsigned unsent; /* in a row */
    unsigned waits;  /* for the first call with the key, without a named time */
    bool refused;    /* the repeat that a refusal gets at once is used */
    enum idem_effect worst;
};

/* What is asked. Views. */
struct retry_question {
    const struct idem_retry_policy *policy; /* no attempts in it: none */
    const struct idem_outcome *outcome;     /* of the attempt that ended */
    bool safe; /* keyed, or declared idempotent: doubt may be repeated */
    bool keyed;
    bool too_large; /* the request is not kept for another attempt */
    bool committed; /* a stream that cannot be begun again */
    bool interrupted;
    int64_t remaining_ns;      /* of the call; INT64_MAX: no deadline */
    struct throttle *throttle; /* NULL: none */
    struct budget *budget;     /* NULL: none */
    const struct idem_clock *clock;
};

struct retry_answer {
    bool go;             /* another attempt */
    enum idem_stop stop; /* else: why not */
    int64_t pause_ns;    /* before the next attempt; 0: at once */
    bool seen;           /* the server may have seen the last one, so the next
                          * one has another number */
};

/* Count the attempt that ended, also in the throttle and the budget, and
 * decide. */
struct retry_answer retry_next(struct retry_progress *progress,
                               const struct retry_question *question);

/* Write why the call ends into the outcome of its last attempt. When the next
 * one would begin after the deadline, the call has missed it: its status says
 * so, and its reason and message are those of the attempt (grpc-go loses
 * them). */
void retry_say_stop(struct idem_outcome *outcome, enum idem_stop stop);

/* Parts of the rule, which hedging shares. */

/* Only the way to the server failed: it was never sent. */
bool retry_never_left(const struct idem_outcome *outcome);

/* Refused by the server before its handler, without a time to come back. */
bool retry_turned_away(const struct idem_outcome *outcome);

/* The first call with the key still runs. */
bool retry_first_runs(const struct idem_outcome *outcome);

/* Is it a status that is repeated, codes being those of the policy? */
bool retry_is_repeated(const struct idem_outcome *outcome, uint32_t codes);

/* The pause after an attempt that never left, which is counted; false: that
 * were too many in a row. */
bool retry_pause_unsent(struct retry_progress *progress,
                        const struct idem_clock *clock, int64_t *pause_ns);

/* How long the first call with the key is waited for, by the server's word or
 * without. */
int64_t retry_pause_running_ns(struct retry_progress *progress,
                               const struct idem_outcome *outcome,
                               const struct idem_clock *clock);

/* The time that the server names, of one that does: obeyed exactly. */
int64_t retry_named_ns(const struct idem_outcome *outcome);

/* The effect of the call: the worst over its attempts, unless the last one
 * settles it (client.md 2.11). */
enum idem_effect retry_effect(const struct retry_progress *progress,
                              const struct idem_outcome *last);

#endif
