#include "fuzz.h"

#include "target.h"

#include <stdlib.h>
#include <string.h>

/* A channel's target and the addresses in it: a target, or an error that says
 * something. A file:// target is read at once and is left to its tests. */

static void
found(void *with, const char *const *addresses, unsigned n)
{
    unsigned *told = with;

    for (unsigned i = 0; i < n; i++)
        IDEM_ASSERT(strstr(addresses[i], "://"));
    *told = n;
}

static void
trouble(void *with, const struct idem_error *err)
{
    (void)with;
    IDEM_ASSERT(err->message[0]);
}

static bool
is_list(const char *text)
{
    return strncmp(text, "list://", 7) == 0;
}

static void
try_target(const char *text)
{
    unsigned n = 0;
    struct target_options options = {
        .again_ms = 1000, .found = found, .trouble = trouble, .with = &n};
    struct target *target = NULL;
    struct idem_error err = {0};
    enum idem_status status = target_new(&target, text, &options, &err);

    if (status != IDEM_OK) {
        IDEM_ASSERT(err.message[0]);
        return;
    }
    if (is_list(text)) {
        IDEM_ASSERT(target_start(target, &err) == IDEM_OK);
        IDEM_ASSERT(n > 0 && n <= TARGET_NAMES_MAX);
    }
    target_free(target);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    IDEM_ASSERT(text);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = 0;
    if (strncmp(text, "file://", 7) != 0)
        try_target(text);
    free(text);
    return 0;
}
