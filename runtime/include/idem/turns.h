#ifndef IDEM_TURNS_H
#define IDEM_TURNS_H

#include <idem/clock.h>
#include <idem/status.h>

/* Work beside the calls: a descriptor that one of the sockets' threads waits
 * for, and what there is to do for it, turn by turn, on that thread and never
 * twice at once. What calls wait for from elsewhere so needs no thread of its
 * own, and their memory stays with the processor that has read them (decision
 * 70). */
struct idem_turns;

struct idem_turns_options {
    int fd; /* there are turns as long as it can be read; closed at the end */
    void (*turn)(void *with);       /* must not block */
    void *with;                     /* lives until idem_turns_stop returns */
    const struct idem_clock *clock; /* of idem_turns_by; NULL: the system's */
};

IDEM_BEGIN_DECLS

/**
 * Turns may come from here on, before this returns.
 *
 * @retval IDEM_RESOURCE_EXHAUSTED  no memory, thread or descriptor; fd is still
 *                                  the caller's
 */
IDEM_API enum idem_status
idem_turns_new(struct idem_turns **turns,
               const struct idem_turns_options *options, struct idem_error *err)
    IDEM_MUST_CHECK;

/* A turn, soon; one for all that is asked until it begins. Any thread. */
IDEM_API void idem_turns_ask(struct idem_turns *turns);

/* This is the turns' own thread, and no turn begins before the caller gives it
 * back: what turns alone may touch is the caller's, too. */
IDEM_API bool idem_turns_here(const struct idem_turns *turns);

/* A turn at that time, monotonic, at the latest; it may come before.
 * INT64_MAX: none is needed for its sake. Within a turn, for the time behind
 * it. */
IDEM_API void idem_turns_by(struct idem_turns *turns, int64_t at_ns);

/* Something has left whose answer can be read from fd: the thread may look for
 * it before it sleeps (<idem/threads.h>). Within a turn. */
IDEM_API void idem_turns_sent(struct idem_turns *turns);

/* When it returns no turn runs and none will, whoever asks; fd is closed. Not
 * on a sockets' thread. */
IDEM_API void idem_turns_stop(struct idem_turns *turns);

/* When they are stopped and nobody asks any more. */
IDEM_API void idem_turns_free(struct idem_turns *turns);

IDEM_END_DECLS

#endif
