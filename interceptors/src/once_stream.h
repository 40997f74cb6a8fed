#ifndef ONCE_STREAM_H
#define ONCE_STREAM_H

#include "once.h"

/* A stream whose messages take effect once each is let through without a claim:
 * its messages come by themselves, each with its key (decision 39). What is
 * asked here is whether its first one may be that: its key is a session's, it
 * acknowledges nothing that is still to come, and the message before it took
 * effect. So no number is left out, whatever the session's streams say. A unary
 * call of the same session, which no stub makes, acknowledges all below its
 * number: its client says that it has those answers, a message that failed
 * among them, and a stream that begins behind it is let through.
 *
 * INVALID_ARGUMENT KEY_MISSING or a reason of idem_key_parse, or an
 * acknowledgement above the number; FAILED_PRECONDITION KEY_GAP; ABORTED
 * KEY_RUNNING; UNAVAILABLE STORE_AWAY. All REFUSED. */
enum idem_step once_stream_open(struct once *once, struct idem_call *call);

#endif
