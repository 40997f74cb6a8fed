#ifndef IDEM_PLACEMENT_H
#define IDEM_PLACEMENT_H

#include <idem/status.h>

#include <stdio.h>

struct idem_channel;

/* Where the calls of a channel go. Its target names addresses; each has one
 * connection at a time, and a balancer picks one of them for each attempt. */

/* How an address stands, and how the channel does: READY when one of its
 * addresses is, else CONNECTING, IDLE, TRANSIENT_FAILURE, the first of these in
 * which one is. TRANSIENT_FAILURE holds until READY, also while the next
 * attempt to connect is under way (gRFC A62). */
#define IDEM_CHANNEL_STATE_LIST(X)                                             \
    X(IDLE, "no connection is wanted")                                         \
    X(CONNECTING, "no connection yet")                                         \
    X(READY, "calls can go out")                                               \
    X(TRANSIENT_FAILURE, "the last attempt to connect failed")

enum idem_channel_state {
#define IDEM_CHANNEL_STATE_ENUM(name, text) IDEM_CHANNEL_##name,
    IDEM_CHANNEL_STATE_LIST(IDEM_CHANNEL_STATE_ENUM)
#undef IDEM_CHANNEL_STATE_ENUM
};

/* Which of the addresses that are READY gets an attempt. Whatever the choice:
 * one that drains gets none, and one that turned this call away, or to which it
 * never came, is asked again only when the others did the same. */
#define IDEM_BALANCER_LIST(X)                                                  \
    X(PICK_FIRST, "pick_first")   /* one connection, to the first address of   \
                                   * the target that takes it */               \
    X(ROUND_ROBIN, "round_robin") /* each in turn */                           \
    X(LEAST_IN_FLIGHT, "least_in_flight")                                      \
    X(KEY_HASH, "key_hash") /* by the idempotency key: a repeated call meets   \
                             * its first in the same process; calls without a  \
                             * key in turn */

enum idem_balancer {
#define IDEM_BALANCER_ENUM(name, text) IDEM_BALANCER_##name,
    IDEM_BALANCER_LIST(IDEM_BALANCER_ENUM)
#undef IDEM_BALANCER_ENUM
};

/* When an address is set aside for a while, because its server turns calls
 * away, loses them or does not answer in time, again and again; what handlers
 * answer does not count. Of a channel with several addresses; the numbers are
 * gRFC A50's. All zero is all defaults. */
struct idem_outlier_options {
    bool off;
    unsigned in_a_row;        /* failures that are enough; 0: 5 */
    unsigned failure_percent; /* over which an interval's calls are; 0: 85 */
    unsigned min_calls;       /* of such an interval; 0: 50 */
    unsigned min_addresses;   /* for failure_percent; 0: 5 */
    unsigned max_ejected_percent; /* 0: 10; one may always be, the last never */
    int64_t interval_ms;          /* 0: 10,000 */
    int64_t ejection_ms;          /* times how often it was; 0: 30,000 */
    int64_t max_ejection_ms;      /* 0: 300,000 */
};

IDEM_BEGIN_DECLS

/* "TRANSIENT_FAILURE"; "UNKNOWN" for a number that is no state. */
IDEM_API const char *idem_channel_state_name(enum idem_channel_state state);

/* "round_robin"; "unknown" for a number that is no balancer. */
IDEM_API const char *idem_balancer_name(enum idem_balancer balancer);

/* The balancer of a name; false when there is none. */
IDEM_API bool idem_balancer_parse(const char *name,
                                  enum idem_balancer *balancer);

/* Which one the channel has. */
IDEM_API enum idem_balancer idem_channel_balancer(struct idem_channel *channel);

/**
 * Turn to another one: from now on each attempt is placed by it, those that fly
 * stay where they are. The other addresses are dialled when pick_first is left;
 * all connections but the first end with their last call when it is taken. Any
 * thread. A service config that names a balancer (policy.h) turns the channel
 * to that, when it is read.
 *
 * @retval IDEM_OK
 * @retval IDEM_INVALID_ARGUMENT  there is no such balancer
 */
IDEM_API enum idem_status
idem_channel_set_balancer(struct idem_channel *channel,
                          enum idem_balancer balancer, struct idem_error *err)
    IDEM_MUST_CHECK;

/* How the channel stands at this moment. */
IDEM_API enum idem_channel_state
idem_channel_state(struct idem_channel *channel);

/**
 * Wait until it is READY. Not from inside a callback. A timeout_ms of 0, or a
 * negative one, looks and does not wait.
 *
 * @retval IDEM_DEADLINE_EXCEEDED  not within timeout_ms; the message says what
 *                                 the last attempt to connect failed with
 */
IDEM_API enum idem_status idem_channel_wait_ready(struct idem_channel *channel,
                                                  int64_t timeout_ms,
                                                  struct idem_error *err)
    IDEM_MUST_CHECK;

/* The target, each address and how it stands, the last trouble: for people. */
IDEM_API void idem_channel_describe(struct idem_channel *channel, FILE *out);

IDEM_END_DECLS

#endif
