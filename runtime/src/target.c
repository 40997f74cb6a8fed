#include "target.h"

#include "target_names.h"

#include <stdlib.h>
#include <string.h>

#define LIST "list://"

struct target {
    struct target_options options;
    struct target_names names;
};

static bool
begins_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static enum idem_status
read_list(struct target *target, const char *list, struct idem_error *err)
{
    const char *at = list;

    for (;;) {
        size_t size = strcspn(at, ",");
        enum idem_status status = target_names_add(
            &target->names, (struct idem_bytes){(const uint8_t *)at, size},
            err);

        if (status != IDEM_OK || !at[size])
            return status;
        at += size + 1;
    }
}

static enum idem_status
read_text(struct target *target, const char *text, struct idem_error *err)
{
    const struct io *io;
    struct idem_error why;
    enum idem_status status;

    if (!strstr(text, "://"))
        return io_find(text, &io, err); /* says what is wrong */
    if (!begins_with(text, LIST))
        return target_names_add(&target->names, idem_bytes_of(text), err);
    status = read_list(target, text + strlen(LIST), &why);
    if (status != IDEM_OK)
        return idem_fail(err, status, "target \"%.100s\": address %u: %s", text,
                         target->names.n + 1, why.message);
    return IDEM_OK;
}

enum idem_status
target_new(struct target **out, const char *text,
           const struct target_options *options, struct idem_error *err)
{
    struct target *target = calloc(1, sizeof *target);
    enum idem_status status;

    if (!target)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    target->options = *options;
    target->names.io = options->io;
    status = read_text(target, text ? text : "", err);
    if (status != IDEM_OK) {
        target_free(target);
        return status;
    }
    *out = target;
    return IDEM_OK;
}

void
target_start(struct target *target)
{
    target->options.found(target->options.with,
                          (const char *const *)target->names.at,
                          target->names.n);
}

void
target_free(struct target *target)
{
    if (!target)
        return;
    target_names_fini(&target->names);
    free(target);
}
