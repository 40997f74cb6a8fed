#include "fuzz.h"

#include "traceparent.h"

#include <string.h>

/* A traceparent of a caller's metadata: what is passed on has the ids of a
 * trace and a span, at their places, and nothing but small hex in them. */

#define SIZE 55

static bool
is_id(const uint8_t *text, size_t size)
{
    bool zero = true;

    for (size_t i = 0; i < size; i++) {
        if (!strchr("0123456789abcdef", text[i]) || text[i] == 0)
            return false;
        zero &= text[i] == '0';
    }
    return !zero;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!traceparent_is((struct idem_bytes){data, size}))
        return 0;
    IDEM_ASSERT(size >= SIZE && memcmp(data, "ff", 2) != 0);
    IDEM_ASSERT(size == SIZE || memcmp(data, "00", 2) != 0);
    IDEM_ASSERT(is_id(data + 3, 32) && is_id(data + 36, 16));
    IDEM_ASSERT(data[2] == '-' && data[35] == '-' && data[52] == '-');
    return 0;
}
