#ifndef FUZZ_STEPS_H
#define FUZZ_STEPS_H

#include "frame.h"

/* An input as what one end of a connection says on its streams, step by step,
 * in frames that are whole; and what the other end may say to it (docs/wire.md,
 * 9). */

#define FUZZ_STREAMS_MAX 24
#define FUZZ_STEPS_MAX 65536 /* bytes of frames */

enum fuzz_kind {
    FUZZ_COUNT,
    FUZZ_SUM,
    FUZZ_CHAT,
    FUZZ_COUNT_ASYNC,
    FUZZ_SUM_ASYNC,
    FUZZ_CHAT_ASYNC,
    FUZZ_KINDS
};

/* One stream's. */
struct fuzz_account {
    int64_t given; /* credit that the other end has had */
    int64_t sent;  /* what our messages count for */
    int64_t came;  /* what its messages count for */
    int64_t won;   /* credit that it has given back */
    bool left;     /* we have given it up */
    bool last;     /* the other end's side has ended */
    bool over;     /* the other end has said its last word */
};

struct fuzz_steps {
    struct idem_bytes input;
    bool client;     /* who speaks: opens streams of each kind in turn */
    uint32_t window; /* credit that this side gives to each */
    uint32_t first;  /* stream's number */
    uint32_t opened; /* streams, from first on */
    struct fuzz_account accounts[FUZZ_STREAMS_MAX];
    uint8_t *bytes; /* FUZZ_STEPS_MAX: receives the frames … */
    size_t size;    /* … so many bytes */
};

/* All steps of the input, or as many as fit. */
void fuzz_steps_write(struct fuzz_steps *steps);

/* A frame of the other end is one that it may send: within the credit, nothing
 * after its end, no more credit back than it was sent. */
void fuzz_steps_check(struct fuzz_steps *steps, const struct frame *came);

#endif
