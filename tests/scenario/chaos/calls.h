#ifndef CALLS_H
#define CALLS_H

#include "checker.h"
#include "options.h"
#include "site.h"

/* Clients on threads: each takes the next of a stream of attempts that the seed
 * decides: a new key, or one of the last ones once more, perhaps while it is
 * under way, or an old one, on either server, with little time or much. Some
 * keys are given up by their sender at the same moment. What came back is kept
 * for the checker. */
struct calls;

struct calls *calls_start(struct site *site,
                          const struct chaos_options *options);

/* Wait so long, at most until all is called. False: it is. */
bool calls_wait(struct calls *calls, unsigned ms);

/* No more new ones; then each key once more in peace, until what became of it
 * is known. The threads have ended when this returns. */
void calls_settle(struct calls *calls);

unsigned calls_made(struct calls *calls);
unsigned calls_keys(struct calls *calls);

/* Tell the checker the keys and what their callers were told. */
void calls_tell(struct calls *calls, struct checker *checker);

/* How many calls ended how, to stdout. */
void calls_print(struct calls *calls);

void calls_free(struct calls *calls);

#endif
