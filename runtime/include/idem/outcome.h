#ifndef IDEM_OUTCOME_H
#define IDEM_OUTCOME_H

#include <idem/status.h>

#define IDEM_KEY_MAX 255 /* bytes of 0x21..0x7E (semantics.md 3.11) */

/* outcome.retry_after_ms: the server asks not to be asked again. */
#define IDEM_RETRY_NEVER (-2)

/* Why the client made no further attempt (client's retry; gRFC A6). */
#define IDEM_STOP_LIST(X)                                                      \
    X(UNASKED, "nobody decides about attempts in this chain")                  \
    X(OK, "it was answered OK")                                                \
    X(INTERRUPTED, "the caller gave up, or the deadline was over")             \
    X(NO_POLICY, "the method has no policy to repeat by")                      \
    X(PUSHBACK, "the server asked not to be asked again")                      \
    X(FINAL, "the answer is recorded: the key gets no other")                  \
    X(STATUS, "a status that is not repeated")                                 \
    X(THROTTLED, "too many calls fail: the throttle is closed")                \
    X(IN_DOUBT, "without a key it might take effect twice")                    \
    X(BUFFER, "the request is over what is kept for another attempt")          \
    X(COMMITTED, "the stream has gone too far to be begun again")              \
    X(ATTEMPTS, "all attempts are used up")                                    \
    X(DEADLINE, "the next attempt would begin after the deadline")             \
    X(BUDGET, "the channel's budget of repeats is used up")

enum idem_stop {
#define IDEM_STOP_ENUM(name, text) IDEM_STOP_##name,
    IDEM_STOP_LIST(IDEM_STOP_ENUM)
#undef IDEM_STOP_ENUM
};

IDEM_BEGIN_DECLS

/* How a call ended. Caller-owned, no heap; always filled, also on OK. */
struct idem_outcome {
    enum idem_status status;
    enum idem_effect effect;
    /* The answer is recorded: this key gets it, and no other, for good. False
     * means that the same key may be tried again. */
    bool final;
    unsigned attempts;   /* that were begun; 0 when none was. Interceptors on
                          * the way up see those so far */
    enum idem_stop stop; /* client: why no attempt followed */
    /* Client: of the last attempt. It differs from status when the call ended
     * in the pause before the next one, or because that would have begun after
     * the deadline; reason and message tell of it. */
    enum idem_status last_status;
    int64_t retry_after_ms; /* the server's wish, or IDEM_RETRY_NEVER; -1 when
                             * it has none */
    int64_t first_at_ms;    /* wall clock of the first execution when REPLAYED,
                             * else 0 */
    unsigned executions;    /* when REPLAYED: how often the key's handler was
                             * begun until there was this answer, more than once
                             * after a crash or an answer that was not final;
                             * else 0 */
    int64_t server_time_ms; /* the server's wall clock when it answered; 0: it
                             * did not */
    bool rebuilt; /* REPLAYED, and the reply was made again: it was too large to
                   * be kept, and may say what is now rather than then */
    int64_t watermark; /* of a stream whose messages take effect once each: all
                        * up to this number did (stream.h); else 0 */
    char key[IDEM_KEY_MAX + 1];     /* the key that was used; "" without one. Of
                                     * such a stream: that of the message behind
                                     * the watermark */
    char reason[IDEM_REASON_MAX];   /* "KEY_REUSED"; "" when there is none */
    char message[IDEM_MESSAGE_MAX]; /* for people */
};

/* "ATTEMPTS", and what it means to a caller. */
IDEM_API const char *idem_stop_name(enum idem_stop stop);
IDEM_API const char *idem_stop_text(enum idem_stop stop);

IDEM_END_DECLS

#endif
