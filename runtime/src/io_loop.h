#ifndef IO_LOOP_H
#define IO_LOOP_H

#include <idem/base.h>

#include <stdbool.h>
#include <stdint.h>

/* Threads that wait for sockets (epoll) and run what stands behind them: one
 * for each two processors, at most 4, begun with the first source and never
 * ended. A source belongs to one of them for good, so nothing of it runs twice
 * at the same time. Each has a second thread that takes its place when it is
 * lent out for too long (lead.h): a source's thread is the one that leads.
 *
 * A process that forks has none of its sources in the child, and threads of its
 * own when it makes some. */

struct io_loop;

struct io_source {
    int fd; /* the source's: closed when it is dropped; -1: none */

    /* On its thread, with the events of epoll(7) that came, or 0 when it was
     * nudged. Must not block. */
    void (*ready)(struct io_source *source, uint32_t events);

    /* On its thread, after the last ready. */
    void (*dropped)(struct io_source *source);

    /* The loop's. */
    struct io_loop *loop;
    struct io_source *next; /* in the queue */
    bool queued, dropping;
};

/* Gives it to a thread; fd, ready and dropped are set. False: no thread or no
 * memory, and nothing of it will run. */
bool io_loop_join(struct io_source *source) IDEM_MUST_CHECK;

/* Watch its fd for these events from now on, instead of any before. Any thread,
 * not after drop. False: the system takes no more. */
bool io_loop_watch(struct io_source *source, uint32_t events) IDEM_MUST_CHECK;

/* ready(0) once, soon; nothing after drop. Any thread, also its own. */
void io_loop_nudge(struct io_source *source);

/* The caller is on its thread. */
bool io_loop_is_here(const struct io_source *source);

/* Its bytes have left: on its own thread, which may look for an answer before
 * it sleeps (spin.h). Any thread; of another one it says nothing. */
void io_loop_sent(const struct io_source *source);

/* The last word of a source's owner: no further ready, its fd is closed, then
 * dropped runs, which may free it. Any thread, also within its ready, which
 * may go on to read it. */
void io_loop_drop(struct io_source *source);

/* Its fd is the caller's from now on, and not watched; -1: it has none. On its
 * thread. */
int io_loop_release(struct io_source *source);

/* How long its threads look before they sleep (<idem/threads.h>); 0: they do
 * not. Any thread. */
int64_t io_loop_spin_ns(void);

#endif
