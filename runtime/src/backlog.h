#ifndef BACKLOG_H
#define BACKLOG_H

#include <idem/base.h>

/* Messages one behind the other in one buffer, so that a message costs a copy
 * and no allocation. Empty when zeroed. */
struct backlog {
    uint8_t *bytes; /* each behind its size in 4 bytes and one of flags */
    size_t size, room;
    size_t at;   /* of the next */
    size_t from; /* of the first that is kept */
};

void backlog_fini(struct backlog *backlog);

/* squeezed: its bytes are what codec.h makes of a message; comes back with it.
 * False: out of memory. */
bool backlog_put(struct backlog *backlog, struct idem_bytes message,
                 bool squeezed) IDEM_MUST_CHECK;

/* The view is good until the next put. False: there is none behind. */
bool backlog_next(struct backlog *backlog, struct idem_bytes *message,
                  bool *squeezed) IDEM_MUST_CHECK;

/* The first that is kept goes. Not one that is still to be next. */
void backlog_drop(struct backlog *backlog);

/* None is left; a buffer over keep bytes is given back. */
void backlog_clear(struct backlog *backlog, size_t keep);

/* The next is the first that is kept. */
static inline void
backlog_rewind(struct backlog *backlog)
{
    backlog->at = backlog->from;
}

/* Bytes that are kept. */
static inline size_t
backlog_kept(const struct backlog *backlog)
{
    return backlog->size - backlog->from;
}

static inline bool
backlog_is_through(const struct backlog *backlog)
{
    return backlog->at == backlog->size;
}

#endif
