#ifndef ONCE_VERDICT_H
#define ONCE_VERDICT_H

#include "passage.h"

/* The outcome of a call whose claim or look got a verdict that neither runs nor
 * replays it; counted. The table is in once_verdict.c. */
void verdict_refuse(struct passage *passage);

/* Another call of the key still runs and this one waits no longer. wait_ms: how
 * long the other one's lease lasts; 0: not known. */
void verdict_busy(struct passage *passage, int64_t wait_ms);

/* The key is in use for another request, whose fingerprint is not at hand. */
void verdict_reused_elsewhere(struct passage *passage);

/* The server stops. */
void verdict_stopped(struct passage *passage);

/* The caller gave up, or its deadline is over. */
void verdict_interrupted(struct passage *passage);

#endif
