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

IDEM_BEGIN_DECLS

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
