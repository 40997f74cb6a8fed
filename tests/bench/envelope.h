#ifndef ENVELOPE_H
#define ENVELOPE_H

#include <stddef.h>

#include "side.h"

/* A call in one frame, as docs/wire.md has it, for the peers that speak our
 * frames without our runtime: what plain epoll and nng REQ/REP carry. A method
 * is a number from the start. Any thread; ends the process at a wrong frame. */

#define ENVELOPE_ROOM (SIDE_BODY_MAX + 512)

/* Write a request into room for ENVELOPE_ROOM bytes; its size. */
size_t envelope_request(uint8_t *frame, uint32_t stream, const uint8_t *body,
                        size_t size);

/* All that a server does: decode the request, look the token up, write the
 * answer into room for ENVELOPE_ROOM bytes; its size. */
size_t envelope_answer(uint8_t *frame, const uint8_t *request, size_t size);

/* Decode an answer and compare its body; the stream of the call. */
uint32_t envelope_check(const uint8_t *answer, size_t size,
                        const struct side_options *options);

/* Bytes of the whole frame that begins so; 0: fewer than its head are there. */
size_t envelope_size(const uint8_t *bytes, size_t size);

#endif
