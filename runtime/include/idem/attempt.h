#ifndef IDEM_ATTEMPT_H
#define IDEM_ATTEMPT_H

#include <idem/call.h>

IDEM_BEGIN_DECLS

/* Several attempts of a call at once (docs/decisions: attempts are calls). An
 * attempt is a call of its own that goes the same road: from below the
 * interceptor that makes it down to the endpoint, and up again to there. It
 * has its own cursor, outcome, reply, trailers and arena; it views its call's
 * key and request, and keeps the call's memory as long as its own.
 *
 * The call itself stands still meanwhile (IDEM_WAIT). Its holder resumes it
 * when all of its attempts are over, and not before. */

/* An attempt is over; its outcome, reply and trailers are there until it is
 * released. On any thread, also inside idem_attempt_start, without a lock held.
 * Once. */
typedef void idem_attempt_done_fn(struct idem_call *attempt, void *with);

/* Made, and not sent yet; the interceptor is the one in whose hook the call
 * stands. number is what the wire says. NULL: out of memory, or the call is
 * not a client's. */
IDEM_API struct idem_call *
idem_attempt_new(struct idem_call *call,
                 const struct idem_interceptor *interceptor, unsigned number,
                 idem_attempt_done_fn *done, void *with);

/* Send it. After timeout_ns (INT64_MAX: never) it ends DEADLINE_EXCEEDED with
 * the reason ATTEMPT_TIMEOUT; the server is told that nobody listens any more
 * and goes on (DETACH). The wire still says the call's deadline. */
IDEM_API void idem_attempt_start(struct idem_call *attempt, int64_t timeout_ns);

/* Give it up with this status: CANCELLED is a CANCEL for the server, anything
 * else a DETACH. It ends, now or soon, with done; the effect says what it has
 * done so far. From any thread, also before it is started. */
IDEM_API void idem_attempt_drop(struct idem_call *attempt,
                                enum idem_status status);

/* Its maker has one reference, and may have more. */
IDEM_API void idem_attempt_retain(struct idem_call *attempt);
IDEM_API void idem_attempt_release(struct idem_call *attempt);

IDEM_END_DECLS

#endif
