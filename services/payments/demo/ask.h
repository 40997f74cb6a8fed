#ifndef DEMO_ASK_H
#define DEMO_ASK_H

#include "tally.h"

struct idem_channel;

#define ASK_PATIENCE_MS 1500

/* Make the planned call until its answer is final: under the same key, whatever
 * the answers in between. The first time it waits patience_ms, later on
 * ASK_PATIENCE_MS. False: it took too long, answer is the last one. */
bool ask_until_final(struct idem_channel *channel, const struct plan_call *call,
                     int64_t patience_ms, struct tally *tally,
                     struct answer *answer);

/* Both say the same: status and reply. */
bool answers_agree(const struct answer *a, const struct answer *b);

#endif
