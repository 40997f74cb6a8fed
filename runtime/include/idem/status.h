#ifndef IDEM_STATUS_H
#define IDEM_STATUS_H

#include <idem/base.h>

/* The 17 canonical codes with gRPC's numbers, one vocabulary from the socket
 * to the handler. The text is what the code means to a caller. */
#define IDEM_STATUS_LIST(X)                                                    \
    X(OK, 0, "ok")                                                             \
    X(CANCELLED, 1, "the caller gave the call up")                             \
    X(UNKNOWN, 2, "an error without a better code")                            \
    X(INVALID_ARGUMENT, 3, "the request is wrong whatever the state")          \
    X(DEADLINE_EXCEEDED, 4, "no answer in time")                               \
    X(NOT_FOUND, 5, "the thing named does not exist")                          \
    X(ALREADY_EXISTS, 6, "the thing to be made exists")                        \
    X(PERMISSION_DENIED, 7, "this caller may not do this")                     \
    X(RESOURCE_EXHAUSTED, 8, "a limit or quota is reached")                    \
    X(FAILED_PRECONDITION, 9, "the state does not allow it")                   \
    X(ABORTED, 10, "a conflict; repeat a level higher")                        \
    X(OUT_OF_RANGE, 11, "past the valid range")                                \
    X(UNIMPLEMENTED, 12, "the server does not have this method")               \
    X(INTERNAL, 13, "an invariant is broken")                                  \
    X(UNAVAILABLE, 14, "the service cannot be reached or not now")             \
    X(DATA_LOSS, 15, "data is lost or damaged for good")                       \
    X(UNAUTHENTICATED, 16, "the caller is not known")

enum idem_status {
#define IDEM_STATUS_ENUM(name, number, text) IDEM_##name = number,
    IDEM_STATUS_LIST(IDEM_STATUS_ENUM)
#undef IDEM_STATUS_ENUM
};

/* What a finished call did, the worst over its attempts (design.md 1.1).
 * For a method of mode NONE, COMMITTED is a handler that said OK and
 * ROLLED_BACK one that did not. */
#define IDEM_EFFECT_LIST(X)                                                    \
    X(NOT_SENT, 0, "never left this process")                                  \
    X(REFUSED, 1, "turned away before its handler")                            \
    X(ROLLED_BACK, 2, "the handler ran and nothing of it stands")              \
    X(COMMITTED, 3, "the effect stands, made by this call")                    \
    X(REPLAYED, 4, "the recorded answer of an earlier call with this key")     \
    X(IN_DOUBT, 5, "may have taken effect: repeat the key or resolve it")

enum idem_effect {
#define IDEM_EFFECT_ENUM(name, number, text) IDEM_EFFECT_##name = number,
    IDEM_EFFECT_LIST(IDEM_EFFECT_ENUM)
#undef IDEM_EFFECT_ENUM
};

#define IDEM_MESSAGE_MAX 256
#define IDEM_REASON_MAX 32

IDEM_BEGIN_DECLS

/* Why a function failed. Caller-owned, no heap; written only on failure. */
struct idem_error {
    enum idem_status status;
    char reason[IDEM_REASON_MAX];   /* "KEY_REUSED"; empty when there is none */
    char message[IDEM_MESSAGE_MAX]; /* for people; cut when longer */
};

/* "OK", "FAILED_PRECONDITION"; "UNKNOWN" for a number that is no code. */
IDEM_API const char *idem_status_name(enum idem_status status);

/* The code of a name in any letter case; false when there is none. */
IDEM_API bool idem_status_parse(const char *name, enum idem_status *status);

/* "COMMITTED", "IN_DOUBT". */
IDEM_API const char *idem_effect_name(enum idem_effect effect);

/**
 * Fill an error and hand its status back, so that failing is one line:
 * `return idem_fail(err, IDEM_UNAVAILABLE, "claim: %s", why);`
 * err may be NULL. The reason is cleared.
 */
IDEM_API enum idem_status idem_fail(struct idem_error *err,
                                    enum idem_status status, const char *format,
                                    ...) IDEM_PRINTF(3, 4);

/* As idem_fail, with a reason that programs can compare. */
IDEM_API enum idem_status
idem_fail_reason(struct idem_error *err, enum idem_status status,
                 const char *reason, const char *format, ...) IDEM_PRINTF(4, 5);

IDEM_END_DECLS

#endif
