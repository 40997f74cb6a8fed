#ifndef VALIDATE_H
#define VALIDATE_H

#include <idem/interceptor.h>
#include <idem/message.h>

/* The server's interceptor of band VALIDATE: unpacks the request into
 * call->message, so that a request that nobody can read is REFUSED before any
 * record is made of it (case B086; rpc case 94). limits are copied; NULL is all
 * defaults. NULL: out of memory. */
struct idem_interceptor *validate_new(const struct idem_message_limits *limits);

#endif
