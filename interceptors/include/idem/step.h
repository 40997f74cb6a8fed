#ifndef IDEM_STEP_H
#define IDEM_STEP_H

#include <idem/context.h>

IDEM_BEGIN_DECLS

/**
 * Mark that the handler acts outside from here: for a method that states
 * `mode: LEASED steps: true`. Before its first action; before each further one
 * it pays to mark again, for that asks the authority whether the lease still
 * holds.
 *
 * A server that dies before the first mark has begun nothing: the key runs
 * again when its lease is over, also under HOLD. After it, after_crash decides.
 * The record keeps the name of the last step, for operators. A handler that
 * fails before its first mark is ROLLED_BACK, whatever status it gives.
 *
 * The mark is on the disk before this returns, which is one commit. Blocks at
 * most until the call's deadline.
 *
 * @param name  not empty; copied
 * @param err   may be NULL
 *
 * @retval IDEM_OK                   act
 * @retval IDEM_ABORTED              do not act: the lease was lost, another
 *                                   execution may have the key
 * @retval IDEM_UNAVAILABLE          do not act: it is not known to be marked
 * @retval IDEM_FAILED_PRECONDITION  the method does not state steps, or the
 *                                   server has no store
 */
IDEM_API enum idem_status idem_step(struct idem_context *context,
                                    const char *name, struct idem_error *err)
    IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
