#include "shield_breaker.h"

static bool
is_open(const struct shield_breaker *breaker)
{
    return breaker->failures >= breaker->limit;
}

bool
shield_breaker_allows(struct shield_breaker *breaker, int64_t now_ns)
{
    if (!is_open(breaker))
        return true;
    if (now_ns < breaker->until_ns)
        return false;
    breaker->until_ns = now_ns + breaker->open_ns;
    return true;
}

void
shield_breaker_succeeded(struct shield_breaker *breaker)
{
    breaker->failures = 0;
}

void
shield_breaker_failed(struct shield_breaker *breaker, int64_t now_ns)
{
    if (!is_open(breaker))
        breaker->failures++;
    if (is_open(breaker))
        breaker->until_ns = now_ns + breaker->open_ns;
}
