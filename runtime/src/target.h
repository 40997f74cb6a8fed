#ifndef TARGET_H
#define TARGET_H

#include "target_names.h"

/* Where a channel's addresses come from.
 *
 *    tcp://… ipc://… inproc://…   this address
 *    list://A,B,C                 these; an address without a scheme is tcp's,
 *                                 or with TLS options tls+tcp's
 *    file:///path                 one a line; read again when it changes
 *    dns://host:port              all that the name has, looked up again on a
 *                                 failure and after a time
 *
 * Threads: found and trouble run one at a time, without a lock of the target:
 * inside target_start or on a thread of the target. All else is for any. */
struct target;

/* Addresses of a host and port into names, which are empty. May block. */
typedef enum idem_status target_lookup_fn(const char *host, const char *port,
                                          struct target_names *names,
                                          struct idem_error *err);

struct target_options {
    const struct io *io; /* of all addresses; NULL: each scheme's own */
    const struct idem_clock *clock;
    int64_t again_ms;         /* between lookups */
    target_lookup_fn *lookup; /* NULL: getaddrinfo(3) */

    /* All addresses, in order, none twice; borrowed. */
    void (*found)(void *with, const char *const *addresses, unsigned n);

    /* What there is now cannot be used: what was found last stays. */
    void (*trouble)(void *with, const struct idem_error *err);
    void *with;
};

/**
 * @retval IDEM_INVALID_ARGUMENT  the target breaks a rule; both are named. Of a
 *                                file also that it cannot be read now
 */
enum idem_status target_new(struct target **target, const char *text,
                            const struct target_options *options,
                            struct idem_error *err) IDEM_MUST_CHECK;

/* The host of a dns:// target. False: it is none, or longer than room. */
bool target_dns_host(const char *text, char *host, size_t room);

/* Find the addresses, at once or soon. Once. */
enum idem_status target_start(struct target *target, struct idem_error *err)
    IDEM_MUST_CHECK;

/* An address could not be reached: are there others by now? */
void target_again(struct target *target);

/* No found or trouble after this. Not from inside one. Any number of times. */
void target_stop(struct target *target);

/* Stops. NULL is fine. */
void target_free(struct target *target);

#endif
