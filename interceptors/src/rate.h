#ifndef RATE_H
#define RATE_H

#include <pthread.h>
#include <stdint.h>

#include <idem/base.h>
#include <idem/method.h>

/* How often one principal may call one method: a token bucket each, kept as the
 * one time at which it will be full again (the generic cell rate algorithm,
 * ITU-T I.371). The last used max are remembered: a bucket that is forgotten
 * was full, or its owner shares the server with more others than the server
 * keeps apart. For any thread; its lock is a leaf. */
struct rates {
    pthread_mutex_t lock;
    unsigned max;
    struct bucket *buckets; /* by method and principal, the last used last */
};

void rates_init(struct rates *rates, unsigned max);
void rates_fini(struct rates *rates);

/* A token of the principal's for a call of that method; 0: taken. Else none
 * was, and so many nanoseconds from now there will be one. Without memory for a
 * bucket the call is not held to it. */
int64_t rates_take(struct rates *rates, const struct idem_method *method,
                   const struct idem_limit_policy *policy,
                   struct idem_bytes principal, int64_t now_ns);

#endif
