#ifndef ONCE_EPOCH_H
#define ONCE_EPOCH_H

#include "once.h"

/* Which incarnation of the authority a cached answer may be of. A restored
 * backup or a promoted standby is another one, and nobody says so to a process
 * that does not ask: a cached answer is shown only for epoch_ttl after the
 * authority last answered (semantics.md 4.5). */

/* The epoch in which the authority answers; false and "" when it has none, or
 * cannot be asked now. */
bool once_epoch(const struct once *once, char epoch[IDEM_EPOCH_MAX]);

/* The authority has answered a question that was asked at that time. */
void once_heard(struct once *once, int64_t asked_ns);

/* The epoch under which a cached answer may be shown now, by the clock that the
 * authority's answers are noted by; false: none may. */
bool once_epoch_shown(const struct once *once, const struct idem_clock *clock,
                      char epoch[IDEM_EPOCH_MAX]);

#endif
