#ifndef THROTTLE_H
#define THROTTLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* gRPC's retry throttle (gRFC A6; client.md 2.5): a bucket of tokens for one
 * target, shared by its methods. A failure takes one token, a success gives
 * ratio of one back, and nothing is repeated while the bucket is not more than
 * half full. Integers, in thousandths of a token. For any thread; its lock is a
 * leaf. */
struct throttle {
    pthread_mutex_t lock;      /* held by who writes */
    _Atomic int64_t max_milli; /* 0: never closed */
    _Atomic int64_t tokens_milli;
    int64_t ratio_milli;
};

/* Open for good until throttle_set. */
void throttle_init(struct throttle *throttle);
void throttle_fini(struct throttle *throttle);

/* Other numbers: it is as full as it was, in proportion, and calls that are
 * under way count in it as well. max 0: never closed. */
void throttle_set(struct throttle *throttle, int64_t max_milli,
                  int64_t ratio_milli);

void throttle_success(struct throttle *throttle);

/* Count it; true: it may be followed by another attempt. */
bool throttle_failure(struct throttle *throttle);

/* May an attempt follow, without one having failed (a hedge)? */
bool throttle_open(struct throttle *throttle);

#endif
