#include <idem/base.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
idem_assert_failed(const char *promise, const char *file, int line)
{
    fprintf(stderr, "idem: %s:%d: broken promise: %s\n", file, line, promise);
    abort();
}

struct idem_bytes
idem_bytes_of(const char *text)
{
    return (struct idem_bytes){(const uint8_t *)text, text ? strlen(text) : 0};
}

bool
idem_bytes_equal(struct idem_bytes a, struct idem_bytes b)
{
    return a.size == b.size &&
           (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
