#ifndef CALLS_H
#define CALLS_H

#include "bench.idem.h"
#include "loop.h"

/* The calls of bench.proto that a loop starts. What all of them send is told
 * once, before the first; replies are compared byte by byte. */
void calls_prepare(const uint8_t *body, size_t size, uint32_t reply_bytes);

loop_start_fn call_echo, call_echo_inline, call_lease, call_transact,
    call_state, call_foretell, call_group;

/* Lease and Popular again and again under a few keys, for which each was run
 * by calls_record. */
loop_start_fn call_lease_again, call_popular_again;

/* Lease; so many of ten under one of those keys. */
void calls_mix(unsigned tenths);
loop_start_fn call_lease_mixed;

/* Run Lease and Popular once under each of those keys, with what
 * calls_prepare said. */
void calls_record(struct idem_channel *channel);

/* Echo, and wait for the answer. */
enum idem_status calls_wait(struct idem_channel *channel, bench_reply **reply,
                            struct idem_outcome *outcome);

#endif
