#ifndef PLAIN_H
#define PLAIN_H

#include "frame.h"

/* Plain nng REQ clients on our port: nng's SP over a stream, and in its
 * messages a call as idem.v1.PlainCall, an answer as idem.v1.PlainAnswer
 * (docs/plain.md).
 *
 *    preface   | 0 'S' 'P' 0 | protocol u16 | 0 0 |    both ways
 *    message   | 1, over ipc only | size u64 | route | PlainCall or PlainAnswer
 * |
 *
 * All big endian. The route is the request's id, in front of it one word for
 * each device on the way; the answer begins with the same bytes. */

#define PLAIN_HEAD_MAX 9
#define PLAIN_ROUTE_MAX                                                        \
    64 /* bytes: the id, and the 15 devices nng lets it pass */

/* What may stand in a message beside the serialized request. */
#define PLAIN_BESIDE_MAX (PLAIN_ROUTE_MAX + FRAME_HEADER_MAX + 32)

/* What an answer has between its route and its header, and after that. */
#define PLAIN_FRONT_MAX (PLAIN_HEAD_MAX + PLAIN_ROUTE_MAX + 16)

/* A REQ client's. */
bool plain_preface_check(const uint8_t bytes[FRAME_PREFACE]);

/* Ours, a REP server's. */
void plain_preface_write(uint8_t bytes[FRAME_PREFACE]);

/* Over ipc (local) a message's head has a byte more. */
size_t plain_head_size(bool local);

/* The size of the body. False: not a message. */
bool plain_head_read(const uint8_t *bytes, bool local, uint64_t *size)
    IDEM_MUST_CHECK;

/* The route that a body begins with. False: it has none. */
bool plain_route_read(struct idem_bytes body, struct idem_bytes *route)
    IDEM_MUST_CHECK;

/* A body as an OPEN; views into it. A body behind whose route no PlainCall
 * stands is one without flags. False: it has no route. */
bool plain_call_read(struct idem_bytes body, struct frame *open)
    IDEM_MUST_CHECK;

/* The parts of an END's answer in front of its message; front holds the first
 * and the last of the three. */
void plain_answer_write(uint8_t front[2][PLAIN_FRONT_MAX],
                        const struct frame *end, bool local,
                        struct idem_bytes parts[3]);

#endif
