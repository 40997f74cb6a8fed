#ifndef VERIFIER_H
#define VERIFIER_H

#include <idem/call.h>
#include <idem/interceptor.h>

/* A thread that does for calls what takes too long for those that read: it
 * checks signatures. Calls wait for it in a line of at most 1,000, and leave it
 * when they are given up. */
struct verifier;

/* For one call; the step is the hook's. On the verifier's thread. */
typedef enum idem_step verifier_check_fn(void *with, struct idem_call *call);

/* Of one that is given up before that: what must not stay in its memory. */
typedef void verifier_forget_fn(struct idem_call *call);

/* with is check's. RESOURCE_EXHAUSTED: no memory, or no thread. */
enum idem_status verifier_new(struct verifier **verifier,
                              verifier_check_fn *check,
                              verifier_forget_fn *forget, void *with,
                              struct idem_error *err) IDEM_MUST_CHECK;

/* No call waits any more. NULL is fine. */
void verifier_free(struct verifier *verifier);

/* From a request hook, which returns the step. WAIT: the call is resumed after
 * its check. ANSWER: too many wait (RESOURCE_EXHAUSTED, OVERLOADED), or it was
 * given up. Any thread. */
enum idem_step verifier_take(struct verifier *verifier, struct idem_call *call);

#endif
