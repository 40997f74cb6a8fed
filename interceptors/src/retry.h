#ifndef RETRY_H
#define RETRY_H

#include <idem/retry.h>

struct policies;

/* As idem_retry_new, by the policies of a channel, which outlive it. */
struct idem_interceptor *retry_new(struct policies *policies);

#endif
