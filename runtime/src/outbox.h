#ifndef OUTBOX_H
#define OUTBOX_H

#include "frame.h"

/* Frames on their way out: two halves. One flies (the transport has it), the
 * other is filled; when the flight is over they change places. Small frames are
 * copied together, big messages are referred to. Knows no socket and no lock:
 * the filling half is guarded by its user, the flying half belongs to whoever
 * sends. */

#define OUTBOX_COPY_MAX 16384 /* bytes of a message that is copied */

/* What keeps a message's bytes alive until they are written. When they are not
 * copied, retain runs under the user's lock, and release once, without a lock,
 * also when they never were written. Empty: the bytes are copied. */
struct outbox_hold {
    void (*retain)(void *with);
    void (*release)(void *with);
    void *with;
};

struct outbox_big {
    size_t at; /* after this many of the copied bytes */
    struct idem_bytes bytes;
    struct outbox_hold hold;
};

struct outbox_half {
    uint8_t *bytes;
    size_t size, room;
    struct outbox_big *bigs;
    unsigned n_bigs, bigs_room;
    size_t total; /* bytes of both kinds; changes with the filling half's guard
                   * only, so of a flight that is over it is the last one's */
};

struct outbox {
    struct outbox_half filling, flying;
    size_t flown;       /* of the flying half's copied bytes */
    unsigned next_big;  /* of the flying half's */
    uint64_t appended;  /* bytes since the beginning */
    uint64_t taken_off; /* of them, those that may have been written */
};

void outbox_init(struct outbox *outbox);
void outbox_fini(struct outbox *outbox);

/* Bytes as they are. False: out of memory, nothing is appended. */
bool outbox_append_bytes(struct outbox *outbox, struct idem_bytes bytes)
    IDEM_MUST_CHECK;

/* A frame. A message over OUTBOX_COPY_MAX with a hold is retained and referred
 * to, else everything is copied. False: out of memory, nothing is appended. */
bool outbox_append(struct outbox *outbox, const struct frame *frame,
                   struct outbox_hold hold) IDEM_MUST_CHECK;

/* The same, of a message behind n parts that are copied whatever their size. */
bool outbox_append_parts(struct outbox *outbox, const struct idem_bytes *parts,
                         unsigned n, struct idem_bytes message,
                         struct outbox_hold hold) IDEM_MUST_CHECK;

/* The filled half takes off. The last flight is over. */
void outbox_take_off(struct outbox *outbox);

/* It did not: the transport was closed before it saw the first byte. */
void outbox_grounded(struct outbox *outbox);

/* The next parts of the flight, at most room; 0: all of it is handed out. */
unsigned outbox_parts(struct outbox *outbox, struct idem_bytes *parts,
                      unsigned room);

/* The flight is over: let go of the messages. Calls release functions. */
void outbox_land(struct outbox *outbox);

#endif
