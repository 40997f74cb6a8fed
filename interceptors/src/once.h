#ifndef ONCE_H
#define ONCE_H

#include <stdatomic.h>

#include "errand.h"
#include "flight.h"

#include <idem/call.h>
#include <idem/once.h>
#include <idem/shield.h>

#define NS_PER_MS INT64_C(1000000)

#define CONTAINER(type, member, pointer)                                       \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

struct limit;
struct memory;

/* The fields of idem_once_counts, in its order. */
#define ONCE_COUNT_LIST(X)                                                     \
    X(EXECUTED, executed)                                                      \
    X(PROBED, probed)                                                          \
    X(REPLAYED, replayed)                                                      \
    X(SHIELDED, shielded)                                                      \
    X(REMEMBERED, remembered)                                                  \
    X(REBUILT, rebuilt)                                                        \
    X(ATTACHED, attached)                                                      \
    X(REFUSED, refused)                                                        \
    X(BUSY, busy)                                                              \
    X(EXHAUSTED, exhausted)                                                    \
    X(IN_DOUBT, in_doubt)                                                      \
    X(FENCED, fenced)                                                          \
    X(STORE_FAILED, store_failed)                                              \
    X(CLAIMS, claims)

enum once_count {
#define ONCE_COUNT_ENUM(name, field) ONCE_##name,
    ONCE_COUNT_LIST(ONCE_COUNT_ENUM)
#undef ONCE_COUNT_ENUM
        ONCE_COUNTS,
    ONCE_NOTHING = ONCE_COUNTS, /* counts nowhere */
};

/* The interceptor. Read by all threads, written by none but for what has its
 * own lock. */
struct once {
    struct idem_interceptor base;
    struct idem_store *store;
    struct idem_shield *shield;     /* NULL: none */
    struct limit *limit;            /* NULL: none */
    struct memory *memory;          /* NULL: none */
    const struct idem_clock *clock; /* of what has no call */
    bool own_clock;                 /* it was given: calls are held to it */
    int64_t wait_cap_ns, epoch_ttl_ns;
    _Atomic int64_t heard_ns; /* when the last question was asked that the
                               * authority has answered */
    unsigned max_repeats;
    struct flights flights;
    struct errands errands;
    atomic_uint_fast64_t counts[ONCE_COUNTS];
};

static inline void
once_count(struct once *once, enum once_count what)
{
    if (what != ONCE_NOTHING)
        atomic_fetch_add_explicit(&once->counts[what], 1, memory_order_relaxed);
}

/* Saturates: a policy may say "for ever". */
static inline int64_t
ms_to_ns(int64_t ms)
{
    return ms > INT64_MAX / NS_PER_MS / 2 ? INT64_MAX / 2 : ms * NS_PER_MS;
}

#endif
