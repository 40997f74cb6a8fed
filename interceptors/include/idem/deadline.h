#ifndef IDEM_DEADLINE_H
#define IDEM_DEADLINE_H

#include <idem/interceptor.h>

IDEM_BEGIN_DECLS

/* Ends a call whose deadline is over before it begins: DEADLINE_EXCEEDED,
 * NOT_SENT on the client, REFUSED on the server, no work. (The runtime's timer
 * interrupts it later on.) Standard on both sides. NULL: out of memory. */
IDEM_API struct idem_interceptor *idem_deadline_new(void);

IDEM_END_DECLS

#endif
