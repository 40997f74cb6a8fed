#ifndef SESSIONS_H
#define SESSIONS_H

#include "checker.h"
#include "options.h"
#include "site.h"

/* Clients whose channels number their calls, a thread for each server: each
 * call is repeated until it is known what became of it, which acknowledges it,
 * and some that were answered are sent once more, late, to either server. */
struct sessions;

struct sessions *sessions_start(struct site *site,
                                const struct chaos_options *options);

/* No more new ones, and what became of all is known; the threads have ended
 * when this returns. */
void sessions_settle(struct sessions *sessions);

/* Tell the checker the keys and what their callers were told. */
void sessions_tell(struct sessions *sessions, struct checker *checker);

/* How many calls, and how many late ones were turned away, to stdout. */
void sessions_print(struct sessions *sessions);

void sessions_free(struct sessions *sessions);

#endif
