#include "clock_after.h"

#define NS_PER_MS 1000000

int64_t
clock_after(int64_t now_ns, int64_t ms)
{
    if (ms <= 0)
        return now_ns;
    return ms < (INT64_MAX - now_ns) / NS_PER_MS ? now_ns + ms * NS_PER_MS
                                                 : INT64_MAX;
}
