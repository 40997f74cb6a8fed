#ifndef RETRY_RULE_H
#define RETRY_RULE_H

#include <idem/clock.h>
#include <idem/method.h>
#include <idem/outcome.h>

/* Whether an attempt that has ended is followed by another one, and when
 * (client.md 2.4). No I/O and no call: what it needs comes in, so that it is
 * tested by the hundred thousand.
 *
 * A throttle, a hedge and a policy from a file have their place in retry_next:
 * each is one more question between those that are there. */

enum retry_stop {
    RETRY_GO,               /* no stop: another attempt */
    RETRY_STOP_OK,          /* nothing to repeat */
    RETRY_STOP_INTERRUPTED, /* the caller gave up, or the deadline is over */
    RETRY_STOP_FINAL,       /* recorded: the key gets no other answer */
    RETRY_STOP_STATUS,      /* not one that is repeated */
    RETRY_STOP_IN_DOUBT,    /* without a key it might be done twice */
    RETRY_STOP_ATTEMPTS,    /* used up */
    RETRY_STOP_DEADLINE,    /* the pause would miss it */
};

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
    const struct idem_method *method;
    const struct idem_outcome *outcome; /* of the attempt that ended */
    bool keyed;
    bool interrupted;
    int64_t remaining_ns; /* of the call; INT64_MAX: no deadline */
    const struct idem_clock *clock;
};

struct retry_answer {
    enum retry_stop stop;
    int64_t pause_ns; /* RETRY_GO: before the next attempt; 0: at once */
    bool seen;        /* RETRY_GO: the server may have seen the last one, so the
                       * next one has another number */
};

/* Count the attempt that ended and decide. */
struct retry_answer retry_next(struct retry_progress *progress,
                               const struct retry_question *question);

/* The effect of the call: the worst over its attempts, unless the last one
 * settles it (client.md 2.11). */
enum idem_effect retry_effect(const struct retry_progress *progress,
                              const struct idem_outcome *last);

#endif
