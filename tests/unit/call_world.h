#ifndef CALL_WORLD_H
#define CALL_WORLD_H

#include "support.h"

#include "arena.h"
#include "call.h"
#include "fake_clock.h"
#include "timer.h"

#define MS INT64_C(1000000)

/* A chain of fakes, an endpoint that answers what a test says, a fake clock.
 * What happens is written as letters into a trail. */
struct call_world {
    struct fake_clock fake;
    struct idem_timers *timers;
    struct chain chain;
    enum idem_step (*send)(struct call *call); /* NULL: answer OK, "ok" */

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    char trail[256];
    unsigned sends, finished, freed;
    struct idem_outcome outcome; /* of the last that finished */
    char reply[32];
    struct call *parked; /* at the parking holder's */
};

/* An interceptor of a test: hooks as it says. */
struct fake {
    struct idem_interceptor base;
    struct idem_interceptor_ops ops;
    struct call_world *world;
    unsigned count; /* the test's */
};

struct world_call {
    struct call call;
    struct call_world *world;
};

int call_world_set_up(void **state);
int call_world_tear_down(void **state);

/* Add an interceptor of that name (copied by reference) and band. */
struct fake *call_world_add(struct call_world *w, const char *name,
                            enum idem_band band, idem_intercept_fn *request,
                            idem_intercept_fn *reply);

/* A call with one reference more than the walk's; drop it with call_unref. */
struct call *call_world_call(struct call_world *w);

/* Begin one and wait until it is over; the outcome is in the world. */
void call_world_run(struct call_world *w);
void call_world_await_finished(struct call_world *w, unsigned count);
void call_world_await_freed(struct call_world *w, unsigned count);

/* Write one letter into the trail. */
void call_world_note(struct call_world *w, char letter);

struct call_world *call_world_of(struct idem_call *call);

/* Answer OK with that text. */
enum idem_step call_world_answer(struct call *call, const char *text);

/* Hooks that note the first letter of their name, small on the way up. */
enum idem_step call_world_pass_down(struct idem_interceptor *self,
                                    struct idem_call *call);
enum idem_step call_world_pass_up(struct idem_interceptor *self,
                                  struct idem_call *call);

/* A hook that parks the call in the world until call_world_unpark or an
 * interruption. */
enum idem_step call_world_park(struct idem_interceptor *self,
                               struct idem_call *call);
extern const struct idem_holder call_world_parking;

/* Put it where others find it. */
void call_world_put(struct call_world *w, struct call *call);

/* The parked call, which is now the caller's to resume; NULL: none. */
struct call *call_world_unpark(struct call_world *w);

#endif
