#ifndef IDEM_BURST_H
#define IDEM_BURST_H

#include <idem/base.h>

IDEM_BEGIN_DECLS

/* A thread's work in one go: the frames that came in one read, calls that are
 * resumed together (idem_call_resume_all). What is asked for with each of them
 * and need be done once, as to wake a thread for what was queued, is put off to
 * the end. Nothing in a burst blocks, so the end comes soon; nor may its thread
 * wait for what is put off. */

/**
 * Run it once at the end of this thread's burst, however often this is called
 * with the same two until then.
 *
 * @param with  lives as long
 * @return false: there is no burst on this thread, or too much is put off: do
 *         it now
 */
IDEM_API bool idem_burst_put_off(void (*run)(void *with), void *with)
    IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
