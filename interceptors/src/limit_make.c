#include "limit.h"

#include <stdlib.h>

#define MAX_IN_FLIGHT 10000
#define MAX_WAITING 1000
#define METHOD_MAX_WAITING 100
#define RETRY_AFTER_MS 100
#define MAX_PRINCIPALS 65536
#define MIN_IN_FLIGHT 8

/* As idem/v1/options.proto has them; no product of these is too large. */
#define RATE_PER_MAX_MS 86400000
#define RATE_CALLS_MAX 1000000
#define RATE_BURST_MAX 100000

static unsigned
or_default(unsigned given, unsigned otherwise)
{
    return given > 0 ? given : otherwise;
}

static struct idem_limit_options
with_defaults(const struct idem_limit_options *given)
{
    struct idem_limit_options options = {0};

    if (given)
        options = *given;
    options.max_in_flight = or_default(options.max_in_flight, MAX_IN_FLIGHT);
    options.max_waiting = or_default(options.max_waiting, MAX_WAITING);
    options.retry_after_ms = or_default(options.retry_after_ms, RETRY_AFTER_MS);
    options.max_principals = or_default(options.max_principals, MAX_PRINCIPALS);
    if (options.min_in_flight == 0)
        options.min_in_flight = options.max_in_flight < MIN_IN_FLIGHT
                                    ? options.max_in_flight
                                    : MIN_IN_FLIGHT;
    options.method.max_waiting =
        or_default(options.method.max_waiting, METHOD_MAX_WAITING);
    if (options.method.rate_burst == 0)
        options.method.rate_burst = options.method.rate_calls < RATE_BURST_MAX
                                        ? options.method.rate_calls
                                        : RATE_BURST_MAX;
    return options;
}

static enum idem_status
check_rate(const struct idem_limit_policy *policy, struct idem_error *err)
{
    if (policy->rate_calls == 0)
        return IDEM_OK;
    if (policy->rate_per_ms < 1 || policy->rate_per_ms > RATE_PER_MAX_MS)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "limits: rate_per_ms is %lld; it is from 1 to %d",
                         (long long)policy->rate_per_ms, RATE_PER_MAX_MS);
    if (policy->rate_calls > RATE_CALLS_MAX)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "limits: rate_calls is %u; it is from 1 to %d",
                         policy->rate_calls, RATE_CALLS_MAX);
    if (policy->rate_burst > RATE_BURST_MAX)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "limits: rate_burst is %u; it is from 1 to %d",
                         policy->rate_burst, RATE_BURST_MAX);
    return IDEM_OK;
}

static enum idem_status
check(const struct idem_limit_options *options, struct idem_error *err)
{
    if (options->min_in_flight > options->max_in_flight)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "limits: min_in_flight %u is over max_in_flight %u",
                         options->min_in_flight, options->max_in_flight);
    if (options->late_ms < 0)
        return idem_fail(err, IDEM_INVALID_ARGUMENT,
                         "limits: late_ms is negative");
    return check_rate(&options->method, err);
}

enum idem_status
idem_limit_new(struct idem_interceptor **out,
               const struct idem_limit_options *given, struct idem_error *err)
{
    struct idem_limit_options options = with_defaults(given);
    enum idem_status status = check(&options, err);
    struct limit *limit;

    if (status != IDEM_OK)
        return status;
    limit = calloc(1, sizeof(*limit));
    if (!limit)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "no memory for limit");
    limit->base.ops = &limit_ops;
    limit->options = options;
    permits_init(&limit->permits, options.adaptive ? options.min_in_flight : 0,
                 options.max_in_flight, options.max_waiting);
    rates_init(&limit->rates, options.max_principals);
    *out = &limit->base;
    return IDEM_OK;
}

void
idem_limit_counts(const struct idem_interceptor *interceptor,
                  struct idem_limit_counts *counts)
{
    struct limit *limit = (struct limit *)(uintptr_t)interceptor;

    *counts = (struct idem_limit_counts){
        .permits = atomic_load(&limit->permits.limit),
        .in_flight = atomic_load(&limit->permits.in_flight),
        .waiting = permits_waiting(&limit->permits),
        .shed = atomic_load(&limit->shed),
        .rate_limited = atomic_load(&limit->rate_limited),
    };
}
