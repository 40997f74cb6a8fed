#ifndef IDEM_PLACEMENT_H
#define IDEM_PLACEMENT_H

#include <idem/base.h>

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

IDEM_BEGIN_DECLS

/* "TRANSIENT_FAILURE"; "UNKNOWN" for a number that is no state. */
IDEM_API const char *idem_channel_state_name(enum idem_channel_state state);

/* "round_robin"; "unknown" for a number that is no balancer. */
IDEM_API const char *idem_balancer_name(enum idem_balancer balancer);

/* The balancer of a name; false when there is none. */
IDEM_API bool idem_balancer_parse(const char *name,
                                  enum idem_balancer *balancer);

IDEM_END_DECLS

#endif
