#ifndef BLANK_H
#define BLANK_H

#include <stddef.h>
#include <string.h>

#include <idem/outcome.h>

/* Outcomes and errors end in texts with room for hundreds of bytes. Each call
 * begins with some: an empty text is a zero at its start, what is behind it is
 * not cleared. */

static inline void
blank_error(struct idem_error *err)
{
    err->status = IDEM_OK;
    err->reason[0] = err->message[0] = 0;
}

/* All zero, but retry_after_ms: the server has no wish. */
static inline void
blank_outcome(struct idem_outcome *outcome)
{
    memset(outcome, 0, offsetof(struct idem_outcome, key));
    outcome->key[0] = outcome->reason[0] = outcome->message[0] = 0;
    outcome->retry_after_ms = -1;
}

#endif
