#include "target_inside.h"

#include <stdlib.h>
#include <string.h>

/* A target whose text says its addresses, and the way to the other kinds. */

struct fixed {
    struct target base;
    struct target_names names;
};

static enum idem_status
fixed_start(struct target *target, struct idem_error *err)
{
    (void)err;
    target_tell(target, &((struct fixed *)target)->names);
    return IDEM_OK;
}

static void
fixed_free(struct target *target)
{
    target_names_fini(&((struct fixed *)target)->names);
    free(target);
}

static const struct target_ops fixed_ops = {
    .start = fixed_start,
    .free = fixed_free,
};

static enum idem_status
read_list(struct target_names *names, const char *list, struct idem_error *err)
{
    const char *at = list;

    for (;;) {
        size_t size = strcspn(at, ",");
        struct idem_bytes text = {(const uint8_t *)at, size};
        enum idem_status status = target_names_add(names, text, err);

        if (status != IDEM_OK || !at[size])
            return status;
        at += size + 1;
    }
}

static enum idem_status
list_new(struct target **out, const char *text,
         const struct target_options *options, struct idem_error *err)
{
    struct fixed *fixed = calloc(1, sizeof *fixed);
    const char *list = strncmp(text, "list://", 7) == 0 ? text + 7 : NULL;
    struct idem_error why;
    enum idem_status status;

    if (!fixed)
        return idem_fail(err, IDEM_RESOURCE_EXHAUSTED, "out of memory");
    fixed->base = (struct target){&fixed_ops, *options};
    fixed->names.io = options->io;
    if (list) {
        status = read_list(&fixed->names, list, &why);
        if (status != IDEM_OK)
            idem_fail(err, status, "target \"%.100s\": address %u: %s", text,
                      fixed->names.n + 1, why.message);
    } else {
        status = target_names_add(&fixed->names, idem_bytes_of(text), err);
    }
    if (status != IDEM_OK) {
        fixed_free(&fixed->base);
        return status;
    }
    *out = &fixed->base;
    return IDEM_OK;
}

enum idem_status
target_new(struct target **target, const char *text,
           const struct target_options *options, struct idem_error *err)
{
    const struct io *io;

    if (!text || !strstr(text, "://"))
        return io_find(text, &io, err); /* says what is wrong */
    if (strncmp(text, "file://", 7) == 0)
        return target_file_new(target, text + 7, options, err);
    if (strncmp(text, "dns://", 6) == 0)
        return target_dns_new(target, text + 6, options, err);
    return list_new(target, text, options, err);
}

enum idem_status
target_start(struct target *target, struct idem_error *err)
{
    return target->ops->start(target, err);
}

void
target_again(struct target *target)
{
    if (target->ops->again)
        target->ops->again(target);
}

void
target_stop(struct target *target)
{
    if (target->ops->stop)
        target->ops->stop(target);
}

void
target_free(struct target *target)
{
    if (!target)
        return;
    target_stop(target);
    target->ops->free(target);
}
