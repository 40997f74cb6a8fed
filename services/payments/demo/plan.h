#ifndef DEMO_PLAN_H
#define DEMO_PLAN_H

#include <idem/outcome.h>

#include "options.h"

/* What the clients are going to do: a list of calls, each with its key from the
 * beginning, and how each ended. */

#define PLAN_ACCOUNTS 8
#define PLAN_BALANCE 10000000 /* of each account at the beginning */

enum plan_kind {
    PLAN_CHARGE,
    PLAN_REFUSED, /* a charge of more than there is: the answer is no */
    PLAN_PAYOUT,
};

#define ANSWER_MAX 96

/* One answer to a call. */
struct answer {
    bool final; /* it is the call's for good */
    enum idem_status status;
    enum idem_effect effect;
    char text[ANSWER_MAX]; /* what the reply says */
};

/* One call. One client's; the audit's when the clients are done. */
struct plan_call {
    enum plan_kind kind;
    unsigned account;
    int64_t amount;
    char key[IDEM_KEY_MAX + 1];
    int64_t patience_ms; /* of the second click, until it clicks once more */
    char name[16]; /* "call-17": memo of the entry, destination of the payout */

    struct answer answer; /* the first final one; final is false: unresolved */
};

struct plan {
    struct plan_call *calls;
    unsigned n_calls;
};

/* NULL calls when memory is out. */
struct plan plan_make(const struct demo_options *options);

void plan_free(struct plan *plan);

#endif
