#ifndef FUZZ_PEER_H
#define FUZZ_PEER_H

#include "fuzz_wire.h"
#include "inbox.h"

/* A peer that speaks our language by hand, over fuzz_wire_io. */

struct fuzz_peer {
    struct fuzz_wire *wire; /* NULL: not connected */
    struct inbox inbox;     /* what came; takes messages of any size */
    bool greeted;           /* … its preface, too */
};

/* To the server that listens; of the channel that dials. */
void fuzz_peer_connect(struct fuzz_peer *peer);
void fuzz_peer_accept(struct fuzz_peer *peer);
void fuzz_peer_close(struct fuzz_peer *peer);

/* All of it. False: the connection is closed. */
bool fuzz_peer_send(struct fuzz_peer *peer, struct idem_bytes bytes);

/* The next frame; its views are good until the next call. False: the connection
 * is closed. What does not speak our language breaks an assert. */
bool fuzz_peer_next(struct fuzz_peer *peer, struct frame *frame);

/* Preface and SETTINGS; a PING and whether that is its answer. The size of what
 * was written. */
size_t fuzz_put_hello(uint8_t *bytes, uint32_t stream_window);
size_t fuzz_put_ping(uint8_t *bytes);
bool fuzz_is_pong(const struct frame *frame);

#define FUZZ_HELLO_MAX 128
#define FUZZ_PING_MAX 64

#endif
