#ifndef FUZZ_WIRE_H
#define FUZZ_WIRE_H

#include "io.h"

/* A transport whose other end is the target's, by hand: what that says is read
 * by the library on the thread that says it, and what the library says is there
 * when it has said it. So most of a run is on one thread, and costs no switch
 * to another one.
 *
 * One listener and one dialer at a time, for channel_new_with_io and
 * server_listen_with_io. */
extern const struct io fuzz_wire_io;

#define FUZZ_WIRE_ADDRESS "fuzz://wire"

/* One connection. */
struct fuzz_wire;

/* To who listens; of who dials, which is waited for. The caller hangs up. */
struct fuzz_wire *fuzz_wire_connect(void);
struct fuzz_wire *fuzz_wire_accept(void);

/* All of it is read. False: the library has closed the connection. */
bool fuzz_wire_say(struct fuzz_wire *wire, struct idem_bytes bytes);

/* What the library has said, at least a byte, which is waited for. 0: it has
 * closed the connection, and there is nothing more. */
size_t fuzz_wire_hear(struct fuzz_wire *wire, uint8_t *buffer, size_t room);

void fuzz_wire_hang_up(struct fuzz_wire *wire);

#endif
