#ifndef IDEM_THREADS_H
#define IDEM_THREADS_H

#include <idem/base.h>

IDEM_BEGIN_DECLS

/* What holds for the threads that all channels and servers of a process share.
 */

#define IDEM_SPIN_US 50
#define IDEM_SPIN_US_MAX 1000

/**
 * How long a sockets' thread that has sent something looks for the answer
 * before it sleeps, as long as answers do come within that time. It looks
 * rarely where that is in vain: both ends on one processor, or an answer that
 * takes longer. A thread that has sent nothing sleeps at once. A store's
 * session that has served a single call looks for the next one
 * (<idem/linger.h>).
 *
 * Any thread, any time; holds for what is waited for from then on.
 *
 * @param us  microseconds; IDEM_SPIN_US unless this was called. 0: never. Over
 *            IDEM_SPIN_US_MAX: that
 */
IDEM_API void idem_threads_set_spin_us(unsigned us);

IDEM_END_DECLS

#endif
