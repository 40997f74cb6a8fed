#ifndef TARGET_H
#define TARGET_H

#include "io.h"

/* Where a channel's addresses come from.
 *
 *    tcp://… ipc://… inproc://…   this address
 *    list://A,B,C                 these; an address without a scheme is tcp's
 *
 * Threads: found and trouble run one at a time, without a lock of the target:
 * inside target_start or on a thread of the target. */
struct target;

struct target_options {
    const struct io *io; /* of all addresses; NULL: each scheme's own */

    /* All addresses, in order, none twice; borrowed. */
    void (*found)(void *with, const char *const *addresses, unsigned n);
    void *with;
};

/**
 * @retval IDEM_INVALID_ARGUMENT  the target breaks a rule; both are named
 */
enum idem_status target_new(struct target **target, const char *text,
                            const struct target_options *options,
                            struct idem_error *err) IDEM_MUST_CHECK;

/* Find the addresses, at once or soon. Once. */
void target_start(struct target *target);

/* Waits for what runs. NULL is fine. Not from inside found. */
void target_free(struct target *target);

#endif
