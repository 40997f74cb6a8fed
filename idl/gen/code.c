#include "code.h"

#include <strings.h>

static const char *const names[] = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
};

const uint32_t code_recorded_default = 1u << 0 | 1u << 3 | 1u << 5 | 1u << 6 |
                                       1u << 7 | 1u << 9 | 1u << 11 | 1u << 12 |
                                       1u << 15;

bool
code_parse(const char *name, unsigned *code)
{
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!strcasecmp(names[i], name)) {
            *code = i;
            return true;
        }
    }
    return false;
}
