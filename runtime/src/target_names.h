#ifndef TARGET_NAMES_H
#define TARGET_NAMES_H

#include "io.h"

#define TARGET_NAMES_MAX 1024

/* Addresses, in order, none twice. All zero is none; io is set by its user:
 * NULL: each scheme's own. */
struct target_names {
    const struct io *io;
    char **at;
    unsigned n, room;
};

void target_names_fini(struct target_names *names);

/**
 * Check an address and add a copy. Without a scheme it is tcp's, or what its
 * io says (bare). Once more the same: nothing.
 *
 * @retval IDEM_INVALID_ARGUMENT    no address; named, with the rule
 * @retval IDEM_RESOURCE_EXHAUSTED  over TARGET_NAMES_MAX, or out of memory
 */
enum idem_status target_names_add(struct target_names *names,
                                  struct idem_bytes text,
                                  struct idem_error *err) IDEM_MUST_CHECK;

#endif
