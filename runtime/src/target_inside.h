#ifndef TARGET_INSIDE_H
#define TARGET_INSIDE_H

#include "target.h"

/* What the kinds of target share. A kind embeds the base. */
struct target_ops {
    enum idem_status (*start)(struct target *target, struct idem_error *err);
    void (*again)(struct target *target); /* optional */
    void (*stop)(struct target *target);  /* optional */
    void (*free)(struct target *target);
};

struct target {
    const struct target_ops *ops;
    struct target_options options;
};

/* path is what follows "file://". */
enum idem_status target_file_new(struct target **target, const char *path,
                                 const struct target_options *options,
                                 struct idem_error *err) IDEM_MUST_CHECK;

/* place is what follows "dns://". */
enum idem_status target_dns_new(struct target **target, const char *place,
                                const struct target_options *options,
                                struct idem_error *err) IDEM_MUST_CHECK;

static inline void
target_tell(struct target *target, const struct target_names *names)
{
    target->options.found(target->options.with, (const char *const *)names->at,
                          names->n);
}

#endif
