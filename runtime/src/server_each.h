#ifndef SERVER_EACH_H
#define SERVER_EACH_H

#include "server_inside.h"

/* A stream of which each message is a call: which of them runs (server_each.c),
 * and how one is made of the stream's (server_each_message.c). In the memory of
 * the stream's call. */
struct each {
    struct server_call *stream; /* whose; it has this one's memory */

    /* The stream's lock. */
    struct server_call *now; /* a reference; NULL: none */
    bool is_over;            /* … and its outcome is there */

    /* Of the one who runs due. */
    bool at_end;   /* now is of method->end */
    bool answered; /* the stream's call goes up, or did */
};

/* Of a message, or the end, which is that method; under the key behind the
 * watermark. One reference, for its walk. NULL: out of memory. When its walk is
 * over, is_over says so, and what is due runs. */
struct server_call *each_message_new(struct each *each,
                                     const struct idem_method *method,
                                     struct idem_bytes request);

#endif
