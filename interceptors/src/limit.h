#ifndef LIMIT_H
#define LIMIT_H

#include <stdatomic.h>

#include "permits.h"
#include "rate.h"

#include <idem/call.h>
#include <idem/limit.h>

/* The interceptor of <idem/limit.h>, and what once asks of it. */
struct limit {
    struct idem_interceptor base;
    struct idem_limit_options options; /* no zeroes left */
    struct permits permits;
    struct rates rates;
    bool behind; /* once takes the permits of calls that record */
    atomic_uint_fast64_t shed, rate_limited;
};

extern const struct idem_interceptor_ops limit_ops;

/* A permit for the call: as permits_take. permit->called is set. */
enum permit_take limit_take(struct limit *limit, const struct idem_call *call,
                            struct permit *permit, bool wait);
void limit_take_over(struct limit *limit, const struct idem_call *call,
                     struct permit *permit);
void limit_end(struct limit *limit, const struct idem_call *call,
               struct permit *permit);

/* Answer a call for which there was no room. */
void limit_shed(struct limit *limit, struct idem_call *call,
                enum idem_effect effect);

#endif
