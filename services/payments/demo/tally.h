#ifndef DEMO_TALLY_H
#define DEMO_TALLY_H

#include <pthread.h>

#include "plan.h"

/* What happened so far, counted by all clients. */
struct tally_counts {
    unsigned settled;  /* calls whose first final answer came */
    unsigned finished; /* clients that are done */
    unsigned asked;    /* calls of a stub, repeats by hand included */
    unsigned attempts; /* that the stubs made of them */
    unsigned replayed; /* answers that say they are */
    unsigned doubts;   /* calls of a stub that ended in doubt … */
    unsigned happened; /* … and had taken effect, said a repeat */
    unsigned had_not;  /* … and had not: a repeat did it, or was refused */
    unsigned differ;   /* later answers that were not the first one */
    unsigned by_hand;  /* other repeats: not sent, refused, rolled back */
    char last_trouble[IDEM_MESSAGE_MAX]; /* why the last one was needed */
};

struct tally {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct tally_counts counts; /* under the lock */
};

void tally_init(struct tally *tally);
void tally_fini(struct tally *tally);

/* A stub returned. */
void tally_asked(struct tally *tally, const struct idem_outcome *outcome);

/* A call that was in doubt got its final answer. */
void tally_resolved(struct tally *tally, enum idem_effect effect);

void tally_settled(struct tally *tally);
void tally_differs(struct tally *tally);
void tally_finished(struct tally *tally);

/* Wait until a call settles or a client finishes, at most limit_ms; the counts
 * then. */
struct tally_counts tally_wait(struct tally *tally, int limit_ms);

#endif
