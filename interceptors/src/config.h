#ifndef CONFIG_H
#define CONFIG_H

#include <idem/method.h>
#include <idem/placement.h>

/* A service config: gRPC's JSON (grpc/service_config/service_config.proto) with
 * what idem adds (docs/policy.md). Read as a whole or not at all. Constant once
 * read. */

/* Attempts of a call at most: what a program says, from 2 to
 * CONFIG_ATTEMPTS_MAX, or gRFC A6's 5. More are as many. */
#define CONFIG_ATTEMPTS_DEFAULT 5
#define CONFIG_ATTEMPTS_MAX 100

#define CONFIG_BALANCING_MAX 80

/* gRPC's hedgingPolicy. No attempts: none. */
struct hedging {
    unsigned max_attempts; /* the first included */
    int64_t delay_ms;      /* between one and the next; 0: all at once */
    uint32_t non_fatal;    /* bit 1 << code */
};

/* What an entry states. */
#define CONFIG_FIELDS(X)                                                       \
    X(TIMEOUT, "timeout")                                                      \
    X(ATTEMPT_TIMEOUT, "attemptTimeout")                                       \
    X(WAIT_FOR_READY, "waitForReady")                                          \
    X(MAX_REQUEST, "maxRequestMessageBytes")                                   \
    X(MAX_REPLY, "maxResponseMessageBytes")                                    \
    X(RETRY, "retryPolicy")                                                    \
    X(HEDGING, "hedgingPolicy")                                                \
    X(KEY, "key")                                                              \
    X(MAX_RETRY, "maxRetryBytes")                                              \
    X(OVER_RETRY, "overRetryBytes")

enum config_field {
#define CONFIG_FIELD_ENUM(name, text) CONFIG_##name,
    CONFIG_FIELDS(CONFIG_FIELD_ENUM)
#undef CONFIG_FIELD_ENUM
        CONFIG_FIELD_COUNT
};

struct config_entry {
    uint32_t stated; /* bit 1 << field */
    int64_t timeout_ms;
    int64_t attempt_timeout_ms;
    bool wait_for_ready;
    size_t max_request, max_reply; /* bytes; 0 is a limit as well */
    struct idem_retry_policy retry;
    struct hedging hedging;
    bool callers_key; /* a call brings its key; none is minted */
    size_t max_retry; /* bytes of a request that is sent more than once */
    bool send_once;   /* one over it is sent once; else it is refused */
};

/* Which calls an entry is for. */
struct config_name {
    char *service;      /* "": all */
    char *method;       /* "": all of the service */
    unsigned entry, at; /* which one it is of that entry's */
};

struct config {
    struct config_entry *entries;
    unsigned n_entries;
    struct config_name *names;
    unsigned n_names;
    int64_t max_tokens_milli; /* 0: not stated */
    int64_t token_ratio_milli;
    unsigned budget_milli; /* 0: not stated */
    unsigned budget_floor;
    int64_t budget_window_ms;
    char balancing[CONFIG_BALANCING_MAX]; /* "": not stated; else where:
                                           * "loadBalancingConfig[0].x" */
    enum idem_balancer balancer;
};

/* Who is told what is wrong with it, a line each, with its path:
 * "methodConfig[2].retryPolicy.maxAttempts: is 1; it is at least 2". A note is
 * about something that is taken all the same. */
struct config_listener {
    void (*fault)(void *with, const char *line);
    void (*note)(void *with, const char *line);
    void *with;
};

/**
 * Read all of it and tell all that is wrong.
 *
 * @param attempts_max  more attempts are as many
 * @return the caller's; NULL when there was a fault
 */
struct config *config_read(struct idem_bytes json, unsigned attempts_max,
                           const struct config_listener *listener);

/* NULL is fine. */
void config_free(struct config *config);

/* The entry for the method: its own, else its service's, else that for all;
 * nothing is merged. NULL: none. name, when not NULL, gets what was matched. */
const struct config_entry *config_find(const struct config *config,
                                       const char *method,
                                       const struct config_name **name);

/* "retryPolicy". */
const char *config_field_name(enum config_field field);

#endif
