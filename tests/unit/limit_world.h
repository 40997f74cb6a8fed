#ifndef LIMIT_WORLD_H
#define LIMIT_WORLD_H

#include "once_world.h"

#include "effects.idem.h"

#include <idem/reason.h>

/* Calls against the limit of a world of once. */

struct idem_limit_counts limit_counts(const struct world *world);

/* A call of a method that records, under that key. */
void begin_add(struct trial *trial, struct world *world, const char *key);
void trial_interrupt(struct trial *trial);

/* It was turned away before its handler, with a time to come back. */
void assert_shed(struct trial *trial);

/* So many have a permit, so many wait. */
void limit_to(struct world *world, unsigned max_in_flight,
              unsigned max_waiting);

#endif
