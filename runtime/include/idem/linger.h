#ifndef IDEM_LINGER_H
#define IDEM_LINGER_H

#include <idem/base.h>

IDEM_BEGIN_DECLS

/* A thread that has served somebody mostly has the next thing to do soon: its
 * answer travels, and whoever it is for asks again. Going to sleep and being
 * woken costs both ends more than some looks, as with a sockets' thread
 * (<idem/threads.h>). */

/* Whether it has helped lately. One thread's. Zeroed at first. */
struct idem_linger {
    unsigned sits_out, failures;
};

/**
 * Look again and again for what another thread is about to bring, for three
 * times as long as a sockets' thread does (idem_threads_set_spin_us; 0: never),
 * before this one sleeps. Rarely where that is in vain. Not with a lock that
 * the other one needs.
 *
 * @param found  is it there? Cheap, and safe beside whoever brings it
 * @return true: it is. False: sleep
 */
IDEM_API bool idem_linger(struct idem_linger *linger,
                          bool (*found)(const void *with), const void *with)
    IDEM_MUST_CHECK;

IDEM_END_DECLS

#endif
