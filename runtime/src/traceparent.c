#include "traceparent.h"

/* "00-" 32 hex "-" 16 hex "-" 2 hex. A later version may be longer, behind
 * another "-". */
#define VERSION_AT 0
#define TRACE_AT 3
#define SPAN_AT 36
#define FLAGS_AT 53
#define SIZE 55

static bool
is_hex(struct idem_bytes value, size_t at, size_t size)
{
    for (size_t i = at; i < at + size; i++) {
        uint8_t c = value.data[i];

        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
    }
    return true;
}

static bool
is_zero(struct idem_bytes value, size_t at, size_t size)
{
    for (size_t i = at; i < at + size; i++)
        if (value.data[i] != '0')
            return false;
    return true;
}

static bool
has_dash(struct idem_bytes value, size_t at)
{
    return value.data[at] == '-';
}

static bool
is_version(struct idem_bytes value)
{
    if (!is_hex(value, VERSION_AT, 2) ||
        (value.data[0] == 'f' && value.data[1] == 'f'))
        return false;
    if (is_zero(value, VERSION_AT, 2))
        return value.size == SIZE;
    return value.size == SIZE || has_dash(value, SIZE);
}

bool
traceparent_is(struct idem_bytes value)
{
    return value.size >= SIZE && is_version(value) &&
           has_dash(value, TRACE_AT - 1) && is_hex(value, TRACE_AT, 32) &&
           !is_zero(value, TRACE_AT, 32) && has_dash(value, SPAN_AT - 1) &&
           is_hex(value, SPAN_AT, 16) && !is_zero(value, SPAN_AT, 16) &&
           has_dash(value, FLAGS_AT - 1) && is_hex(value, FLAGS_AT, 2);
}
