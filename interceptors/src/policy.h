#ifndef POLICY_H
#define POLICY_H

#include "budget.h"
#include "config.h"
#include "throttle.h"

#include <idem/call.h>
#include <idem/policy.h>

/* What holds for the calls of one method: the .proto and the configs over it.
 * Constant once made. */

#define POLICY_NOTE_MAX 512

/* Where a value is from. */
struct policy_origin {
    const struct config *config; /* NULL: the .proto, or nobody */
    unsigned entry;
    enum config_field
        field;    /* of the config: a retryPolicy ends hedging, too */
    bool program; /* no config: the program has the last word */
};

struct policy {
    const struct idem_method *method;
    bool safe; /* keyed, or declared idempotent: doubt may be repeated */
    int64_t timeout_ms;         /* at most; 0: not stated */
    int64_t attempt_timeout_ms; /* 0: not stated */
    bool wait_for_ready;
    bool limits_request, limits_reply;
    size_t max_request, max_reply;
    struct idem_retry_policy retry;
    struct hedging hedging;
    bool callers_key;
    size_t max_retry; /* bytes; 0: all are sent again */
    bool send_once;
    struct policy_origin origins[CONFIG_FIELD_COUNT];
    char refused[IDEM_MESSAGE_MAX]; /* not "": no call is made by it */
    char notes[POLICY_NOTE_MAX];    /* lines: what was not taken, and why */
};

/* The configs over the .proto, the later over the earlier. */
struct policy_layers {
    const struct config *file, *environment; /* NULL: none */
    unsigned attempts_max; /* whatever they and the .proto say */
    bool no_retries;       /* likewise */
};

void policy_make(struct policy *policy, const struct idem_method *method,
                 const struct policy_layers *layers);

/* "file", "environment", ".proto", "the program". */
const char *policy_layer_name(const struct policy_layers *layers,
                              const struct policy_origin *origin);

#endif
