#ifndef ATTEMPTS_H
#define ATTEMPTS_H

#include "attempt_plan.h"

#include <idem/call.h>

/* The attempts of one call that are calls themselves: for hedging and for
 * attempts with a time of their own. The plan (attempt_plan.h) says when; this
 * starts them, drops them, and resumes the call when the last one is over. */

struct attempts;

/* From a request hook, which returns what this returns: the call is kept until
 * its answer is in it. timeout_ms is that of an attempt; 0: none. What *out
 * gets is the arena's, for attempts_fini. */
enum idem_step attempts_begin(struct attempts **out, struct idem_call *call,
                              const struct idem_interceptor *interceptor,
                              const struct plan_rules *rules,
                              int64_t timeout_ms);

/* What they did, by all that is known. When none is under way. */
enum idem_effect attempts_effect(const struct attempts *attempts);

/* When the call is over and forgotten. NULL is fine. */
void attempts_fini(struct attempts *attempts);

#endif
