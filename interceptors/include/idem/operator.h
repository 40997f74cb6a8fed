#ifndef IDEM_OPERATOR_H
#define IDEM_OPERATOR_H

#include <idem/resolve.h>
#include <idem/store.h>

/* What an operator asks of the authority itself, and says to it: of any
 * tenant's key, beside the servers. All of it blocks until the store answers or
 * the deadline is over. What idemctl runs. */

struct idem_operator_key {
    const char *tenant; /* "" for calls without one */
    const char *method; /* "package.Service/Method", or the alias or key group
                         * that it has instead */
    const char *key;
    int64_t deadline_ns; /* monotonic; INT64_MAX: none */
};

/* A key that nobody runs by himself any more; views that live while it is told.
 */
struct idem_operator_doubt {
    const char *state; /* DOUBT; LAPSED: a lease is over, and the method says
                        * what the next call does; FAILED: INTERNAL or UNKNOWN
                        * is its final answer */
    struct idem_bytes tenant;
    const char *scope, *key;
    const char *step; /* that was marked last; "": none */
    int64_t executions;
    int64_t first_at_ms;
};

typedef void idem_doubt_fn(void *with, const struct idem_operator_doubt *doubt);

IDEM_BEGIN_DECLS

/**
 * Tell the dead letters of all tenants, the oldest first. Reads every record
 * there is (no index is kept for it): for a person, not for each minute.
 *
 * @param limit  how many at most
 * @param more   receives whether there are others; may be NULL
 *
 * @retval IDEM_UNAVAILABLE  the store cannot be asked
 */
IDEM_API enum idem_status
idem_operator_doubts(struct idem_store *store, unsigned limit,
                     idem_doubt_fn *tell, void *with, bool *more,
                     struct idem_error *err) IDEM_MUST_CHECK;

/* What became of the key? Changes nothing. A method's policy is not known here:
 * a lease that is over is IN_DOUBT, also when the next call would run it again.
 * The resolution is as after idem_resolve.
 *
 * @retval IDEM_INVALID_ARGUMENT  not a key
 * @retval IDEM_UNAVAILABLE       the store cannot be asked
 */
IDEM_API enum idem_status idem_operator_resolve(
    struct idem_store *store, const struct idem_operator_key *key,
    struct idem_resolution *resolution, struct idem_error *err) IDEM_MUST_CHECK;

/* As idem_abandon. */
IDEM_API enum idem_status idem_operator_abandon(
    struct idem_store *store, const struct idem_operator_key *key,
    struct idem_resolution *resolution, struct idem_error *err) IDEM_MUST_CHECK;

/**
 * Settle a key that is IN_DOUBT: it is looked at, and settled if it has not
 * changed since.
 *
 * @param settlement  by and why are not empty; they go to the audit
 * @param answer      when it took effect: what the key's calls are answered
 *                    from here, for good. first_at_ms and trailers are not used
 * @param resolution  filled on OK (what it is now) and on FAILED_PRECONDITION
 *                    (what it is)
 *
 * @retval IDEM_OK
 * @retval IDEM_FAILED_PRECONDITION  the key is not in doubt
 * @retval IDEM_ABORTED              it changed at this moment: look again
 * @retval IDEM_INVALID_ARGUMENT     not a key, or no by or why
 */
IDEM_API enum idem_status idem_operator_settle(
    struct idem_store *store, const struct idem_operator_key *key,
    const struct idem_settlement *settlement, const struct idem_answer *answer,
    struct idem_resolution *resolution, struct idem_error *err) IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
