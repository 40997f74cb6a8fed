#ifndef IDEM_RESOLVE_H
#define IDEM_RESOLVE_H

#include <idem/channel.h>

/* Ask the server what became of a key: for a call that ended IN_DOUBT, or whose
 * caller was restarted. outcome.key is what to ask with. */

#define IDEM_RESOLVED_LIST(X)                                                  \
    X(ABSENT, 1, "no execution has it: it may run")                            \
    X(RUNNING, 2, "somebody runs it")                                          \
    X(DONE, 3, "its answer is recorded, for good")                             \
    X(IN_DOUBT, 4, "an execution ended half-way: an operator settles it")      \
    X(ABANDONED, 5, "no execution has it, and none ever will")                 \
    X(EXPIRED, 6, "never runs any more; whether it ran is forgotten")

enum idem_resolved {
#define IDEM_RESOLVED_ENUM(name, number, text) IDEM_RESOLVED_##name = number,
    IDEM_RESOLVED_LIST(IDEM_RESOLVED_ENUM)
#undef IDEM_RESOLVED_ENUM
};

struct idem_resolution {
    enum idem_resolved state;
    int64_t lease_ms;    /* RUNNING: so long at most, unless it is renewed; 0:
                          * unknown */
    int64_t first_at_ms; /* wall clock of the first execution; 0: unknown.
                          * ABANDONED: 0 when it never ran; else an execution
                          * (LEASED) gave the key back, and what it did outside
                          * before is not known */

    /* DONE: what a call with the key is answered. */
    enum idem_status status;
    char reason[IDEM_REASON_MAX];
    char message[IDEM_MESSAGE_MAX];
    struct idem_bytes reply; /* status OK: serialized, the resolution's own; the
                              * generated …_read_reply makes it a message. Of
                              * the method that used the key: where methods
                              * share their keys (key_group, SESSION), ask by
                              * the one that was called */
};

IDEM_BEGIN_DECLS

/**
 * What became of the key? Changes nothing.
 *
 * @param key         as in outcome.key
 * @param timeout_ms  of the whole call; 0: the channel's
 * @param resolution  filled on OK; then give it to idem_resolution_fini
 * @param err         may be NULL
 *
 * @retval IDEM_OK                the resolution says what
 * @retval IDEM_INVALID_ARGUMENT  not a key, or a method without records
 * @retval IDEM_NOT_FOUND         the server does not have the method
 * @retval IDEM_UNIMPLEMENTED     the server has no ledger
 * @retval other                  the call failed: nothing is known. Ask again
 *
 * From any thread, but not inside a callback of the library.
 */
IDEM_API enum idem_status idem_resolve(struct idem_channel *channel,
                                       const struct idem_method *method,
                                       const char *key, int64_t timeout_ms,
                                       struct idem_resolution *resolution,
                                       struct idem_error *err) IDEM_MUST_CHECK;

/* As idem_resolve, and make sure that the key never runs if no execution has
 * it: ABANDONED. A key whose execution stopped half-way becomes IN_DOUBT. When
 * the call fails, it may have been done: repeat it. */
IDEM_API enum idem_status idem_abandon(struct idem_channel *channel,
                                       const struct idem_method *method,
                                       const char *key, int64_t timeout_ms,
                                       struct idem_resolution *resolution,
                                       struct idem_error *err) IDEM_MUST_CHECK;

/* Free what it has; it may be filled again. One that is all zero is fine. */
IDEM_API void idem_resolution_fini(struct idem_resolution *resolution);

/* "IN_DOUBT", and what it means to people. */
IDEM_API const char *idem_resolved_name(enum idem_resolved state);
IDEM_API const char *idem_resolved_text(enum idem_resolved state);

IDEM_END_DECLS

#endif
