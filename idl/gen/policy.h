#ifndef POLICY_H
#define POLICY_H

#include "model.h"

/* A method's options, as stated and as they count: the defaults of
 * idem/v1/options.proto are filled in here and nowhere else. */

#define POLICY_ATTEMPTS 5
#define POLICY_ATTEMPTS_MAX 100
#define POLICY_WINDOW_S 86400        /* a day */
#define POLICY_WINDOW_MAX_S 34560000 /* 400 days */
#define POLICY_REPLY_BYTES 1048576   /* 1 MiB */
#define POLICY_REPLY_MAX_BYTES 4194304
#define POLICY_LEASE_MS 10000
#define POLICY_LEASE_MIN_MS 100
#define POLICY_EXECUTION_MS 300000
#define POLICY_EXECUTIONS 20
#define POLICY_EXECUTIONS_MAX 1000000
#define POLICY_LIMIT_MAX 1000000
#define POLICY_LIMIT_WAITING 100
#define POLICY_RATE_PER_MS 1000
#define POLICY_RATE_PER_MAX_MS 86400000
#define POLICY_RATE_BURST_MAX 100000
#define POLICY_GROUP_MIN 2
#define POLICY_GROUP_MAX 256
#define POLICY_TIME_MAX_MS 34560000000 /* any time; 400 days */

struct policy {
    /* As stated: options never NULL, the others NULL when absent. */
    const method_policy *options;
    const key_policy *key;
    const retry_policy *retry;
    const limit_policy *limit;
    const allow_policy *allow;

    bool read_only;
    bool idempotent;

    /* As they count; names are those of options.proto's enums. */
    const char *mode; /* "NONE" when none is stated */
    bool records;     /* a mode other than NONE */
    bool key_fields;
    bool key_session;
    bool key_required;
    int64_t window_ms; /* 0 when nothing is recorded, as the next five */
    int64_t lease_ms;
    int64_t max_execution_ms;
    int64_t max_executions;
    int64_t max_reply;
    uint32_t recorded;
    const char *in_flight;
    const char *ask_redis;
    const char *after_crash;
    const char *oversize;
    const char *dispatch;    /* INLINE by itself for STATEMENT */
    bool answers_later;      /* dispatch ASYNC */
    const char *transaction; /* INTERACTIVE also in other modes */
    bool states;             /* transaction STATEMENT */
    unsigned max_attempts;   /* 0: not retried, the rest is 0 too */
    int64_t initial_backoff_ms;
    int64_t max_backoff_ms;
    unsigned multiplier_milli;
    uint32_t retryable;
    int64_t
        max_waiting; /* 0 without max_in_flight; the rest 0 without a rate */
    int64_t rate_per_ms;
    int64_t rate_burst;
};

void policy_read(struct policy *policy, struct pool *pool,
                 const method_proto *method);

/* What the service says of who may call its methods; NULL: nothing. */
const allow_policy *policy_service_allow(struct pool *pool,
                                         const service_proto *service);

/* Milliseconds that the backoffs of all attempts take at worst, jitter of 20 %
 * included. */
int64_t policy_backoffs_ms(const struct policy *policy);

/* Whether the field is left out of the fingerprint. */
bool policy_field_ignored(struct pool *pool, const field_proto *field);

#endif
