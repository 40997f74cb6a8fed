#ifndef TRACEPARENT_H
#define TRACEPARENT_H

#include <idem/base.h>

/* Is it a traceparent that may be passed on (W3C Trace Context, 3.2)? One that
 * breaks the rules is as if it had not come. */
bool traceparent_is(struct idem_bytes value);

#endif
