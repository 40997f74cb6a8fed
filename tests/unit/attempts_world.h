#ifndef ATTEMPTS_WORLD_H
#define ATTEMPTS_WORLD_H

#include "call.h"
#include "fake_clock.h"

#include <idem/interceptor.h>
#include <idem/policy.h>

#define ATTEMPTS_MAX 16

struct attempts_call;
struct policies;

/* A client's chain of policy, key and retry on a clock that a test moves. What
 * comes to the endpoint stays there until the test answers it, or somebody
 * gives it up. */
struct attempts_world {
    struct fake_clock fake;
    struct idem_timers *timers;
    struct chain chain;
    struct policies *policies; /* the chain's */
    struct idem_method method;
    struct idem_bytes request; /* of the next call */

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    struct attempts_call *sent[ATTEMPTS_MAX]; /* in order; NULL: ended */
    unsigned numbers[ATTEMPTS_MAX];           /* as the wire says */
    char keys[ATTEMPTS_MAX][64];
    enum idem_status given_up[ATTEMPTS_MAX]; /* OK: not */
    unsigned sends, finishes, freed;
    struct idem_outcome outcome;
    char reply[32], trailer[32]; /* "": none */
};

/* One entry for all calls, with these members beside its name. */
void attempts_world_open(struct attempts_world *w, const char *members);

/* In a program with these options beside them. */
void attempts_world_open_with(struct attempts_world *w, const char *members,
                              struct idem_policy_options options);
void attempts_world_close(struct attempts_world *w);

/* A call, for call_begin; timeout_ms 0: no deadline. A reference, for
 * call_unref. */
struct call *attempts_world_call(struct attempts_world *w, int64_t timeout_ms);

/* One that is begun. */
struct call *attempts_world_begin(struct attempts_world *w, int64_t timeout_ms);

/* Until so many have come to the endpoint, or more. */
void attempts_world_await_sends(struct attempts_world *w, unsigned sends);
void attempts_world_await_finish(struct attempts_world *w);
void attempts_world_await_freed(struct attempts_world *w, unsigned freed);

/* When the timers wait for the time that is ms from now, let it pass. */
void attempts_world_pass_ms(struct attempts_world *w, int64_t ms);

/* Answer attempt i, from 0, on this thread, with a trailer that is its number;
 * false: it is not there any more. */
bool attempts_world_answer(struct attempts_world *w, unsigned i,
                           enum idem_status status, enum idem_effect effect);

#endif
