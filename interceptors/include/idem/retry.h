#ifndef IDEM_RETRY_H
#define IDEM_RETRY_H

#include <idem/interceptor.h>

IDEM_BEGIN_DECLS

/* The client's interceptor that repeats a failed call under the same key, by
 * the method's retry policy (gRFC A6; client.md 2.4):
 *
 *   not sent     again until the deadline, backing off; but when there was no
 *                connection to wait for, by the policy (wait_for_ready)
 *   refused      once at once, then by the policy
 *   KEY_RUNNING  the first call with the key is waited for; costs no attempt
 *   in doubt     by the policy, only with a key or a declared idempotence
 *   answered     when the code is in the policy and the answer is not final
 *
 * The server's retry_after_ms is obeyed exactly; with IDEM_RETRY_NEVER nothing
 * is repeated. A pause that would miss the deadline ends the call at once with
 * DEADLINE_EXCEEDED; its message tells what the last attempt said. outcome.stop
 * says why no attempt followed. The effect is the worst over the attempts,
 * unless a stored answer settles it. Standard in a channel, there with a policy
 * (policy.h); this one makes as many attempts as the .proto says. NULL: out of
 * memory. */
IDEM_API struct idem_interceptor *idem_retry_new(void);

IDEM_END_DECLS

#endif
