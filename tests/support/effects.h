#ifndef EFFECTS_H
#define EFFECTS_H

#include <pthread.h>

#include "effects.idem.h"

/* The service of effects.proto. Add writes a row of the table effects in the
 * call's transaction; Push appends a line to a file, as another system would.
 */

#define EFFECTS_SCHEMA                                                         \
    "CREATE TABLE IF NOT EXISTS effects (number BIGINT NOT NULL, "             \
    "key TEXT NOT NULL, amount BIGINT NOT NULL)"

#define EFFECTS_KEYS "SELECT key FROM effects"

/* What register gets as user. Handlers run on many threads. */
struct effects {
    const char *push_log; /* the file; NULL: Push fails */
    bool outside; /* Add's effect is Push's: a seeded bug, which checks find */
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    bool held;             /* handlers stop after their effect … */
    int64_t held_amount;   /* … of this amount; 0: all */
    unsigned inside;       /* that have written their effect and not returned */
    unsigned runs;         /* handlers that were begun */
    unsigned probes;       /* that were asked */
    unsigned left_failing; /* so many handlers fail from here … */
    enum idem_status fail_with; /* … with this status */
};

extern const struct effects_handlers effects_handlers;

void effects_init(struct effects *effects, const char *push_log);
void effects_fini(struct effects *effects);

/* Hold handlers after their effect, before they return; let them go. */
void effects_hold(struct effects *effects);
void effects_open(struct effects *effects);

/* Wait until so many are inside. Fails the test after 10 s. */
void effects_await(struct effects *effects, unsigned inside);

/* The next so many handlers fail after their effect. */
void effects_fail(struct effects *effects, unsigned times,
                  enum idem_status status);

unsigned effects_runs(struct effects *effects);

/* Lines of the file; those that begin with the key when it is not NULL. */
unsigned effects_pushes(const char *push_log, const char *key);

#endif
