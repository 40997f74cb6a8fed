#ifndef IDEM_ONCE_H
#define IDEM_ONCE_H

#include <idem/interceptor.h>
#include <idem/store.h>

struct idem_shield;

/* The server's interceptor that lets one execution of a key through. Reads what
 * to do from each method's policy. All zero is all defaults. */
struct idem_once_options {
    int64_t wait_cap_ms;  /* a duplicate waits at most; 0: 30,000 */
    unsigned max_repeats; /* of a handler after CONFLICT or UNKNOWN; 0: 5 */
    struct idem_shield *shield;     /* NULL: no Redis. The once owns it */
    const struct idem_clock *clock; /* NULL: the system's */
};

struct idem_once_counts {
    uint64_t executed; /* handlers let through */
    uint64_t replayed; /* answered from a record, by memory, Redis or store */
    uint64_t shielded; /* of these: by Redis */
    uint64_t attached; /* waited for a call of this process */
    uint64_t refused;  /* key missing, malformed, reused, expired, abandoned */
    uint64_t busy;     /* ABORTED: still running elsewhere */
    uint64_t in_doubt;
    uint64_t fenced; /* results thrown away: the lease was lost */
    uint64_t store_failed;
    uint64_t claims; /* operations asked of the store */
};

IDEM_BEGIN_DECLS

/**
 * @param out    receives the interceptor; the server it is added to owns it
 * @param store  the authority; the interceptor owns it
 */
IDEM_API enum idem_status idem_once_new(struct idem_interceptor **out,
                                        struct idem_store *store,
                                        const struct idem_once_options *options,
                                        struct idem_error *err) IDEM_MUST_CHECK;

/* A copy of the counts; from any thread. */
IDEM_API void idem_once_counts(const struct idem_interceptor *once,
                               struct idem_once_counts *counts);

IDEM_END_DECLS

#endif
