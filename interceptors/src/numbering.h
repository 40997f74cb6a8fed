#ifndef NUMBERING_H
#define NUMBERING_H

#include <pthread.h>

#include <idem/key.h>

/* A channel's session: numbers for its calls, and up to where all of them have
 * their final answers. Any thread. When too many wait for theirs, when it gets
 * old, or when the clock was wrong, another session begins, and the old one's
 * calls are forgotten here: their records go with their day. */

#define NUMBERING_MAX 1024 /* calls of a session that have no final answer */

struct numbering {
    pthread_mutex_t lock; /* guards the rest */
    char session[IDEM_SESSION_MAX];
    uint64_t generation; /* of the session; 0: there is none */
    int64_t window_ms;   /* that its calls want */
    int64_t opened_ns;
    int64_t next, base; /* the next number, the lowest without an answer */
    bool answered[NUMBERING_MAX]; /* by number */
};

/* One call's number; all zero is none. */
struct numbered {
    uint64_t generation;
    int64_t sequence;
    uint64_t ack_below;
};

void numbering_init(struct numbering *numbering);
void numbering_fini(struct numbering *numbering);

/* The next call's number and key (IDEM_KEY_MAX + 1 bytes), whose record is kept
 * for window_ms at least. */
void numbering_take(struct numbering *numbering, const struct idem_clock *clock,
                    int64_t skew_ms, int64_t window_ms,
                    struct numbered *numbered, char *key);

/* That call has its final answer. */
void numbering_finish(struct numbering *numbering,
                      const struct numbered *numbered);

/* The session was made by a wrong clock. */
void numbering_renew(struct numbering *numbering);

#endif
