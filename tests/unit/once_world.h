#ifndef ONCE_WORLD_H
#define ONCE_WORLD_H

#include "support.h"

#include "call.h"
#include "context.h"
#include "fake_clock.h"
#include "fake_store.h"

#include <idem/limit.h>
#include <idem/once.h>

/* once alone in a chain, between calls that a test makes and a store whose
 * answers the test gives, on a clock that the test moves. */
struct world {
    struct fake_clock clock;
    struct fake_store store;
    struct idem_timers *timers;
    struct chain chain;
    struct idem_interceptor *once;
    struct idem_interceptor *limit; /* NULL: none */
    pthread_mutex_t lock;           /* guards what calls say to the test */
    pthread_cond_t changed;
};

/* One call. Its handler runs when the test says that it returns. */
struct trial {
    struct call call; /* first */
    struct idem_context context;
    struct world *world;
    unsigned begun; /* how often the handler was begun */
    bool finished, freed;
    struct idem_outcome outcome; /* once finished */
    char reply[64];
    size_t reply_size;
    char trailer[64]; /* of the name "x-trailer" */
};

struct trial_options {
    const struct idem_method *method; /* NULL: Add */
    const char *key;                  /* NULL: none */
    const char *tenant;
    const char *order; /* a field that makes the key of AddOrder */
    int64_t amount;
    const char *bytes; /* as the request came; NULL: the amount's digits */
    unsigned attempt;  /* 0: 1 */
    uint64_t ack_below;
    int64_t timeout_ms; /* 0: none */
};

int world_setup(void **state);
int world_teardown(void **state);

/* Put another once in place of the world's, before the first call. */
void world_use(struct world *world, const struct idem_once_options *options);

/* The same, with a limit in front whose permits it takes. */
void world_use_limit(struct world *world,
                     const struct idem_limit_options *options);

void trial_begin(struct trial *trial, struct world *world,
                 const struct trial_options *options);

/* Wait until the handler was begun so often. */
void trial_await_handler(struct trial *trial, unsigned begun);

/* The handler returns; reply is its message on OK. */
void trial_return(struct trial *trial, enum idem_status status,
                  const char *reply);

/* The probe, which is begun in the handler's place, returns. NOT_DONE: the
 * handler is begun now. */
void trial_probe(struct trial *trial, enum idem_probed probed,
                 const char *reply);

/* The endpoint gives the call back before its handler began. */
void trial_refuse(struct trial *trial);

/* Wait for the end. */
const struct idem_outcome *trial_await(struct trial *trial);
bool trial_is_finished(struct trial *trial);

/* The counts, by value. */
struct idem_once_counts world_counts(struct world *world);

#endif
