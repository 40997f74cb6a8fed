#ifndef RETRY_WORLD_H
#define RETRY_WORLD_H

#include "call.h"
#include "fake_clock.h"

#define RETRY_SENDS_MAX 64 /* that are remembered */

/* A client's chain of key and retry on a clock that a test moves, above an
 * endpoint that answers as the test says. */
struct retry_world {
    struct fake_clock fake;
    struct idem_timers *timers;
    struct chain chain;
    struct idem_timer horizon; /* so that the timers always wait for a time */
    pthread_mutex_t lock;      /* guards the calls' finishes */
};

struct retry_call;

/* Write the outcome of the call's attempt n, from 1; what is not written is
 * UNAVAILABLE, NOT_SENT, no time named. On any thread. */
typedef void retry_answer_fn(struct retry_call *call, unsigned n);

struct retry_call {
    struct call call; /* first */
    struct retry_world *world;
    struct idem_method method;
    retry_answer_fn *answer;
    void *user;

    unsigned sends;
    unsigned attempts[RETRY_SENDS_MAX]; /* as the wire says */
    int64_t sent_at_ns[RETRY_SENDS_MAX];
    char keys[RETRY_SENDS_MAX][IDEM_KEY_MAX + 1];
    unsigned finishes;
    struct idem_outcome outcome;
    bool trailers; /* came with it */
    bool freed;
};

void retry_world_open(struct retry_world *w);
void retry_world_close(struct retry_world *w);

/* A keyed method of mode TRANSACTION with this policy; timeout_ms 0: none. The
 * test may change it before it begins. */
struct retry_call *retry_call_new(struct retry_world *w,
                                  retry_answer_fn *answer,
                                  unsigned max_attempts, uint32_t retryable,
                                  int64_t timeout_ms);
void retry_call_begin(struct retry_call *call);

/* Let exactly the pause pass in which it is. */
void retry_call_pass_pause(struct retry_call *call);

bool retry_call_finished(struct retry_call *call);

/* When it is finished: exactly once, or the test fails. */
void retry_call_free(struct retry_call *call);

int64_t retry_world_now_ns(struct retry_world *w);

/* When these return, all that time has set going is done. */
void retry_world_advance_ns(struct retry_world *w, int64_t ns);

#endif
