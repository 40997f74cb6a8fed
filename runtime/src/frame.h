#ifndef FRAME_H
#define FRAME_H

#include <idem/base.h>

/* The 12 bytes before every frame (docs/wire.md), little endian:
 *
 *    0        4      5       6          8        12
 *    | size   | type | flags | header   | stream |
 *
 * size counts what follows: header bytes of protobuf, then the message. */

#define FRAME_HEAD 12
#define FRAME_HEADER_MAX 16384 /* bytes of the protobuf header */

#define FRAME_PREFACE 8
#define FRAME_VERSION 1

/* On the wire. */
enum frame_type {
    FRAME_SETTINGS = 1,
    FRAME_OPEN = 2,
    FRAME_MESSAGE = 3,
    FRAME_END = 4,
    FRAME_WINDOW = 5,
    FRAME_CANCEL = 6,
    FRAME_DETACH = 7,
    FRAME_PING = 8,
    FRAME_PONG = 9,
    FRAME_GOAWAY = 10,
};

enum frame_flag {
    FRAME_FLAG_LAST = 1,     /* the sender's side of the stream ends here */
    FRAME_FLAG_MESSAGE = 2,  /* a message follows the header, maybe empty */
    FRAME_FLAG_SQUEEZED = 4, /* … compressed (codec.h) */
};

struct frame {
    uint8_t type; /* enum frame_type, or one of the future */
    uint8_t flags;
    uint32_t stream; /* 0: the connection itself */
    struct idem_bytes header;
    struct idem_bytes payload;
    bool oversize; /* received only: the payload was over the limit and is
                    * skipped; payload has its size and no data */
    struct idem_bytes route; /* a plain client's call, and its answer: whose it
                              * is (plain.h). Empty in frames of our own */
};

/* What the first twelve bytes say. */
struct frame_head {
    uint32_t size;
    uint8_t type;
    uint8_t flags;
    uint16_t header;
    uint32_t stream;
};

void frame_head_write(uint8_t bytes[FRAME_HEAD], const struct frame *frame);

/* False: the header would be longer than the frame, or than
 * FRAME_HEADER_MAX. */
bool frame_head_read(const uint8_t bytes[FRAME_HEAD], struct frame_head *head)
    IDEM_MUST_CHECK;

/* "IDEM", the version, three zeros: the first bytes of both directions. */
void frame_preface_write(uint8_t bytes[FRAME_PREFACE]);
bool frame_preface_check(const uint8_t bytes[FRAME_PREFACE]);

#endif
