#ifndef IDEM_LOG_H
#define IDEM_LOG_H

#include <idem/interceptor.h>

/* A line for each call when it is over, on a channel or a server:
 *
 *   method=pay.v1.Pay/Charge status=UNAVAILABLE effect=IN_DOUBT stop=ATTEMPTS
 *   attempts=5 ms=1204 key_hash=9f86d081884c7d65 reason=NOT_CONNECTED
 *   message="tcp://10.0.0.1:7070: connection refused"
 *
 * (in one line: logfmt). stop is why the client made no further attempt
 * (outcome.h: it is in the outcome, too); last is the last attempt's status
 * where that is another one. A server writes attempt=2, the number that came
 * with the call, and the tenant in their stead. What is empty is left out. */

struct idem_log_options {
    /* Told each line, without its end. Required. On any thread, without a lock
     * held; must not block. */
    void (*line)(void *with, const char *line);
    void *with;
    bool troubles_only; /* not those that end OK at the first attempt */
    bool keys; /* key=… as it is; false: the first 8 bytes of its SHA-256 */
};

IDEM_BEGIN_DECLS

/**
 * Add it before others of band OBSERVE, so that it sees what they turn away. A
 * call that never comes to the chain (a key that is no key, a channel that is
 * full) has no line.
 *
 * @retval IDEM_OK
 * @retval IDEM_INVALID_ARGUMENT    options has no line
 * @retval IDEM_RESOURCE_EXHAUSTED  no memory
 */
IDEM_API enum idem_status idem_log_new(struct idem_interceptor **log,
                                       const struct idem_log_options *options,
                                       struct idem_error *err) IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
