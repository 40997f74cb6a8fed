#ifndef INBOX_H
#define INBOX_H

#include "frame.h"

/* Received bytes, cut into frames in place. Knows no socket: give it the bytes,
 * take the frames. Lengths are checked before anything is allocated. One
 * thread. */

#define INBOX_CHUNK 65536

/* In what the bytes come. */
enum inbox_language {
    INBOX_FRAMES,
    INBOX_PLAIN, /* a plain client's messages (plain.h), each as an OPEN */
    INBOX_PLAIN_LOCAL,
};

struct inbox {
    enum inbox_language language;
    size_t max_message;
    uint8_t *chunk; /* INBOX_CHUNK bytes; head..tail are not cut yet */
    size_t head, tail;
    uint8_t *big; /* a frame that no chunk can hold, whole */
    size_t big_size, big_at;
    bool big_given; /* to the user: the next call frees it */
    uint64_t skip;  /* bytes of an oversize message still to be thrown away */
};

enum inbox_next {
    INBOX_FRAME,
    INBOX_MORE,   /* bytes are wanted */
    INBOX_BROKEN, /* the peer does not speak our language, or memory is out */
};

/* False: out of memory. */
bool inbox_init(struct inbox *inbox, size_t max_message) IDEM_MUST_CHECK;
void inbox_fini(struct inbox *inbox);

/* Where the next bytes go: at least one. */
uint8_t *inbox_space(const struct inbox *inbox, size_t *size);
void inbox_filled(struct inbox *inbox, size_t size);

/* The preface; INBOX_FRAME when it is there and taken. */
enum inbox_next inbox_preface(struct inbox *inbox);

/* After a preface that was broken: a plain client's, local over ipc? True: it
 * is taken, and what follows is read as its messages. */
bool inbox_preface_plain(struct inbox *inbox, bool local);

/* The size of the frame that is begun and not whole, as far as it is known; 0:
 * none is. */
size_t inbox_begun(const struct inbox *inbox);

/* The frame's views are good until the next call. */
enum inbox_next inbox_next(struct inbox *inbox, struct frame *frame);

#endif
