#ifndef FUZZ_TALK_H
#define FUZZ_TALK_H

#include "fuzz_steps.h"

/* A peer that says to the server that listens what an input says, in streams of
 * these kinds, then PING, and looks at all that comes: up to the PONG, and to
 * the ENDs that are owed. */
void fuzz_talk(struct idem_bytes input, const struct fuzz_kind *kinds,
               unsigned n_kinds);

#endif
