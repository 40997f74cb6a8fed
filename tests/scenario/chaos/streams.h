#ifndef STREAMS_H
#define STREAMS_H

#include "checker.h"
#include "options.h"
#include "site.h"

/* Clients of streams with a mode, a thread for each kind: client streams and
 * bidirectional ones, each message of which is once under its number, and
 * server streams, whose effect is once and whose messages resume. A stream that
 * is lost for good is begun again, at either server, where the one before
 * ended. */
struct streams;

struct streams *streams_start(struct site *site,
                              const struct chaos_options *options);

/* No more new ones, and those that were begun are whole; the threads have ended
 * when this returns. */
void streams_settle(struct streams *streams);

/* Tell the checker the keys and what their callers were told. */
void streams_tell(struct streams *streams, struct checker *checker);

/* How many streams of each kind, and how often one was begun again, to stdout.
 */
void streams_print(struct streams *streams);

void streams_free(struct streams *streams);

#endif
