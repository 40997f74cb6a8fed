#ifndef IDEM_OUTCOME_H
#define IDEM_OUTCOME_H

#include <idem/status.h>

#define IDEM_KEY_MAX 255 /* bytes of 0x21..0x7E (semantics.md 3.11) */

IDEM_BEGIN_DECLS

/* How a call ended. Caller-owned, no heap; always filled, also on OK. */
struct idem_outcome {
    enum idem_status status;
    enum idem_effect effect;
    /* The answer is recorded: this key gets it, and no other, for good. False
     * means that the same key may be tried again. */
    bool final;
    unsigned attempts;      /* that were begun; 0 when none was */
    int64_t retry_after_ms; /* the server's wish; -1 when it has none */
    int64_t first_at_ms;    /* wall clock of the first execution when REPLAYED,
                             * else 0 */
    int64_t server_time_ms; /* the server's wall clock when it answered; 0: it
                             * did not */
    bool rebuilt; /* REPLAYED, and the reply was made again: it was too large to
                   * be kept, and may say what is now rather than then */
    char key[IDEM_KEY_MAX + 1];     /* the key that was used; "" without one */
    char reason[IDEM_REASON_MAX];   /* "KEY_REUSED"; "" when there is none */
    char message[IDEM_MESSAGE_MAX]; /* for people */
};

IDEM_END_DECLS

#endif
