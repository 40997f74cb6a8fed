#ifndef FUZZ_STEPS_H
#define FUZZ_STEPS_H

#include "frame.h"

#include <idem/session.h>

/* An input as what one end of a connection says on its streams, step by step,
 * in frames that are whole; and what the other end may say to it (docs/wire.md,
 * 9). */

#define FUZZ_STREAMS_MAX 24
#define FUZZ_STEPS_MAX 65536 /* bytes of frames */

/* A kind of stream that a client opens. */
struct fuzz_kind {
    const char *method;
    uint32_t streams; /* of OPEN */
};

/* Of flow.proto: each kind in either style. */
#define FUZZ_FLOW_KINDS 6
extern const struct fuzz_kind fuzz_flow_kinds[FUZZ_FLOW_KINDS];

/* One stream's. */
struct fuzz_account {
    int64_t given;       /* credit that the other end has had */
    int64_t sent;        /* what our messages count for */
    int64_t came;        /* what its messages count for */
    int64_t won;         /* credit that it has given back */
    uint64_t first;      /* number of its first message, where they have them */
    uint64_t n_sent;     /* messages */
    uint64_t n_came;     /* messages */
    bool numbered, asks; /* they have numbers; each is answered by one */
    bool ended;          /* we have ended our side */
    bool left;           /* we have given it up */
    bool last;           /* the other end's side has ended */
    bool over;           /* the other end has said its last word */
};

struct fuzz_steps {
    struct idem_bytes input;
    bool marks;  /* a server that speaks: of numbers and marks, too */
    bool client; /* who speaks: opens streams of each kind in turn … */
    const struct fuzz_kind *kinds; /* … of these, all of them in one session */
    unsigned n_kinds;
    char session[IDEM_SESSION_MAX];
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
 * after its end, no more credit back than it was sent, no watermark above what
 * was sent and answered. */
void fuzz_steps_check(struct fuzz_steps *steps, const struct frame *came);

/* A numbered stream has no END yet, and is to get one: we have ended our side,
 * and it has nothing to wait for. */
bool fuzz_steps_owed(const struct fuzz_steps *steps);

#endif
