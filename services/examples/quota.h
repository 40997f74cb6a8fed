#ifndef QUOTA_H
#define QUOTA_H

#include <idem/interceptor.h>

/* How many messages a stream may bring: an example of an interceptor that sees
 * the messages of streams, the same on a channel and on a server. One more ends
 * its stream RESOURCE_EXHAUSTED. NULL: out of memory. */
struct idem_interceptor *quota_new(uint64_t messages);

#endif
