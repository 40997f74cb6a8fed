#ifndef IO_TLS_H
#define IO_TLS_H

#include "io.h"
#include "tls_session.h"

/* A stream whose bytes travel as TLS records on the lower one. Owns both, also
 * on failure (NULL: out of memory). The handshake is made by the first receive
 * or send, and what waits for it waits in them. */
struct io_stream *io_tls_stream_new(struct io_stream *lower,
                                    struct tls_session *session);

#endif
