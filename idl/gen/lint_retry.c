#include "lint.h"

#include "code.h"

#include <inttypes.h>

#define OPTION_RETRY 15
#define RETRY_ATTEMPTS 1
#define RETRY_INITIAL 2
#define RETRY_MAX 3
#define RETRY_MULTIPLIER 4
#define RETRY_CODES 5

static void
say(struct complaints *complaints, const struct method *method, int number,
    const char *words)
{
    struct path path = path_option(&method->path, METHOD_OPTIONS);

    path = path_option(&path, OPTION_NUMBER);
    path = path_option(&path, OPTION_RETRY);
    path = path_option(&path, number);
    complain(complaints, method->service->file->proto, &path,
             "method %s: retry: %s", method->proto->name, words);
}

static void
check_codes(struct complaints *complaints, const struct method *method)
{
    const retry_policy *retry = method->policy.retry;
    struct pool *pool = complaints->pool;
    unsigned code, other;

    for (size_t i = 0; i < retry->n_codes; i++) {
        const char *name = retry->codes[i];

        if (!code_parse(name, &code)) {
            say(complaints, method, RETRY_CODES,
                pool_printf(pool, "\"%s\" is no status code", name));
            continue;
        }
        if (code == CODE_OK)
            say(complaints, method, RETRY_CODES,
                "OK is a success, which is not repeated");
        else if (method->policy.recorded & 1u << code)
            say(complaints, method, RETRY_CODES,
                pool_printf(pool,
                            "%s is recorded: repeating the call gets the "
                            "same answer; release it",
                            name));
        for (size_t j = 0; j < i; j++)
            if (code_parse(retry->codes[j], &other) && other == code)
                say(complaints, method, RETRY_CODES,
                    pool_printf(pool, "%s is given twice", name));
    }
}

static void
check_numbers(struct complaints *complaints, const struct method *method)
{
    const retry_policy *retry = method->policy.retry;
    const struct policy *policy = &method->policy;
    struct pool *pool = complaints->pool;

    if (retry->max_attempts > POLICY_ATTEMPTS_MAX)
        say(complaints, method, RETRY_ATTEMPTS,
            pool_printf(pool, "max_attempts is %u; it is from 1 to %d",
                        retry->max_attempts, POLICY_ATTEMPTS_MAX));
    if (retry->initial_backoff_ms < 0)
        say(complaints, method, RETRY_INITIAL,
            "initial_backoff_ms is negative");
    if (retry->max_backoff_ms < 0)
        say(complaints, method, RETRY_MAX, "max_backoff_ms is negative");
    if (!(retry->backoff_multiplier == 0 ||
          (retry->backoff_multiplier >= 1 &&
           retry->backoff_multiplier <= 1000)))
        say(complaints, method, RETRY_MULTIPLIER,
            pool_printf(pool, "backoff_multiplier is %g; it is from 1 to 1000",
                        retry->backoff_multiplier));
    if (policy->max_attempts && retry->initial_backoff_ms >= 0 &&
        retry->max_backoff_ms >= 0 &&
        policy->initial_backoff_ms > policy->max_backoff_ms)
        say(complaints, method, RETRY_INITIAL,
            pool_printf(pool,
                        "initial_backoff_ms %" PRId64
                        " is over max_backoff_ms %" PRId64,
                        policy->initial_backoff_ms, policy->max_backoff_ms));
}

void
lint_retry(struct complaints *complaints, const struct method *method)
{
    const struct policy *policy = &method->policy;

    if (!policy->retry)
        return;
    if (!policy->records && !policy->read_only && !policy->idempotent &&
        policy->retry->max_attempts != 1)
        say(complaints, method, RETRY_ATTEMPTS,
            "a call of mode NONE may take effect again: state a mode, or "
            "idempotency_level");
    check_numbers(complaints, method);
    check_codes(complaints, method);
}
