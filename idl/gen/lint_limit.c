#include "lint.h"

#include <inttypes.h>

#define OPTION_LIMIT 25

/* Field numbers of Limit. */
enum {
    IN_FLIGHT = 1,
    WAITING = 2,
    CALLS = 3,
    PER = 4,
    BURST = 5,
};

static void
say(struct complaints *complaints, const struct method *method, int number,
    const char *words)
{
    struct path path = path_option(&method->path, METHOD_OPTIONS);

    path = path_option(&path, OPTION_NUMBER);
    path = path_option(&path, OPTION_LIMIT);
    path = path_option(&path, number);
    complain(complaints, method->service->file->proto, &path,
             "method %s: limit: %s", method->proto->name, words);
}

static void
check_ranges(struct complaints *complaints, const struct method *method)
{
    const limit_policy *limit = method->policy.limit;
    const struct {
        int number;
        const char *name;
        int64_t value, most;
    } rows[] = {
        {IN_FLIGHT, "max_in_flight", limit->max_in_flight, POLICY_LIMIT_MAX},
        {WAITING, "max_waiting", limit->max_waiting, POLICY_LIMIT_MAX},
        {CALLS, "rate_calls", limit->rate_calls, POLICY_LIMIT_MAX},
        {PER, "rate_per_ms", limit->rate_per_ms, POLICY_RATE_PER_MAX_MS},
        {BURST, "rate_burst", limit->rate_burst, POLICY_RATE_BURST_MAX},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].value < 0)
            say(complaints, method, rows[i].number,
                pool_printf(complaints->pool, "%s is negative", rows[i].name));
        else if (rows[i].value > rows[i].most)
            say(complaints, method, rows[i].number,
                pool_printf(complaints->pool,
                            "%s is %" PRId64 "; it is from 1 to %" PRId64,
                            rows[i].name, rows[i].value, rows[i].most));
}

/* What is stated and counts nothing is an error. */
static void
check_alone(struct complaints *complaints, const struct method *method)
{
    const limit_policy *limit = method->policy.limit;

    if (limit->max_waiting > 0 && limit->max_in_flight == 0)
        say(complaints, method, WAITING, "max_waiting needs max_in_flight");
    if (limit->rate_per_ms != 0 && limit->rate_calls == 0)
        say(complaints, method, PER, "rate_per_ms needs rate_calls");
    if (limit->rate_burst > 0 && limit->rate_calls == 0)
        say(complaints, method, BURST, "rate_burst needs rate_calls");
}

void
lint_limit(struct complaints *complaints, const struct method *method)
{
    if (!method->policy.limit)
        return;
    check_ranges(complaints, method);
    check_alone(complaints, method);
}
