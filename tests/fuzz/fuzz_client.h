#ifndef FUZZ_CLIENT_H
#define FUZZ_CLIENT_H

#include "fuzz_steps.h"

#include <idem/channel.h>
#include <idem/interceptor.h>

/* A channel whose server says on its streams what an input says. */

#define FUZZ_CLIENT_WINDOW 512 /* bytes, of either side for each stream */

/* One for the process, made by the first call. Its time is so fast that nobody
 * waits for a connection that is to be made again. with: an interceptor of it,
 * or NULL. */
struct idem_channel *
fuzz_client_channel(struct idem_interceptor *(*with)(void));

/* So many streams were started: await their OPENs, say what steps has to say,
 * then PING, and look at what comes up to the PONG. */
void fuzz_client_talk(struct fuzz_steps *steps, unsigned streams);

/* All streams have ended: nothing of them is left for the next run. */
void fuzz_client_settle(void);

#endif
